//! Which engine: io_uring where it works, threads elsewhere.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::clock;
use crate::engine::{Engine, Event, Message, Part};
use crate::options::Options;
use crate::uring::Uring;

/// The engines that reach the real outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// io_uring.
    Uring,
    /// epoll, and threads for files.
    Threads,
}

/// Why io_uring cannot be used, and what can be done about it.
#[derive(Debug, thiserror::Error)]
#[error("io_uring cannot be used: {cause}. {advice}")]
pub struct Unavailable {
    /// The system's words.
    pub cause: io::Error,
    /// What to do.
    pub advice: String,
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
