//! The trait [`Engine`], and the types of its operations and events.
//!
//! An engine is a proactor. Calls start an operation; [`Engine::turn`] submits everything started
//! to the kernel at once, waits, and returns the events. One thread does all of it, so a call never
//! blocks.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::shared::Shared;

/// The ID of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// The ID of a connection. IDs are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    /// The slot, which later connections reuse.
    pub slot: u32,
    /// The number of earlier connections in the slot.
    pub generation: u32,
}

/// The ID of a file for block I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

/// The peer of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address.
    pub address: Address,
    /// For a Unix socket: the process that connected.
    pub process: Option<Process>,
}

/// The address of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket, which has no address.
    Unix,
    /// The IP address and port of a TCP client.
    Tcp(SocketAddr),
}

/// The address of a server to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A TCP port of a host.
    Tcp {
        /// The host name, or an IP address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// A process on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The process ID, or the thread ID of a thread.
    pub pid: u32,
    /// The user ID.
    pub uid: u32,
    /// The group ID.
    pub gid: u32,
    /// The command name, at most 15 bytes.
    pub comm: String,
    /// The control group: the path of cgroup v2, or of the `blkio` controller of v1.
    pub cgroup: String,
    /// The I/O priority as ioprio_get(2) returns it: class in the bits from 13 on, level below; 0
    /// is unset.
    pub ioprio: u16,
    /// The nice value, -20 to 19.
    pub nice: i8,
}

/// A message to send.
#[derive(Debug, Default)]
pub struct Message {
    /// The bytes of all [`Part::Head`] parts, in order.
    pub head: Vec<u8>,
    /// The parts in order.
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Debug)]
pub enum Part {
    /// The next bytes of the head.
    Head {
        /// Length in bytes.
        len: usize,
    },
    /// The first bytes of a buffer.
    Buffer {
        /// The buffer.
        buffer: Buffer,
        /// Length in bytes.
        len: usize,
    },
    /// Memory shared with a backend.
    Shared(Shared),
    /// The first bytes of a buffer that its owner keeps after the message was sent.
    Kept {
        /// The buffer.
        buffer: Arc<Buffer>,
        /// Length in bytes.
        len: usize,
    },
}

impl Part {
    /// Returns the length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Part::Head { len } | Part::Buffer { len, .. } | Part::Kept { len, .. } => *len,
            Part::Shared(shared) => shared.len(),
        }
    }
}

/// A block I/O request.
#[derive(Debug)]
pub struct Io {
    /// The file.
    pub file: FileId,
    /// The operation.
    pub op: IoOp,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes, at most that of the buffer.
    pub length: u64,
    /// The data of a write, or the memory of a read; `None` for other operations.
    pub buffer: Option<Buffer>,
}

/// The operation of a block I/O request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOp {
    /// Reads the range. Bytes beyond the end of the file are zeroes; [`IoDone::missing`] counts
    /// them.
    Read,
    /// Writes the range.
    Write {
        /// The data are durable at completion (`RWF_DSYNC`).
        durable: bool,
    },
    /// Makes completed writes durable (fdatasync(2)).
    Flush,
    /// Makes the range read as zeroes.
    Zero {
        /// The range may become a hole.
        punch: bool,
    },
    /// Deallocates the range.
    Trim,
    /// Queries the allocation of the range from its start on, possibly only of a part.
    Status,
}

/// An extent of a file, allocated or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Length in bytes.
    pub length: u64,
    /// The extent is a hole, which reads as zeroes.
    pub hole: bool,
}

/// The completion of a block I/O request.
#[derive(Debug)]
pub struct IoDone {
    /// The error number (`errno`) if the request failed.
    pub result: Result<(), i32>,
    /// The buffer of the request.
    pub buffer: Option<Buffer>,
    /// The result of [`IoOp::Status`].
    pub extents: Vec<Allocation>,
    /// The bytes of a read that were beyond the end of the file; 0 for other operations.
    pub missing: u64,
}

/// A signal to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Drain and exit (SIGTERM, SIGINT); a second signal exits at once.
    Terminate,
    /// Reload the configuration (SIGHUP).
    Reload,
    /// A child process exited (SIGCHLD).
    Child,
}

/// An event that [`Engine::turn`] returns.
#[derive(Debug)]
pub enum Event {
    /// A client has connected.
    Accepted {
        /// The listener.
        listener: ListenerId,
        /// The connection.
        conn: ConnId,
        /// The client.
        peer: Peer,
    },
    /// [`Engine::connect`] has ended.
    Connected {
        /// The tag from [`Engine::connect`].
        tag: u64,
        /// The connection.
        result: std::io::Result<ConnId>,
    },
    /// Bytes have arrived, or the stream has ended.
    Received {
        /// The connection.
        conn: ConnId,
        /// The buffer with the bytes.
        buffer: Buffer,
        /// Number of bytes; 0 at the end of the stream.
        len: usize,
    },
    /// [`Engine::receive_into`] has filled its range, or the stream has ended before.
    Filled {
        /// The connection.
        conn: ConnId,
        /// The buffer.
        buffer: Buffer,
        /// The end of the filled part of the buffer.
        filled: usize,
    },
    /// A message was sent. It returns for reuse, without its buffers.
    Sent {
        /// The connection.
        conn: ConnId,
        /// The message, empty.
        message: Message,
    },
    /// A connection is unusable (reset, broken pipe). The host has to close it.
    Broken {
        /// The connection.
        conn: ConnId,
    },
    /// Block I/O has completed.
    Done {
        /// The tag from [`Engine::start`].
        tag: u64,
        /// The completion.
        done: IoDone,
    },
    /// The process received a signal.
    Signal(Signal),
}

/// Sockets, files and time for one thread.
///
/// A connection has at most one pending receive and one pending send. After [`Engine::close`] it
/// has no further events.
pub trait Engine {
    /// Returns the name of the engine: `io_uring`, `threads`, `virtual` or `simulated`.
    fn name(&self) -> &'static str {
        "simulated"
    }

    /// Returns the monotonic time in ns from an arbitrary origin. It may stand still between turns.
    fn now_ns(&self) -> u64;

    /// Returns page-aligned memory of at least this length, from the engine's pool if it has room.
    fn buffer(&mut self, len: usize) -> Buffer;

    /// Accepts connections from a listening socket from now on.
    fn listen(&mut self, socket: OwnedFd) -> ListenerId;

    /// Stops listening and closes the socket.
    fn unlisten(&mut self, listener: ListenerId);

    /// Adds a connected socket, like an accepted one.
    fn adopt(&mut self, socket: OwnedFd) -> ConnId;

    /// Starts to connect to a server, which ends as [`Event::Connected`] with this tag, after
    /// `timeout_ns` at the latest. The lookup of a host name may take longer.
    fn connect(&mut self, tag: u64, to: Endpoint, timeout_ns: u64);

    /// Starts a receive, which ends as [`Event::Received`] when any bytes have arrived.
    fn receive(&mut self, conn: ConnId);

    /// Starts a receive into the buffer from `from` to `to`, which ends as [`Event::Filled`] when
    /// the range is full.
    fn receive_into(&mut self, conn: ConnId, buffer: Buffer, from: usize, to: usize);

    /// Starts to send a message.
    fn send(&mut self, conn: ConnId, message: Message);

    /// Closes a connection. Pending operations are cancelled, and their buffers return to the pool
    /// when the kernel has released them.
    fn close(&mut self, conn: ConnId);

    /// Adds a file for block I/O.
    fn open(&mut self, file: OwnedFd) -> FileId;

    /// Starts block I/O, which ends as [`Event::Done`] with this tag.
    fn start(&mut self, tag: u64, io: Io);

    /// Sets whether waits may poll for events before they sleep. Polling pays off if each client
    /// waits for one reply, not if clients have many requests in flight.
    fn allow_busy_poll(&mut self, _worthwhile: bool) {}

    /// Makes the timeouts of [`Engine::turn`] as precise as the machine permits, by polling the
    /// clock at the end of each wait.
    fn require_precise_timers(&mut self) {}

    /// Submits started operations, waits for an event or until `until_ns` (`None`: without a
    /// timeout; a past time: not at all), and appends the events.
    ///
    /// # Errors
    /// The engine has failed.
    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> std::io::Result<()>;
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}"),
            Endpoint::Unix(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix => f.write_str("unix"),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}
