//! Which engine: io_uring where it works, threads elsewhere.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::{Engine, Event, Message, Part, Uring, clock};

/// The engines that reach the real outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// io_uring.
    Uring,
    /// epoll, and threads for files.
    Threads,
}

/// What an engine is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The pool of buffers, in bytes. It costs address space first, memory as it is used, and with io_uring and a file all of it at once, for
    /// registered memory is pinned. Beyond it, buffers are memory of their own. 32 MiB unless told.
    pub pool_bytes: usize,
    /// Buffers that wait for bytes from clients, all connections together: a power of two, at most 32,768. 64 unless told.
    pub receive_buffers: u16,
    /// Their length in bytes: how much one receive brings at most. 64 KiB unless told.
    pub receive_bytes: usize,
    /// Whether SIGTERM, SIGINT, SIGHUP and SIGCHLD are caught and told. They are, unless told otherwise.
    pub signals: bool,
    /// Threads for each file, of the engine without io_uring. 16 unless told: so many requests can wait for a medium at once.
    pub threads: usize,
    /// How long at most the thread watches for the next event before it sleeps, in ns; 0: not at all. [`WATCH_NS`] unless told.
    pub watch_ns: u64,
}

/// How long the thread watches for the next event before it sleeps, unless told otherwise. It is as long as a wake-up takes on a processor that has gone
/// idle, so that watching in vain costs about as much as the sleep that it was to save.
pub const WATCH_NS: u64 = 32_000;

/// Why io_uring cannot be used, and what can be done about it.
#[derive(Debug, thiserror::Error)]
#[error("io_uring cannot be used: {cause}. {advice}")]
pub struct Unavailable {
    /// The system's words.
    pub cause: io::Error,
    /// What to do.
    pub advice: String,
}

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
    fn small() -> Options {
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
    pub(super) fn descriptors_max(&self) -> u32 {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let limit = if setrlimit(Resource::Nofile, most).is_ok() { most } else { limit };
        limit.current.unwrap_or(u64::from(u32::MAX)).min(u64::from(u32::MAX)) as u32
    }
}

/// Whether io_uring works here: a ring is made as a server needs it, and bytes are sent through it.
///
/// # Errors
/// Why not: it is switched off, forbidden (containers do), or the kernel is too old.
pub fn probe() -> Result<(), Unavailable> {
    try_it().map_err(|cause| Unavailable { advice: advice(&cause), cause })
}

fn try_it() -> io::Result<()> {
    let mut engine = Uring::new(&Options::small())?;
    let (one, other) = UnixStream::pair()?;
    let (one, other) = (engine.adopt(OwnedFd::from(one)), engine.adopt(OwnedFd::from(other)));
    engine.receive(other);
    engine.send(one, Message { head: b"hoistway".to_vec(), parts: vec![Part::Head { len: 8 }] });
    let (mut events, end_ns) = (Vec::new(), clock::now_ns() + 1_000_000_000);
    while clock::now_ns() < end_ns {
        engine.turn(Some(end_ns), &mut events)?;
        for event in events.drain(..) {
            match event {
                Event::Received { buffer, len, .. } if buffer.get(..len) == Some(b"hoistway") => return Ok(()),
                Event::Received { .. } | Event::Broken { .. } => return Err(io::ErrorKind::Unsupported.into()),
                _ => {}
            }
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn advice(cause: &io::Error) -> String {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match (cause.raw_os_error(), disabled.trim()) {
        (Some(libc::EPERM), "2") => "It is switched off: sysctl kernel.io_uring_disabled=0 switches it on".into(),
        (Some(libc::EPERM), "1") => "It is allowed to a group only: join the group of sysctl kernel.io_uring_group, or set \
             kernel.io_uring_disabled=0"
            .into(),
        (Some(libc::EPERM | libc::EACCES), _) => "A seccomp filter forbids it, as containers' default ones do: give the \
             container a profile that allows io_uring_setup, io_uring_enter and io_uring_register (docker run --security-opt \
             seccomp=FILE)"
            .into(),
        (Some(libc::ENOSYS | libc::EINVAL), _) => format!(
            "It needs Linux 6.0 or newer (this is {}), or a container's filter hides it",
            rustix::system::uname().release().to_string_lossy()
        ),
        (Some(libc::ENOMEM), _) => "Locked memory is too short for it: raise ulimit -l (LimitMEMLOCK= of a systemd unit)".into(),
        (Some(libc::EMFILE | libc::ENFILE), _) => "There are no descriptors left: raise ulimit -n".into(),
        _ => "Threads do its work instead".into(),
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineKind::Uring => "io_uring",
            EngineKind::Threads => "threads",
        })
    }
}

impl std::str::FromStr for EngineKind {
    type Err = String;

    fn from_str(text: &str) -> Result<EngineKind, String> {
        match text {
            "io_uring" => Ok(EngineKind::Uring),
            "threads" => Ok(EngineKind::Threads),
            _ => Err(format!("no engine is called {text:?}: io_uring or threads")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_about_it_fits_the_cause() {
        let of = |code| advice(&io::Error::from_raw_os_error(code));
        assert!(of(libc::EPERM).contains("seccomp") || of(libc::EPERM).contains("kernel.io_uring_disabled"));
        assert!(of(libc::ENOSYS).contains("Linux 6.0"));
        assert!(of(libc::ENOMEM).contains("ulimit -l"));
        assert!(of(libc::EMFILE).contains("ulimit -n"));
    }

    #[test]
    fn an_engine_is_called_what_it_is_printed_as() {
        for kind in [EngineKind::Uring, EngineKind::Threads] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("uring?".parse::<EngineKind>().is_err());
    }
}
