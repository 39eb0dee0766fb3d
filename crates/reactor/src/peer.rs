//! Who is at the other end of a socket.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};

use hoistway_machine::{Priority, PriorityTarget, ProcessFiles, Root, priority};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, sockopt};

use crate::engine::{Address, Peer, Process};

/// Who is at the other end. Of a process that has gone already, all that is known is what the
/// socket says: its number, user and group. Its number may be another's by the time that `/proc` is
/// read: from Linux 6.5 on the socket tells whether it is.
pub(crate) fn identify(socket: BorrowedFd<'_>) -> Peer {
    let family = sockopt::socket_domain(socket).unwrap_or(AddressFamily::UNIX);
    if family == AddressFamily::INET || family == AddressFamily::INET6 {
        // One that has gone again already has no address any more.
        let address =
            rustix::net::getpeername(socket).ok().flatten().and_then(|address| SocketAddr::try_from(address).ok());
        let address = address.unwrap_or(SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0));
        return Peer { address: Address::Tcp(plain(address)), process: None };
    }
    let process = credentials(socket).map(|credentials| match u32::try_from(credentials.pid) {
        Ok(pid @ 1..) => {
            let handle = handle(socket);
            process(pid, credentials.uid, credentials.gid, || handle.is_there())
        }
        // It lives outside this process's namespace of processes: nothing but its user is known of
        // it.
        _ => Process { uid: credentials.uid, gid: credentials.gid, ..Process::default() },
    });
    Peer { address: Address::Unix, process }
}

/// SO_PEERCRED (unix(7)) as it is: its process number is 0 where the peer has none in this
/// namespace, which a type of numbers that are not 0 could not hold.
fn credentials(socket: BorrowedFd<'_>) -> Option<libc::ucred> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let place = (&raw mut credentials).cast::<libc::c_void>();
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `place`,
    // which is as long and outlives the call.
    let answer =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length) };
    (answer == 0 && length as usize == size_of::<libc::ucred>()).then_some(credentials)
}

/// What the kernel hands out for the process that connected, whatever has become of its number.
#[derive(Debug)]
enum Handle {
    /// A descriptor of it (pidfd_open(2)).
    Process(OwnedFd),
    /// It has been waited for already.
    Gone,
    /// The kernel is older than 6.5.
    Unknown,
}

impl Handle {
    /// Whether it still runs, as far as that can be known: its number is its own until then.
    fn is_there(&self) -> bool {
        match self {
            Handle::Process(process) => {
                let mut ended = [PollFd::new(process, PollFlags::IN)];
                poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
            }
            Handle::Gone => false,
            Handle::Unknown => true,
        }
    }
}

/// SO_PEERPIDFD (unix(7)).
fn handle(socket: BorrowedFd<'_>) -> Handle {
    let mut descriptor: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let place = (&raw mut descriptor).cast::<libc::c_void>();
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `place`,
    // which is as long and outlives the call.
    let answer =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERPIDFD, place, &raw mut length) };
    if answer == 0 && descriptor >= 0 {
        // SAFETY: the kernel has made this descriptor in the call, for nobody else.
        return Handle::Process(unsafe { OwnedFd::from_raw_fd(descriptor) });
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ESRCH | libc::ENODATA) => Handle::Gone,
        _ => Handle::Unknown,
    }
}

/// Small messages leave at once: replies are sent as a whole anyway.
pub(crate) fn prepare(socket: BorrowedFd<'_>, nonblocking: bool) {
    if rustix::io::ioctl_fionbio(socket, nonblocking).is_err() {
        tracing::debug!("a connection that is no socket");
    }
    if matches!(sockopt::socket_domain(socket), Ok(AddressFamily::INET | AddressFamily::INET6)) {
        // It fails where the other side has gone, which shows soon enough.
        let _ = sockopt::set_tcp_nodelay(socket.as_fd(), true);
        // A client whose machine has vanished is noticed some day.
        let _ = sockopt::set_socket_keepalive(socket.as_fd(), true);
    }
}

/// An IPv4 client of an IPv6 socket is an IPv4 client.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// What there is to know of a process that is still there when all of it was read; of another,
/// nothing that may be somebody else's.
fn process(pid: u32, uid: u32, gid: u32, is_there: impl Fn() -> bool) -> Process {
    let files = ProcessFiles::new(&Root::machine(), pid);
    let nice = files.stat().map_or(0, |stat| stat.nice);
    let (comm, cgroup) = (files.comm(), files.control_group());
    let process = Process { pid, uid, gid, comm, cgroup, ioprio: ioprio(pid), nice };
    if is_there() { process } else { Process { pid, uid, gid, ..Process::default() } }
}

/// Class and level of a process or thread as ioprio_get(2) has them; 0 if it has gone or has none.
pub fn ioprio(pid: u32) -> u16 {
    priority::get(PriorityTarget::Process(pid)).map_or(0, Priority::encoded)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_client_of_this_process_is_this_process() {
        let (own, _other) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
        let peer = identify(own.as_fd());
        let process = peer.process.expect("it is a process of this machine");
        assert_eq!((peer.address, process.pid), (Address::Unix, std::process::id()));
        let comm = fs::read_to_string("/proc/self/comm").expect("the name of this process");
        assert_eq!(process.comm, comm.trim_end());
    }

    #[test]
    fn nothing_is_told_of_a_number_that_may_be_anothers_by_now() {
        let own = std::process::id();
        assert!(!process(own, 1, 2, || true).comm.is_empty());
        assert_eq!(process(own, 1, 2, || false), Process { pid: own, uid: 1, gid: 2, ..Process::default() });
    }

    /// Not a test: what the next one starts, in a process of its own.
    #[test]
    #[ignore = "it is started by another test"]
    fn connects_and_ends() {
        if let Some(path) = std::env::var_os("HOISTWAY_TEST_SOCKET") {
            std::os::unix::net::UnixStream::connect(path).expect("it is listened to");
        }
    }

    #[test]
    fn a_process_that_has_gone_is_known_to_have_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let alive = std::os::unix::net::UnixStream::connect(&path).expect("it is listened to");
        let (own, _) = listener.accept().expect("it has connected");
        if matches!(handle(own.as_fd()), Handle::Unknown) {
            eprintln!("skipped: this kernel has no SO_PEERPIDFD (6.5 has)");
            return;
        }
        assert!(handle(own.as_fd()).is_there());
        let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "peer::tests::connects_and_ends", "--ignored"])
            .env("HOISTWAY_TEST_SOCKET", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        let number = child.id();
        assert!(child.wait().expect("it ends").success());
        let (gone, _) = listener.accept().expect("it had connected");
        assert!(!handle(gone.as_fd()).is_there());
        let process = identify(gone.as_fd()).process.expect("it was a process of this machine");
        assert_eq!((process.pid, process.comm.as_str()), (number, ""));
        drop(alive);
    }
}
