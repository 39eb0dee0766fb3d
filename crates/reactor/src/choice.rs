//! The choice of the engine: io_uring where it works, else epoll with threads.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::clock;
use crate::engine::{Engine, Event, Message, Part};
use crate::options::Options;
use crate::uring::Uring;

/// An engine that does real I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// [`Uring`]: io_uring for sockets and files.
    Uring,
    /// [`Threads`](crate::Threads): epoll, and helper threads for files.
    Threads,
}

/// The reason why io_uring cannot be used, and a remedy.
#[derive(Debug, thiserror::Error)]
#[error("io_uring cannot be used: {cause}. {advice}")]
pub struct Unavailable {
    /// The error of the kernel.
    pub cause: io::Error,
    /// The remedy, as one sentence.
    pub advice: String,
}

/// Checks that io_uring works: creates the engine and sends bytes through a pair of sockets.
///
/// # Errors
/// io_uring is disabled, forbidden (as in containers), or the kernel is too old.
pub fn probe() -> Result<(), Unavailable> {
    try_engine().map_err(|cause| Unavailable { advice: advice(&cause), cause })
}

fn try_engine() -> io::Result<()> {
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
        (Some(libc::EPERM), "2") => "It is disabled: sysctl kernel.io_uring_disabled=0 enables it".into(),
        (Some(libc::EPERM), "1") => "It is permitted to one group only: join the group of sysctl kernel.io_uring_group, or set \
             kernel.io_uring_disabled=0"
            .into(),
        (Some(libc::EPERM | libc::EACCES), _) => "A seccomp filter forbids it, as the default filters of containers do: give the \
             container a profile that allows io_uring_setup, io_uring_enter and io_uring_register (docker run --security-opt \
             seccomp=FILE)"
            .into(),
        (Some(libc::ENOSYS | libc::EINVAL), _) => format!(
            "It needs Linux 6.0 or newer (this is {}), or a container's filter hides it",
            rustix::system::uname().release().to_string_lossy()
        ),
        (Some(libc::ENOMEM), _) => "The limit of locked memory is too low: raise ulimit -l (LimitMEMLOCK= of a systemd unit)".into(),
        (Some(libc::EMFILE | libc::ENFILE), _) => "The process has no descriptors left: raise ulimit -n".into(),
        _ => "Threads are used instead".into(),
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
            _ => Err(format!("unknown engine {text:?}: use io_uring or threads")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_fits_the_cause() {
        let of = |code| advice(&io::Error::from_raw_os_error(code));
        assert!(of(libc::EPERM).contains("seccomp") || of(libc::EPERM).contains("kernel.io_uring_disabled"));
        assert!(of(libc::ENOSYS).contains("Linux 6.0"));
        assert!(of(libc::ENOMEM).contains("ulimit -l"));
        assert!(of(libc::EMFILE).contains("ulimit -n"));
    }

    #[test]
    fn an_engine_is_parsed_from_its_printed_name() {
        for kind in [EngineKind::Uring, EngineKind::Threads] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("uring?".parse::<EngineKind>().is_err());
    }
}
