//! Finds what the requests of each process waited for: the completion of earlier requests followed
//! by a pause, a timer, or nothing that the trace shows.
//!
//! A trace records when requests arrived under the recorded elevator. Under another elevator they
//! would arrive at other times, because most programs wait for a completion before they submit
//! again. This module finds the rule that the requests of each process followed:
//!
//! - A **closed** process keeps up to `depth` requests outstanding and submits the next one when
//!   one of them completes, after a pause of its own (its think time). Request *i* is released by
//!   completion number *i - depth + 1*, whichever request it belongs to, so that the rule also
//!   holds if another elevator completes them in another order.
//! - A process of **batches** submits several requests at a time and waits for all of them.
//! - A process with a **timer** submits requests at a constant interval if at most `depth` are
//!   outstanding.
//! - An **open** process submits at times without a recognisable rule.
//!
//! Closed and batch processes are distinguished from the others by the slope of the pause over the
//! latency of the preceding completion. If a process waits for a completion, its pause does not
//! depend on the latency: slope 0. If it does not wait, a longer latency shortens the pause by the
//! same amount: slope -1. The slope is the median over pairs of requests whose latencies are half
//! the distribution apart, which is robust against outliers. If pauses vary far more than
//! latencies, the slope cannot be determined. In that case, and for a process that does not wait,
//! the module looks for a clock: the deviations of timer requests are independent and do not
//! accumulate, but pauses do. Dependencies between processes are not analysed.

use std::collections::BTreeMap;

pub use hoistway_workload::{Release, ReleaseDelay};

use crate::event::{DeviceId, Rwbs};
use crate::request::RequestRecord;

/// Minimum number of requests for a decision by pauses. A process with fewer is taken as closed,
/// without evidence.
pub const REQUESTS_MIN: usize = 16;
/// A process with a slope below this value does not wait for completions.
const SLOPE_OF_OPEN: f64 = -0.5;
/// Maximum standard error of a slope that supports a decision.
const SLOPE_ERROR_MAX: f64 = 0.25;
/// Number of intervals over which the deviation of timer requests is measured.
const CLOCK_STEPS: usize = 16;
/// Maximum ratio of the deviation over [`CLOCK_STEPS`] intervals to that over one. Pauses that
/// accumulate have a ratio of 4, the square root of 16.
const CLOCK_SPREAD_MAX: f64 = 1.5;
/// Maximum deviation of a timer's interval from the median, as a fraction of the median.
const TIMER_TOLERANCE: f64 = 0.1;
/// Minimum fraction of intervals within [`TIMER_TOLERANCE`].
const TIMER_SHARE: f64 = 0.6;
/// Maximum gap between requests of a batch, as a fraction of the median latency.
const BATCH_GAP: f64 = 0.1;
/// Maximum gap between requests of a batch, as a fraction of the distance between the completions
/// that would release them in a window.
const BATCH_CLOSER: f64 = 0.5;
/// Minimum fraction of requests that follow another one without a completion in between, in a
/// process of batches.
const BATCH_SHARE: f64 = 0.5;

/// One request as its process submitted it. Bios that were merged in a plug, before the elevator,
/// are one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmittedRequest {
    /// Time of submission in ns.
    pub queued_ns: u64,
    /// Time of completion in ns; `u64::MAX` if the trace does not show it.
    pub completed_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Operation and flags.
    pub op: Rwbs,
}

/// Collects the requests of each process in memory, about 40 bytes each.
#[derive(Clone, Debug, Default)]
pub struct ProcessRequests {
    all: BTreeMap<(DeviceId, u32), Vec<SubmittedRequest>>,
}

/// The rule by which a process submits requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Waits for a completion before it submits again, with up to `depth` requests outstanding.
    Closed {
        /// Maximum number of outstanding requests, at least 1.
        depth: u32,
    },
    /// Submits up to `depth` requests at a time and waits for all of them.
    Batches {
        /// Maximum number of requests of a batch, at least 2.
        depth: u32,
    },
    /// Submits at a constant interval, with up to `depth` requests outstanding.
    Timer {
        /// Interval in ns.
        period_ns: u64,
        /// Largest observed number of outstanding requests.
        depth: u32,
    },
    /// Submits at times without a rule.
    Open,
}

/// The rule of one process and how well it explains the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternAnalysis {
    /// Rule of the process.
    pub pattern: Pattern,
    /// Largest number of outstanding requests.
    pub depth: u32,
    /// Slope of pauses over latencies: about 0 for closed processes, about -1 for others. None if
    /// the trace has too few requests, or if latencies do not vary.
    pub slope: Option<f64>,
    /// Fraction of requests that follow the rule, 0 to 1: requests in time for a timer, requests
    /// after a completion for the other rules.
    pub explained: f64,
    /// Think times at 10, 50, 90 and 99 %, in ns; zeros for processes that are not closed.
    pub think_ns: [u64; 4],
    /// Release condition of each request, in the order of the requests.
    pub waits: Vec<Release>,
}

impl SubmittedRequest {
    /// Returns true if the trace shows the completion.
    pub fn is_completed(&self) -> bool {
        self.completed_ns != u64::MAX
    }
}

impl ProcessRequests {
    /// Creates an empty collection.
    pub fn new() -> ProcessRequests {
        ProcessRequests::default()
    }

    /// Adds the requests of a record: one for each bio that reached the elevator separately.
    pub fn take(&mut self, record: &RequestRecord) {
        let Some(queued_ns) = record.first_seen_ns() else { return };
        let completed_ns = record.completed_ns.unwrap_or(u64::MAX);
        let (mut sector, mut bytes) = (record.sector, u64::from(record.bytes));
        let is_apart = |merged_ns: u64| record.inserted_ns.is_some_and(|inserted_ns| merged_ns >= inserted_ns);
        for merged in record.merged.iter().filter(|merged| is_apart(merged.merged_ns)) {
            bytes = bytes.saturating_sub(merged.bytes.into());
            if merged.front {
                sector = sector.saturating_add(u64::from(merged.bytes).div_ceil(512));
            }
            let request = SubmittedRequest {
                queued_ns: merged.queued_ns,
                completed_ns,
                sector: merged.sector,
                bytes: merged.bytes,
                op: record.op,
            };
            self.all.entry((record.device, merged.pid)).or_default().push(request);
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let request = SubmittedRequest { queued_ns, completed_ns, sector, bytes, op: record.op };
        self.all.entry((record.device, record.pid)).or_default().push(request);
    }

    /// Returns the requests of each process in order of submission.
    pub fn finish(mut self) -> BTreeMap<(DeviceId, u32), Vec<SubmittedRequest>> {
        self.all.values_mut().for_each(|requests| requests.sort_by_key(|request| request.queued_ns));
        self.all
    }
}

/// Determines the rule of a process from its requests, which must be in order of submission.
/// [`PatternAnalysis::waits`] has one entry per request.
///
/// ```
/// use hoistway_trace::Rwbs;
/// use hoistway_trace::dependencies::{Pattern, SubmittedRequest, find_pattern};
///
/// // Reads of 3 ms, each 2 ms after the completion of the one before.
/// let read = |number: u64| SubmittedRequest {
///     queued_ns: number * 5_000_000,
///     completed_ns: number * 5_000_000 + 3_000_000,
///     sector: 8 * number,
///     bytes: 4096,
///     op: Rwbs::READ,
/// };
/// let requests: Vec<_> = (0..100).map(read).collect();
/// let analysis = find_pattern(&requests);
/// assert_eq!(analysis.pattern, Pattern::Closed { depth: 1 });
/// assert_eq!(analysis.think_ns[1], 2_000_000);
/// ```
pub fn find_pattern(requests: &[SubmittedRequest]) -> PatternAnalysis {
    let timing = Timing::new(requests);
    let batches = timing.is_of_batches(requests);
    let released =
        |index: usize| if batches { timing.completed_before[index] } else { timing.released_in_window(index) };
    let slope = slope(requests, &timing, &released);
    let depth = timing.depth;
    let is_clear = slope.as_ref().is_some_and(|slope| slope.error <= SLOPE_ERROR_MAX);
    let waits_for_one = slope.as_ref().is_none_or(|slope| slope.value > SLOPE_OF_OPEN);
    let clock_ns = if is_clear && waits_for_one { None } else { clock_of(requests) };
    let period_ns = if waits_for_one { None } else { period_of(requests) };
    let pattern = match period_ns.or(clock_ns) {
        Some(period_ns) => Pattern::Timer { period_ns, depth },
        None if !waits_for_one => Pattern::Open,
        None if batches => Pattern::Batches { depth },
        None => Pattern::Closed { depth },
    };
    let is_closed = matches!(pattern, Pattern::Closed { .. } | Pattern::Batches { .. });
    let mut think: Vec<u64> = Vec::new();
    if is_closed {
        think.extend((0..requests.len()).filter_map(|index| timing.pause_ns(requests, index, released(index))));
        think.sort_unstable();
    }
    let percentile = |percent: usize| think.get((think.len().saturating_sub(1)) * percent / 100).copied().unwrap_or(0);
    PatternAnalysis {
        pattern,
        depth,
        slope: slope.map(|slope| slope.value),
        explained: explained(requests, &timing, pattern, think.len()),
        think_ns: [10, 50, 90, 99].map(percentile),
        waits: waits(requests, &timing, pattern, &released),
    }
}

/// Timing of the requests of a process.
struct Timing {
    /// Completion times in ns, ascending.
    completions_ns: Vec<u64>,
    /// Number of completions before each request.
    completed_before: Vec<usize>,
    /// Latency of the request that each completion ended, in ns.
    latencies_ns: Vec<u64>,
    /// Largest number of outstanding requests, at least 1.
    depth: u32,
}

impl Timing {
    fn new(requests: &[SubmittedRequest]) -> Timing {
        let mut completed: Vec<(u64, u64)> = requests
            .iter()
            .filter(|request| request.is_completed())
            .map(|request| (request.completed_ns, request.completed_ns.saturating_sub(request.queued_ns)))
            .collect();
        completed.sort_unstable();
        let completions_ns: Vec<u64> = completed.iter().map(|request| request.0).collect();
        let mut completed_before = Vec::with_capacity(requests.len());
        let (mut count, mut depth) = (0, 1);
        for (index, request) in requests.iter().enumerate() {
            while completions_ns.get(count).is_some_and(|completed_ns| *completed_ns <= request.queued_ns) {
                count += 1;
            }
            completed_before.push(count);
            depth = depth.max((index + 1).saturating_sub(count));
        }
        let latencies_ns = completed.into_iter().map(|request| request.1).collect();
        Timing { completions_ns, completed_before, latencies_ns, depth: u32::try_from(depth).unwrap_or(u32::MAX) }
    }

    /// Number of completions that release a request in a window of the largest depth.
    fn released_in_window(&self, index: usize) -> usize {
        (index + 1).saturating_sub(self.depth as usize)
    }

    /// Time in ns from the last of `completions` completions to a request.
    fn pause_ns(&self, requests: &[SubmittedRequest], index: usize, completions: usize) -> Option<u64> {
        let completed_ns = *self.completions_ns.get(completions.checked_sub(1)?)?;
        Some(requests.get(index)?.queued_ns.saturating_sub(completed_ns))
    }

    /// Distance in ns between the completions that would release this request and the preceding
    /// one, if each of them waited for one completion.
    fn apart_in_window_ns(&self, index: usize) -> u64 {
        let completed_ns = |index: usize| self.completions_ns.get(self.released_in_window(index).checked_sub(1)?);
        match (completed_ns(index - 1), completed_ns(index)) {
            (Some(before), Some(ns)) => ns.saturating_sub(*before),
            // The first requests wait for nothing.
            _ => u64::MAX,
        }
    }

    /// Returns true if requests arrive several at a time, after all earlier ones have completed.
    /// Requests that complete at the same time, as merged ones do, are no sign of batches: a
    /// process that waits for one of them behaves the same way.
    fn is_of_batches(&self, requests: &[SubmittedRequest]) -> bool {
        if self.depth < 2 || requests.len() < REQUESTS_MIN {
            return false;
        }
        let mut latencies_ns = self.latencies_ns.clone();
        let usual_ns = median(&mut latencies_ns).unwrap_or(0) as f64;
        let mut close = 0;
        let mut alone = 0;
        for index in 1..requests.len() {
            let gap_ns = requests[index].queued_ns.saturating_sub(requests[index - 1].queued_ns) as f64;
            let is_close = self.completed_before[index] == self.completed_before[index - 1]
                && gap_ns <= usual_ns * BATCH_GAP
                && gap_ns <= self.apart_in_window_ns(index) as f64 * BATCH_CLOSER;
            close += usize::from(is_close);
            // The first request of a batch finds nothing outstanding.
            alone += usize::from(!is_close && self.completed_before[index] == index);
        }
        let firsts = (requests.len() - 1 - close).max(1);
        close as f64 > BATCH_SHARE * (requests.len() - 1) as f64 && alone as f64 > BATCH_SHARE * firsts as f64
    }
}

/// The slope of pauses over the latencies of the completions before them.
struct Slope {
    value: f64,
    /// Standard error of the median, derived from the quartiles of the slopes.
    error: f64,
}

fn slope(requests: &[SubmittedRequest], timing: &Timing, released: &dyn Fn(usize) -> usize) -> Option<Slope> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    let mut last = 0;
    for index in 0..requests.len() {
        let completions = released(index);
        // Only the first request of a batch counts.
        if completions == last {
            continue;
        }
        last = completions;
        let latency_ns = completions.checked_sub(1).and_then(|index| timing.latencies_ns.get(index));
        if let (Some(latency_ns), Some(pause_ns)) = (latency_ns, timing.pause_ns(requests, index, completions)) {
            points.push((*latency_ns, pause_ns));
        }
    }
    if points.len() < REQUESTS_MIN {
        return None;
    }
    points.sort_unstable();
    let half = points.len() / 2;
    let spread_ns = points[points.len() * 9 / 10].0 - points[points.len() / 10].0;
    let pairs = points.iter().zip(&points[half..]);
    let mut slopes: Vec<f64> = pairs
        .filter(|(low, high)| high.0 > low.0 && (high.0 - low.0) * 4 >= spread_ns)
        .map(|(low, high)| (high.1 as f64 - low.1 as f64) / (high.0 - low.0) as f64)
        .collect();
    if slopes.len() < REQUESTS_MIN / 2 {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let at = |quarters: usize| slopes[slopes.len() * quarters / 4];
    // The quartiles of a normal distribution are 1.35 standard deviations apart, and the standard
    // error of a median is 1.25 times that of a mean.
    let error = (at(3) - at(1)) / 1.35 * 1.25 / (slopes.len() as f64).sqrt();
    Some(Slope { value: at(2), error })
}

/// Returns the mean interval in ns if requests follow a clock with independent deviations.
fn clock_of(requests: &[SubmittedRequest]) -> Option<u64> {
    let (first, last) = (requests.first()?, requests.last()?);
    if requests.len() < 8 * CLOCK_STEPS {
        return None;
    }
    let spread_ns = |steps: usize| {
        let lasted = requests.windows(steps + 1).map(|part| part[steps].queued_ns.saturating_sub(part[0].queued_ns));
        let mut lasted: Vec<u64> = lasted.collect();
        lasted.sort_unstable();
        lasted[lasted.len() * 9 / 10] - lasted[lasted.len() / 10]
    };
    let (one_ns, many_ns) = (spread_ns(1), spread_ns(CLOCK_STEPS));
    let keeps_time = one_ns > 0 && many_ns as f64 <= CLOCK_SPREAD_MAX * one_ns as f64;
    let period_ns = last.queued_ns.saturating_sub(first.queued_ns) / (requests.len() - 1) as u64;
    (keeps_time && period_ns > 0).then_some(period_ns)
}

/// Returns the interval between requests in ns if most intervals are alike.
fn period_of(requests: &[SubmittedRequest]) -> Option<u64> {
    let mut intervals_ns: Vec<u64> =
        requests.windows(2).map(|pair| pair[1].queued_ns.saturating_sub(pair[0].queued_ns)).collect();
    let count = intervals_ns.len();
    let usual_ns = median(&mut intervals_ns).filter(|usual_ns| *usual_ns > 0)?;
    let alike = intervals_ns.iter().filter(|interval_ns| is_alike(**interval_ns, usual_ns)).count();
    if (alike as f64) < TIMER_SHARE * count as f64 {
        return None;
    }
    // The median is biased by the intervals that differ; the mean of the similar ones is not.
    let sum: u128 = intervals_ns.iter().filter(|ns| is_alike(**ns, usual_ns)).map(|ns| u128::from(*ns)).sum();
    u64::try_from(sum / alike.max(1) as u128).ok()
}

fn is_alike(interval_ns: u64, usual_ns: u64) -> bool {
    interval_ns.abs_diff(usual_ns) as f64 <= TIMER_TOLERANCE * usual_ns as f64
}

fn explained(requests: &[SubmittedRequest], timing: &Timing, pattern: Pattern, pauses: usize) -> f64 {
    let depth = timing.depth as usize;
    let (follow, of) = match pattern {
        Pattern::Open => (0, requests.len()),
        Pattern::Closed { .. } | Pattern::Batches { .. } => (pauses, requests.len().saturating_sub(depth)),
        Pattern::Timer { period_ns, .. } => {
            let in_time = requests
                .windows(2)
                .filter(|pair| is_alike(pair[1].queued_ns.saturating_sub(pair[0].queued_ns), period_ns));
            (in_time.count(), requests.len().saturating_sub(1))
        }
    };
    if of == 0 { f64::from(u8::from(pattern != Pattern::Open)) } else { (follow as f64 / of as f64).min(1.0) }
}

fn waits(
    requests: &[SubmittedRequest],
    timing: &Timing,
    pattern: Pattern,
    released: &dyn Fn(usize) -> usize,
) -> Vec<Release> {
    let first_ns = requests.first().map_or(0, |first| first.queued_ns);
    let wait = |(index, request): (usize, &SubmittedRequest)| {
        let at_ns = request.queued_ns.saturating_sub(first_ns);
        let outstanding = |completions: usize| u32::try_from(index.saturating_sub(completions)).unwrap_or(u32::MAX);
        match pattern {
            Pattern::Closed { .. } | Pattern::Batches { .. } => {
                let completions = released(index);
                let then =
                    timing.pause_ns(requests, index, completions).map_or(ReleaseDelay::At(at_ns), ReleaseDelay::Think);
                let outstanding_max = match pattern {
                    Pattern::Closed { depth } => depth - 1,
                    _ => outstanding(completions),
                };
                Release { outstanding_max, then }
            }
            Pattern::Timer { period_ns, depth } => {
                // A late request was delayed; its due time is the timer's.
                let due_ns = (index as u64).saturating_mul(period_ns);
                Release { outstanding_max: depth.saturating_sub(1), then: ReleaseDelay::At(due_ns.min(at_ns)) }
            }
            Pattern::Open => Release { outstanding_max: u32::MAX, then: ReleaseDelay::At(at_ns) },
        }
    };
    requests.iter().enumerate().map(wait).collect()
}

/// Returns the median. The order of the values is lost.
fn median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn request(queued_ns: u64, completed_ns: u64) -> SubmittedRequest {
        SubmittedRequest { queued_ns, completed_ns, sector: 0, bytes: 4096, op: Rwbs::READ }
    }

    /// Latencies that vary from 1 to 20 ms.
    fn latency_ns(index: u64) -> u64 {
        (index.wrapping_mul(7919) % 20 + 1) * MS
    }

    /// A process that keeps `depth` requests outstanding and pauses for `think` of the request's
    /// number.
    fn closed(depth: usize, count: u64, think: impl Fn(u64) -> u64) -> Vec<SubmittedRequest> {
        let mut slots: Vec<u64> = vec![0; depth];
        let mut requests = Vec::new();
        for index in 0..count {
            let slot = (0..depth).min_by_key(|slot| slots[*slot]).unwrap();
            let queued_ns = slots[slot];
            let completed_ns = queued_ns + latency_ns(index);
            requests.push(request(queued_ns, completed_ns));
            slots[slot] = completed_ns + think(index);
        }
        requests
    }

    #[test]
    fn a_process_that_waits_for_each_request_is_closed_and_its_pauses_are_found() {
        let found = find_pattern(&closed(1, 500, |_| 2 * MS));
        assert_eq!((found.pattern, found.think_ns), (Pattern::Closed { depth: 1 }, [2 * MS; 4]));
        assert!(found.slope.unwrap().abs() < 0.01 && found.explained == 1.0);
        assert_eq!(found.waits[0], Release { outstanding_max: 0, then: ReleaseDelay::At(0) });
        assert_eq!(found.waits[9], Release { outstanding_max: 0, then: ReleaseDelay::Think(2 * MS) });
    }

    #[test]
    fn a_window_of_requests_is_found_with_its_depth() {
        let found = find_pattern(&closed(8, 500, |_| 100_000));
        assert_eq!((found.pattern, found.think_ns), (Pattern::Closed { depth: 8 }, [100_000; 4]));
        assert_eq!(found.waits[100], Release { outstanding_max: 7, then: ReleaseDelay::Think(100_000) });
    }

    #[test]
    fn varying_pauses_of_a_closed_process_are_accepted() {
        let found = find_pattern(&closed(1, 2000, |index| index.wrapping_mul(104_729) % 30 * MS));
        assert_eq!(found.pattern, Pattern::Closed { depth: 1 }, "{:?}", found.slope);
    }

    #[test]
    fn a_timer_is_recognised_by_its_intervals_at_any_latency() {
        let requests: Vec<SubmittedRequest> =
            (0..500).map(|index| request(index * 25 * MS, index * 25 * MS + latency_ns(index))).collect();
        let found = find_pattern(&requests);
        assert_eq!(found.pattern, Pattern::Timer { period_ns: 25 * MS, depth: 1 }, "{:?}", found.slope);
        assert_eq!(found.waits[10], Release { outstanding_max: 0, then: ReleaseDelay::At(250 * MS) });
    }

    /// Pseudo-random numbers from 0 to 1.
    fn random_fractions(count: usize) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let next = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        });
        next.take(count).collect()
    }

    #[test]
    fn a_timer_with_more_jitter_than_the_latencies_vary_is_recognised() {
        // Due every 10 ms, up to 6 ms late; each request takes 0.1 to 0.2 ms.
        let late = random_fractions(800);
        let requests: Vec<SubmittedRequest> = (0..400u64)
            .map(|index| {
                let at_ns = index * 10 * MS + (late[2 * index as usize] * 6e6) as u64;
                request(at_ns, at_ns + 100_000 + (late[2 * index as usize + 1] * 1e5) as u64)
            })
            .collect();
        let found = find_pattern(&requests);
        let Pattern::Timer { period_ns, depth: 1 } = found.pattern else {
            panic!("{:?} {:?}", found.pattern, found.slope)
        };
        assert!(period_ns.abs_diff(10 * MS) < MS / 50, "{period_ns}");
        let ReleaseDelay::At(due_ns) = found.waits[399].then else { panic!("{:?}", found.waits[399]) };
        assert!(due_ns <= requests[399].queued_ns - requests[0].queued_ns, "no request is due later than it came");
    }

    #[test]
    fn pauses_that_vary_more_than_latencies_and_accumulate_are_of_a_closed_process() {
        let chance = random_fractions(800);
        let mut at_ns = 0;
        let requests: Vec<SubmittedRequest> = chance
            .chunks(2)
            .map(|two| {
                let completed_ns = at_ns + 100_000 + (two[1] * 1e5) as u64;
                let requests = request(at_ns, completed_ns);
                at_ns = completed_ns + 4 * MS + (two[0] * 12e6) as u64;
                requests
            })
            .collect();
        let found = find_pattern(&requests);
        assert_eq!(found.pattern, Pattern::Closed { depth: 1 }, "{:?}", found.slope);
    }

    #[test]
    fn requests_at_times_without_a_rule_are_open() {
        let mut at_ns = 0;
        let requests: Vec<SubmittedRequest> = (0..500u64)
            .map(|index| {
                at_ns += (index.wrapping_mul(104_729) % 80) * MS / 2 + 21 * MS;
                request(at_ns, at_ns + latency_ns(index))
            })
            .collect();
        let found = find_pattern(&requests);
        assert_eq!((found.pattern, found.explained), (Pattern::Open, 0.0), "{:?}", found.slope);
    }

    #[test]
    fn two_requests_that_complete_together_are_no_batch() {
        // Adjacent requests are merged and completed together. Each completion releases one
        // request, within the time that handling a completion takes.
        let mut requests = Vec::new();
        let mut at_ns = 0;
        for pair in 0..100 {
            let completed_ns = at_ns + 80 * MS + latency_ns(pair);
            requests.extend([request(at_ns, completed_ns), request(at_ns + MS / 20, completed_ns)]);
            at_ns = completed_ns + MS / 2;
        }
        assert_eq!(find_pattern(&requests).pattern, Pattern::Closed { depth: 2 });
    }

    #[test]
    fn batches_wait_for_all_requests_of_the_previous_batch() {
        let mut requests = Vec::new();
        let mut at_ns = 0;
        for batch in 0..100 {
            let ends: Vec<u64> = (0..4).map(|index| at_ns + latency_ns(batch * 4 + index)).collect();
            requests.extend(ends.iter().map(|end_ns| request(at_ns, *end_ns)));
            at_ns = ends.iter().max().unwrap() + 3 * MS;
        }
        let found = find_pattern(&requests);
        assert_eq!((found.pattern, found.think_ns[1]), (Pattern::Batches { depth: 4 }, 3 * MS));
        let waits: Vec<u32> = found.waits[40..44].iter().map(|wait| wait.outstanding_max).collect();
        assert_eq!(waits, [0, 1, 2, 3], "the second of a batch does not wait for the first");
    }

    #[test]
    fn no_request_and_a_single_request_are_handled() {
        assert_eq!(find_pattern(&[]).pattern, Pattern::Closed { depth: 1 });
        let one = find_pattern(&[request(5, u64::MAX)]);
        assert_eq!(one.waits, [Release { outstanding_max: 0, then: ReleaseDelay::At(0) }]);
    }
}
