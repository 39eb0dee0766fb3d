//! Integration tests of `hoistway-capi`: one binary, so that they are linked once.

mod abi;
mod c_program;
mod calls;
mod host_merge;
