//! Workloads from traces of submissions alone, for which the rules of processes are assumed.
//!
//! Without completions a trace does not show what a request waited for, nor how long it took, so
//! that no rule can be found and no model can be compared with the recording. Two assumptions bound
//! the true behaviour: in an open loop no request waits for another, in a closed loop each request
//! waits for an earlier one of its process. The gaps between submissions are kept as recorded in
//! both. They contain the latencies of the recorded drive: on a drive that is as fast, both loops
//! submit every request at its recorded time.

use std::collections::HashMap;

use hoistway_trace::dependencies::{Pattern, PatternAnalysis, Release, ReleaseDelay, SubmittedRequest};

use super::recording::{RecordedProcess, Recording, end_of, is_flush, op_of};

/// The minimum number of requests of a sequential stream that counts as a process of its own.
const STREAM_REQUESTS_MIN: usize = 16;
/// Maximum number of streams; requests of shorter streams belong to no stream.
const STREAMS_MAX: usize = 64;

/// What a request of a trace without completions is assumed to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopModel {
    /// Nothing: it is submitted at its recorded time.
    Open,
    /// The completion of earlier requests of its process: it is submitted the recorded gap after
    /// the previous one, but not before at most `outstanding` - 1 requests are outstanding.
    Closed {
        /// Maximum number of outstanding requests of each process, at least 1.
        outstanding: u32,
    },
}

impl LoopModel {
    /// Parses `open`, `closed` or `closed:N`.
    ///
    /// # Errors
    /// A message with the valid forms.
    pub fn parse(text: &str) -> Result<LoopModel, String> {
        let outstanding = match text.split_once(':') {
            None if text == "open" => return Ok(LoopModel::Open),
            None if text == "closed" => Some(1),
            Some(("closed", number)) => number.parse().ok().filter(|number| (1..=4096).contains(number)),
            _ => None,
        };
        let outstanding =
            outstanding.ok_or("expected open, closed, or closed:N with N from 1 to 4096, as in closed:8")?;
        Ok(LoopModel::Closed { outstanding })
    }

    /// The name in options and documents: `open` or `closed`.
    pub fn name(self) -> &'static str {
        match self {
            LoopModel::Open => "open",
            LoopModel::Closed { .. } => "closed",
        }
    }

    /// The maximum number of outstanding requests of a process; `None` if there is none.
    pub fn outstanding(self) -> Option<u32> {
        match self {
            LoopModel::Open => None,
            LoopModel::Closed { outstanding } => Some(outstanding),
        }
    }

    /// The assumption in words; `issuer` is `process`, or `stream` if streams stand for processes.
    pub(crate) fn assumption(self, issuer: &str) -> String {
        match self {
            LoopModel::Open => {
                "open loop: each request is submitted at its recorded time and waits for no completion, \
                 however many are outstanding"
                    .to_owned()
            }
            LoopModel::Closed { outstanding } => {
                let waits_for = match outstanding {
                    1 => format!("the previous request of its {issuer} has completed"),
                    most => format!("fewer than {most} requests of its {issuer} are outstanding"),
                };
                format!(
                    "closed loop: each request is submitted when {waits_for}, and at the earliest the recorded gap after \
                     the previous submission of the {issuer}; the gap contains the latency of the recorded drive, which \
                     is unknown"
                )
            }
        }
    }
}

/// The assumed rule of a process with these requests, which must be in order of submission.
pub(super) fn assumed_pattern(requests: &[SubmittedRequest], loop_model: LoopModel) -> PatternAnalysis {
    let first_ns = requests.first().map_or(0, |first| first.queued_ns);
    let gap_before = |index: usize| match index.checked_sub(1).and_then(|before| requests.get(before)) {
        Some(before) => requests[index].queued_ns.saturating_sub(before.queued_ns),
        None => 0,
    };
    let release = |index: usize| match loop_model {
        LoopModel::Open => {
            let at_ns = requests[index].queued_ns.saturating_sub(first_ns);
            Release { outstanding_max: u32::MAX, then: ReleaseDelay::At(at_ns) }
        }
        LoopModel::Closed { outstanding } => {
            let outstanding_max = outstanding.saturating_sub(1);
            Release { outstanding_max, then: ReleaseDelay::Gap(gap_before(index)) }
        }
    };
    let mut gaps_ns: Vec<u64> = (1..requests.len()).map(gap_before).collect();
    gaps_ns.sort_unstable();
    let percentile =
        |percent: usize| gaps_ns.get(gaps_ns.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0);
    let pattern = match loop_model {
        LoopModel::Open => Pattern::Open,
        LoopModel::Closed { outstanding } => Pattern::Closed { depth: outstanding },
    };
    PatternAnalysis {
        pattern,
        depth: loop_model.outstanding().unwrap_or(0),
        slope: None,
        explained: 0.0,
        think_ns: [10, 50, 90, 99].map(percentile),
        waits: (0..requests.len()).map(release).collect(),
    }
}

/// Divides the requests of a recording without process ids into sequential streams, which stand for
/// processes, and all others, which are one more. Returns false if the recording names processes,
/// or has no streams; it is unchanged then.
///
/// A request continues a stream if it begins where the last request of the stream ended, in the
/// same direction.
pub(super) fn divide_into_streams(recording: &mut Recording) -> bool {
    let [process] = recording.processes.as_slice() else { return false };
    if process.pid != 0 {
        return false;
    }
    let (streams, of_request) = streams_of(&process.requests);
    if streams.is_empty() {
        return false;
    }
    let name = |number: usize, stream: &Stream| {
        let direction = if stream.writes { "writes" } else { "reads" };
        format!("stream {} of {direction}", number + 1)
    };
    let mut processes: Vec<RecordedProcess> = streams
        .iter()
        .enumerate()
        .map(|(number, stream)| RecordedProcess {
            name: name(number, stream),
            pid: number as u32 + 1,
            requests: Vec::with_capacity(stream.requests),
        })
        .collect();
    let name = "other requests".to_owned();
    processes.push(RecordedProcess { name, pid: streams.len() as u32 + 1, requests: Vec::new() });
    let others = streams.len();
    for (request, stream) in process.requests.iter().zip(of_request) {
        processes[stream.unwrap_or(others)].requests.push(*request);
    }
    processes.retain(|process| !process.requests.is_empty());
    recording.processes = processes;
    true
}

/// The stream of flushes, which continue none.
const NO_STREAM: usize = usize::MAX;

/// A sequential stream.
#[derive(Clone, Copy, Debug)]
struct Stream {
    writes: bool,
    requests: usize,
}

/// The longest streams in the order of their first requests, and the stream of each request.
fn streams_of(requests: &[SubmittedRequest]) -> (Vec<Stream>, Vec<Option<usize>>) {
    let mut all: Vec<Stream> = Vec::new();
    let mut of_request: Vec<usize> = Vec::with_capacity(requests.len());
    // The stream that a request at this sector would continue.
    let mut open: HashMap<(bool, u64), usize> = HashMap::new();
    for request in requests {
        if is_flush(request) {
            of_request.push(NO_STREAM);
            continue;
        }
        let writes = op_of(request.op) != Some(hoistway_core::Op::Read);
        let stream = open.remove(&(writes, request.sector)).unwrap_or_else(|| {
            all.push(Stream { writes, requests: 0 });
            all.len() - 1
        });
        all[stream].requests += 1;
        open.insert((writes, end_of(request)), stream);
        of_request.push(stream);
    }
    let mut longest: Vec<usize> =
        (0..all.len()).filter(|stream| all[*stream].requests >= STREAM_REQUESTS_MIN).collect();
    longest.sort_by_key(|stream| (std::cmp::Reverse(all[*stream].requests), *stream));
    longest.truncate(STREAMS_MAX);
    longest.sort_unstable();
    let number_of: HashMap<usize, usize> = longest.iter().copied().zip(0..).collect();
    let of_request = of_request.iter().map(|stream| number_of.get(stream).copied()).collect();
    (longest.iter().map(|stream| all[*stream]).collect(), of_request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_trace::Rwbs;

    fn read(queued_ns: u64, sector: u64) -> SubmittedRequest {
        SubmittedRequest { queued_ns, completed_ns: u64::MAX, sector, bytes: 4096, op: Rwbs::READ }
    }

    #[test]
    fn an_open_loop_keeps_the_times_and_a_closed_one_the_gaps() {
        let requests = [read(100, 0), read(130, 8), read(190, 16)];
        let open = assumed_pattern(&requests, LoopModel::Open);
        let then: Vec<_> = open.waits.iter().map(|wait| (wait.outstanding_max, wait.then)).collect();
        assert_eq!(then, [0, 30, 90].map(|ns| (u32::MAX, ReleaseDelay::At(ns))));
        let closed = assumed_pattern(&requests, LoopModel::Closed { outstanding: 2 });
        let then: Vec<_> = closed.waits.iter().map(|wait| (wait.outstanding_max, wait.then)).collect();
        assert_eq!(then, [0, 30, 60].map(|ns| (1, ReleaseDelay::Gap(ns))));
        assert_eq!((closed.pattern, closed.think_ns[1]), (Pattern::Closed { depth: 2 }, 30));
    }

    #[test]
    fn requests_without_processes_are_divided_into_sequential_streams_and_the_rest() {
        // Two streams of 20 requests that take turns, with random requests in between.
        let mut requests = Vec::new();
        for number in 0..20 {
            requests.push(read(30 * number, 8 * number));
            requests.push(read(30 * number + 10, 1_000_000 + 8 * number));
            requests.push(read(30 * number + 20, 5_000_000 + 977 * number));
        }
        let process = |requests| RecordedProcess { name: "pid 0".into(), pid: 0, requests };
        let mut recording = Recording { processes: vec![process(requests.clone())], from_ns: 0, until_ns: 600 };
        assert!(divide_into_streams(&mut recording));
        let seen: Vec<_> = recording
            .processes
            .iter()
            .map(|process| (process.name.as_str(), process.pid, process.requests.len()))
            .collect();
        assert_eq!(seen, [("stream 1 of reads", 1, 20), ("stream 2 of reads", 2, 20), ("other requests", 3, 20)]);
        assert!(recording.processes[1].requests.iter().all(|request| (1_000_000..2_000_000).contains(&request.sector)));

        let mut named = Recording { processes: vec![process(requests)], from_ns: 0, until_ns: 600 };
        named.processes[0].pid = 7;
        assert!(!divide_into_streams(&mut named), "a trace with processes keeps them");
    }
}
