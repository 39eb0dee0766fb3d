//! The figures of a replay and of the recording.

use hdrhistogram::Histogram;

use super::request::{PlannedRequest, RequestKind};

/// The longest measured time in ns: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Throughput and latencies.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The time from the first request to the end of the last, in ns.
    pub elapsed_ns: u64,
    /// Figures of reads, writes, discards and flushes.
    pub kinds: [KindFigures; 4],
    /// Figures by process, as in [`ReplayPlan::processes`](super::ReplayPlan::processes).
    pub processes: Vec<ProcessFigures>,
    /// The largest number of requests in flight.
    pub depth_max: usize,
}

/// The figures of one kind of requests.
#[derive(Clone, Debug)]
pub struct KindFigures {
    /// The number of requests.
    pub requests: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The latencies in ns, with 3 digits.
    pub latency: Histogram<u64>,
}

/// The figures of one process.
#[derive(Clone, Debug)]
pub struct ProcessFigures {
    /// The number of requests.
    pub requests: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The latencies in ns, with 2 digits.
    pub latency: Histogram<u64>,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOutcome {
    /// The figures of the replay.
    pub replayed: Figures,
    /// The delays of submissions against their due times in ns, with 3 digits; always 0 for `asap`.
    pub lag: Histogram<u64>,
    /// The number of failed requests.
    pub failed: u64,
    /// The first error, as a text.
    pub first_error: Option<String>,
    /// True if the replay was stopped before its end.
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
    /// Returns the figures of one kind.
    pub fn of(&self, kind: RequestKind) -> &KindFigures {
        let [reads, writes, discards, flushes] = &self.kinds;
        match kind {
            RequestKind::Read => reads,
            RequestKind::Write => writes,
            RequestKind::Discard => discards,
            RequestKind::Flush => flushes,
        }
    }

    /// Returns the rate of reads and writes in bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        let bytes = self.of(RequestKind::Read).bytes + self.of(RequestKind::Write).bytes;
        bytes as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Computes the figures of the recording.
    pub(super) fn recorded(requests: &[PlannedRequest], processes: usize) -> Figures {
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

    fn count(&mut self, request: &PlannedRequest, latency_ns: Option<u64>) {
        let [reads, writes, discards, flushes] = &mut self.kinds;
        let kind = match request.kind {
            RequestKind::Read => reads,
            RequestKind::Write => writes,
            RequestKind::Discard => discards,
            RequestKind::Flush => flushes,
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

impl ReplayOutcome {
    pub(super) fn new(processes: usize) -> ReplayOutcome {
        let processes = vec![ProcessFigures::default(); processes];
        ReplayOutcome {
            replayed: Figures { processes, ..Figures::default() },
            lag: times(3),
            failed: 0,
            first_error: None,
            interrupted: false,
        }
    }

    pub(super) fn submitted(&mut self, late_ns: u64, in_flight: usize) {
        self.lag.saturating_record(late_ns);
        self.replayed.depth_max = self.replayed.depth_max.max(in_flight);
    }

    pub(super) fn over(&mut self, request: &PlannedRequest, latency_ns: u64, error: Option<String>) {
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
    Histogram::new_with_bounds(1, LONGEST_NS, digits).expect("valid bounds")
}
