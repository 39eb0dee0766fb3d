//! Listening sockets.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

/// Connections that wait to be accepted; the kernel's own limit, usually 4096, may be lower.
const BACKLOG: i32 = 4096;
/// The longest path of a Unix socket in bytes: the kernel has room for 108, one of them for the
/// end.
const PATH_BYTES_MAX: usize = 107;

/// How often the folder's lock is asked for, and the pause between: a second in all, at the start
/// alone.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Why a socket is not listened to. Nothing was made.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A server is there.
    #[error("{what}: it is busy: a server is listening there already")]
    Busy {
        /// The path or address.
        what: String,
    },
    /// There is a file that is no socket.
    #[error("{}: there is a file that is no socket: remove it, or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The path is too long for the kernel.
    #[error("{}: the path of a socket has at most {PATH_BYTES_MAX} bytes, and this one {length}", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
    /// The system refuses.
    #[error("{what}: cannot be listened to: {source}")]
    System {
        /// The path or address.
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

/// A Unix socket that is listened to. When it goes, so does its file, unless somebody else's is
/// there by then.
#[derive(Debug)]
pub struct Bound {
    path: PathBuf,
    /// Device and number of the file.
    identity: (u64, u64),
}

/// Makes a Unix socket of this mode and listens to it. The file never has a wider mode than asked
/// for, not even for a moment. What a dead server has left at the path is replaced.
///
/// # Errors
/// [`SocketError`]; a server that answers at the path keeps it.
pub fn bind_unix(path: &Path, mode: u32) -> Result<(OwnedFd, Bound), SocketError> {
    let system = |source: io::Error| SocketError::System { what: path.display().to_string(), source };
    let errno = |error: Errno| system(error.into());
    let length = path.as_os_str().len();
    if length > PATH_BYTES_MAX {
        return Err(SocketError::TooLong { path: path.to_owned(), length });
    }
    let address = SocketAddrUnix::new(path).map_err(errno)?;
    let _alone = lock_folder(path)?;
    remove_stale(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags(), None).map_err(errno)?;
    // The kernel gives the file the mode that the socket has when it is bound, less the process's
    // mask: changing the file's mode afterwards would leave a moment in which anybody can connect.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode)).map_err(errno)?;
    bind(&socket, &address).map_err(|error| match error {
        Errno::ADDRINUSE => SocketError::Busy { what: path.display().to_string() },
        error => errno(error),
    })?;
    let bound = Bound::of(path).map_err(system)?;
    let made = fs::symlink_metadata(path).map_err(system)?.mode() & 0o777;
    if made & !mode != 0 {
        return Err(system(io::Error::other(format!("the kernel made it with the mode {made:o} instead of {mode:o}"))));
    }
    if made != mode {
        // What the process's mask took away.
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(system)?;
    }
    listen(&socket, BACKLOG).map_err(errno)?;
    Ok((socket, bound))
}

/// Listens to a TCP address. An IPv6 address is IPv6's alone.
///
/// # Errors
/// [`SocketError`].
pub fn bind_tcp(address: SocketAddr) -> Result<OwnedFd, SocketError> {
    let errno = |error: Errno| match error {
        Errno::ADDRINUSE => SocketError::Busy { what: address.to_string() },
        error => SocketError::System { what: address.to_string(), source: error.into() },
    };
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, flags(), None).map_err(errno)?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(errno)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true).map_err(errno)?;
    }
    bind(&socket, &address).map_err(errno)?;
    listen(&socket, BACKLOG).map_err(errno)?;
    Ok(socket)
}

impl Bound {
    fn of(path: &Path) -> io::Result<Bound> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Bound { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let mine = fs::symlink_metadata(&self.path).is_ok_and(|there| (there.dev(), there.ino()) == self.identity);
        if mine && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the socket's file cannot be removed");
        }
    }
}

/// Holds the folder of a path while a socket is made in it. A socket that is bound and not listened
/// to yet looks like a dead server's, so that of two servers that start in one instant the second
/// would take the first one's place.
fn lock_folder(path: &Path) -> Result<OwnedFd, SocketError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let system = |error: Errno| SocketError::System { what: path.display().to_string(), source: error.into() };
    let folder = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(system)?;
    for _ in 0..LOCK_ATTEMPTS {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            // A file system without locks: two servers in one instant are then on their own.
            Err(_) => return Ok(folder),
        }
    }
    Err(SocketError::Busy { what: path.display().to_string() })
}

/// Removes the socket of a server that is no more.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let system = |source: io::Error| SocketError::System { what: path.display().to_string(), source };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(SocketError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(SocketError::Busy { what: path.display().to_string() }),
        // Nobody has it open.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(system),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(system(error)),
    }
}

fn flags() -> SocketFlags {
    SocketFlags::CLOEXEC | SocketFlags::NONBLOCK
}
