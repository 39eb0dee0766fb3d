//! The default queue depths of media.

pub use hoistway_qos::medium::{DEPTH_FLASH as FLASH, DEPTH_ROTATIONAL as ROTATIONAL};

/// Memory and null devices complete each request within the call, so the depth is the number of
/// requests of one tenant that are served in a row while other tenants wait.
pub const MEMORY: u32 = 8;
/// A file in memory (tmpfs): requests are copies, executed one after the other; several share a
/// turn of the engine.
pub const TMPFS: u32 = 16;
/// An export of another server: enough requests to keep several connections and the disks behind
/// them busy.
pub const REMOTE: u32 = 64;
/// The maximum number of requests in an emulated drive at a time, unless the configuration says
/// otherwise.
pub const EMULATED_MAX: u32 = 32;
