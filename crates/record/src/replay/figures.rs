//! What came out of a replay, and what was recorded.

use hdrhistogram::Histogram;

use super::plan::{Kind, Plan, Planned};

/// The longest time that is told apart, in ns: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Throughput and latencies.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// From the first request to the end of the last, in ns.
    pub elapsed_ns: u64,
    /// Reads, writes, discards and flushes.
    pub kinds: [KindFigures; 4],
    /// By process, as in [`Plan::processes`].
    pub processes: Vec<ProcessFigures>,
    /// The most requests under way.
    pub depth_max: usize,
}

/// Of requests of one kind.
#[derive(Clone, Debug)]
pub struct KindFigures {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long they took, in ns: 3 digits.
    pub latency: Histogram<u64>,
}

/// Of requests of one process.
#[derive(Clone, Debug)]
pub struct ProcessFigures {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long they took, in ns: 2 digits.
    pub latency: Histogram<u64>,
}

/// What came out of a replay.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it went.
    pub replayed: Figures,
    /// How late requests were submitted, in ns, against the time at which they were due: 3 digits.
    /// Of `asap` they are never.
    pub lag: Histogram<u64>,
    /// Requests that failed.
    pub failed: u64,
    /// The first error, in words.
    pub first_error: Option<String>,
    /// It was stopped before its end.
    pub interrupted: bool,
}

impl Default for KindFigures {
    fn default() -> KindFigures {
        KindFigures { requests: 0, bytes: 0, latency: times(3) }
    }
}

impl Default for ProcessFigures {
    fn default() -> ProcessFigures {
        ProcessFigures { requests: 0, bytes: 0, latency: times(2) }
    }
}

impl Figures {
    /// Those of one kind.
    pub fn of(&self, kind: Kind) -> &KindFigures {
        let [reads, writes, discards, flushes] = &self.kinds;
        match kind {
            Kind::Read => reads,
            Kind::Write => writes,
            Kind::Discard => discards,
            Kind::Flush => flushes,
        }
    }

    /// Bytes a second that were read and written.
    pub fn bytes_per_s(&self) -> f64 {
        let bytes = self.of(Kind::Read).bytes + self.of(Kind::Write).bytes;
        bytes as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// How requests went when they were recorded.
    pub(super) fn recorded(requests: &[Planned], processes: usize) -> Figures {
        let mut figures = Figures { processes: vec![ProcessFigures::default(); processes], ..Figures::default() };
        let mut ends: std::collections::BinaryHeap<std::cmp::Reverse<u64>> = std::collections::BinaryHeap::new();
        for request in requests {
            figures.count(request, (request.recorded_ns != u64::MAX).then_some(request.recorded_ns));
            let end_ns =
                if request.recorded_ns == u64::MAX { request.at_ns } else { request.at_ns + request.recorded_ns };
            figures.elapsed_ns = figures.elapsed_ns.max(end_ns);
            while ends.peek().is_some_and(|end| end.0 <= request.at_ns) {
                ends.pop();
            }
            ends.push(std::cmp::Reverse(end_ns));
            figures.depth_max = figures.depth_max.max(ends.len());
        }
        figures
    }

    fn count(&mut self, request: &Planned, latency_ns: Option<u64>) {
        let [reads, writes, discards, flushes] = &mut self.kinds;
        let kind = match request.kind {
            Kind::Read => reads,
            Kind::Write => writes,
            Kind::Discard => discards,
            Kind::Flush => flushes,
        };
        kind.requests += 1;
        kind.bytes += u64::from(request.bytes);
        if let Some(latency_ns) = latency_ns {
            kind.latency.saturating_record(latency_ns);
        }
        if let Some(process) = self.processes.get_mut(request.process as usize) {
            process.requests += 1;
            process.bytes += u64::from(request.bytes);
            if let Some(latency_ns) = latency_ns {
                process.latency.saturating_record(latency_ns);
            }
        }
    }
}

impl Outcome {
    pub(super) fn new(plan: &Plan) -> Outcome {
        let processes = vec![ProcessFigures::default(); plan.processes().len()];
        Outcome {
            replayed: Figures { processes, ..Figures::default() },
            lag: times(3),
            failed: 0,
            first_error: None,
            interrupted: false,
        }
    }

    pub(super) fn submitted(&mut self, late_ns: u64, under_way: usize) {
        self.lag.saturating_record(late_ns);
        self.replayed.depth_max = self.replayed.depth_max.max(under_way);
    }

    pub(super) fn over(&mut self, request: &Planned, latency_ns: u64, error: Option<String>) {
        if let Some(error) = error {
            self.failed += 1;
            self.first_error.get_or_insert_with(|| {
                format!("{:?} of {} bytes at byte {}: {error}", request.kind, request.bytes, request.offset)
            });
            return;
        }
        self.replayed.count(request, Some(latency_ns));
    }
}

fn times(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, digits).expect("1 to an hour with 2 or 3 digits are bounds that it takes")
}
