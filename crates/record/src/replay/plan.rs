//! What is to be done again, and when.

use std::collections::HashMap;

use hoistway_trace::dependencies::{self, Release, SubmittedRequest};
use hoistway_trace::request::RequestRecord;
use hoistway_trace::{DeviceId, Rwbs};

use super::figures::Figures;

/// Bytes in a sector of a trace.
const SECTOR_BYTES: u64 = 512;

/// At which layer the requests of a trace are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As programs and file systems submitted them: each bio, at its time (Q).
    Queue,
    /// As the driver was given them: merged and sorted, at that time (D).
    Issue,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Gives sectors back.
    Discard,
    /// Makes the target write its cache out.
    Flush,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it was submitted, in ns since the first one.
    pub at_ns: u64,
    /// How long it took then; `u64::MAX` if the trace does not show that.
    pub recorded_ns: u64,
    /// The first byte.
    pub offset: u64,
    /// How many bytes; 0 of flushes.
    pub bytes: u32,
    /// Whose it is: a place in [`Plan::processes`].
    pub process: u32,
    /// What it does.
    pub kind: Kind,
    /// Durable before it is over (FUA).
    pub durable: bool,
}

/// Requests in the order in which they were submitted.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    requests: Vec<Planned>,
    /// Device and number of each process.
    processes: Vec<(DeviceId, u32)>,
    left_out: LeftOut,
    recorded: Figures,
}

/// What of a trace is not in its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// Writes, discards and flushes, where only reads are done.
    pub changing: u64,
    /// Requests that are no I/O on sectors (commands that are passed through), or have no length.
    pub others: u64,
    /// Discards that the target cannot do.
    pub discards: u64,
    /// Flushes that the target cannot do.
    pub flushes: u64,
    /// Requests of which only the completion is in the trace.
    pub endings: u64,
}

/// How requests are made to fit a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Added to each offset, in bytes.
    pub shift_bytes: i64,
    /// What reaches beyond the end begins at the beginning again.
    pub wrap: bool,
}

/// Why a plan does not fit a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It reaches beyond the end.
    #[error(
        "it has {size} bytes, and the trace reaches to byte {end}: --wrap begins at its beginning again, --shift -BYTES moves requests to lower places"
    )]
    TooSmall {
        /// The target's size.
        size: u64,
        /// Where the trace ends.
        end: u64,
    },
    /// A request would lie before the beginning.
    #[error(
        "shifted by {shift} bytes, a request at byte {offset} lies before the beginning; --shift may be -{offset} at least"
    )]
    BeforeBeginning {
        /// The first byte of the lowest request.
        offset: u64,
        /// By how much it was shifted.
        shift: i64,
    },
    /// One request is larger than the target.
    #[error("it has {size} bytes, and a request of the trace has {bytes}")]
    RequestTooLong {
        /// The target's size.
        size: u64,
        /// The request's.
        bytes: u32,
    },
}

/// Makes a plan of the ways of requests.
#[derive(Debug)]
pub struct PlanBuilder {
    level: Level,
    reads_only: bool,
    /// With the times of the trace's clock.
    requests: Vec<Planned>,
    places: HashMap<(DeviceId, u32), u32>,
    processes: Vec<(DeviceId, u32)>,
    left_out: LeftOut,
}

impl Kind {
    /// Whether it changes what lies on the target, or needs the right to.
    pub fn changes(self) -> bool {
        self != Kind::Read
    }
}

impl PlanBuilder {
    /// A plan of the requests at this layer; of reads only where nothing may be written.
    pub fn new(level: Level, reads_only: bool) -> PlanBuilder {
        PlanBuilder {
            level,
            reads_only,
            requests: Vec::new(),
            places: HashMap::new(),
            processes: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    /// Takes in a request.
    pub fn take(&mut self, life: &RequestRecord) {
        let at_ns = match self.level {
            Level::Queue => life.first_seen_ns(),
            Level::Issue => life.issued_ns.or_else(|| life.first_seen_ns()),
        };
        let Some(at_ns) = at_ns else {
            self.left_out.endings += 1;
            return;
        };
        let completed_ns = life.completed_ns;
        if self.level == Level::Issue {
            return self.add(life, life.pid, at_ns, completed_ns, life.sector, life.bytes);
        }
        // What was merged to the front lies before the first bio.
        let before = life.merged.iter().filter(|bio| bio.front).map(|bio| u64::from(bio.bytes)).sum::<u64>();
        let sector = life.sector.saturating_add(before.div_ceil(SECTOR_BYTES));
        self.add(life, life.pid, at_ns, completed_ns, sector, life.first_bytes());
        for bio in &life.merged {
            self.add(life, bio.pid, bio.queued_ns, completed_ns, bio.sector, bio.bytes);
        }
    }

    /// The plan: in the order of time, which begins with the first request.
    pub fn finish(mut self) -> Plan {
        self.requests.sort_by_key(|request| request.at_ns);
        let first_ns = self.requests.first().map_or(0, |request| request.at_ns);
        self.requests.iter_mut().for_each(|request| request.at_ns -= first_ns);
        let recorded = Figures::recorded(&self.requests, self.processes.len());
        Plan { requests: self.requests, processes: self.processes, left_out: self.left_out, recorded }
    }

    fn add(&mut self, life: &RequestRecord, pid: u32, at_ns: u64, completed_ns: Option<u64>, sector: u64, bytes: u32) {
        let op = life.op;
        let flushes = op.has(Rwbs::FLUSH);
        let kind = match bytes {
            _ if op.has(Rwbs::PASS_THROUGH) => None,
            0 => flushes.then_some(Kind::Flush),
            _ if op.has(Rwbs::DISCARD) => Some(Kind::Discard),
            _ if op.has(Rwbs::WRITE) => Some(Kind::Write),
            _ if op.has(Rwbs::READ) => Some(Kind::Read),
            _ => None,
        };
        let Some(kind) = kind else {
            self.left_out.others += 1;
            return;
        };
        if self.reads_only && kind.changes() {
            self.left_out.changing += 1;
            return;
        }
        let process = *self.places.entry((life.device, pid)).or_insert_with(|| {
            self.processes.push((life.device, pid));
            self.processes.len() as u32 - 1
        });
        let request = Planned {
            at_ns,
            recorded_ns: completed_ns.map_or(u64::MAX, |completed_ns| completed_ns.saturating_sub(at_ns)),
            offset: sector.saturating_mul(SECTOR_BYTES),
            bytes,
            process,
            kind,
            durable: op.has(Rwbs::FUA),
        };
        // A write with a flush before it is two things to do.
        if flushes && kind == Kind::Write {
            self.requests.push(Planned { kind: Kind::Flush, offset: 0, bytes: 0, durable: false, ..request });
        }
        self.requests.push(request);
    }
}

impl Plan {
    /// The requests, in the order in which they were submitted.
    pub fn requests(&self) -> &[Planned] {
        &self.requests
    }

    /// Device and number of each process.
    pub fn processes(&self) -> &[(DeviceId, u32)] {
        &self.processes
    }

    /// What of the trace is not in it.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// How it went when it was recorded.
    pub fn recorded(&self) -> &Figures {
        &self.recorded
    }

    /// How many requests change what lies on a target.
    pub fn changing(&self) -> u64 {
        self.requests.iter().filter(|request| request.kind.changes()).count() as u64
    }

    /// The first byte behind all of it.
    pub fn end(&self) -> u64 {
        let data = self.requests.iter().filter(|request| request.kind != Kind::Flush);
        data.map(|request| request.offset.saturating_add(request.bytes.into())).max().unwrap_or(0)
    }

    /// The offsets and lengths are multiples of the answer, in bytes: a power of two.
    pub fn grain_bytes(&self) -> u64 {
        let data = self.requests.iter().filter(|request| request.kind != Kind::Flush);
        let bits = data.fold(0, |bits, request| bits | request.offset | u64::from(request.bytes));
        if bits == 0 { 1 << 32 } else { 1 << bits.trailing_zeros() }
    }

    /// Leaves out what a target cannot do.
    pub fn leave_out(&mut self, discards: bool, flushes: bool) {
        let left_out = &mut self.left_out;
        self.requests.retain(|request| {
            let (count, is_out) = match request.kind {
                Kind::Discard => (&mut left_out.discards, discards),
                Kind::Flush => (&mut left_out.flushes, flushes),
                Kind::Read | Kind::Write => return true,
            };
            *count += u64::from(is_out);
            !is_out
        });
        self.recorded = Figures::recorded(&self.requests, self.processes.len());
    }

    /// Moves requests to where they fit a target of so many bytes.
    ///
    /// # Errors
    /// When they do not fit; then nothing has changed.
    pub fn fit(&mut self, fit: Fit, size: u64) -> Result<(), Unfit> {
        let data = || self.requests.iter().filter(|request| request.kind != Kind::Flush);
        let lowest = data().map(|request| request.offset).min().unwrap_or(0);
        if lowest.checked_add_signed(fit.shift_bytes).is_none() {
            return Err(Unfit::BeforeBeginning { offset: lowest, shift: fit.shift_bytes });
        }
        if let Some(longest) = data().map(|request| request.bytes).max().filter(|bytes| u64::from(*bytes) > size) {
            return Err(Unfit::RequestTooLong { size, bytes: longest });
        }
        let end = self.end().saturating_add_signed(fit.shift_bytes);
        if end > size && !fit.wrap {
            return Err(Unfit::TooSmall { size, end });
        }
        // Whole sectors, so that requests stay as aligned as they were.
        let span = if size.is_multiple_of(4096) { size } else { (size - size % SECTOR_BYTES).max(1) };
        for request in self.requests.iter_mut().filter(|request| request.kind != Kind::Flush) {
            let bytes = u64::from(request.bytes);
            let offset = request.offset.saturating_add_signed(fit.shift_bytes);
            let reaches_out = offset.checked_add(bytes).is_none_or(|end| end > size);
            request.offset = match reaches_out {
                false => offset,
                // One that would lie on both sides of the end lies before it.
                true => (offset % span).min((size - bytes) / SECTOR_BYTES * SECTOR_BYTES),
            };
        }
        Ok(())
    }

    /// What each request of each process waited for, by the process's place; and the requests'
    /// numbers.
    pub(super) fn waits(&self) -> Vec<(Vec<u32>, Vec<Release>)> {
        let mut by_process: Vec<Vec<u32>> = vec![Vec::new(); self.processes.len()];
        for (index, request) in self.requests.iter().enumerate() {
            if let Some(of) = by_process.get_mut(request.process as usize) {
                of.push(index as u32);
            }
        }
        let asked = |index: &u32| {
            let request = &self.requests[*index as usize];
            SubmittedRequest {
                queued_ns: request.at_ns,
                completed_ns: request.at_ns.saturating_add(request.recorded_ns),
                sector: request.offset / SECTOR_BYTES,
                bytes: request.bytes,
                op: Rwbs::default(),
            }
        };
        let found = by_process.into_iter().map(|indices| {
            let asked: Vec<SubmittedRequest> = indices.iter().map(asked).collect();
            let waits = dependencies::find_pattern(&asked).waits;
            (indices, waits)
        });
        found.collect()
    }
}
