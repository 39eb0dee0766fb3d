//! A running server, through its control socket.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hoistway_serve::config::CONTROL_NAME;
use hoistway_serve::control::{Reply, ReplyError, read_reply};

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a server did not do or tell something.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is no socket.
    #[error(
        "there is no control socket {}: no server runs there. `hoistway serve` starts one; --control tells another path{}",
        .path.display(), usual(.searched)
    )]
    Absent {
        /// Where it was looked for last.
        path: PathBuf,
        /// Whether these were the usual places.
        searched: bool,
    },
    /// A socket that was left behind.
    #[error("nobody listens at {}: the server has ended", .0.display())]
    Gone(PathBuf),
    /// A connection that ended too early.
    #[error("{} has closed the connection: the server has ended, or takes no more", .0.display())]
    HungUp(PathBuf),
    /// Somebody else's.
    #[error("{} may only be used by whoever started the server, or by root", .0.display())]
    Forbidden(PathBuf),
    /// Another socket of the server's, perhaps.
    #[error("{} is where NBD clients connect; the control socket is another one", .0.display())]
    Nbd(PathBuf),
    /// No answer.
    #[error("{} does not answer: it is no control socket, or the server hangs", .0.display())]
    Silent(PathBuf),
    /// The connection broke.
    #[error("{}: {source}", path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The server says no.
    #[error("{0}")]
    Refused(String),
    /// A line that cannot be sent.
    #[error("{0:?} cannot be sent: a path or value is one line")]
    NoLine(String),
}

/// A connection to a server.
pub struct Control {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

impl Control {
    /// Connects: to the socket that was told, or to that in the usual place.
    ///
    /// # Errors
    /// When nobody answers there.
    pub fn connect(told: Option<&Path>) -> Result<Control, ControlError> {
        let places = told.map_or_else(usual_places, |path| vec![path.to_owned()]);
        let mut absent = ControlError::Absent { path: PathBuf::from(CONTROL_NAME), searched: told.is_none() };
        for path in places {
            match UnixStream::connect(&path) {
                Ok(stream) => {
                    let broken = |source| ControlError::Broken { path: path.clone(), source };
                    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
                    stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
                    return Ok(Control { stream: BufReader::new(stream), path });
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::NotFound => absent = ControlError::Absent { path, searched: told.is_none() },
                    io::ErrorKind::ConnectionRefused => return Err(ControlError::Gone(path)),
                    io::ErrorKind::PermissionDenied => return Err(ControlError::Forbidden(path)),
                    _ => return Err(ControlError::Broken { path, source: error }),
                },
            }
        }
        Err(absent)
    }

    /// Sends a request and reads its reply.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn ask(&mut self, request: &str) -> Result<Reply, ControlError> {
        if request.contains(char::is_control) {
            return Err(ControlError::NoLine(request.to_owned()));
        }
        let sent = self.stream.get_mut().write_all(format!("{request}\n").as_bytes());
        sent.map_err(|source| self.broken(source))?;
        read_reply(&mut self.stream).map_err(|error| self.told(error))
    }

    fn told(&self, error: ReplyError) -> ControlError {
        let path = self.path.clone();
        let is_nbd = |text: &[u8]| text.starts_with(b"NBDMAGIC");
        match error {
            ReplyError::Server { text, .. } => ControlError::Refused(text),
            ReplyError::NoReply(text) if is_nbd(text.as_bytes()) => ControlError::Nbd(path),
            ReplyError::NoReply(_) => ControlError::Silent(path),
            ReplyError::Io(source) => match source.kind() {
                // The greeting of NBD ends within a line, so that it is still in the buffer when the patience ends.
                _ if is_nbd(self.stream.buffer()) => ControlError::Nbd(path),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ControlError::Silent(path),
                io::ErrorKind::InvalidData => ControlError::Nbd(path),
                _ => self.broken(source),
            },
        }
    }

    fn broken(&self, source: io::Error) -> ControlError {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                ControlError::HungUp(path)
            }
            _ => ControlError::Broken { path, source },
        }
    }
}

/// Where a server's control socket is unless it was told otherwise.
fn usual_places() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let mut places: Vec<PathBuf> = own.into_iter().chain([PathBuf::from("/run")]).collect();
    places.iter_mut().for_each(|place| place.push(CONTROL_NAME));
    places
}

fn usual(searched: &bool) -> &'static str {
    if *searched { ". These were the usual places" } else { "" }
}
