//! The open connections of a service: their number and their ages.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};

use super::REQUEST_TIMEOUT;

/// Maximum number of connections of a service.
const CONNECTIONS_MAX: usize = 64;

/// The treatment of a connection beyond the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It is closed at once.
    RefuseNew,
    /// The connection whose last answer is the oldest is closed, so that slow clients cannot keep
    /// others out.
    CloseOldest,
}

/// The open connections of a service.
#[derive(Debug, Default)]
pub struct Connections {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    entries: Vec<Entry>,
    accepted: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// Another descriptor of the socket, to end the connection from outside of its thread.
    socket: OwnedFd,
    /// The time of the last answer, or of the beginning.
    since: Instant,
}

/// An open connection; its end makes room for another.
#[derive(Debug)]
pub struct Connection {
    number: u64,
    all: Arc<Connections>,
}

impl Connections {
    /// Adds a connection; `None` if there is no room for it.
    ///
    /// # Errors
    /// The socket cannot be duplicated.
    pub fn open(all: &Arc<Connections>, socket: BorrowedFd<'_>, when_full: WhenFull) -> io::Result<Option<Connection>> {
        let socket = socket.try_clone_to_owned()?;
        let mut open = all.lock();
        if open.entries.len() >= CONNECTIONS_MAX {
            let oldest = (0..open.entries.len()).min_by_key(|index| open.entries[*index].since);
            let Some(oldest) = oldest.filter(|_| when_full == WhenFull::CloseOldest) else { return Ok(None) };
            // Its thread sees the end of the stream. The client may have closed the connection.
            let _ = shutdown(&open.entries.swap_remove(oldest).socket, Shutdown::Both);
        }
        let number = open.accepted;
        open.accepted += 1;
        open.entries.push(Entry { number, socket, since: Instant::now() });
        Ok(Some(Connection { number, all: all.clone() }))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Records the end of an answer.
    pub fn answered(&self) {
        let mut open = self.all.lock();
        if let Some(entry) = open.entries.iter_mut().find(|entry| entry.number == self.number) {
            entry.since = Instant::now();
        }
    }

    /// Returns the time that is left for the request and its answer.
    ///
    /// # Errors
    /// The time has passed, or the connection was closed for another.
    pub fn remaining(&self) -> io::Result<Duration> {
        let open = self.all.lock();
        let since = open.entries.iter().find(|entry| entry.number == self.number).map(|entry| entry.since);
        let left = since.and_then(|since| REQUEST_TIMEOUT.checked_sub(since.elapsed()));
        left.filter(|left| !left.is_zero()).ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.lock().entries.retain(|entry| entry.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_connection_with_the_oldest_answer_makes_room_for_another() {
        let all = Arc::new(Connections::default());
        let open =
            |socket: &UnixStream, when_full| Connections::open(&all, socket.as_fd(), when_full).expect("a socket");
        let pairs: Vec<_> = (0..CONNECTIONS_MAX).map(|_| UnixStream::pair().expect("sockets")).collect();
        let served: Vec<_> = pairs.iter().map(|(own, _)| open(own, WhenFull::CloseOldest).expect("room")).collect();
        served[0].answered();
        let (another, _client) = UnixStream::pair().expect("sockets");
        assert!(open(&another, WhenFull::RefuseNew).is_none());
        let newest = open(&another, WhenFull::CloseOldest).expect("room");
        assert!(served[1].remaining().is_err() && served[0].remaining().is_ok() && newest.remaining().is_ok());
        assert_eq!((&pairs[1].1).read(&mut [0]).expect("the end of the stream"), 0);
        drop(served);
        assert_eq!(all.lock().entries.len(), 1);
    }
}
