//! systemd: socket activation and notifications of the service manager.
//!
//! The crate `sd-notify` reads the environment (sd_listen_fds(3), sd_watchdog_enabled(3)) and
//! formats the messages (sd_notify(3)). Two pieces are our own or not taken:
//!
//! - The notification socket is ours. `sd_notify::notify` sends with a blocking socket, so that a
//!   full queue of the service manager would stop the thread that serves all clients, and it does
//!   not connect to abstract addresses (`@name`), which systemd uses in some containers.
//! - The crate `listenfd` is not used for activation: it ignores `LISTEN_FDNAMES`, by which the
//!   server tells control and metrics sockets from those of clients, and it accepts descriptors
//!   without `LISTEN_PID`, which may be those of a parent process.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

use rustix::net::{SocketType, sockopt};
use sd_notify::NotifyState;

use crate::Purpose;

/// A listening socket that systemd passed to the process.
#[derive(Debug)]
pub struct Activated {
    /// The listening socket.
    pub socket: OwnedFd,
    /// The `FileDescriptorName=` of the socket: `control` is the control socket, `metrics` that of
    /// the metrics; all others are for NBD clients.
    pub name: String,
}

impl Activated {
    /// Returns the service behind the socket.
    pub fn purpose(&self) -> Purpose {
        purpose_of(&self.name)
    }
}

/// Returns the service behind a socket of this name.
fn purpose_of(name: &str) -> Purpose {
    match name {
        "control" => Purpose::Control,
        "metrics" => Purpose::Metrics,
        _ => Purpose::Nbd,
    }
}

/// Why the sockets of systemd cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// The variables of the environment are inconsistent, or a descriptor is not open.
    #[error("socket activation (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES): {0}")]
    Environment(#[from] io::Error),
    /// A descriptor is not a listening stream socket.
    #[error("descriptor {descriptor}, which systemd passed as `{name}`, is not a listening stream socket")]
    NotListening {
        /// The number of the descriptor.
        descriptor: RawFd,
        /// The name of the descriptor.
        name: String,
    },
    /// Both systemd and the named option or table define where clients connect.
    #[error("systemd passes a socket for clients: omit {0}")]
    ListenGiven(&'static str),
}

/// Takes over the sockets that systemd passed to this process; none without activation. The caller
/// calls it once, before other code opens descriptors. `listen_given` names the option or table
/// that also defines where clients connect; together with a client socket it is an error.
///
/// # Errors
/// [`ActivationError`].
pub fn listen_fds(listen_given: Option<&'static str>) -> Result<Vec<Activated>, ActivationError> {
    // `listen_fds_with_names` refuses the names of descriptors that were passed to another process.
    if sd_notify::listen_fds()?.len() == 0 {
        return Ok(Vec::new());
    }
    let passed: Vec<(RawFd, String)> = sd_notify::listen_fds_with_names()?.collect();
    check_listen(passed.iter().map(|(_, name)| name.as_str()), listen_given)?;
    let mut sockets = Vec::with_capacity(passed.len());
    for (descriptor, name) in passed {
        // SAFETY: systemd opened these descriptors for this process, and the caller guarantees that
        // no other code owns them. `listen_fds_with_names` has checked that they are open.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let listening = sockopt::socket_acceptconn(&socket) == Ok(true)
            && sockopt::socket_type(&socket) == Ok(SocketType::STREAM)
            && rustix::io::ioctl_fionbio(&socket, true).is_ok();
        if !listening {
            std::mem::forget(socket);
            return Err(ActivationError::NotListening { descriptor, name });
        }
        sockets.push(Activated { socket, name });
    }
    Ok(sockets)
}

/// Checks that only one source defines where clients connect. Control and metrics sockets do not.
fn check_listen<'a>(
    mut names: impl Iterator<Item = &'a str>,
    listen_given: Option<&'static str>,
) -> Result<(), ActivationError> {
    match listen_given {
        Some(given) if names.any(|name| purpose_of(name) == Purpose::Nbd) => Err(ActivationError::ListenGiven(given)),
        _ => Ok(()),
    }
}

/// Notifications of the service manager. Without systemd, or for a service that is not of the type
/// `notify`, all methods do nothing.
#[derive(Debug, Default)]
pub struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// Reads the environment of the process: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`.
    pub fn of_process() -> Notify {
        Notify::new(env::var_os("NOTIFY_SOCKET"), sd_notify::watchdog_enabled())
    }

    /// Creates notifications to a socket, with the timeout of the watchdog. If the socket cannot be
    /// used, logs a warning and sends nothing.
    pub fn new(socket: Option<OsString>, watchdog: Option<Duration>) -> Notify {
        let socket = socket.and_then(|name| match connect(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(socket = %name.to_string_lossy(), %error, "systemd cannot be notified");
                None
            }
        });
        Notify { watchdog: watchdog.filter(|timeout| socket.is_some() && !timeout.is_zero()), socket }
    }

    /// Returns the interval in ns at which [`Notify::alive`] is to be called, half of the
    /// watchdog's timeout; `None` without a watchdog.
    pub fn alive_every_ns(&self) -> Option<u64> {
        let half = |timeout: Duration| u64::try_from(timeout.as_nanos() / 2).unwrap_or(u64::MAX).max(1);
        self.watchdog.map(half)
    }

    /// Reports that the server listens on all sockets.
    pub fn ready(&self, status: &str) {
        self.send(&[NotifyState::Ready, NotifyState::Status(first_line(status))]);
    }

    /// Reports that a reload begins; [`Notify::ready`] reports its end.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.send(&[NotifyState::Reloading, now]),
            Err(error) => tracing::debug!(%error, "systemd was not notified of the reload"),
        }
    }

    /// Reports that the server shuts down.
    pub fn stopping(&self) {
        self.send(&[NotifyState::Stopping, NotifyState::Status("draining")]);
    }

    /// Sets the line that `systemctl status` shows.
    pub fn status(&self, status: &str) {
        self.send(&[NotifyState::Status(first_line(status))]);
    }

    /// Resets the watchdog.
    pub fn alive(&self) {
        self.send(&[NotifyState::Watchdog]);
    }

    fn send(&self, states: &[NotifyState<'_>]) {
        let Some((socket, address)) = &self.socket else { return };
        let message = states.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            tracing::debug!(%error, message, "systemd could not be notified");
        }
    }
}

/// Opens a socket and the address of the service manager: a path, or an abstract name after `@`.
fn connect(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        [b'/', ..] => SocketAddr::from_pathname(Path::new(name))?,
        _ => return Err(io::Error::other("NOTIFY_SOCKET is neither a path nor begins with @")),
    };
    let socket = UnixDatagram::unbound()?;
    // A notification is dropped rather than block the server.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

/// Returns the first line of a text: a line end would begin another assignment.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_socket_and_a_listen_option_exclude_each_other() {
        let check = |names: &[&'static str], given| check_listen(names.iter().copied(), given);
        let given = Some("[listen]");
        assert!(check(&[], given).is_ok());
        assert!(check(&["control", "metrics"], given).is_ok());
        assert!(check(&["control", "nbd"], None).is_ok());
        assert!(matches!(check(&["unknown"], given), Err(ActivationError::ListenGiven("[listen]"))));
    }

    /// Creates a service manager's socket, and notifications to it.
    fn manager(watchdog: Option<Duration>) -> (tempfile::TempDir, UnixDatagram, Notify) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_nonblocking(true).expect("a non-blocking socket");
        let notify = Notify::new(Some(path.into()), watchdog);
        (folder, socket, notify)
    }

    fn received(socket: &UnixDatagram) -> String {
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..length]).into_owned()
    }

    #[test]
    fn notifications_have_the_form_that_systemd_defines() {
        let (_folder, socket, notify) = manager(None);
        notify.ready("2 exports\nREADY=0");
        assert_eq!(received(&socket), "READY=1\nSTATUS=2 exports", "only the first line is sent");
        notify.status("draining 3");
        assert_eq!(received(&socket), "STATUS=draining 3");
        notify.stopping();
        assert_eq!(received(&socket), "STOPPING=1\nSTATUS=draining");
        notify.alive();
        assert_eq!(received(&socket), "WATCHDOG=1");
        notify.reloading();
        let reloading = received(&socket);
        let usec: u64 =
            reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("the form").parse().expect("a number");
        assert!(usec > 0);
    }

    #[test]
    fn a_full_queue_of_the_service_manager_does_not_block() {
        let (_folder, _socket, notify) = manager(None);
        for _ in 0..10_000 {
            notify.alive();
        }
    }

    #[test]
    fn an_abstract_socket_is_notified() {
        let name = format!("hoistway-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        Notify::new(Some(format!("@{name}").into()), None).alive();
        assert_eq!(received(&socket), "WATCHDOG=1");
    }

    #[test]
    fn the_watchdog_is_reset_twice_in_its_timeout() {
        let interval = |timeout: Option<Duration>| manager(timeout).2.alive_every_ns();
        assert_eq!(interval(Some(Duration::from_secs(30))), Some(15_000_000_000));
        assert_eq!([interval(None), interval(Some(Duration::ZERO))], [None; 2]);
        assert_eq!(Notify::new(None, Some(Duration::from_secs(30))).alive_every_ns(), None, "without a socket");
    }

    #[test]
    fn without_a_service_manager_notifications_do_nothing() {
        for name in [None, Some("relative"), Some("/nowhere/notify"), Some("")] {
            let notify = Notify::new(name.map(OsString::from), None);
            notify.ready("up");
            notify.reloading();
            notify.stopping();
        }
    }
}
