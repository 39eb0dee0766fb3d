//! Sizes and switches of an engine.

/// The sizes and switches of an engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the buffer pool in bytes, by default 32 MiB. The pool reserves address space and
    /// takes memory at first use. With io_uring the first file pins all of it. Further buffers are
    /// allocated.
    pub pool_bytes: usize,
    /// Number of receive buffers shared by all connections: a power of two, at most 32,768, by
    /// default 64.
    pub receive_buffers: u16,
    /// Size of a receive buffer in bytes, the maximum of one receive; by default 64 KiB.
    pub receive_bytes: usize,
    /// Handles SIGTERM, SIGINT, SIGHUP and SIGCHLD, and returns them as events; by default true.
    pub signals: bool,
    /// Helper threads for each file of the engine without io_uring, by default 16. The number
    /// bounds the requests of a file in flight.
    pub threads: usize,
    /// Maximum time in ns for which a wait polls for events before the thread sleeps; 0 disables
    /// polling. The default is [`WATCH_NS`].
    pub watch_ns: u64,
}

/// The default polling time of a wait in ns: 32 us, the duration of a wake-up on an idle CPU. A
/// poll without an event then costs about as much as the sleep that it replaces.
pub const WATCH_NS: u64 = 32_000;

impl Default for Options {
    fn default() -> Self {
        Options {
            pool_bytes: 32 << 20,
            receive_buffers: 64,
            receive_bytes: 64 << 10,
            signals: true,
            threads: 16,
            watch_ns: WATCH_NS,
        }
    }
}

impl Options {
    /// Returns options for a probe: a small pool, no signals.
    pub(crate) fn small() -> Options {
        Options {
            pool_bytes: 1 << 20,
            receive_buffers: 2,
            receive_bytes: 4096,
            signals: false,
            threads: 1,
            watch_ns: 0,
        }
    }

    /// Raises the soft limit of descriptors to the hard limit, and returns it.
    pub(crate) fn descriptors_max(&self) -> u32 {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let limit = if setrlimit(Resource::Nofile, most).is_ok() { most } else { limit };
        limit.current.unwrap_or(u64::from(u32::MAX)).min(u64::from(u32::MAX)) as u32
    }
}
