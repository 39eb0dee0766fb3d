//! Reduces a trace to a few megabytes in one pass: the tables from which a page draws the whole
//! trace.
//!
//! ```text
//! events, requests ─▶ Overview ─▶ Tables (of each process and elevator queue)
//! elevator messages ─▶ spans of service and idling
//! ```
//!
//! Time is divided into at most 2,048 buckets of equal length (a power of two of ns). The length
//! doubles whenever the trace exceeds them; so does the height of a row of the sector heatmaps.
//! Each process has a table for each device. Spans of elevator messages are returned as they end;
//! the caller keeps them if it needs them. Memory does not grow with the trace.
//!
//! # Where to change what
//!
//! - What a page shows: the tables in this file; the page itself is in `hoistway-report`.
//! - The format of an elevator's messages: `notes.rs`; spans that follow from them: `spans.rs`.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod heatmap;
mod notes;
mod read;
mod series;
mod spans;

use std::collections::{BTreeSet, HashMap};

use hoistway_trace::request::RequestRecord;
use hoistway_trace::{Action, Batch, DeviceId, ProcessNames, Rwbs};
use serde::Serialize;

pub use notes::{EndReason, Queue};
pub use read::{OverviewObserver, TraceFacts, TraceOverview, read};
pub use series::Counts;
pub use spans::{NoteSpan, SpanKind};

use heatmap::{Heatmap, LATENCY_ROWS, SECTOR_ROWS, SectorScale, latency_row};
use series::{BUCKETS, IntervalSeries, fold_pairs};
use spans::SpanBuilder;

/// Maximum number of separate process tables. When it is exceeded, the least busy half is combined.
const PROCESSES_MAX: usize = 64;
/// Maximum number of separate elevator queues; later queues are combined.
const QUEUES_MAX: usize = 64;
/// Maximum number of cells of all sector heatmaps. It keeps a page below 10 MB, at about 2 bytes
/// for each cell.
const CELLS_MAX: usize = 1_200_000;
/// Maximum number of buckets of all process tables together.
const BUCKETS_MAX: usize = 65_536;
/// Binary logarithm of the initial bucket length in ns: all buckets together cover 2 ms.
const SHIFT_MIN: u32 = 10;

/// Number of layers that a request passes through.
pub const LAYERS: usize = 5;

/// A layer of the I/O stack: the interval between two steps of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Layer {
    /// Q2G: waits for a free request.
    Get = 0,
    /// G2I: in the plug, until insertion into the elevator.
    Insert = 1,
    /// I2D: in the elevator; without an elevator, from the allocation.
    Elevator = 2,
    /// D2C: in the drive.
    Drive = 3,
    /// Between steps that the trace does not show.
    Unknown = 4,
}

/// Computes [`Tables`] from a stream of events and request records.
#[derive(Debug)]
pub struct Overview {
    start_ns: Option<u64>,
    end_ns: u64,
    shift: u32,
    scale: SectorScale,
    processes: Vec<ProcessSeries>,
    index_of: HashMap<(DeviceId, u32), usize>,
    /// Combined series of the least busy processes, and those processes.
    others: Option<Box<ProcessSeries>>,
    combined_processes: BTreeSet<(DeviceId, u32)>,
    names: ProcessNames,
    spans: SpanBuilder,
    queues: Vec<QueueSeries>,
    ended_spans: Vec<NoteSpan>,
    elevator: Option<String>,
    events: u64,
    requests: u64,
    unfinished: u64,
}

/// Series of a process on a device.
#[derive(Debug)]
struct ProcessSeries {
    device: DeviceId,
    pid: u32,
    requests: u64,
    counts: Vec<Counts>,
    layers: IntervalSeries<LAYERS>,
    reads: Heatmap,
    writes: Heatmap,
    latencies: Heatmap,
}

/// Series of an elevator queue, from the messages of the elevator.
#[derive(Debug)]
struct QueueSeries {
    device: DeviceId,
    queue: Option<Queue>,
    slices: Vec<u32>,
    preemptions: Vec<u32>,
    /// Time in service, and time idled for the queue.
    times: IntervalSeries<2>,
}

/// A trace reduced to tables.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tables {
    /// Time of the first event, in ns of the recorder's clock. All times of the tables count from
    /// it.
    pub start_ns: u64,
    /// Time of the last event, in ns.
    pub end_ns: u64,
    /// Length of a bucket, in ns.
    pub bucket_ns: u64,
    /// Number of events.
    pub events: u64,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that did not complete before the end of the trace.
    pub unfinished: u64,
    /// Name of the elevator, from its messages.
    pub elevator: Option<String>,
    /// Tables of the processes, busiest first; the combined table of the others is last.
    pub processes: Vec<ProcessTable>,
    /// Number of processes in the combined table.
    pub combined_processes: usize,
    /// Tables of the elevator's queues, if its messages mention any.
    pub queues: Vec<QueueTable>,
    /// Lowest and highest first sector of a request.
    pub sectors: Option<(u64, u64)>,
    /// First sector of the first row of the sector heatmaps.
    pub first_sector: u64,
    /// Number of sectors for each row.
    pub row_sectors: u64,
    /// Number of rows of the sector heatmaps.
    pub sector_rows: usize,
    /// Number of rows of the latency heatmaps: quarters of octaves from 1,024 ns.
    pub latency_rows: usize,
    /// Duration of a column of the sector heatmaps, in ns.
    pub sector_column_ns: u64,
    /// Duration of a column of the latency heatmaps, in ns.
    pub latency_column_ns: u64,
}

/// Table of a process on a device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessTable {
    /// Device of the requests.
    pub device: DeviceId,
    /// Process id; None for the combined table of other processes.
    pub pid: Option<u32>,
    /// Name of the process; empty if unknown.
    pub name: String,
    /// Number of requests, including those that did not complete.
    pub requests: u64,
    /// Completed requests in each bucket.
    pub counts: Vec<Counts>,
    /// Total time of all requests in each [`Layer`] in each bucket, in ns.
    pub layers_ns: Vec<[u64; LAYERS]>,
    /// Heatmap of read sectors: cell number (column by column) and count.
    pub reads: Vec<(u32, u32)>,
    /// Heatmap of written sectors.
    pub writes: Vec<(u32, u32)>,
    /// Heatmap of latencies at completion.
    pub latencies: Vec<(u32, u32)>,
}

/// Table of a queue of an elevator.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueTable {
    /// Device of the queue.
    pub device: DeviceId,
    /// Queue; None for the combined table of other queues.
    pub queue: Option<Queue>,
    /// Name of the queue's process; empty if unknown.
    pub name: String,
    /// Slices that began in each bucket.
    pub slices: Vec<u32>,
    /// Preemptions of other queues in each bucket.
    pub preemptions: Vec<u32>,
    /// Time in service and time idled for the queue in each bucket, in ns.
    pub times_ns: Vec<[u64; 2]>,
}

impl Tables {
    /// Number of processes, as far as the format records them. A process id of 0 counts if it has a
    /// name.
    pub fn process_count(&self) -> usize {
        let named = |process: &&ProcessTable| !process.name.is_empty() || process.pid.is_some_and(|pid| pid > 0);
        let known: BTreeSet<u32> = self.processes.iter().filter(named).filter_map(|process| process.pid).collect();
        known.len() + self.combined_processes
    }

    /// Number of requests that completed.
    pub fn completed(&self) -> u64 {
        self.requests - self.unfinished
    }
}

impl Default for Overview {
    fn default() -> Overview {
        Overview::new()
    }
}

impl Overview {
    /// Creates an overview without events.
    pub fn new() -> Overview {
        Overview {
            start_ns: None,
            end_ns: 0,
            shift: SHIFT_MIN,
            scale: SectorScale::default(),
            processes: Vec::new(),
            index_of: HashMap::new(),
            others: None,
            combined_processes: BTreeSet::new(),
            names: ProcessNames::default(),
            spans: SpanBuilder::default(),
            queues: Vec::new(),
            ended_spans: Vec::new(),
            elevator: None,
            events: 0,
            requests: 0,
            unfinished: 0,
        }
    }

    /// Processes the events of a batch in order of time: clock, names and messages. Request records
    /// are added with [`Overview::add_request`].
    pub fn add_events(&mut self, batch: &Batch) {
        self.events += batch.len() as u64;
        for event in batch.events() {
            match event.action {
                Action::Process => {
                    let name = batch.payload(event);
                    self.names.set(event.pid, name.split(|byte| *byte == 0).next().unwrap_or_default());
                    continue;
                }
                Action::Timestamp => continue,
                _ => {}
            }
            self.start_ns.get_or_insert(event.time_ns);
            self.end_ns = self.end_ns.max(event.time_ns);
            match event.action {
                Action::Message => {
                    let text = batch.payload(event);
                    if self.elevator.is_none() {
                        self.elevator = notes::elevator(text).map(str::to_owned);
                    }
                    if let Some(note) = notes::parse(text) {
                        self.spans.add(event.time_ns, event.device, note);
                    }
                }
                Action::Issue => self.spans.issued(event.time_ns, event.device),
                _ => {}
            }
        }
        if !self.spans.is_empty() {
            self.keep_spans();
        }
    }

    /// Adds a request that completed, or that was outstanding at the end of the trace.
    pub fn add_request(&mut self, record: &RequestRecord) {
        let known = || steps(record).into_iter().flatten();
        // A request that was returned by the driver and not seen again has no time.
        let (Some(first_ns), Some(last_ns)) = (known().min(), known().max()) else { return };
        self.requests += 1;
        let start_ns = *self.start_ns.get_or_insert(first_ns);
        self.end_ns = self.end_ns.max(last_ns);
        self.make_room(last_ns.saturating_sub(start_ns));
        if record.bytes > 0
            && SectorScale::is_valid(record.sector)
            && let Some(moved) = self.scale.include(record.sector)
        {
            for process in self.processes.iter_mut().chain(self.others.as_deref_mut()) {
                process.reads.move_rows(|row| moved.row(row));
                process.writes.move_rows(|row| moved.row(row));
            }
        }
        let (shift, scale) = (self.shift, self.scale);
        let end_ns = self.end_ns;
        let process = self.series_of(record.device, record.pid);
        process.take(record, start_ns, end_ns, shift, scale);
        if record.completed_ns.is_none() {
            self.unfinished += 1;
        }
    }

    /// Takes the spans that ended since the last call, in order of their ends.
    pub fn spans(&mut self) -> std::vec::Drain<'_, NoteSpan> {
        self.ended_spans.drain(..)
    }

    /// Time of the first event, in ns of the recorder's clock.
    pub fn start_ns(&self) -> u64 {
        self.start_ns.unwrap_or(0)
    }

    /// Index of a queue in [`Tables::queues`].
    pub fn queue_index(&self, device: DeviceId, queue: Queue) -> usize {
        let known = self.queues.iter().position(|process| process.device == device && process.queue == Some(queue));
        known.unwrap_or(QUEUES_MAX)
    }

    /// Ends the trace and all open spans, which [`Overview::spans`] then returns.
    pub fn finish(&mut self) {
        self.spans.finish(self.end_ns);
        self.keep_spans();
    }

    /// Returns the tables.
    pub fn into_tables(mut self) -> Tables {
        self.finish();
        let start_ns = self.start_ns.unwrap_or(0);
        let end_ns = self.end_ns - start_ns;
        self.make_room(end_ns);
        self.processes.sort_by_key(|process| (std::cmp::Reverse(process.requests), process.device, process.pid));
        let named = self.processes.len();
        self.processes.extend(self.others.take().map(|process| *process));
        while self.processes.len() * ((end_ns >> self.shift) as usize + 1) > BUCKETS_MAX {
            self.fold();
        }
        let mut sector_shift = self.shift + 1;
        while self.processes.iter().map(|process| process.reads.filled() + process.writes.filled()).sum::<usize>()
            > CELLS_MAX
        {
            for process in &mut self.processes {
                process.reads.fold();
                process.writes.fold();
            }
            sector_shift += 1;
        }
        let used = (end_ns >> self.shift) as usize + 1;
        let shift = self.shift;
        let names = &self.names;
        let processes = self.processes.into_iter().enumerate();
        let processes =
            processes.map(|(at, process)| process.table(shift, used, (at < named).then_some(names))).collect();
        let queues = self.queues.into_iter().map(|queue| queue.table(shift, used, names)).collect();
        Tables {
            start_ns,
            end_ns,
            bucket_ns: 1 << self.shift,
            events: self.events,
            requests: self.requests,
            unfinished: self.unfinished,
            elevator: self.elevator,
            processes,
            combined_processes: self.combined_processes.len(),
            queues,
            sectors: self.scale.seen(),
            first_sector: self.scale.first_sector(),
            row_sectors: self.scale.row_sectors(),
            sector_rows: SECTOR_ROWS,
            latency_rows: LATENCY_ROWS,
            sector_column_ns: 1 << sector_shift,
            latency_column_ns: 1 << (self.shift + 1),
        }
    }

    fn keep_spans(&mut self) {
        let ended = self.spans.take_ended();
        let Some(start_ns) = self.start_ns.filter(|_| !ended.is_empty()) else { return };
        for span in &ended {
            self.make_room(span.end_ns.saturating_sub(start_ns));
            let shift = self.shift;
            let queue = self.queue(span.device, span.queue);
            queue.take(span, start_ns, shift);
        }
        self.ended_spans.extend(ended);
    }

    /// Doubles the bucket length until this time is within the buckets.
    fn make_room(&mut self, time_ns: u64) {
        while time_ns >> self.shift >= BUCKETS as u64 {
            self.fold();
        }
    }

    fn fold(&mut self) {
        let shift = self.shift;
        for process in self.processes.iter_mut().chain(self.others.as_deref_mut()) {
            process.fold(shift);
        }
        self.queues.iter_mut().for_each(|queue| queue.fold(shift));
        self.shift += 1;
    }

    fn series_of(&mut self, device: DeviceId, pid: u32) -> &mut ProcessSeries {
        let at = match self.index_of.get(&(device, pid)) {
            Some(at) => *at,
            None => {
                if self.processes.len() >= PROCESSES_MAX {
                    self.combine_least_busy();
                }
                self.processes.push(ProcessSeries::new(device, pid));
                self.index_of.insert((device, pid), self.processes.len() - 1);
                self.processes.len() - 1
            }
        };
        &mut self.processes[at]
    }

    /// Combines the least busy half of the series.
    fn combine_least_busy(&mut self) {
        self.processes.sort_by_key(|process| std::cmp::Reverse(process.requests));
        let shift = self.shift;
        for mut process in self.processes.split_off(PROCESSES_MAX / 2) {
            self.combined_processes.insert((process.device, process.pid));
            let others = self.others.get_or_insert_with(|| Box::new(ProcessSeries::new(DeviceId::default(), 0)));
            others.absorb(&mut process, shift);
        }
        self.index_of =
            self.processes.iter().enumerate().map(|(at, process)| ((process.device, process.pid), at)).collect();
    }

    fn queue(&mut self, device: DeviceId, queue: Queue) -> &mut QueueSeries {
        let known = self.queues.iter().position(|process| process.device == device && process.queue == Some(queue));
        let others = || (self.queues.len() > QUEUES_MAX).then_some(QUEUES_MAX);
        let at = known.or_else(others).unwrap_or_else(|| {
            let named = (self.queues.len() < QUEUES_MAX).then_some(queue);
            self.queues.push(QueueSeries::new(device, named));
            self.queues.len() - 1
        });
        &mut self.queues[at]
    }
}

impl ProcessSeries {
    fn new(device: DeviceId, pid: u32) -> ProcessSeries {
        ProcessSeries {
            device,
            pid,
            requests: 0,
            counts: vec![Counts::default(); BUCKETS],
            layers: IntervalSeries::new(),
            reads: Heatmap::new(SECTOR_ROWS),
            writes: Heatmap::new(SECTOR_ROWS),
            latencies: Heatmap::new(LATENCY_ROWS),
        }
    }

    fn take(&mut self, record: &RequestRecord, start_ns: u64, end_ns: u64, shift: u32, scale: SectorScale) {
        self.requests += 1;
        let since = |time_ns: u64| time_ns.saturating_sub(start_ns);
        let steps = steps(record);
        let mut known = steps.into_iter().enumerate().filter_map(|(step, time)| Some((step, since(time?))));
        let Some((mut step, first_ns)) = known.next() else { return };
        let mut from_ns = first_ns;
        for (next, to_ns) in known {
            self.layers.add(layer(step, next) as usize, from_ns, to_ns, shift);
            (step, from_ns) = (next, to_ns.max(from_ns));
        }
        // The waiting time of a request that is only known to be submitted is unknown.
        if step > 0 && step < COMPLETED {
            self.layers.add(layer(step, step + 1) as usize, from_ns, since(end_ns), shift);
        }
        let access_ns = record.issued_ns.or(record.queued_ns).map_or(first_ns, since);
        if record.bytes > 0 && SectorScale::is_valid(record.sector) {
            let heatmap = if record.op.has(Rwbs::WRITE) || !record.op.has(Rwbs::READ) {
                &mut self.writes
            } else {
                &mut self.reads
            };
            heatmap.add((access_ns >> (shift + 1)) as usize, scale.row(record.sector));
        }
        match record.completed_ns.map(since) {
            Some(completed_ns) => {
                let latency_ns = completed_ns.saturating_sub(first_ns);
                self.count(record, completed_ns, latency_ns, shift);
                self.latencies.add((completed_ns >> (shift + 1)) as usize, latency_row(latency_ns));
            }
            // Some formats record only submissions; these are counted instead of completions.
            None if record.issued_ns.is_none() => self.count(record, from_ns, 0, shift),
            None => {}
        }
    }

    fn count(&mut self, record: &RequestRecord, at_ns: u64, latency_ns: u64, shift: u32) {
        let Some(counts) = self.counts.get_mut((at_ns >> shift) as usize) else { return };
        let bytes = u64::from(record.bytes);
        let mut one = Counts { latency_ns, latency_ns_max: latency_ns, ..Counts::default() };
        if record.op.has(Rwbs::DISCARD) || bytes == 0 {
            one.others = 1;
        } else if record.op.has(Rwbs::WRITE) {
            (one.writes, one.write_bytes) = (1, bytes);
        } else if record.op.has(Rwbs::READ) {
            (one.reads, one.read_bytes) = (1, bytes);
        } else {
            one.others = 1;
        }
        if let (Some(issued), Some(completed)) = (record.issued_ns, record.completed_ns) {
            one.drive_ns = completed.saturating_sub(issued);
        }
        counts.add(&one);
    }

    fn fold(&mut self, shift: u32) {
        fold_pairs(&mut self.counts, Counts::default(), Counts::add);
        self.layers.fold(shift);
        [&mut self.reads, &mut self.writes, &mut self.latencies].into_iter().for_each(Heatmap::fold);
    }

    fn absorb(&mut self, other: &mut ProcessSeries, shift: u32) {
        self.requests += other.requests;
        self.counts.iter_mut().zip(&other.counts).for_each(|(into, other)| into.add(other));
        self.layers.settle(shift);
        other.layers.settle(shift);
        self.layers.absorb(&other.layers);
        self.reads.absorb(&mut other.reads);
        self.writes.absorb(&mut other.writes);
        self.latencies.absorb(&mut other.latencies);
    }

    /// Converts the series to a table of `used` buckets; None for `names` marks the combined table.
    fn table(mut self, shift: u32, used: usize, names: Option<&ProcessNames>) -> ProcessTable {
        self.layers.settle(shift);
        self.counts.truncate(used);
        ProcessTable {
            device: self.device,
            pid: names.map(|_| self.pid),
            name: names.map(|names| name_of(names, self.pid)).unwrap_or_default(),
            requests: self.requests,
            counts: self.counts,
            layers_ns: self.layers.ns().iter().take(used).copied().collect(),
            reads: self.reads.cells().collect(),
            writes: self.writes.cells().collect(),
            latencies: self.latencies.cells().collect(),
        }
    }
}

impl QueueSeries {
    fn new(device: DeviceId, queue: Option<Queue>) -> QueueSeries {
        QueueSeries {
            device,
            queue,
            slices: vec![0; BUCKETS],
            preemptions: vec![0; BUCKETS],
            times: IntervalSeries::new(),
        }
    }

    fn take(&mut self, span: &NoteSpan, start_ns: u64, shift: u32) {
        let (from_ns, to_ns) = (span.start_ns.saturating_sub(start_ns), span.end_ns.saturating_sub(start_ns));
        let bucket = (from_ns >> shift) as usize;
        let count = match span.kind {
            SpanKind::Slice => {
                self.times.add(0, from_ns, to_ns, shift);
                self.slices.get_mut(bucket)
            }
            SpanKind::Idle => return self.times.add(1, from_ns, to_ns, shift),
            SpanKind::Preempts => self.preemptions.get_mut(bucket),
            SpanKind::Raised | SpanKind::Merged | SpanKind::Split | SpanKind::Injected => None,
        };
        if let Some(count) = count {
            *count += 1;
        }
    }

    fn fold(&mut self, shift: u32) {
        fold_pairs(&mut self.slices, 0, |into, other| *into += other);
        fold_pairs(&mut self.preemptions, 0, |into, other| *into += other);
        self.times.fold(shift);
    }

    fn table(mut self, shift: u32, used: usize, names: &ProcessNames) -> QueueTable {
        self.times.settle(shift);
        self.slices.truncate(used);
        self.preemptions.truncate(used);
        let pid = match self.queue {
            Some(Queue::Of(pid) | Queue::AsyncOf(pid)) => Some(pid),
            Some(Queue::Shared) | None => None,
        };
        QueueTable {
            device: self.device,
            queue: self.queue,
            name: pid.map(|pid| name_of(names, pid)).unwrap_or_default(),
            slices: self.slices,
            preemptions: self.preemptions,
            times_ns: self.times.ns().iter().take(used).copied().collect(),
        }
    }
}

fn name_of(names: &ProcessNames, pid: u32) -> String {
    names.get(pid).map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
}

/// Index of the completion among the steps.
const COMPLETED: usize = 4;

fn steps(record: &RequestRecord) -> [Option<u64>; COMPLETED + 1] {
    [record.queued_ns, record.got_ns, record.inserted_ns, record.issued_ns, record.completed_ns]
}

/// Returns the layer between two consecutive recorded steps. The time of a step that is not
/// recorded counts for the layer that the step would have begun.
fn layer(from: usize, to: usize) -> Layer {
    match (from, to) {
        (_, 1) => Layer::Get,
        (_, 2) => Layer::Insert,
        (_, 3) => Layer::Elevator,
        (3, _) => Layer::Drive,
        _ => Layer::Unknown,
    }
}
