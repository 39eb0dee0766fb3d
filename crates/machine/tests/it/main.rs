//! Integration tests of `hoistway-machine`: one binary, so that they are linked once.

mod devices;
mod fake;
mod in_use;
mod process;
mod set;
mod udev;
