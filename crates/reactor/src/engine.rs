//! The trait [`Engine`], and the types of its operations and events.
//!
//! An engine is a proactor. Calls start an operation; [`Engine::turn`] submits everything started
//! to the kernel at once, waits, and returns the events. One thread does all of it, so a call never
//! blocks.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use crate::buffer::Buffer;
use crate::shared::Shared;

/// Names a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// Names a connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    /// Its place.
    pub slot: u32,
    /// How many had it before.
    pub generation: u32,
}

/// Names a file that the engine does block I/O on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

/// Who is at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where from.
    pub address: Address,
    /// Of a client on a Unix socket: its process, as it was when it connected.
    pub process: Option<Process>,
}

/// Where a client comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix,
    /// TCP.
    Tcp(SocketAddr),
}

/// A process on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its command's name, at most 15 bytes.
    pub comm: String,
    /// Its control group: the path of cgroup v2, or of the `blkio` controller of v1.
    pub cgroup: String,
    /// What `ioprio_get` says: class in the bits from 13 on, level below; 0 is unset.
    pub ioprio: u16,
    /// Its nice value, -20 to 19.
    pub nice: i8,
}

/// One thing to send: parts in order.
#[derive(Debug, Default)]
pub struct Message {
    /// Bytes that parts of the kind [`Part::Head`] lie in.
    pub head: Vec<u8>,
    /// What is sent, in order.
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Debug)]
pub enum Part {
    /// Bytes of the head, from the end of the part of the head before.
    Head {
        /// How many.
        len: usize,
    },
    /// The first bytes of a buffer.
    Buffer {
        /// The buffer.
        buffer: Buffer,
        /// How many of its bytes.
        len: usize,
    },
    /// Memory that is shared with a backend.
    Shared(Shared),
}

impl Part {
    /// Its bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Part::Head { len } | Part::Buffer { len, .. } => *len,
            Part::Shared(shared) => shared.len(),
        }
    }
}

/// Block I/O on a file.
#[derive(Debug)]
pub struct Io {
    /// Which file.
    pub file: FileId,
    /// What is done.
    pub op: IoOp,
    /// The first byte.
    pub offset: u64,
    /// How many bytes: at most the buffer's, where there is one.
    pub length: u64,
    /// Where data come from or go to, for reads and writes.
    pub buffer: Option<Buffer>,
}

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOp {
    /// Reads all of `length` (bytes beyond the end of the file are zeroes).
    Read,
    /// Writes all of `length`; with `durable`, to the medium.
    Write {
        /// Durable when it is done (`RWF_DSYNC`).
        durable: bool,
    },
    /// Makes everything durable that was done before (`fdatasync`).
    Flush,
    /// Makes a range read as zeroes.
    Zero {
        /// A hole will do.
        punch: bool,
    },
    /// Gives a range back.
    Trim,
    /// Finds out which parts of a range are allocated, beginning at `offset`; a few extents will
    /// do.
    Status,
}

/// An extent of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Bytes.
    pub length: u64,
    /// Whether it is a hole, which reads as zeroes.
    pub hole: bool,
}

/// How block I/O ended.
#[derive(Debug)]
pub struct IoDone {
    /// The number of the system's error, if it failed.
    pub result: Result<(), i32>,
    /// The buffer that it was given.
    pub buffer: Option<Buffer>,
    /// What [`IoOp::Status`] found.
    pub extents: Vec<Allocation>,
}

/// Signals that the server heeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Drain and leave (SIGTERM, SIGINT); a second one leaves at once.
    Terminate,
    /// Read the configuration anew (SIGHUP).
    Reload,
    /// A child process ended (SIGCHLD).
    Child,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// Somebody has connected.
    Accepted {
        /// Where.
        listener: ListenerId,
        /// The connection.
        conn: ConnId,
        /// Who.
        peer: Peer,
    },
    /// Bytes came, as many as `len` says; 0 when the other side will send no more.
    Received {
        /// The connection.
        conn: ConnId,
        /// What they lie in.
        buffer: Buffer,
        /// How many.
        len: usize,
    },
    /// What [`Engine::receive_into`] waited for is there: all of it, or less when the other side
    /// will send no more.
    Filled {
        /// The connection.
        conn: ConnId,
        /// The buffer.
        buffer: Buffer,
        /// The end of the part of it that is filled.
        filled: usize,
    },
    /// A message was sent, all of it. It comes back to be used again, without its buffers.
    Sent {
        /// The connection.
        conn: ConnId,
        /// The message, empty.
        message: Message,
    },
    /// The connection is of no use any more (reset, broken pipe). It has still to be closed.
    Broken {
        /// The connection.
        conn: ConnId,
    },
    /// Block I/O ended.
    Done {
        /// The number that it was started with.
        tag: u64,
        /// How.
        done: IoDone,
    },
    /// A signal came.
    Signal(Signal),
}

/// The outside.
///
/// A connection has at most one receive and one send under way. After [`Engine::close`] there are
/// no more events of it.
pub trait Engine {
    /// What it is called: `io_uring`, `threads`, `simulated`.
    fn name(&self) -> &'static str {
        "simulated"
    }

    /// The time in ns: monotonic, from any beginning. It stands still between turns or does not, as
    /// the engine likes.
    fn now_ns(&self) -> u64;

    /// Page-aligned memory of at least this length, from the engine's pool where there is room.
    fn buffer(&mut self, len: usize) -> Buffer;

    /// Accepts connections from a listening socket from now on.
    fn listen(&mut self, socket: OwnedFd) -> ListenerId;

    /// Stops to; the socket is closed.
    fn unlisten(&mut self, listener: ListenerId);

    /// Takes over a connected socket, as if it had been accepted.
    fn adopt(&mut self, socket: OwnedFd) -> ConnId;

    /// Wants the next bytes of a connection, as they come.
    fn receive(&mut self, conn: ConnId);

    /// Wants bytes of a connection in this buffer, from `from` to `to`, all of them.
    fn receive_into(&mut self, conn: ConnId, buffer: Buffer, from: usize, to: usize);

    /// Sends a message.
    fn send(&mut self, conn: ConnId, message: Message);

    /// Ends a connection: what is under way is given up, and buffers go back to the pool once the
    /// kernel has done with them.
    fn close(&mut self, conn: ConnId);

    /// Takes a file for block I/O.
    fn open(&mut self, file: OwnedFd) -> FileId;

    /// Starts block I/O; it ends as an [`Event::Done`] with this tag.
    fn start(&mut self, tag: u64, io: Io);

    /// Whether it is worth while to watch for events before sleeping: it is where clients wait for
    /// one answer each, not where they have sent many requests at once.
    fn allow_busy_poll(&mut self, _worthwhile: bool) {}

    /// Times that [`Engine::turn`] waits until are to be met as exactly as the machine can, by
    /// watching the clock for the last part of a wait.
    fn require_precise_timers(&mut self) {}

    /// Starts what was asked for, waits until something happens or `until_ns` has come (`None`: for
    /// ever; a time that has passed: not at all), and adds what has happened.
    ///
    /// # Errors
    /// When the engine itself is broken.
    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> std::io::Result<()>;
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix => f.write_str("unix"),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}
