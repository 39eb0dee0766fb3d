//! Sizes and switches of an engine.

/// What an engine is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The pool of buffers, in bytes. It costs address space first, memory as it is used, and with
    /// io_uring and a file all of it at once, for registered memory is pinned. Beyond it, buffers
    /// are memory of their own. 32 MiB unless told.
    pub pool_bytes: usize,
    /// Buffers that wait for bytes from clients, all connections together: a power of two, at most
    /// 32,768. 64 unless told.
    pub receive_buffers: u16,
    /// Their length in bytes: how much one receive brings at most. 64 KiB unless told.
    pub receive_bytes: usize,
    /// Whether SIGTERM, SIGINT, SIGHUP and SIGCHLD are caught and told. They are, unless told
    /// otherwise.
    pub signals: bool,
    /// Threads for each file, of the engine without io_uring. 16 unless told: so many requests can
    /// wait for a medium at once.
    pub threads: usize,
    /// How long at most the thread watches for the next event before it sleeps, in ns; 0: not at
    /// all. [`WATCH_NS`] unless told.
    pub watch_ns: u64,
}

/// How long the thread watches for the next event before it sleeps, unless told otherwise. It is as
/// long as a wake-up takes on a processor that has gone idle, so that watching in vain costs about
/// as much as the sleep that it was to save.
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
    /// The same for a moment's use: a small pool, no signals.
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

    /// How many descriptors the process may have; as many as the system allows it are asked for.
    pub(crate) fn descriptors_max(&self) -> u32 {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let limit = if setrlimit(Resource::Nofile, most).is_ok() { most } else { limit };
        limit.current.unwrap_or(u64::from(u32::MAX)).min(u64::from(u32::MAX)) as u32
    }
}
