//! A running server, through its control socket.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hoistway_config::CONTROL_NAME;
use hoistway_control::Reply;
use hoistway_control::{ReplyError, read_reply};

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
        /// True if these were the usual places.
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
        match told {
            Some(path) => Control::first_of(vec![path.to_owned()], false),
            None => Control::first_of(usual_places(), true),
        }
    }

    /// Connects to the first socket at which somebody listens. One that was left behind, or is
    /// somebody else's, ends the search only if nobody listens at any.
    fn first_of(places: Vec<PathBuf>, searched: bool) -> Result<Control, ControlError> {
        let mut absent = ControlError::Absent { path: PathBuf::from(CONTROL_NAME), searched };
        let mut failed = None;
        for path in places {
            let error = match UnixStream::connect(&path) {
                Ok(stream) => {
                    let broken = |source| ControlError::Broken { path: path.clone(), source };
                    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
                    stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
                    return Ok(Control { stream: BufReader::new(stream), path });
                }
                Err(error) => error,
            };
            let told = match error.kind() {
                io::ErrorKind::NotFound => {
                    absent = ControlError::Absent { path, searched };
                    continue;
                }
                io::ErrorKind::ConnectionRefused => ControlError::Gone(path),
                io::ErrorKind::PermissionDenied => ControlError::Forbidden(path),
                _ => ControlError::Broken { path, source: error },
            };
            failed.get_or_insert(told);
        }
        Err(failed.unwrap_or(absent))
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
                // The greeting of NBD ends within a line, so that it is still in the buffer when
                // the patience ends.
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
    // Where the packaged service has it.
    places.push(PathBuf::from("/run/hoistway/control.sock"));
    places
}

fn usual(searched: &bool) -> &'static str {
    if *searched { ". These were the usual places" } else { "" }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_that_was_left_behind_does_not_end_the_search() {
        let folder = tempfile::tempdir().expect("a folder");
        let [stale, none, live] = ["stale", "none", "live"].map(|name| folder.path().join(name));
        drop(UnixListener::bind(&stale).expect("a socket"));
        let listener = UnixListener::bind(&live).expect("a socket");
        let found = Control::first_of(vec![stale.clone(), none.clone(), live.clone()], true);
        assert_eq!(found.map(|control| control.path).expect("somebody listens"), live);
        drop(listener);
        let nobody = |places: &[&PathBuf]| {
            let places = places.iter().map(|place| PathBuf::from(*place)).collect();
            Control::first_of(places, true).map(|control| control.path).expect_err("nobody listens").to_string()
        };
        assert!(nobody(&[&none, &stale]).contains("the server has ended"), "what was left behind is told");
        assert!(nobody(&[&none]).contains("no server runs there"));
    }

    #[test]
    fn the_packaged_services_socket_is_a_usual_place() {
        let unit = include_str!("../../../packaging/systemd/hoistway.service");
        let last = usual_places().pop().expect("a place").display().to_string();
        assert!(unit.contains(&format!("--control {last}")), "{last}");
    }
}
