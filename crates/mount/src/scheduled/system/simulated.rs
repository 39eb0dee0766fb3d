//! The operating system of a simulated world, which answers for the system on its thread.

use std::cell::RefCell;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;

use super::Fault;

thread_local! {
    static HOST: RefCell<Option<Rc<dyn Host>>> = const { RefCell::new(None) };
}

/// The operating system of a simulated world. The calls that may block suspend the simulated thread
/// that runs.
pub trait Host {
    /// Returns the time in ns.
    fn now_ns(&self) -> u64;
    /// Starts a thread that runs a job.
    fn start(&self, job: Box<dyn FnOnce() + Send>);
    /// Returns true if a thread exists.
    fn exists(&self, tid: u32) -> bool;
    /// Returns true if a thread is killed and waits for a reply only.
    fn is_killed(&self, tid: u32) -> bool;
    /// Returns the I/O priority of a thread, as ioprio_get(2) encodes it.
    fn io_priority(&self, tid: u32) -> u16;
    /// Returns the maximum number of open descriptors.
    fn descriptors_max(&self) -> u64;
    /// Returns the bytes of the disk below a file system, and true if the disk rotates.
    fn disk(&self, device: u64) -> (u64, bool);
    /// Returns the number of names of an open file.
    fn links(&self, fd: RawFd) -> u64;
    /// Opens a second description of an open file.
    fn reopen(&self, fd: RawFd) -> Option<OwnedFd>;
    /// Writes back a range of a file as sync_file_range(2).
    ///
    /// # Errors
    /// A write-back error that this description has not reported, if `waits`.
    fn write_range(&self, fd: RawFd, range: (u64, u64), waits: bool) -> io::Result<()>;
    /// Returns the deliberate fault of the gate.
    fn fault(&self) -> Option<Fault>;
}

/// Makes a host that of the gates on this thread until the result is dropped.
pub struct Entered(());

/// Enters a host.
pub fn enter(host: Rc<dyn Host>) -> Entered {
    HOST.set(Some(host));
    Entered(())
}

impl Drop for Entered {
    fn drop(&mut self) {
        HOST.set(None);
    }
}

/// Returns the host of this thread.
#[inline]
pub(in super::super) fn host() -> Option<Rc<dyn Host>> {
    HOST.with_borrow(Clone::clone)
}
