//! Ten thousand connections, a thousand of them busy: the memory of the server, and the operations
//! of each connection.
//!
//! The client is one thread that polls non-blocking sockets with one request each. A connection
//! that the server neglects therefore has fewer operations than the others.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::servers::{Bench, EXPORT_BYTES, Running, Server};

pub const OPEN: usize = 10_000;
pub const ACTIVE: usize = 1_000;
const BLOCK_BYTES: usize = 4096;

/// The figures of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionFigures {
    /// Resident memory of the server before the first connection, with all connected, and at the
    /// end, in bytes.
    pub alone_bytes: u64,
    pub open_bytes: u64,
    pub busy_bytes: u64,
    pub operations_per_s: f64,
    /// The least and the most operations of a busy connection.
    pub least: u64,
    pub most: u64,
    /// The duration of the measurement in s.
    pub seconds: f64,
}

/// Opens the connections, keeps some of them busy, and counts their operations.
pub fn measure(bench: &Bench, seconds: f64) -> Result<ConnectionFigures> {
    raise_open_files()?;
    let server = Running::start(Server::HoistwayMemory(None), bench)?;
    let alone_bytes = server.resident_bytes()?;
    let mut clients = Vec::with_capacity(OPEN);
    for _ in 0..OPEN {
        clients.push(Client::connect(&bench.socket)?);
    }
    let open_bytes = server.resident_bytes()?;
    let active = &mut clients[..ACTIVE];
    let began = Instant::now();
    for (index, client) in active.iter_mut().enumerate() {
        client.stream.set_nonblocking(true)?;
        client.random = index as u64 + 1;
        client.send_request()?;
    }
    let duration = Duration::from_secs_f64(seconds);
    while began.elapsed() < duration {
        serve_ready(active)?;
    }
    let elapsed_s = began.elapsed().as_secs_f64();
    let busy_bytes = server.resident_bytes()?;
    server.stop();
    let done = || active.iter().map(|client| client.done);
    Ok(ConnectionFigures {
        alone_bytes,
        open_bytes,
        busy_bytes,
        operations_per_s: done().sum::<u64>() as f64 / elapsed_s,
        least: done().min().unwrap_or(0),
        most: done().max().unwrap_or(0),
        seconds,
    })
}

/// Reads the available data of all connections. Sends a new request after each complete reply.
fn serve_ready(clients: &mut [Client]) -> Result<()> {
    let ready: Vec<bool> = {
        let mut polled: Vec<PollFd<'_>> =
            clients.iter().map(|client| PollFd::from_borrowed_fd(client.stream.as_fd(), PollFlags::IN)).collect();
        let wait = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
        poll(&mut polled, Some(&wait))?;
        polled.iter().map(|fd| !fd.revents().is_empty()).collect()
    };
    for (client, ready) in clients.iter_mut().zip(ready) {
        if ready && client.read_reply()? {
            client.done += 1;
            client.send_request()?;
        }
    }
    Ok(())
}

/// A connection that reads 4 KiB at random, one request at a time.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// The received bytes of the current reply.
    received: usize,
    done: u64,
    random: u64,
}

impl Client {
    /// Connects and selects the default export by EXPORT_NAME: 10 bytes of reply (no zeroes),
    /// simple replies.
    fn connect(socket: &Path) -> Result<Client> {
        let mut stream = UnixStream::connect(socket).context("cannot connect")?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        if &greeting[..16] != b"NBDMAGICIHAVEOPT" {
            bail!("no NBD greeting: {greeting:?}");
        }
        let mut answer = 3u32.to_be_bytes().to_vec();
        answer.extend_from_slice(b"IHAVEOPT");
        answer.extend_from_slice(&1u32.to_be_bytes());
        answer.extend_from_slice(&0u32.to_be_bytes());
        stream.write_all(&answer)?;
        let mut export = [0; 10];
        stream.read_exact(&mut export)?;
        Ok(Client { stream, received: 0, done: 0, random: 1 })
    }

    fn send_request(&mut self) -> Result<()> {
        // Xorshift: the offsets need no particular distribution.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let blocks = EXPORT_BYTES / BLOCK_BYTES as u64;
        let offset = self.random % blocks * BLOCK_BYTES as u64;
        let mut request = Vec::with_capacity(28);
        request.extend_from_slice(&0x2560_9513u32.to_be_bytes());
        request.extend_from_slice(&[0; 4]);
        request.extend_from_slice(&self.done.to_be_bytes());
        request.extend_from_slice(&offset.to_be_bytes());
        request.extend_from_slice(&(BLOCK_BYTES as u32).to_be_bytes());
        // 28 bytes into the empty buffer of a socket.
        self.stream.write_all(&request).context("a request")
    }

    /// Returns true if the reply is complete.
    fn read_reply(&mut self) -> Result<bool> {
        let mut bytes = [0; 16 + BLOCK_BYTES];
        let left = bytes.len() - self.received;
        match self.stream.read(&mut bytes[..left]) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(count) => {
                if self.received == 0 && count >= 8 && bytes[..8] != [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0] {
                    bail!("no simple reply without error: {:?}", &bytes[..8]);
                }
                self.received = (self.received + count) % bytes.len();
                Ok(self.received == 0)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Raises the limit of open files for all connections in this process and in the server, which
/// inherits it.
fn raise_open_files() -> Result<()> {
    let wanted = (OPEN + 1000) as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        bail!("{wanted} open files are needed and {:?} are allowed: raise `ulimit -Hn`", limit.maximum);
    }
    if limit.current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })?;
    }
    Ok(())
}
