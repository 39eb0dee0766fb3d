//! Runs the same clients over NBD against a running server: a thread and a connection for each.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::workloads::Client;
use crate::{ClientResult, Request};

/// Runs the clients for a number of seconds.
pub fn run(clients: &[Client], socket: &Path, request: &Request) -> Result<Vec<ClientResult>, String> {
    let mut connections = Vec::new();
    for client in clients {
        let stream = connect(socket).map_err(|error| format!("{}: {error}", socket.display()))?;
        connections.push(Connection::new(client, stream));
    }
    let begun = Instant::now();
    let until_ns = request.seconds * 1_000_000_000;
    std::thread::scope(|scope| {
        let at_work: Vec<_> =
            connections.into_iter().map(|connection| scope.spawn(move || connection.work(begun, until_ns))).collect();
        at_work.into_iter().map(|thread| thread.join().map_err(|_| "a client thread panicked".to_owned())?).collect()
    })
}

struct Connection<'a> {
    client: &'a Client,
    stream: UnixStream,
    /// The times of the next requests.
    wakes: BinaryHeap<Reverse<u64>>,
    sent_ns: HashMap<u64, u64>,
    submitted: u64,
    completed: u64,
    ticks: u64,
    result: ClientResult,
}

/// Connects and selects the default export by EXPORT_NAME, with the 10-byte answer (no zeroes) and
/// simple replies.
fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    let mut answer = 3u32.to_be_bytes().to_vec();
    answer.extend_from_slice(b"IHAVEOPT");
    answer.extend_from_slice(&1u32.to_be_bytes());
    answer.extend_from_slice(&0u32.to_be_bytes());
    stream.write_all(&answer)?;
    let mut export = [0; 10];
    stream.read_exact(&mut export)?;
    Ok(stream)
}

impl<'a> Connection<'a> {
    fn new(client: &'a Client, stream: UnixStream) -> Connection<'a> {
        let wakes = (0..client.depth).map(|_| Reverse(0)).collect();
        Connection {
            client,
            stream,
            wakes,
            sent_ns: HashMap::new(),
            submitted: 0,
            completed: 0,
            ticks: 0,
            result: ClientResult::default(),
        }
    }

    fn work(mut self, begun: Instant, until_ns: u64) -> Result<ClientResult, String> {
        let now_ns = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        loop {
            let at_ns = now_ns();
            if at_ns >= until_ns {
                return Ok(self.result);
            }
            while self.wakes.peek().is_some_and(|Reverse(due_ns)| *due_ns <= at_ns) {
                self.wakes.pop();
                self.next_request(now_ns()).map_err(|error| error.to_string())?;
            }
            let due_ns = self.wakes.peek().map_or(until_ns, |Reverse(due_ns)| (*due_ns).min(until_ns));
            let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
            let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
            let ready = poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&wait))
                .map_err(|error| error.to_string())?;
            if ready > 0 {
                let cookie = self.read_reply().map_err(|error| error.to_string())?;
                self.complete(cookie, now_ns());
            }
        }
    }

    fn next_request(&mut self, now_ns: u64) -> std::io::Result<()> {
        let next_request = self.client.next_request(self.submitted);
        let mut message = 0x2560_9513u32.to_be_bytes().to_vec();
        message.extend_from_slice(&u32::from(next_request.writes).to_be_bytes());
        message.extend_from_slice(&self.submitted.to_be_bytes());
        message.extend_from_slice(&next_request.offset.to_be_bytes());
        message.extend_from_slice(&(next_request.bytes as u32).to_be_bytes());
        if next_request.writes {
            message.resize(message.len() + next_request.bytes as usize, 0x5a);
        }
        self.sent_ns.insert(self.submitted, now_ns);
        self.submitted += 1;
        self.stream.write_all(&message)
    }

    fn read_reply(&mut self) -> std::io::Result<u64> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        if head[..8] != [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0] {
            return Err(std::io::Error::other(format!("no simple reply without error: {head:?}")));
        }
        if !self.client.writes {
            let mut data = vec![0; self.client.bytes as usize];
            self.stream.read_exact(&mut data)?;
        }
        Ok(u64::from_be_bytes([head[8], head[9], head[10], head[11], head[12], head[13], head[14], head[15]]))
    }

    fn complete(&mut self, cookie: u64, now_ns: u64) {
        let Some(sent_ns) = self.sent_ns.remove(&cookie) else { return };
        self.completed += 1;
        self.result.bytes += self.client.bytes;
        self.result.latencies_ns.push(now_ns - sent_ns);
        let wakes = self.client.after(self.completed, self.submitted, &mut self.ticks, now_ns);
        self.wakes.extend(wakes.map(Reverse));
    }
}
