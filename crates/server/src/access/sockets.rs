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

/// The maximum number of connections that wait to be accepted. The limit of the kernel, usually
/// 4096, may be lower.
const BACKLOG: i32 = 4096;
/// The longest path of a Unix socket in bytes: the kernel has space for 108, one for the final
/// zero.
const PATH_BYTES_MAX: usize = 107;

/// The number of attempts to lock the directory, and the pause between them: one second in total,
/// at the start only.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Why the server cannot listen on a socket. Nothing was created.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another server listens there.
    #[error("{what}: busy: another server is listening there")]
    Busy {
        /// The path or address.
        what: String,
    },
    /// The path is a file that is not a socket.
    #[error("{}: a file that is not a socket exists there: remove it, or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The path is too long for the kernel.
    #[error("{}: the path of a socket has at most {PATH_BYTES_MAX} bytes, this one has {length}", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// The length of the path in bytes.
        length: usize,
    },
    /// A system call failed.
    #[error("{what}: cannot listen: {source}")]
    System {
        /// The path or address.
        what: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The file of a listening Unix socket. Dropping it removes the file, unless another file has
/// replaced it.
#[derive(Debug)]
pub struct Bound {
    path: PathBuf,
    /// The device and inode numbers of the file.
    identity: (u64, u64),
}

/// Creates a Unix socket with this mode and listens on it. The file never has a wider mode, not
/// even for a moment. The file of a server that no longer runs is replaced.
///
/// # Errors
/// [`SocketError`], for example if another server listens at the path.
pub fn bind_unix(path: &Path, mode: u32) -> Result<(OwnedFd, Bound), SocketError> {
    let system = |source: io::Error| SocketError::System { what: path.display().to_string(), source };
    let errno = |error: Errno| system(error.into());
    let length = path.as_os_str().len();
    if length > PATH_BYTES_MAX {
        return Err(SocketError::TooLong { path: path.to_owned(), length });
    }
    let address = SocketAddrUnix::new(path).map_err(errno)?;
    let _alone = lock_directory(path)?;
    remove_stale(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags(), None).map_err(errno)?;
    // At bind the kernel gives the file the mode of the socket, less the umask. A later change of
    // the mode would leave a moment in which all users can connect.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode)).map_err(errno)?;
    bind(&socket, &address).map_err(|error| match error {
        Errno::ADDRINUSE => SocketError::Busy { what: path.display().to_string() },
        error => errno(error),
    })?;
    let bound = Bound::of(path).map_err(system)?;
    let made = fs::symlink_metadata(path).map_err(system)?.mode() & 0o777;
    if made & !mode != 0 {
        return Err(system(io::Error::other(format!(
            "the kernel created it with the mode {made:o} instead of {mode:o}"
        ))));
    }
    if made != mode {
        // Restores the bits that the umask of the process removed.
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(system)?;
    }
    listen(&socket, BACKLOG).map_err(errno)?;
    Ok((socket, bound))
}

/// Listens on a TCP address. A socket with an IPv6 address does not accept IPv4 connections.
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

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let mine = fs::symlink_metadata(&self.path).is_ok_and(|there| (there.dev(), there.ino()) == self.identity);
        if mine && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the file of the socket cannot be removed");
        }
    }
}

/// Locks the directory of a path while a socket is created in it. A socket between bind and listen
/// looks like that of a server that no longer runs, so that of two servers that start at the same
/// time the second would replace the socket of the first.
fn lock_directory(path: &Path) -> Result<OwnedFd, SocketError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let system = |error: Errno| SocketError::System { what: path.display().to_string(), source: error.into() };
    let folder = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(system)?;
    for _ in 0..LOCK_ATTEMPTS {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            // The file system has no locks: two servers that start at once are not detected.
            Err(_) => return Ok(folder),
        }
    }
    Err(SocketError::Busy { what: path.display().to_string() })
}

/// Removes the socket of a server that no longer runs.
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
        // No process has the socket open.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(system),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(system(error)),
    }
}

fn flags() -> SocketFlags {
    SocketFlags::CLOEXEC | SocketFlags::NONBLOCK
}
