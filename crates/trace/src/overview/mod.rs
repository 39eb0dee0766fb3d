//! A whole trace in a few megabytes, in one pass: what a page needs to draw it from afar.
//!
//! Time is cut into at most 2,048 stretches of equal length (a power of two of ns), which double whenever the trace outgrows them; so does the height of a row
//! of the pictures of the disk. A lane is a process on a device. Single requests and notes are handed on as they come: who wants them keeps them.

mod notes;
mod places;
mod series;
mod spans;

use std::collections::{BTreeSet, HashMap};

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Rwbs};
use crate::life::Life;
use crate::names::Names;

pub use notes::{Ended, Queue};
pub use series::Counts;
pub use spans::{NoteSpan, SpanKind};

use places::{LATENCY_ROWS, Picture, SECTOR_ROWS, SectorScale, latency_row};
use series::{BUCKETS, Cover, fold_pairs};
use spans::Spans;

/// So many lanes are kept apart; when more come, the half that did least becomes one.
const LANES_MAX: usize = 64;
/// So many queues of elevators are kept apart; those that come later count as one.
const QUEUES_MAX: usize = 64;
/// So many cells all pictures of the disk have at most, so that a page stays below 10 MB: a cell is about 2 bytes of it.
const CELLS_MAX: usize = 1_200_000;
/// So many values all series have at most, a stretch of a lane being one.
const STRETCHES_MAX: usize = 65_536;
/// The first stretches are 2^10 ns long: all of them together 2 ms.
const SHIFT_MIN: u32 = 10;

/// The layers that a request passes through, as a page tells them apart.
pub const LAYERS: usize = 5;

/// A layer: what lies between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Layer {
    /// Q2G: until there was a request for it.
    Get = 0,
    /// G2I: until it went to the elevator, plugged or being merged.
    Insert = 1,
    /// I2D: in the elevator; without an elevator from the request on.
    Elevator = 2,
    /// D2C: at the drive.
    Drive = 3,
    /// Between steps that the trace does not show.
    Untold = 4,
}

/// Makes the tables.
#[derive(Debug)]
pub struct Overview {
    start_ns: Option<u64>,
    end_ns: u64,
    shift: u32,
    scale: SectorScale,
    lanes: Vec<Lane>,
    lane_of: HashMap<(DeviceId, u32), usize>,
    /// The lane of what did too little for one of its own; with the processes that are in it.
    others: Option<Box<Lane>>,
    among_others: BTreeSet<(DeviceId, u32)>,
    names: Names,
    spans: Spans,
    queues: Vec<QueueLane>,
    fresh: Vec<NoteSpan>,
    elevator: Option<String>,
    events: u64,
    requests: u64,
    unfinished: u64,
}

/// What one lane adds up to.
#[derive(Debug)]
struct Lane {
    device: DeviceId,
    pid: u32,
    requests: u64,
    counts: Vec<Counts>,
    layers: Cover<LAYERS>,
    reads: Picture,
    writes: Picture,
    latencies: Picture,
}

/// What an elevator's notes say of one queue.
#[derive(Debug)]
struct QueueLane {
    device: DeviceId,
    queue: Option<Queue>,
    slices: Vec<u32>,
    preemptions: Vec<u32>,
    /// Served, idled for.
    times: Cover<2>,
}

/// A trace, reduced.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// When the first event happened, ns of the recorder's clock. All times of the tables count from it.
    pub start_ns: u64,
    /// When the last thing happened, ns.
    pub end_ns: u64,
    /// The length of a stretch, ns.
    pub bucket_ns: u64,
    /// The events.
    pub events: u64,
    /// The requests.
    pub requests: u64,
    /// Those of them that did not complete before the trace ended.
    pub unfinished: u64,
    /// The elevator, as its notes tell.
    pub elevator: Option<String>,
    /// The lanes, the busiest first; that of all others last.
    pub lanes: Vec<LaneTable>,
    /// So many processes are in the lane of the others.
    pub among_others: usize,
    /// The elevator's queues, if its notes tell of any.
    pub queues: Vec<QueueTable>,
    /// The lowest and the highest sector where a request began.
    pub sectors: Option<(u64, u64)>,
    /// The first sector of the pictures' first row.
    pub first_sector: u64,
    /// So many sectors a row stands for.
    pub row_sectors: u64,
    /// So many rows the pictures of the disk have.
    pub sector_rows: usize,
    /// So many rows the pictures of latencies have: quarters of octaves, from 1,024 ns on.
    pub latency_rows: usize,
    /// So long a column of the pictures of the disk is, ns.
    pub place_column_ns: u64,
    /// So long a column of the pictures of latencies is, ns.
    pub latency_column_ns: u64,
}

/// A process on a device.
#[derive(Clone, Debug, Default)]
pub struct LaneTable {
    /// The device.
    pub device: DeviceId,
    /// The process; none in the lane of all others.
    pub pid: Option<u32>,
    /// Its name, as far as the trace tells.
    pub name: String,
    /// Its requests, those that did not complete included.
    pub requests: u64,
    /// What completed, a stretch each.
    pub counts: Vec<Counts>,
    /// How long all its requests together were in each [`Layer`] in each stretch, ns.
    pub layers_ns: Vec<[u64; LAYERS]>,
    /// Where it read when: the number of the cell (column by column), and how often.
    pub reads: Vec<(u32, u32)>,
    /// Where it wrote.
    pub writes: Vec<(u32, u32)>,
    /// Which latencies its requests had when they completed.
    pub latencies: Vec<(u32, u32)>,
}

/// A queue of an elevator.
#[derive(Clone, Debug, Default)]
pub struct QueueTable {
    /// The device.
    pub device: DeviceId,
    /// The queue; none in the line of all others.
    pub queue: Option<Queue>,
    /// The name of its process, as far as the trace tells.
    pub name: String,
    /// Slices that began, a stretch each.
    pub slices: Vec<u32>,
    /// How often it took the disk from another.
    pub preemptions: Vec<u32>,
    /// How long it was served and idled for, ns.
    pub times_ns: Vec<[u64; 2]>,
}

impl Default for Overview {
    fn default() -> Overview {
        Overview::new()
    }
}

impl Overview {
    /// Nothing seen yet.
    pub fn new() -> Overview {
        Overview {
            start_ns: None,
            end_ns: 0,
            shift: SHIFT_MIN,
            scale: SectorScale::default(),
            lanes: Vec::new(),
            lane_of: HashMap::new(),
            others: None,
            among_others: BTreeSet::new(),
            names: Names::default(),
            spans: Spans::default(),
            queues: Vec::new(),
            fresh: Vec::new(),
            elevator: None,
            events: 0,
            requests: 0,
            unfinished: 0,
        }
    }

    /// Takes in events, in the order of time: the clock, names and notes. The ways of requests come by [`Overview::life`].
    pub fn take(&mut self, batch: &Batch) {
        self.events += batch.len() as u64;
        for event in batch.events() {
            match event.action {
                Action::Process => {
                    let name = batch.payload(event);
                    self.names.tell(event.pid, name.split(|byte| *byte == 0).next().unwrap_or_default());
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
                    if let Some(told) = notes::parse(text) {
                        self.spans.take(event.time_ns, event.device, told);
                    }
                }
                Action::Issue => self.spans.issued(event.time_ns, event.device),
                _ => {}
            }
        }
        if !self.spans.is_silent() {
            self.keep_spans();
        }
    }

    /// Takes in a request that is over, or was still under way when the trace ended.
    pub fn life(&mut self, life: &Life) {
        let known = || steps(life).into_iter().flatten();
        // One that was taken, given back and then never seen again has no moment at which it could be shown.
        let (Some(first_ns), Some(last_ns)) = (known().min(), known().max()) else { return };
        self.requests += 1;
        let start_ns = *self.start_ns.get_or_insert(first_ns);
        self.end_ns = self.end_ns.max(last_ns);
        self.make_room(last_ns.saturating_sub(start_ns));
        if life.bytes > 0
            && SectorScale::holds(life.sector)
            && let Some(moved) = self.scale.take(life.sector)
        {
            for lane in self.lanes.iter_mut().chain(self.others.as_deref_mut()) {
                lane.reads.move_rows(|row| moved.row(row));
                lane.writes.move_rows(|row| moved.row(row));
            }
        }
        let (shift, scale) = (self.shift, self.scale);
        let end_ns = self.end_ns;
        let lane = self.lane(life.device, life.pid);
        lane.take(life, start_ns, end_ns, shift, scale);
        if life.completed_ns.is_none() {
            self.unfinished += 1;
        }
    }

    /// What the notes told since this was last called, in the order of the ends.
    pub fn spans(&mut self) -> std::vec::Drain<'_, NoteSpan> {
        self.fresh.drain(..)
    }

    /// When the first event happened, ns of the recorder's clock.
    pub fn start_ns(&self) -> u64 {
        self.start_ns.unwrap_or(0)
    }

    /// The place of a queue among those of [`Tables::queues`].
    pub fn queue_place(&self, device: DeviceId, queue: Queue) -> usize {
        let known = self.queues.iter().position(|lane| lane.device == device && lane.queue == Some(queue));
        known.unwrap_or(QUEUES_MAX)
    }

    /// The trace is over: what the notes told of is, too, and [`Overview::spans`] has the rest of it.
    pub fn end(&mut self) {
        self.spans.finish(self.end_ns);
        self.keep_spans();
    }

    /// The tables.
    pub fn tables(mut self) -> Tables {
        self.end();
        let start_ns = self.start_ns.unwrap_or(0);
        let end_ns = self.end_ns - start_ns;
        self.make_room(end_ns);
        self.lanes.sort_by_key(|lane| (std::cmp::Reverse(lane.requests), lane.device, lane.pid));
        let named = self.lanes.len();
        self.lanes.extend(self.others.take().map(|lane| *lane));
        while self.lanes.len() * ((end_ns >> self.shift) as usize + 1) > STRETCHES_MAX {
            self.fold();
        }
        let mut place_shift = self.shift + 1;
        while self.lanes.iter().map(|lane| lane.reads.filled() + lane.writes.filled()).sum::<usize>() > CELLS_MAX {
            for lane in &mut self.lanes {
                lane.reads.fold();
                lane.writes.fold();
            }
            place_shift += 1;
        }
        let used = (end_ns >> self.shift) as usize + 1;
        let shift = self.shift;
        let names = &self.names;
        let lanes = self.lanes.into_iter().enumerate();
        let lanes = lanes.map(|(at, lane)| lane.table(shift, used, (at < named).then_some(names))).collect();
        let queues = self.queues.into_iter().map(|queue| queue.table(shift, used, names)).collect();
        Tables {
            start_ns,
            end_ns,
            bucket_ns: 1 << self.shift,
            events: self.events,
            requests: self.requests,
            unfinished: self.unfinished,
            elevator: self.elevator,
            lanes,
            among_others: self.among_others.len(),
            queues,
            sectors: self.scale.seen(),
            first_sector: self.scale.first_sector(),
            row_sectors: self.scale.row_sectors(),
            sector_rows: SECTOR_ROWS,
            latency_rows: LATENCY_ROWS,
            place_column_ns: 1 << place_shift,
            latency_column_ns: 1 << (self.shift + 1),
        }
    }

    fn keep_spans(&mut self) {
        let over = self.spans.over();
        let Some(start_ns) = self.start_ns.filter(|_| !over.is_empty()) else { return };
        for span in &over {
            self.make_room(span.end_ns.saturating_sub(start_ns));
            let shift = self.shift;
            let queue = self.queue(span.device, span.queue);
            queue.take(span, start_ns, shift);
        }
        self.fresh.extend(over);
    }

    /// Doubles the stretches until this time is within them.
    fn make_room(&mut self, time_ns: u64) {
        while time_ns >> self.shift >= BUCKETS as u64 {
            self.fold();
        }
    }

    fn fold(&mut self) {
        let shift = self.shift;
        for lane in self.lanes.iter_mut().chain(self.others.as_deref_mut()) {
            lane.fold(shift);
        }
        self.queues.iter_mut().for_each(|queue| queue.fold(shift));
        self.shift += 1;
    }

    fn lane(&mut self, device: DeviceId, pid: u32) -> &mut Lane {
        let at = match self.lane_of.get(&(device, pid)) {
            Some(at) => *at,
            None => {
                if self.lanes.len() >= LANES_MAX {
                    self.join_the_least();
                }
                self.lanes.push(Lane::new(device, pid));
                self.lane_of.insert((device, pid), self.lanes.len() - 1);
                self.lanes.len() - 1
            }
        };
        &mut self.lanes[at]
    }

    /// Makes one lane of the half that did least.
    fn join_the_least(&mut self) {
        self.lanes.sort_by_key(|lane| std::cmp::Reverse(lane.requests));
        let shift = self.shift;
        for mut lane in self.lanes.split_off(LANES_MAX / 2) {
            self.among_others.insert((lane.device, lane.pid));
            let others = self.others.get_or_insert_with(|| Box::new(Lane::new(DeviceId::default(), 0)));
            others.absorb(&mut lane, shift);
        }
        self.lane_of = self.lanes.iter().enumerate().map(|(at, lane)| ((lane.device, lane.pid), at)).collect();
    }

    fn queue(&mut self, device: DeviceId, queue: Queue) -> &mut QueueLane {
        let known = self.queues.iter().position(|lane| lane.device == device && lane.queue == Some(queue));
        let others = || (self.queues.len() > QUEUES_MAX).then_some(QUEUES_MAX);
        let at = known.or_else(others).unwrap_or_else(|| {
            let named = (self.queues.len() < QUEUES_MAX).then_some(queue);
            self.queues.push(QueueLane::new(device, named));
            self.queues.len() - 1
        });
        &mut self.queues[at]
    }
}

impl Lane {
    fn new(device: DeviceId, pid: u32) -> Lane {
        Lane {
            device,
            pid,
            requests: 0,
            counts: vec![Counts::default(); BUCKETS],
            layers: Cover::new(),
            reads: Picture::new(SECTOR_ROWS),
            writes: Picture::new(SECTOR_ROWS),
            latencies: Picture::new(LATENCY_ROWS),
        }
    }

    fn take(&mut self, life: &Life, start_ns: u64, end_ns: u64, shift: u32, scale: SectorScale) {
        self.requests += 1;
        let since = |time_ns: u64| time_ns.saturating_sub(start_ns);
        let steps = steps(life);
        let mut known = steps.into_iter().enumerate().filter_map(|(step, time)| Some((step, since(time?))));
        let Some((mut step, first_ns)) = known.next() else { return };
        let mut from_ns = first_ns;
        for (next, to_ns) in known {
            self.layers.add(layer(step, next) as usize, from_ns, to_ns, shift);
            (step, from_ns) = (next, to_ns.max(from_ns));
        }
        // Of what is only known to have been submitted nobody knows how long it waited.
        if step > 0 && step < COMPLETED {
            self.layers.add(layer(step, step + 1) as usize, from_ns, since(end_ns), shift);
        }
        let placed_ns = life.issued_ns.or(life.queued_ns).map_or(first_ns, since);
        if life.bytes > 0 && SectorScale::holds(life.sector) {
            let picture =
                if life.op.has(Rwbs::WRITE) || !life.op.has(Rwbs::READ) { &mut self.writes } else { &mut self.reads };
            picture.add((placed_ns >> (shift + 1)) as usize, scale.row(life.sector));
        }
        match life.completed_ns.map(since) {
            Some(completed_ns) => {
                let latency_ns = completed_ns.saturating_sub(first_ns);
                self.count(life, completed_ns, latency_ns, shift);
                self.latencies.add((completed_ns >> (shift + 1)) as usize, latency_row(latency_ns));
            }
            // Some formats tell of submissions alone: what was asked for is all that there is to count.
            None if life.issued_ns.is_none() => self.count(life, from_ns, 0, shift),
            None => {}
        }
    }

    fn count(&mut self, life: &Life, at_ns: u64, latency_ns: u64, shift: u32) {
        let Some(counts) = self.counts.get_mut((at_ns >> shift) as usize) else { return };
        let bytes = u64::from(life.bytes);
        let mut one = Counts { latency_ns, latency_ns_max: latency_ns, ..Counts::default() };
        if life.op.has(Rwbs::DISCARD) || bytes == 0 {
            one.others = 1;
        } else if life.op.has(Rwbs::WRITE) {
            (one.writes, one.write_bytes) = (1, bytes);
        } else if life.op.has(Rwbs::READ) {
            (one.reads, one.read_bytes) = (1, bytes);
        } else {
            one.others = 1;
        }
        if let (Some(issued), Some(completed)) = (life.issued_ns, life.completed_ns) {
            one.drive_ns = completed.saturating_sub(issued);
        }
        counts.add(&one);
    }

    fn fold(&mut self, shift: u32) {
        fold_pairs(&mut self.counts, Counts::default(), Counts::add);
        self.layers.fold(shift);
        [&mut self.reads, &mut self.writes, &mut self.latencies].into_iter().for_each(Picture::fold);
    }

    fn absorb(&mut self, other: &mut Lane, shift: u32) {
        self.requests += other.requests;
        self.counts.iter_mut().zip(&other.counts).for_each(|(into, other)| into.add(other));
        self.layers.settle(shift);
        other.layers.settle(shift);
        self.layers.absorb(&other.layers);
        self.reads.absorb(&mut other.reads);
        self.writes.absorb(&mut other.writes);
        self.latencies.absorb(&mut other.latencies);
    }

    /// The lane as a table of so many stretches; without names it is that of all others.
    fn table(mut self, shift: u32, used: usize, names: Option<&Names>) -> LaneTable {
        self.layers.settle(shift);
        self.counts.truncate(used);
        LaneTable {
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

impl QueueLane {
    fn new(device: DeviceId, queue: Option<Queue>) -> QueueLane {
        QueueLane { device, queue, slices: vec![0; BUCKETS], preemptions: vec![0; BUCKETS], times: Cover::new() }
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

    fn table(mut self, shift: u32, used: usize, names: &Names) -> QueueTable {
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

fn name_of(names: &Names, pid: u32) -> String {
    names.get(pid).map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
}

/// The place of a completion among the steps.
const COMPLETED: usize = 4;

fn steps(life: &Life) -> [Option<u64>; COMPLETED + 1] {
    [life.queued_ns, life.got_ns, life.inserted_ns, life.issued_ns, life.completed_ns]
}

/// The layer between two steps that follow each other in a trace: a step that is not shown lies in the layer that it would have begun.
fn layer(from: usize, to: usize) -> Layer {
    match (from, to) {
        (_, 1) => Layer::Get,
        (_, 2) => Layer::Insert,
        (_, 3) => Layer::Elevator,
        (3, _) => Layer::Drive,
        _ => Layer::Untold,
    }
}

#[cfg(test)]
mod tests;
