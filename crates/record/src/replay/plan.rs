//! The plan of a replay: which requests are executed, and when.

use std::collections::HashMap;

use hoistway_trace::dependencies::{self, Release, ReleaseDelay, SubmittedRequest};
use hoistway_trace::request::RequestRecord;
use hoistway_trace::{DeviceId, Rwbs};

use super::figures::Figures;
use super::request::{PlannedRequest, RequestKind};

/// The size of a sector in traces, in bytes.
const SECTOR_BYTES: u64 = 512;

/// The layer at which the requests of a trace are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceLayer {
    /// As submitted by programs and file systems: each bio, at its time (Q).
    Queue,
    /// As dispatched to the driver: merged and sorted, at that time (D).
    Issue,
}

/// Requests in order of submission.
#[derive(Clone, Debug, Default)]
pub struct ReplayPlan {
    requests: Vec<PlannedRequest>,
    /// The device and the id of each process.
    processes: Vec<(DeviceId, u32)>,
    left_out: OmittedRequests,
    recorded: Figures,
}

/// The numbers of requests of a trace that its plan omits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OmittedRequests {
    /// Writes, discards and flushes, for a plan of reads only.
    pub changing: u64,
    /// Requests that are no I/O on sectors (passthrough commands), or have no length.
    pub others: u64,
    /// Discards that the target does not support.
    pub discards: u64,
    /// Flushes that the target does not support.
    pub flushes: u64,
    /// Requests of which the trace has the completion only.
    pub endings: u64,
}

/// The way in which requests are moved to fit a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The number of bytes added to each offset.
    pub shift_bytes: i64,
    /// Requests beyond the end wrap around to the beginning.
    pub wrap: bool,
}

/// An error of fitting a plan to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The plan reaches beyond the end of the target.
    #[error(
        "it has {size} bytes, and the trace reaches to byte {end}: --wrap wraps requests around to the beginning, --shift -BYTES moves requests to lower offsets"
    )]
    TooSmall {
        /// The size of the target in bytes.
        size: u64,
        /// The end of the last request in bytes.
        end: u64,
    },
    /// A request would begin before the target.
    #[error(
        "shifted by {shift} bytes, a request at byte {offset} would begin before byte 0; --shift may be -{offset} at least"
    )]
    BeforeBeginning {
        /// The first byte of the lowest request.
        offset: u64,
        /// The shift in bytes.
        shift: i64,
    },
    /// A request is larger than the target.
    #[error("it has {size} bytes, and a request of the trace has {bytes}")]
    RequestTooLong {
        /// The size of the target in bytes.
        size: u64,
        /// The length of the request in bytes.
        bytes: u32,
    },
}

/// Builds a plan from the requests of a trace.
#[derive(Debug)]
pub struct ReplayPlanBuilder {
    level: TraceLayer,
    reads_only: bool,
    /// The requests, with the times of the trace's clock.
    requests: Vec<PlannedRequest>,
    places: HashMap<(DeviceId, u32), u32>,
    processes: Vec<(DeviceId, u32)>,
    left_out: OmittedRequests,
}

impl ReplayPlanBuilder {
    /// Creates a builder for the requests of a layer, or for its reads only.
    pub fn new(level: TraceLayer, reads_only: bool) -> ReplayPlanBuilder {
        ReplayPlanBuilder {
            level,
            reads_only,
            requests: Vec::new(),
            places: HashMap::new(),
            processes: Vec::new(),
            left_out: OmittedRequests::default(),
        }
    }

    /// Adds a request.
    pub fn take(&mut self, record: &RequestRecord) {
        let at_ns = match self.level {
            TraceLayer::Queue => record.first_seen_ns(),
            TraceLayer::Issue => record.issued_ns.or_else(|| record.first_seen_ns()),
        };
        let Some(at_ns) = at_ns else {
            self.left_out.endings += 1;
            return;
        };
        let completed_ns = record.completed_ns;
        if self.level == TraceLayer::Issue {
            return self.add(record, record.pid, at_ns, completed_ns, record.sector, record.bytes);
        }
        // Bios merged to the front precede the first bio.
        let before = record.merged.iter().filter(|bio| bio.front).map(|bio| u64::from(bio.bytes)).sum::<u64>();
        let sector = record.sector.saturating_add(before.div_ceil(SECTOR_BYTES));
        self.add(record, record.pid, at_ns, completed_ns, sector, record.first_bytes());
        for bio in &record.merged {
            self.add(record, bio.pid, bio.queued_ns, completed_ns, bio.sector, bio.bytes);
        }
    }

    /// Returns the plan, in order of time; the first request is at time 0.
    pub fn finish(mut self) -> ReplayPlan {
        self.requests.sort_by_key(|request| request.at_ns);
        let first_ns = self.requests.first().map_or(0, |request| request.at_ns);
        self.requests.iter_mut().for_each(|request| request.at_ns -= first_ns);
        let recorded = Figures::recorded(&self.requests, self.processes.len());
        ReplayPlan { requests: self.requests, processes: self.processes, left_out: self.left_out, recorded }
    }

    fn add(
        &mut self,
        record: &RequestRecord,
        pid: u32,
        at_ns: u64,
        completed_ns: Option<u64>,
        sector: u64,
        bytes: u32,
    ) {
        let op = record.op;
        let flushes = op.has(Rwbs::FLUSH);
        let kind = match bytes {
            _ if op.has(Rwbs::PASS_THROUGH) => None,
            0 => flushes.then_some(RequestKind::Flush),
            _ if op.has(Rwbs::DISCARD) => Some(RequestKind::Discard),
            _ if op.has(Rwbs::WRITE) => Some(RequestKind::Write),
            _ if op.has(Rwbs::READ) => Some(RequestKind::Read),
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
        let process = *self.places.entry((record.device, pid)).or_insert_with(|| {
            self.processes.push((record.device, pid));
            self.processes.len() as u32 - 1
        });
        let request = PlannedRequest {
            at_ns,
            recorded_ns: completed_ns.map_or(u64::MAX, |completed_ns| completed_ns.saturating_sub(at_ns)),
            offset: sector.saturating_mul(SECTOR_BYTES),
            bytes,
            process,
            kind,
            durable: op.has(Rwbs::FUA),
            preflush: flushes && kind == RequestKind::Write,
        };
        self.requests.push(request);
    }
}

impl ReplayPlan {
    /// Returns the requests in order of submission.
    pub fn requests(&self) -> &[PlannedRequest] {
        &self.requests
    }

    /// Returns the device and the id of each process.
    pub fn processes(&self) -> &[(DeviceId, u32)] {
        &self.processes
    }

    /// Returns the numbers of omitted requests.
    pub fn left_out(&self) -> OmittedRequests {
        self.left_out
    }

    /// Returns the recorded figures.
    pub fn recorded(&self) -> &Figures {
        &self.recorded
    }

    /// Returns true if the completion of a request is recorded.
    pub fn has_completions(&self) -> bool {
        self.requests.iter().any(|request| request.recorded_ns != u64::MAX)
    }

    /// Returns the number of requests that change the target.
    pub fn changing(&self) -> u64 {
        self.requests.iter().filter(|request| request.kind.changes()).count() as u64
    }

    /// Returns the end of the last request in bytes.
    pub fn end(&self) -> u64 {
        let data = self.requests.iter().filter(|request| request.kind != RequestKind::Flush);
        data.map(|request| request.offset.saturating_add(request.bytes.into())).max().unwrap_or(0)
    }

    /// Returns the largest power of two in bytes that divides all offsets and lengths.
    pub fn alignment_bytes(&self) -> u64 {
        let data = self.requests.iter().filter(|request| request.kind != RequestKind::Flush);
        let bits = data.fold(0, |bits, request| bits | request.offset | u64::from(request.bytes));
        if bits == 0 { 1 << 32 } else { 1 << bits.trailing_zeros() }
    }

    /// Omits requests, and flushes before writes, that a target does not support.
    pub fn omit(&mut self, discards: bool, flushes: bool) {
        let left_out = &mut self.left_out;
        self.requests.retain_mut(|request| {
            if flushes && std::mem::take(&mut request.preflush) {
                left_out.flushes += 1;
            }
            let (count, is_out) = match request.kind {
                RequestKind::Discard => (&mut left_out.discards, discards),
                RequestKind::Flush => (&mut left_out.flushes, flushes),
                RequestKind::Read | RequestKind::Write => return true,
            };
            *count += u64::from(is_out);
            !is_out
        });
        self.recorded = Figures::recorded(&self.requests, self.processes.len());
    }

    /// Moves requests so that they fit a target of `size` bytes.
    ///
    /// # Errors
    /// The requests do not fit; the plan has not changed then.
    pub fn fit(&mut self, fit: Placement, size: u64) -> Result<(), PlacementError> {
        let data = || self.requests.iter().filter(|request| request.kind != RequestKind::Flush);
        let lowest = data().map(|request| request.offset).min().unwrap_or(0);
        if lowest.checked_add_signed(fit.shift_bytes).is_none() {
            return Err(PlacementError::BeforeBeginning { offset: lowest, shift: fit.shift_bytes });
        }
        if let Some(longest) = data().map(|request| request.bytes).max().filter(|bytes| u64::from(*bytes) > size) {
            return Err(PlacementError::RequestTooLong { size, bytes: longest });
        }
        let end = self.end().saturating_add_signed(fit.shift_bytes);
        if end > size && !fit.wrap {
            return Err(PlacementError::TooSmall { size, end });
        }
        // Whole sectors, so that requests keep their alignment.
        let span = if size.is_multiple_of(4096) { size } else { (size - size % SECTOR_BYTES).max(1) };
        for request in self.requests.iter_mut().filter(|request| request.kind != RequestKind::Flush) {
            let bytes = u64::from(request.bytes);
            let offset = request.offset.saturating_add_signed(fit.shift_bytes);
            let reaches_out = offset.checked_add(bytes).is_none_or(|end| end > size);
            request.offset = match reaches_out {
                false => offset,
                // A request across the end moves to before the end.
                true => (offset % span).min((size - bytes) / SECTOR_BYTES * SECTOR_BYTES),
            };
        }
        Ok(())
    }

    /// Returns the indices and the dependencies of each process's requests, by process. Without any
    /// completion no dependency can be found: each request waits for the previous one of its
    /// process, and for the recorded gap after its submission.
    pub(super) fn waits(&self) -> Vec<(Vec<u32>, Vec<Release>)> {
        let mut by_process: Vec<Vec<u32>> = vec![Vec::new(); self.processes.len()];
        for (index, request) in self.requests.iter().enumerate() {
            if let Some(of) = by_process.get_mut(request.process as usize) {
                of.push(index as u32);
            }
        }
        let submitted = |index: &u32| {
            let request = &self.requests[*index as usize];
            SubmittedRequest {
                queued_ns: request.at_ns,
                completed_ns: request.at_ns.saturating_add(request.recorded_ns),
                sector: request.offset / SECTOR_BYTES,
                bytes: request.bytes,
                op: Rwbs::default(),
            }
        };
        let has_completions = self.has_completions();
        let found = by_process.into_iter().map(|indices| {
            if !has_completions {
                let waits = self.gaps(&indices);
                return (indices, waits);
            }
            let submitted: Vec<SubmittedRequest> = indices.iter().map(submitted).collect();
            let waits = dependencies::find_pattern(&submitted).waits;
            (indices, waits)
        });
        found.collect()
    }

    /// Returns the dependencies of the requests of a process without completions.
    fn gaps(&self, indices: &[u32]) -> Vec<Release> {
        let at_ns = |index: u32| self.requests.get(index as usize).map_or(0, |request| request.at_ns);
        let mut before_ns = indices.first().map_or(0, |index| at_ns(*index));
        let mut wait = |index: &u32| {
            let gap_ns = at_ns(*index).saturating_sub(before_ns);
            before_ns = at_ns(*index);
            Release { outstanding_max: 0, then: ReleaseDelay::Gap(gap_ns) }
        };
        indices.iter().map(&mut wait).collect()
    }
}
