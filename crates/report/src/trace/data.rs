//! What the page of a trace is made of: plain tables. Times are ns since the trace began, sectors are 512 bytes.

use crate::data::Fact;

/// So many layers a request passes through: until it was allocated, until it was inserted, in the elevator, at the drive, and between steps that
/// the trace does not show.
pub const TRACE_LAYERS: usize = 5;

/// A whole trace, reduced to tables of a few thousand stretches of time.
#[derive(Clone, Debug, Default)]
pub struct TracePage {
    /// The page's heading.
    pub title: String,
    /// A line under it; may be empty.
    pub subtitle: String,
    /// How it was made, and what there is of everything.
    pub facts: Vec<Fact>,
    /// What a reader should know, a sentence or two each.
    pub notes: Vec<String>,
    /// When the last thing happened.
    pub end_ns: u64,
    /// The length of a stretch, more than 0.
    pub bucket_ns: u64,
    /// The devices' names.
    pub devices: Vec<String>,
    /// A lane a process and device, in the order in which they are shown.
    pub lanes: Vec<TraceLane>,
    /// The elevator's queues; empty where the trace has no notes of it.
    pub queues: Vec<TraceQueue>,
    /// The lowest and the highest sector at which a request began, where there was any.
    pub sectors: Option<(u64, u64)>,
    /// The first sector of the pictures' first row.
    pub first_sector: u64,
    /// So many sectors a row is.
    pub row_sectors: u64,
    /// Rows of the pictures of the disk.
    pub sector_rows: usize,
    /// Rows of the pictures of latencies: the first ends at 1,280 ns, and four are an octave.
    pub latency_rows: usize,
    /// The length of a column of the pictures of the disk.
    pub place_column_ns: u64,
    /// The length of a column of the pictures of latencies.
    pub latency_column_ns: u64,
}

/// One lane: a process on a device.
#[derive(Clone, Debug, Default)]
pub struct TraceLane {
    /// An index into [`TracePage::devices`].
    pub device: u32,
    /// The process; none where it is many.
    pub pid: Option<u32>,
    /// What it is called.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// What completed, a stretch each.
    pub counts: Vec<TraceCounts>,
    /// How long its requests together were in each layer, a stretch each, ns.
    pub layers_ns: Vec<[u64; TRACE_LAYERS]>,
    /// Cells of the picture of the disk (column by column, in rising order) with the reads that fall into each.
    pub reads: Vec<(u32, u32)>,
    /// The same of writes and all others.
    pub writes: Vec<(u32, u32)>,
    /// Cells of the picture of latencies with the requests that fall into each.
    pub latencies: Vec<(u32, u32)>,
}

/// What completed within a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// Reads.
    pub reads: u32,
    /// Writes.
    pub writes: u32,
    /// Others: flushes, discards.
    pub others: u32,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
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
    /// The process whose it is, where it is one's.
    pub pid: Option<u32>,
    /// What it is called.
    pub name: String,
    /// Slices that began, a stretch each.
    pub slices: Vec<u32>,
    /// How often it took the disk from another, a stretch each.
    pub preemptions: Vec<u32>,
    /// How long it was served and idled for, a stretch each, ns.
    pub times_ns: Vec<[u64; 2]>,
}

/// Where the page finds single requests.
#[derive(Clone, Debug)]
pub enum SingleRequests {
    /// Nowhere: the page shows sums alone.
    Nowhere,
    /// In the page itself.
    InPage(Vec<Chunk>),
    /// In files beside it, or answered by a server: `PREFIX/0.js`, `PREFIX/1.js`... as [`chunk_script`](super::chunk_script) makes them.
    Beside {
        /// The folder, relative to the page.
        prefix: String,
        /// From when to when those of each file lasted, and how many they are.
        chunks: Vec<(u64, u64, u32)>,
    },
}

/// Requests and notes of a part of the trace, packed.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// When the first of them began.
    pub from_ns: u64,
    /// When the last of them was over.
    pub to_ns: u64,
    /// How many requests there are.
    pub requests: u32,
    pub(super) packed: Vec<u8>,
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct RequestRow {
    /// An index into [`TracePage::devices`].
    pub device: u32,
    /// The process.
    pub pid: u32,
    /// What it does, as bits: 1 reads, 2 writes, 4 discards, 8 flushes before, 16 is durable itself, 32 reads ahead, 64 somebody waits for it,
    /// 128 a file system's own data, 256 neither, 512 a command passed through.
    pub op: u16,
    /// Its first sector.
    pub sector: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// When it was submitted, allocated, inserted, issued, and when it completed.
    pub steps_ns: [Option<u64>; 5],
    /// How often the driver gave it back.
    pub requeues: u32,
    /// The error with which it completed.
    pub error: u16,
    /// What was merged into it.
    pub merged: Vec<MergedRow>,
}

/// A bio that was merged into a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergedRow {
    /// The process.
    pub pid: u32,
    /// When it was submitted.
    pub queued_ns: u64,
    /// When it was merged.
    pub merged_ns: u64,
    /// Its first sector.
    pub sector: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// To the request's front.
    pub front: bool,
}

/// A stretch of time, or a moment, of the elevator's notes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanRow {
    /// An index into [`TracePage::queues`].
    pub queue: u32,
    /// 0 slice, 1 idling; moments: 2 takes the disk from another, 3 its weight is raised, 4 shares another's queue, 5 has its own again, 6 is let in.
    pub kind: u8,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Why: 0 not told, 1 too idle, 2 timed out, 3 exhausted, 4 no more requests, 5 preempted, 6 its request came.
    pub why: u8,
    /// Sectors served.
    pub served: u64,
    /// The budget in sectors, or what the weight is multiplied by.
    pub budget: u64,
}
