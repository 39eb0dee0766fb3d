//! Integration tests of `hoistway-mount`: one binary, so that they are linked once.

mod admin;
mod failures;
mod fsx;
mod fuse_below;
mod gate_requests;
mod kernel_cache;
mod limits;
mod memory;
mod posix;
mod replacing;
mod support;
mod writeback;

/// The process that serves a mount for another test: tests start this program again with this test
/// as its filter.
#[test]
#[ignore = "other tests start it as a process of its own"]
fn mounts_for_another_process() {
    if !support::serve() {
        support::scheduled::serve();
    }
}
