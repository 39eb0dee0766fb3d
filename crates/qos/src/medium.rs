//! The interface between a queue and the device below it.

use crate::ids::{CommandId, IoId};
use crate::request::{IoError, RequestOp};

/// The result type of requests.
pub trait Output: Sized {
    /// Returns the output of a request that has none, such as a write.
    fn none() -> Self;
    /// Combines the outputs of the pieces of a split read; each element holds the length of a piece
    /// in bytes and its output, in order of offset.
    fn from_pieces(pieces: Vec<(u64, Self)>) -> Self;
}

impl Output for () {
    fn none() -> Self {}
    fn from_pieces(_: Vec<(u64, ())>) -> Self {}
}

/// The I/O of one bio, as it is handed to the medium.
#[derive(Debug)]
pub struct MediumRequest<D> {
    /// The id of the I/O.
    pub io: IoId,
    /// The host's identifier of the request, [`IoRequest::ticket`](crate::IoRequest::ticket).
    pub ticket: u64,
    /// The operation.
    pub op: RequestOp,
    /// The first byte on the device.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// Whether a write must be durable before it ends.
    pub durable: bool,
    /// The data from [`IoRequest::data`](crate::IoRequest::data). The data of a write are its first
    /// `length` bytes.
    pub data: Option<D>,
}

impl<D> MediumRequest<D> {
    /// Returns the I/O of a flush, which covers the whole medium.
    pub fn flush() -> MediumRequest<D> {
        MediumRequest {
            io: IoId::FLUSH,
            ticket: u64::MAX,
            op: RequestOp::Flush,
            offset: 0,
            length: 0,
            durable: false,
            data: None,
        }
    }
}

/// How an I/O began.
#[derive(Debug)]
pub enum Begin<O> {
    /// It ended within the call.
    Done(Result<O, IoError>),
    /// It is in progress. The host calls [`DiskQueue::end_io`](crate::DiskQueue::end_io) when it
    /// ends.
    Pending,
}

/// A command to a drive model, which covers all bios of one request of the request queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveCommand {
    /// The id of the command.
    pub id: CommandId,
    /// The direction.
    pub op: hoistway_core::Op,
    /// The first sector of 512 bytes.
    pub sector: u64,
    /// The length in sectors.
    pub sectors: u32,
    /// Whether a write bypasses the drive's write cache.
    pub fua: bool,
}

/// An event of a medium that models a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumEvent {
    /// A command ended.
    CommandDone {
        /// The id of the command.
        id: CommandId,
        /// The first sector that could not be read or written.
        bad_sector: Option<u64>,
    },
    /// The flush ended.
    FlushDone,
}

/// The device below a queue: a file, memory, an emulated drive, or a disk on which the host itself
/// does the I/O.
pub trait Medium {
    /// The data of requests: those of a write, or what the host attaches.
    type Data;
    /// The results of requests.
    type Output: Output;

    /// Starts the I/O of one bio.
    fn begin(&mut self, request: MediumRequest<Self::Data>) -> Begin<Self::Output>;

    /// Copies `length` bytes at `from` out of the data of a split write. `None` if the data is
    /// shorter.
    fn copy_piece(&mut self, data: &Self::Data, from: usize, length: usize) -> Option<Self::Data>;

    /// Passes a command to the drive model. Returns true if [`Medium::poll`] will report its end.
    fn start_command(&mut self, _command: &DriveCommand, _now_ns: u64) -> bool {
        false
    }

    /// Passes a flush to the drive model. Returns true if [`Medium::poll`] will report its end.
    fn start_flush(&mut self, _now_ns: u64) -> bool {
        false
    }

    /// Returns the next event of the drive model that is due at `now_ns`.
    fn poll(&mut self, _now_ns: u64) -> Option<MediumEvent> {
        None
    }

    /// Returns the time of the next event of the drive model, in ns.
    fn next_event_ns(&self) -> Option<u64> {
        None
    }
}

/// The default queue depth of a rotating medium: one request is served while the next is on its
/// way. At larger depths the drive reorders requests (worth some 30 % of its throughput at 32),
/// which the elevator cannot control.
pub const DEPTH_ROTATIONAL: u32 = 2;
/// The default queue depth of flash: enough requests to keep its channels busy; a new request waits
/// for at most 31 others.
pub const DEPTH_FLASH: u32 = 32;

/// The preferred unit of offsets and lengths in bytes, where the medium states none: a page.
pub const BLOCK_BYTES_PREFERRED: u32 = 4096;

/// The properties of a medium that a queue depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumProperties {
    /// The size in bytes.
    pub bytes: u64,
    /// Whether the medium, or the drive that it emulates, rotates.
    pub rotational: bool,
    /// Whether a drive model determines when requests end. A flush then occupies a place in the
    /// queue depth.
    pub is_emulated: bool,
    /// Whether every I/O ends within [`Medium::begin`].
    pub is_synchronous: bool,
    /// Whether requests longer than the largest request are split into pieces.
    pub splits_requests: bool,
    /// The largest I/O that the medium accepts, in bytes: longer requests are split, whatever the
    /// largest request of the queue is.
    pub io_bytes_max: u64,
    /// The queue depth that applies unless one is configured.
    pub default_depth: u32,
    /// The largest queue depth.
    pub depth_max: u32,
}
