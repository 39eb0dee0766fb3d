//! The content of a trace page: plain tables. Times are in ns since the start of the trace, sectors
//! have 512 bytes.

use crate::data::Fact;

/// Number of layers of a request: before allocation, before insertion, in the elevator, at the
/// drive, and between steps that the trace does not show.
pub const TRACE_LAYERS: usize = 5;

/// A trace, reduced to tables of a few thousand time buckets.
#[derive(Clone, Debug, Default)]
pub struct TracePage {
    /// The heading of the page.
    pub title: String,
    /// The line below the heading; may be empty.
    pub subtitle: String,
    /// The origin of the trace and its counts.
    pub facts: Vec<Fact>,
    /// Limitations of the figures, one or two sentences each.
    pub notes: Vec<String>,
    /// The time of the last event.
    pub end_ns: u64,
    /// The length of a time bucket, above 0.
    pub bucket_ns: u64,
    /// The names of the devices.
    pub devices: Vec<String>,
    /// One lane for each process and device, in the order of the page.
    pub lanes: Vec<TraceLane>,
    /// The queues of the elevator; empty if the trace has no notes of it.
    pub queues: Vec<TraceQueue>,
    /// The lowest and the highest first sector of a request, if there are requests.
    pub sectors: Option<(u64, u64)>,
    /// The first sector of the lowest row of the disk pictures.
    pub first_sector: u64,
    /// Sectors of a row.
    pub row_sectors: u64,
    /// Number of rows of the disk pictures.
    pub sector_rows: usize,
    /// Number of rows of the latency pictures. The first ends at 1,280 ns, and four rows are an
    /// octave.
    pub latency_rows: usize,
    /// The length of a column of the disk pictures.
    pub place_column_ns: u64,
    /// The length of a column of the latency pictures.
    pub latency_column_ns: u64,
}

/// One lane: a process on a device.
#[derive(Clone, Debug, Default)]
pub struct TraceLane {
    /// An index into [`TracePage::devices`].
    pub device: u32,
    /// The process id; `None` for a lane of several processes.
    pub pid: Option<u32>,
    /// The name of the lane.
    pub name: String,
    /// Number of requests.
    pub requests: u64,
    /// Completions in each time bucket.
    pub counts: Vec<TraceCounts>,
    /// Time of its requests in each layer, by time bucket, in ns.
    pub layers_ns: Vec<[u64; TRACE_LAYERS]>,
    /// Non-empty cells of the disk picture (column by column, rising) with the number of reads.
    pub reads: Vec<(u32, u32)>,
    /// The same for all other requests.
    pub writes: Vec<(u32, u32)>,
    /// Non-empty cells of the latency picture with the number of requests.
    pub latencies: Vec<(u32, u32)>,
}

/// Completions within one time bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// Number of reads.
    pub reads: u32,
    /// Number of writes.
    pub writes: u32,
    /// Number of flushes and discards.
    pub others: u32,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// The sum of all latencies, ns.
    pub latency_ns: u64,
    /// The longest latency, ns.
    pub latency_ns_max: u64,
    /// The sum of all times at the drive, ns.
    pub drive_ns: u64,
}

/// A queue of the elevator.
#[derive(Clone, Debug, Default)]
pub struct TraceQueue {
    /// An index into [`TracePage::devices`].
    pub device: u32,
    /// The process id; `None` for a shared queue.
    pub pid: Option<u32>,
    /// The name of the queue.
    pub name: String,
    /// Slices that began in each time bucket.
    pub slices: Vec<u32>,
    /// Preemptions of other queues in each time bucket.
    pub preemptions: Vec<u32>,
    /// Service time and idle time in each time bucket, in ns.
    pub times_ns: Vec<[u64; 2]>,
}

/// The source of single requests.
#[derive(Clone, Debug)]
pub enum SingleRequests {
    /// No single requests: the page shows sums alone.
    Nowhere,
    /// Chunks in the page.
    InPage(Vec<Chunk>),
    /// Chunks in files beside the page or from a server: `PREFIX/0.js`, `PREFIX/1.js`... as
    /// [`chunk_script`](super::chunk_script) makes them.
    Beside {
        /// The path prefix, relative to the page.
        prefix: String,
        /// Begin, end and number of requests of each file.
        chunks: Vec<(u64, u64, u32)>,
    },
}

/// Packed requests and notes of a part of the trace.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The begin of the first request.
    pub from_ns: u64,
    /// The completion of the last request.
    pub to_ns: u64,
    /// Number of requests.
    pub requests: u32,
    pub(super) packed: Vec<u8>,
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct RequestRow {
    /// An index into [`TracePage::devices`].
    pub device: u32,
    /// The process id.
    pub pid: u32,
    /// The operation as bits: 1 read, 2 write, 4 discard, 8 flush before, 16 force unit access, 32
    /// read-ahead, 64 synchronous, 128 metadata, 256 none of read and write, 512 passthrough
    /// command.
    pub op: u16,
    /// The first sector.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Times of submission, allocation, insertion, issue and completion.
    pub steps_ns: [Option<u64>; 5],
    /// Number of requeues.
    pub requeues: u32,
    /// The error code of the completion.
    pub error: u16,
    /// The bios merged into the request.
    pub merged: Vec<MergedRow>,
}

/// A bio that was merged into a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergedRow {
    /// The process id.
    pub pid: u32,
    /// The time of submission.
    pub queued_ns: u64,
    /// The time of the merge.
    pub merged_ns: u64,
    /// The first sector.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// True for a front merge.
    pub front: bool,
}

/// A span or a moment from the notes of the elevator.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanRow {
    /// An index into [`TracePage::queues`].
    pub queue: u32,
    /// The kind: 0 slice, 1 idling; moments: 2 preemption, 3 weight raising, 4 queue merge, 5 queue
    /// split, 6 injection.
    pub kind: u8,
    /// The begin.
    pub start_ns: u64,
    /// The end.
    pub end_ns: u64,
    /// The reason: 0 unknown, 1 too idle, 2 timed out, 3 budget exhausted, 4 no more requests, 5
    /// preempted, 6 request arrived.
    pub why: u8,
    /// Sectors served.
    pub served: u64,
    /// The budget in sectors, or the factor of the weight.
    pub budget: u64,
}
