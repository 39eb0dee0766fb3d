//! systemd: sockets that it hands over, and what it is told.
//!
//! The interfaces are plain: numbers in the environment and a datagram socket (sd_listen_fds(3),
//! sd_notify(3)).

use std::env;
use std::ffi::OsString;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use rustix::io::FdFlags;
use rustix::net::sockopt;

use crate::Purpose;

/// The first descriptor that is handed over.
const FIRST: RawFd = 3;
/// More are a mistake.
const SOCKETS_MAX: usize = 64;

/// A socket that systemd listens to for us.
#[derive(Debug)]
pub struct Activated {
    /// It, listening.
    pub socket: OwnedFd,
    /// Its `FileDescriptorName=`: `control` is the control socket, `metrics` that of metrics, all
    /// others are for clients.
    pub name: String,
}

impl Activated {
    /// What it is for.
    pub fn purpose(&self) -> Purpose {
        purpose_of(&self.name)
    }
}

/// What a socket of this name is for.
fn purpose_of(name: &str) -> Purpose {
    match name {
        "control" => Purpose::Control,
        "metrics" => Purpose::Metrics,
        _ => Purpose::Nbd,
    }
}

/// Why sockets were not taken over.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActivationError {
    /// The number is none.
    #[error("LISTEN_FDS is `{0}`: it is a number, 1 to {SOCKETS_MAX}")]
    Count(String),
    /// The names are not as many as the sockets.
    #[error("LISTEN_FDNAMES has {names} names for {sockets} sockets")]
    Names {
        /// How many names.
        names: usize,
        /// How many sockets.
        sockets: usize,
    },
    /// A descriptor is no listening stream socket.
    #[error("descriptor {descriptor}, which systemd handed over as `{name}`, is no listening stream socket")]
    NotListening {
        /// Its number.
        descriptor: RawFd,
        /// Its name.
        name: String,
    },
    /// It was told both where to listen and what with.
    #[error("systemd hands over a socket for clients: leave out {0}")]
    ListenGiven(&'static str),
}

/// What the environment says of activation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `LISTEN_FDS`.
    pub fds: Option<String>,
    /// `LISTEN_PID`.
    pub pid: Option<String>,
    /// `LISTEN_FDNAMES`.
    pub names: Option<String>,
}

impl Environment {
    /// The process's.
    pub fn of_process() -> Environment {
        let text = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Environment { fds: text("LISTEN_FDS"), pid: text("LISTEN_PID"), names: text("LISTEN_FDNAMES") }
    }

    /// The names of the sockets that were handed over to the process `pid`, in order; none if it
    /// was not activated.
    ///
    /// # Errors
    /// [`ActivationError::Count`] and [`ActivationError::Names`].
    pub fn names_for(&self, pid: u32) -> Result<Vec<String>, ActivationError> {
        let Some(fds) = &self.fds else { return Ok(Vec::new()) };
        // Those of a parent are not for its children.
        if self.pid.as_ref().and_then(|given| given.parse().ok()) != Some(pid) {
            return Ok(Vec::new());
        }
        let count = fds.parse::<usize>().ok().filter(|count| *count <= SOCKETS_MAX);
        let count = count.ok_or_else(|| ActivationError::Count(fds.clone()))?;
        match &self.names {
            None => Ok(vec!["unknown".to_owned(); count]),
            Some(names) => {
                let names: Vec<String> = names.split(':').map(str::to_owned).collect();
                if names.len() == count {
                    Ok(names)
                } else {
                    Err(ActivationError::Names { names: names.len(), sockets: count })
                }
            }
        }
    }
}

/// Takes over the sockets that systemd listens to for this process; none if it was not activated.
/// To be called once, before anything else opens descriptors: those from 3 on are taken to be
/// systemd's. `listen_given` says which option or table told where to listen, which cannot be
/// heeded if there is a socket for clients among them.
///
/// # Errors
/// [`ActivationError`].
pub fn listen_fds(listen_given: Option<&'static str>) -> Result<Vec<Activated>, ActivationError> {
    let names = Environment::of_process().names_for(std::process::id())?;
    check_listen(&names, listen_given)?;
    let mut sockets = Vec::with_capacity(names.len());
    for (descriptor, name) in (FIRST..).zip(names) {
        // SAFETY: the service manager has opened these descriptors for this process and nobody here
        // has taken them over before, as the caller was asked to see to. One that is not open is
        // found by the calls below and not closed.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let listening = sockopt::socket_acceptconn(&socket) == Ok(true)
            && sockopt::socket_type(&socket) == Ok(rustix::net::SocketType::STREAM)
            && rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC).is_ok()
            && rustix::io::ioctl_fionbio(&socket, true).is_ok();
        if !listening {
            std::mem::forget(socket);
            return Err(ActivationError::NotListening { descriptor, name });
        }
        sockets.push(Activated { socket, name });
    }
    Ok(sockets)
}

/// That it is said in one place where clients come in. Sockets for other ends leave that open.
fn check_listen(names: &[String], listen_given: Option<&'static str>) -> Result<(), ActivationError> {
    match listen_given {
        Some(given) if names.iter().any(|name| purpose_of(name) == Purpose::Nbd) => {
            Err(ActivationError::ListenGiven(given))
        }
        _ => Ok(()),
    }
}

/// The way to systemd: what it is told of the server's state. Without systemd, or for a service
/// that is not of the type `notify`, nothing happens.
#[derive(Debug, Default)]
pub struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog_ns: Option<u64>,
}

impl Notify {
    /// As the environment says: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`.
    pub fn of_process() -> Notify {
        let text = |name: &str| env::var_os(name).and_then(|value| value.into_string().ok());
        Notify::new(env::var_os("NOTIFY_SOCKET"), text("WATCHDOG_USEC"), text("WATCHDOG_PID"))
    }

    /// As these say. A socket that cannot be used is told in the log and then left alone.
    pub fn new(socket: Option<OsString>, watchdog_usec: Option<String>, watchdog_pid: Option<String>) -> Notify {
        let ours = watchdog_pid.is_none_or(|pid| pid.parse() == Ok(std::process::id()));
        let usec = watchdog_usec.and_then(|usec| usec.parse::<u64>().ok()).filter(|usec| ours && *usec > 0);
        let watchdog_ns = usec.map(|usec| usec.saturating_mul(1000));
        let socket = socket.and_then(|name| match connect(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(socket = %name.to_string_lossy(), %error, "systemd cannot be told anything");
                None
            }
        });
        Notify { watchdog_ns: watchdog_ns.filter(|_| socket.is_some()), socket }
    }

    /// How often [`Notify::alive`] has to be called, in ns: half of what systemd waits for. `None`:
    /// it need not be.
    pub fn alive_every_ns(&self) -> Option<u64> {
        self.watchdog_ns.map(|ns| (ns / 2).max(1))
    }

    /// All is listened to.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", line(status)));
    }

    /// The configuration is being read anew; [`Notify::ready`] ends it.
    pub fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let usec = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={usec}"));
    }

    /// It drains and leaves.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=draining");
    }

    /// A line for `systemctl status`.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={}", line(status)));
    }

    /// It is alive.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(message.as_bytes(), address)
        {
            tracing::debug!(%error, message, "systemd could not be told");
        }
    }
}

/// A path, or with an `@` in front a name in the kernel's own namespace.
fn connect(name: &OsString) -> std::io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        [b'/', ..] => SocketAddr::from_pathname(Path::new(name))?,
        _ => return Err(std::io::Error::other("NOTIFY_SOCKET is neither a path nor begins with @")),
    };
    let socket = UnixDatagram::unbound()?;
    // A full socket is not waited for: what is told is news, not work.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

/// The first line of a text: a line end would begin another message.
fn line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(fds: &str, pid: &str, names: Option<&str>) -> Environment {
        Environment { fds: Some(fds.into()), pid: Some(pid.into()), names: names.map(str::to_owned) }
    }

    #[test]
    fn sockets_are_taken_over_only_by_the_process_that_they_are_for() {
        assert_eq!(Environment::default().names_for(7), Ok(vec![]));
        assert_eq!(environment("2", "7", Some("nbd:control")).names_for(7), Ok(vec!["nbd".into(), "control".into()]));
        assert_eq!(environment("2", "8", Some("nbd:control")).names_for(7), Ok(vec![]), "a parent's");
        assert_eq!(environment("2", "7", None).names_for(7), Ok(vec!["unknown".into(); 2]));
        assert_eq!(environment("two", "7", None).names_for(7), Err(ActivationError::Count("two".into())));
        assert_eq!(environment("65", "7", None).names_for(7), Err(ActivationError::Count("65".into())));
        let names = ActivationError::Names { names: 1, sockets: 2 };
        assert_eq!(environment("2", "7", Some("nbd")).names_for(7), Err(names));
    }

    #[test]
    fn where_to_listen_is_said_once_but_a_control_socket_says_nothing_of_it() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let given = Some("[listen]");
        assert_eq!(check_listen(&names(&[]), given), Ok(()));
        assert_eq!(check_listen(&names(&["control", "metrics"]), given), Ok(()));
        assert_eq!(check_listen(&names(&["control", "nbd"]), None), Ok(()));
        assert_eq!(check_listen(&names(&["unknown"]), given), Err(ActivationError::ListenGiven("[listen]")));
    }

    /// A service manager's socket, and the way to it.
    fn manager(watchdog: Option<&str>, pid: Option<String>) -> (tempfile::TempDir, UnixDatagram, Notify) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_nonblocking(true).expect("no waiting");
        let notify = Notify::new(Some(path.into()), watchdog.map(str::to_owned), pid);
        (folder, socket, notify)
    }

    fn told(socket: &UnixDatagram) -> String {
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).expect("it was told something");
        String::from_utf8_lossy(&message[..length]).into_owned()
    }

    #[test]
    fn the_service_manager_is_told_the_state_in_its_own_words() {
        let (_folder, socket, notify) = manager(None, None);
        notify.ready("2 exports\nREADY=0");
        assert_eq!(told(&socket), "READY=1\nSTATUS=2 exports", "one line, whatever it is");
        notify.status("draining 3");
        assert_eq!(told(&socket), "STATUS=draining 3");
        notify.stopping();
        assert_eq!(told(&socket), "STOPPING=1\nSTATUS=draining");
        notify.alive();
        assert_eq!(told(&socket), "WATCHDOG=1");
        notify.reloading();
        let reloading = told(&socket);
        let usec: u64 =
            reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("the form").parse().expect("a number");
        assert!(usec > 0);
    }

    #[test]
    fn a_watchdog_is_fed_twice_in_its_time_and_only_by_whom_it_watches() {
        let own = std::process::id().to_string();
        let every = |usec: Option<&str>, pid: Option<String>| manager(usec, pid).2.alive_every_ns();
        assert_eq!(every(Some("30000000"), None), Some(15_000_000_000));
        assert_eq!(every(Some("30000000"), Some(own)), Some(15_000_000_000));
        assert_eq!(every(Some("30000000"), Some("1".into())), None);
        assert_eq!([every(None, None), every(Some("0"), None), every(Some("soon"), None)], [None; 3]);
        assert_eq!(Notify::new(None, Some("30000000".into()), None).alive_every_ns(), None, "there is nobody to tell");
    }

    #[test]
    fn without_a_service_manager_nothing_happens() {
        for name in [None, Some("relative"), Some("/nowhere/notify"), Some("")] {
            let notify = Notify::new(name.map(OsString::from), None, None);
            notify.ready("up");
            notify.reloading();
            notify.stopping();
        }
    }
}
