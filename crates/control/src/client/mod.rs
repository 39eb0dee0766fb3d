//! The client of a control socket: connects, sends requests and reads replies.

mod reply;

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use reply::{Reply, ReplyError, read_reply};

/// Timeout of sending a request and of reading its reply.
const IO_TIMEOUT: Duration = Duration::from_secs(10);

/// Reasons why a request to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The socket does not exist.
    #[error("there is no control socket {}: no server runs there", .0.display())]
    Absent(PathBuf),
    /// The socket of a server that has ended.
    #[error("no server listens at {}: the server has ended", .0.display())]
    Stale(PathBuf),
    /// The server closed the connection.
    #[error("{} has closed the connection: the server has ended, or accepts no more connections", .0.display())]
    Closed(PathBuf),
    /// The permissions of the socket exclude this process.
    #[error("only root and the user that started the server may use {}", .0.display())]
    Forbidden(PathBuf),
    /// The socket belongs to NBD clients.
    #[error("{} is where NBD clients connect; the control socket is another one", .0.display())]
    Nbd(PathBuf),
    /// The timeout expired, or the reply is not one of the control protocol.
    #[error("{} does not answer: it is no control socket, or the server hangs", .0.display())]
    NoAnswer(PathBuf),
    /// The connection failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The server refused the request.
    #[error("{0}")]
    Refused(String),
    /// The request contains control characters, for example a line break.
    #[error("{0:?} cannot be sent: a path or value is one line")]
    NotOneLine(String),
}

/// A connection to the control socket of a running server or mount.
#[derive(Debug)]
pub struct ControlClient {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

impl ControlClient {
    /// Connects to a control socket.
    ///
    /// # Errors
    /// [`ClientError::Absent`], [`Stale`](ClientError::Stale),
    /// [`Forbidden`](ClientError::Forbidden) or [`Io`](ClientError::Io).
    pub fn connect(path: &Path) -> Result<ControlClient, ClientError> {
        let path = path.to_owned();
        let stream = match UnixStream::connect(&path) {
            Ok(stream) => stream,
            Err(error) => {
                return Err(match error.kind() {
                    io::ErrorKind::NotFound => ClientError::Absent(path),
                    io::ErrorKind::ConnectionRefused => ClientError::Stale(path),
                    io::ErrorKind::PermissionDenied => ClientError::Forbidden(path),
                    _ => ClientError::Io { path, source: error },
                });
            }
        };
        let timeouts =
            stream.set_read_timeout(Some(IO_TIMEOUT)).and_then(|()| stream.set_write_timeout(Some(IO_TIMEOUT)));
        match timeouts {
            Ok(()) => Ok(ControlClient { stream: BufReader::new(stream), path }),
            Err(source) => Err(ClientError::Io { path, source }),
        }
    }

    /// Connects to the first of these sockets that a server listens at; [`default_paths`] returns
    /// the usual ones.
    ///
    /// # Errors
    /// The first error other than [`ClientError::Absent`] if no server listens, otherwise
    /// [`ClientError::Absent`] with the last path.
    pub fn connect_first(paths: &[PathBuf]) -> Result<ControlClient, ClientError> {
        let (mut absent, mut failed) = (PathBuf::new(), None);
        for path in paths {
            match ControlClient::connect(path) {
                Ok(client) => return Ok(client),
                Err(ClientError::Absent(path)) => absent = path,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or(ClientError::Absent(absent)))
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends a request, for example `get devices/sda/queue/scheduler`, and reads its reply.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if the server refuses, [`ClientError::NotOneLine`] for a request
    /// with a line break, and the errors of the connection.
    pub fn request(&mut self, request: &str) -> Result<Reply, ClientError> {
        if request.contains(char::is_control) {
            return Err(ClientError::NotOneLine(request.to_owned()));
        }
        let sent = self.stream.get_mut().write_all(format!("{request}\n").as_bytes());
        sent.map_err(|source| self.io_error(source))?;
        read_reply(&mut self.stream).map_err(|error| self.reply_error(error))
    }

    fn reply_error(&self, error: ReplyError) -> ClientError {
        let path = self.path.clone();
        let is_nbd = |text: &[u8]| text.starts_with(b"NBDMAGIC");
        match error {
            ReplyError::Server { text, .. } => ClientError::Refused(text),
            ReplyError::NoReply(text) if is_nbd(text.as_bytes()) => ClientError::Nbd(path),
            ReplyError::NoReply(_) => ClientError::NoAnswer(path),
            ReplyError::Io(source) => match source.kind() {
                // The greeting of NBD has no line break, so that it is still in the buffer when
                // the timeout expires.
                _ if is_nbd(self.stream.buffer()) => ClientError::Nbd(path),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::NoAnswer(path),
                io::ErrorKind::InvalidData => ClientError::Nbd(path),
                _ => self.io_error(source),
            },
        }
    }

    fn io_error(&self, source: io::Error) -> ClientError {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                ClientError::Closed(path)
            }
            _ => ClientError::Io { path, source },
        }
    }
}

/// Default paths of a control socket with this file name: in `$XDG_RUNTIME_DIR`, in `/run`, and
/// the socket of the packaged systemd service.
pub fn default_paths(file_name: &str) -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folders = runtime.into_iter().chain([PathBuf::from("/run")]);
    folders.map(|folder| folder.join(file_name)).chain([PathBuf::from("/run/hoistway/control.sock")]).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_stale_socket_does_not_end_the_search() {
        let folder = tempfile::tempdir().expect("a folder");
        let [stale, absent, live] = ["stale", "absent", "live"].map(|name| folder.path().join(name));
        drop(UnixListener::bind(&stale).expect("a socket"));
        let listener = UnixListener::bind(&live).expect("a socket");
        let all = [stale.clone(), absent.clone(), live.clone()];
        let client = ControlClient::connect_first(&all).expect("the last socket has a server");
        assert_eq!(client.path(), live);
        drop(listener);
        let error = |paths: &[&PathBuf]| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| PathBuf::from(*path)).collect();
            ControlClient::connect_first(&paths).expect_err("no server listens")
        };
        assert!(matches!(error(&[&absent, &stale]), ClientError::Stale(_)));
        assert!(matches!(error(&[&stale, &absent]), ClientError::Stale(_)));
        assert!(matches!(error(&[&absent]), ClientError::Absent(path) if path == absent));
    }

    #[test]
    fn the_socket_of_the_packaged_service_is_a_default_path() {
        let unit = include_str!("../../../../packaging/systemd/hoistway.service");
        let last = default_paths("any.sock").pop().expect("a path").display().to_string();
        assert!(unit.contains(&format!("--control {last}")), "{last}");
    }
}
