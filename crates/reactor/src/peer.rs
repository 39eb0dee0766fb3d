//! The peer of a socket: its address, or its process.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};

use hoistway_machine::{Priority, PriorityTarget, ProcessFiles, Root, priority};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, sockopt};

use crate::engine::{Address, Peer, Process};

/// Returns the peer of a socket. For a process that has exited, only the credentials of the socket
/// are known: process ID, user and group. Another process may have the ID by the time `/proc` is
/// read; from Linux 6.5 on, a pidfd of the socket detects that.
pub(crate) fn identify(socket: BorrowedFd<'_>) -> Peer {
    let family = sockopt::socket_domain(socket).unwrap_or(AddressFamily::UNIX);
    if family == AddressFamily::INET || family == AddressFamily::INET6 {
        // A peer that has disconnected has no address.
        let address =
            rustix::net::getpeername(socket).ok().flatten().and_then(|address| SocketAddr::try_from(address).ok());
        let address = address.unwrap_or(SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0));
        return Peer { address: Address::Tcp(plain(address)), process: None };
    }
    let process = credentials(socket).map(|credentials| match u32::try_from(credentials.pid) {
        Ok(pid @ 1..) => {
            let handle = handle(socket);
            process(pid, credentials.uid, credentials.gid, || handle.may_run())
        }
        // The process is outside this PID namespace: only its user and group are known.
        _ => Process { uid: credentials.uid, gid: credentials.gid, ..Process::default() },
    });
    Peer { address: Address::Unix, process }
}

/// Returns `SO_PEERCRED` (unix(7)). The process ID is 0 if the peer has none in this namespace.
fn credentials(socket: BorrowedFd<'_>) -> Option<libc::ucred> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let place = (&raw mut credentials).cast::<libc::c_void>();
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `place`,
    // which has that size and outlives the call.
    let answer =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length) };
    (answer == 0 && length as usize == size_of::<libc::ucred>()).then_some(credentials)
}

/// A handle to the process that connected, which does not depend on its ID.
#[derive(Debug)]
enum Handle {
    /// A pidfd (pidfd_open(2)).
    Process(OwnedFd),
    /// The process was reaped.
    Reaped,
    /// The kernel is older than 6.5.
    Unknown,
}

impl Handle {
    /// Returns true if the process may still run, so that its ID is still its own.
    fn may_run(&self) -> bool {
        match self {
            Handle::Process(process) => {
                let mut ended = [PollFd::new(process, PollFlags::IN)];
                poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
            }
            Handle::Reaped => false,
            Handle::Unknown => true,
        }
    }
}

/// Returns the handle of `SO_PEERPIDFD` (unix(7)).
fn handle(socket: BorrowedFd<'_>) -> Handle {
    let mut descriptor: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let place = (&raw mut descriptor).cast::<libc::c_void>();
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `place`,
    // which has that size and outlives the call.
    let answer =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERPIDFD, place, &raw mut length) };
    if answer == 0 && descriptor >= 0 {
        // SAFETY: the call created this descriptor, which has no other owner.
        return Handle::Process(unsafe { OwnedFd::from_raw_fd(descriptor) });
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ESRCH | libc::ENODATA) => Handle::Reaped,
        _ => Handle::Unknown,
    }
}

/// Sets the options of a connection. Replies are sent as a whole, so TCP does not delay small ones.
pub(crate) fn prepare(socket: BorrowedFd<'_>, nonblocking: bool) {
    if rustix::io::ioctl_fionbio(socket, nonblocking).is_err() {
        tracing::debug!("the mode of a connection cannot be set");
    }
    if matches!(sockopt::socket_domain(socket), Ok(AddressFamily::INET | AddressFamily::INET6)) {
        // The call fails if the peer has disconnected, which the next receive reports.
        let _ = sockopt::set_tcp_nodelay(socket.as_fd(), true);
        // Detects a client whose machine has failed.
        let _ = sockopt::set_socket_keepalive(socket.as_fd(), true);
    }
}

/// Returns the IPv4 address of an IPv4 client of an IPv6 socket.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Reads the facts of a process. If it has exited by the end of the reads, only its IDs are
/// returned, because the facts may be those of another process.
fn process(pid: u32, uid: u32, gid: u32, may_run: impl Fn() -> bool) -> Process {
    let files = ProcessFiles::new(&Root::machine(), pid);
    let nice = files.stat().map_or(0, |stat| stat.nice);
    let (comm, cgroup) = (files.comm(), files.control_group());
    let process = Process { pid, uid, gid, comm, cgroup, ioprio: ioprio(pid), nice };
    if may_run() { process } else { Process { pid, uid, gid, ..Process::default() } }
}

/// Returns the I/O priority of a process or thread in the encoding of ioprio_get(2); 0 if it is
/// unset or the process has exited.
pub fn ioprio(pid: u32) -> u16 {
    priority::get(PriorityTarget::Process(pid)).map_or(0, Priority::encoded)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_peer_in_this_process_is_identified() {
        let (own, _other) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
        let peer = identify(own.as_fd());
        let process = peer.process.expect("the peer has a process");
        assert_eq!((peer.address, process.pid), (Address::Unix, std::process::id()));
        let comm = fs::read_to_string("/proc/self/comm").expect("the name of this process");
        assert_eq!(process.comm, comm.trim_end());
    }

    #[test]
    fn an_exited_process_has_only_its_ids() {
        let own = std::process::id();
        assert!(!process(own, 1, 2, || true).comm.is_empty());
        assert_eq!(process(own, 1, 2, || false), Process { pid: own, uid: 1, gid: 2, ..Process::default() });
    }

    /// The child process of the next test.
    #[test]
    #[ignore = "started by another test"]
    fn connects_and_ends() {
        if let Some(path) = std::env::var_os("HOISTWAY_TEST_SOCKET") {
            std::os::unix::net::UnixStream::connect(path).expect("the socket accepts connections");
        }
    }

    #[test]
    fn an_exited_peer_is_detected() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let alive = std::os::unix::net::UnixStream::connect(&path).expect("the socket accepts connections");
        let (own, _) = listener.accept().expect("a connection");
        if matches!(handle(own.as_fd()), Handle::Unknown) {
            eprintln!("skipped: this kernel has no SO_PEERPIDFD (Linux 6.5)");
            return;
        }
        assert!(handle(own.as_fd()).may_run());
        let mut child = std::process::Command::new(std::env::current_exe().expect("the path of this test"))
            .args(["--exact", "peer::tests::connects_and_ends", "--ignored"])
            .env("HOISTWAY_TEST_SOCKET", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("the child starts");
        let number = child.id();
        assert!(child.wait().expect("the child ends").success());
        let (gone, _) = listener.accept().expect("a connection");
        assert!(!handle(gone.as_fd()).may_run());
        let process = identify(gone.as_fd()).process.expect("the peer had a process");
        assert_eq!((process.pid, process.comm.as_str()), (number, ""));
        drop(alive);
    }
}
