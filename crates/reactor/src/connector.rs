//! Outgoing connections. Each attempt has a thread of its own, because name resolution and
//! connect(2) block.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::Endpoint;
use crate::wake::Waker;

/// The results of attempts that the engine has not taken yet.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    results: Arc<Mutex<Vec<Attempt>>>,
    waker: Waker,
}

/// The end of an attempt: its tag, and the socket.
type Attempt = (u64, io::Result<OwnedFd>);

impl Connector {
    /// Creates a connector whose attempts wake the engine by `waker`.
    pub fn new(waker: Waker) -> Connector {
        Connector { results: Arc::default(), waker }
    }

    /// Starts an attempt, which ends after `timeout_ns` at the latest.
    pub fn start(&self, tag: u64, to: Endpoint, timeout_ns: u64) {
        let own = self.clone();
        let attempt = move || own.end(tag, connect(&to, Duration::from_nanos(timeout_ns)));
        if let Err(error) = std::thread::Builder::new().name("hoistway-connect".into()).spawn(attempt) {
            self.end(tag, Err(error));
        }
    }

    fn end(&self, tag: u64, result: io::Result<OwnedFd>) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).push((tag, result));
        self.waker.wake();
    }

    /// Returns the attempts that have ended.
    pub fn take_results(&self) -> Vec<Attempt> {
        std::mem::take(&mut self.results.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Connects to the first address of the endpoint that accepts.
fn connect(to: &Endpoint, timeout: Duration) -> io::Result<OwnedFd> {
    let (host, port) = match to {
        Endpoint::Unix(path) => return UnixStream::connect(path).map(OwnedFd::from),
        Endpoint::Tcp { host, port } => (host.as_str(), *port),
    };
    let end = Instant::now() + timeout;
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket.into()),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
