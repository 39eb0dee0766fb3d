//! What requests waited for: the completion of earlier requests of their process and then a pause, a timer, or nothing that the trace shows.
//!
//! A trace tells when requests came under the elevator that was recorded. Under another one they would have come at other times: most programs wait for
//! what they asked for before they ask again. This finds, for each process, which rule its requests followed:
//!
//! - A **closed** process keeps up to `depth` requests under way and makes the next one when one of them is over, after a pause of its own (its think
//!   time). Request *i* is released by completion *i - depth + 1*, counted without regard to which request it was: so the rule holds where another
//!   elevator completes them in another order.
//! - It makes **batches**, if it makes several requests at a time and waits for all of them before it goes on.
//! - A **timer** makes requests at times of its own, all the same interval apart, if no more than `depth` are under way then.
//! - **Open**: at times of its own that have no rule that would be seen here.
//!
//! The first two are told from the others by the slope of the pause on the latency of the completion before it. Where a process waits for a
//! completion its pause does not depend on how long that took: slope 0. Where it does not wait, whatever a request takes longer is missing from the
//! pause behind it: slope -1. The slope is the median over pairs of requests whose latencies are half the distribution apart, which a few outliers do
//! not move. Where pauses differ by far more than latencies do, the slope is lost in them. Then, and where a process does not wait, a clock is looked for: what the
//! requests of a timer are early or late by is their own each, and does not add up over many of them as pauses between them do. What one process waits for of another one is not looked for.

use std::collections::BTreeMap;

use crate::event::{DeviceId, Rwbs};
use crate::life::Life;

/// Pauses tell a rule from so many requests on; with fewer a process is taken to be closed.
const REQUESTS_MIN: usize = 16;
/// A slope below this is that of a process that does not wait.
const SLOPE_OF_OPEN: f64 = -0.5;
/// A slope that may be off by more than this tells nothing.
const SLOPE_ERROR_MAX: f64 = 0.25;
/// Over so many intervals what requests of a clock are off by ...
const CLOCK_STEPS: usize = 16;
/// ... is spread at most so many times as over one; pauses that add up are at 4 times, the root of 16.
const CLOCK_SPREAD_MAX: f64 = 1.5;
/// A timer's intervals lie so near to their median, as a part of it ...
const TIMER_TOLERANCE: f64 = 0.1;
/// ... at least this share of them.
const TIMER_SHARE: f64 = 0.6;
/// Requests of a batch follow each other within this part of the median latency.
const BATCH_GAP: f64 = 0.1;
/// ... and within this part of what the completions before them lie apart.
const BATCH_CLOSER: f64 = 0.5;
/// In a process of batches so many requests follow another one without a completion in between.
const BATCH_SHARE: f64 = 0.5;

/// One request as its process made it. What was merged before the elevator saw it, in a plug, is one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When it came.
    pub queued_ns: u64,
    /// When it was over; `u64::MAX` if the trace does not show that.
    pub completed_ns: u64,
    /// Its first sector.
    pub sector: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// What it does.
    pub op: Rwbs,
}

/// The requests of each process, in memory: some 40 bytes each.
#[derive(Clone, Debug, Default)]
pub struct ByProcess {
    all: BTreeMap<(DeviceId, u32), Vec<Asked>>,
}

/// The rule that a process follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// It waits for a completion before it asks again, with up to `depth` requests under way.
    Closed {
        /// At least 1.
        depth: u32,
    },
    /// It makes several requests at a time, up to `depth`, and waits for all of them.
    Batches {
        /// The most requests of a batch, at least 2.
        depth: u32,
    },
    /// It asks at times of its own, all `period_ns` apart, with up to `depth` requests under way.
    Timer {
        /// The interval.
        period_ns: u64,
        /// The most requests under way that were seen.
        depth: u32,
    },
    /// It asks at times of its own.
    Open,
}

/// What one request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// It is made when at most so many of the requests before it, of its process, are under way ...
    pub under_way_max: u32,
    /// ... and then this has passed.
    pub then: Then,
}

/// The second part of a [`Wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// A pause since the completion that let it go.
    Think(u64),
    /// A time since the first request of the process; or at once, if that is over.
    At(u64),
}

/// What was found of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule.
    pub pattern: Pattern,
    /// The most requests under way.
    pub depth: u32,
    /// The slope of pauses on latencies: about 0 for closed processes, about -1 for others. `None`: the trace has too few requests, or latencies that do
    /// not differ.
    pub slope: Option<f64>,
    /// The share of requests that follow the rule as it was found, 0 to 1: of timers those that came in time, of the others those that came behind a
    /// completion.
    pub explained: f64,
    /// Think times at 10, 50, 90 and 99 %, in ns; zeroes for processes that are not closed.
    pub think_ns: [u64; 4],
    /// What each request waited for, in the order of [`Asked`].
    pub waits: Vec<Wait>,
}

impl ByProcess {
    /// None yet.
    pub fn new() -> ByProcess {
        ByProcess::default()
    }

    /// Takes in a request: one for each of its bios that came to the elevator by itself.
    pub fn take(&mut self, life: &Life) {
        let Some(begun_ns) = life.begun_ns() else { return };
        let completed_ns = life.completed_ns.unwrap_or(u64::MAX);
        let (mut sector, mut bytes) = (life.sector, u64::from(life.bytes));
        let is_apart = |merged_ns: u64| life.inserted_ns.is_some_and(|inserted_ns| merged_ns >= inserted_ns);
        for merged in life.merged.iter().filter(|merged| is_apart(merged.merged_ns)) {
            bytes = bytes.saturating_sub(merged.bytes.into());
            if merged.front {
                sector = sector.saturating_add(u64::from(merged.bytes).div_ceil(512));
            }
            let asked = Asked {
                queued_ns: merged.queued_ns,
                completed_ns,
                sector: merged.sector,
                bytes: merged.bytes,
                op: life.op,
            };
            self.all.entry((life.device, merged.pid)).or_default().push(asked);
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let asked = Asked { queued_ns: begun_ns, completed_ns, sector, bytes, op: life.op };
        self.all.entry((life.device, life.pid)).or_default().push(asked);
    }

    /// The requests of each process, in the order in which they came.
    pub fn finish(mut self) -> BTreeMap<(DeviceId, u32), Vec<Asked>> {
        self.all.values_mut().for_each(|asked| asked.sort_by_key(|asked| asked.queued_ns));
        self.all
    }
}

/// Finds the rule of a process. Its requests are to be in the order in which they came.
pub fn find(asked: &[Asked]) -> Finding {
    let course = Course::of(asked);
    let batches = course.is_of_batches(asked);
    let released = |index: usize| if batches { course.over[index] } else { course.released_in_window(index) };
    let slope = slope(asked, &course, &released);
    let depth = course.depth;
    let is_clear = slope.as_ref().is_some_and(|slope| slope.error <= SLOPE_ERROR_MAX);
    let waits_for_one = slope.as_ref().is_none_or(|slope| slope.value > SLOPE_OF_OPEN);
    let clock_ns = if is_clear && waits_for_one { None } else { clock_of(asked) };
    let period_ns = if waits_for_one { None } else { period_of(asked) };
    let pattern = match period_ns.or(clock_ns) {
        Some(period_ns) => Pattern::Timer { period_ns, depth },
        None if !waits_for_one => Pattern::Open,
        None if batches => Pattern::Batches { depth },
        None => Pattern::Closed { depth },
    };
    let is_closed = matches!(pattern, Pattern::Closed { .. } | Pattern::Batches { .. });
    let mut think: Vec<u64> = Vec::new();
    if is_closed {
        think.extend((0..asked.len()).filter_map(|index| course.pause_ns(asked, index, released(index))));
        think.sort_unstable();
    }
    let percentile = |percent: usize| think.get((think.len().saturating_sub(1)) * percent / 100).copied().unwrap_or(0);
    Finding {
        pattern,
        depth,
        slope: slope.map(|slope| slope.value),
        explained: explained(asked, &course, pattern, think.len()),
        think_ns: [10, 50, 90, 99].map(percentile),
        waits: waits(asked, &course, pattern, &released),
    }
}

/// How the requests of a process went.
struct Course {
    /// The times of completions, in order.
    completions_ns: Vec<u64>,
    /// How many were over when each request came.
    over: Vec<usize>,
    /// The latency of the request that each completion ended.
    latencies_ns: Vec<u64>,
    /// The most requests under way, at least 1.
    depth: u32,
}

impl Course {
    fn of(asked: &[Asked]) -> Course {
        let mut ended: Vec<(u64, u64)> = asked
            .iter()
            .filter(|asked| asked.completed_ns != u64::MAX)
            .map(|asked| (asked.completed_ns, asked.completed_ns.saturating_sub(asked.queued_ns)))
            .collect();
        ended.sort_unstable();
        let completions_ns: Vec<u64> = ended.iter().map(|ended| ended.0).collect();
        let mut over = Vec::with_capacity(asked.len());
        let (mut count, mut depth) = (0, 1);
        for (index, asked) in asked.iter().enumerate() {
            while completions_ns.get(count).is_some_and(|completed_ns| *completed_ns <= asked.queued_ns) {
                count += 1;
            }
            over.push(count);
            depth = depth.max((index + 1).saturating_sub(count));
        }
        let latencies_ns = ended.into_iter().map(|ended| ended.1).collect();
        Course { completions_ns, over, latencies_ns, depth: u32::try_from(depth).unwrap_or(u32::MAX) }
    }

    /// How many completions a window of the greatest depth waits for.
    fn released_in_window(&self, index: usize) -> usize {
        (index + 1).saturating_sub(self.depth as usize)
    }

    /// The time from the last of so many completions to a request.
    fn pause_ns(&self, asked: &[Asked], index: usize, completions: usize) -> Option<u64> {
        let completed_ns = *self.completions_ns.get(completions.checked_sub(1)?)?;
        Some(asked.get(index)?.queued_ns.saturating_sub(completed_ns))
    }

    /// How far those completions lie apart that would have let this request and the one before it go, if each of them waited for one.
    fn apart_in_window_ns(&self, index: usize) -> u64 {
        let completed_ns = |index: usize| self.completions_ns.get(self.released_in_window(index).checked_sub(1)?);
        match (completed_ns(index - 1), completed_ns(index)) {
            (Some(before), Some(ns)) => ns.saturating_sub(*before),
            // The first ones wait for nothing.
            _ => u64::MAX,
        }
    }

    /// Whether requests come several at a time, when all before them are over. Where those were over at one moment, as merged ones are, a process that waits
    /// for one of them does the same: that is no sign of batches.
    fn is_of_batches(&self, asked: &[Asked]) -> bool {
        if self.depth < 2 || asked.len() < REQUESTS_MIN {
            return false;
        }
        let mut latencies_ns = self.latencies_ns.clone();
        let usual_ns = median(&mut latencies_ns).unwrap_or(0) as f64;
        let mut close = 0;
        let mut alone = 0;
        for index in 1..asked.len() {
            let gap_ns = asked[index].queued_ns.saturating_sub(asked[index - 1].queued_ns) as f64;
            let is_close = self.over[index] == self.over[index - 1]
                && gap_ns <= usual_ns * BATCH_GAP
                && gap_ns <= self.apart_in_window_ns(index) as f64 * BATCH_CLOSER;
            close += usize::from(is_close);
            // The first of a batch finds nothing under way.
            alone += usize::from(!is_close && self.over[index] == index);
        }
        let firsts = (asked.len() - 1 - close).max(1);
        close as f64 > BATCH_SHARE * (asked.len() - 1) as f64 && alone as f64 > BATCH_SHARE * firsts as f64
    }
}

/// The slope of pauses on the latencies of the completions before them.
struct Slope {
    value: f64,
    /// Its standard error: the median's, of slopes that are spread as they are.
    error: f64,
}

fn slope(asked: &[Asked], course: &Course, released: &dyn Fn(usize) -> usize) -> Option<Slope> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    let mut last = 0;
    for index in 0..asked.len() {
        let completions = released(index);
        // Of a batch its first request.
        if completions == last {
            continue;
        }
        last = completions;
        let latency_ns = completions.checked_sub(1).and_then(|place| course.latencies_ns.get(place));
        if let (Some(latency_ns), Some(pause_ns)) = (latency_ns, course.pause_ns(asked, index, completions)) {
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
    // Of a normal distribution the quartiles are 1.35 standard deviations apart, and the median's error is 1.25 times the mean's.
    let error = (at(3) - at(1)) / 1.35 * 1.25 / (slopes.len() as f64).sqrt();
    Some(Slope { value: at(2), error })
}

/// The mean interval of requests that come by a clock, each a little early or late.
fn clock_of(asked: &[Asked]) -> Option<u64> {
    let (first, last) = (asked.first()?, asked.last()?);
    if asked.len() < 8 * CLOCK_STEPS {
        return None;
    }
    let spread_ns = |steps: usize| {
        let lasted = asked.windows(steps + 1).map(|part| part[steps].queued_ns.saturating_sub(part[0].queued_ns));
        let mut lasted: Vec<u64> = lasted.collect();
        lasted.sort_unstable();
        lasted[lasted.len() * 9 / 10] - lasted[lasted.len() / 10]
    };
    let (one_ns, many_ns) = (spread_ns(1), spread_ns(CLOCK_STEPS));
    let keeps_time = one_ns > 0 && many_ns as f64 <= CLOCK_SPREAD_MAX * one_ns as f64;
    let period_ns = last.queued_ns.saturating_sub(first.queued_ns) / (asked.len() - 1) as u64;
    (keeps_time && period_ns > 0).then_some(period_ns)
}

/// The interval between requests, if most are alike.
fn period_of(asked: &[Asked]) -> Option<u64> {
    let mut intervals_ns: Vec<u64> =
        asked.windows(2).map(|pair| pair[1].queued_ns.saturating_sub(pair[0].queued_ns)).collect();
    let count = intervals_ns.len();
    let usual_ns = median(&mut intervals_ns).filter(|usual_ns| *usual_ns > 0)?;
    let alike = intervals_ns.iter().filter(|interval_ns| is_alike(**interval_ns, usual_ns)).count();
    if (alike as f64) < TIMER_SHARE * count as f64 {
        return None;
    }
    // The median is off by what most intervals are; the mean of those that are alike is not.
    let sum: u128 = intervals_ns.iter().filter(|ns| is_alike(**ns, usual_ns)).map(|ns| u128::from(*ns)).sum();
    u64::try_from(sum / alike.max(1) as u128).ok()
}

fn is_alike(interval_ns: u64, usual_ns: u64) -> bool {
    interval_ns.abs_diff(usual_ns) as f64 <= TIMER_TOLERANCE * usual_ns as f64
}

fn explained(asked: &[Asked], course: &Course, pattern: Pattern, pauses: usize) -> f64 {
    let depth = course.depth as usize;
    let (follow, of) = match pattern {
        Pattern::Open => (0, asked.len()),
        Pattern::Closed { .. } | Pattern::Batches { .. } => (pauses, asked.len().saturating_sub(depth)),
        Pattern::Timer { period_ns, .. } => {
            let in_time = asked
                .windows(2)
                .filter(|pair| is_alike(pair[1].queued_ns.saturating_sub(pair[0].queued_ns), period_ns));
            (in_time.count(), asked.len().saturating_sub(1))
        }
    };
    if of == 0 { f64::from(u8::from(pattern != Pattern::Open)) } else { (follow as f64 / of as f64).min(1.0) }
}

fn waits(asked: &[Asked], course: &Course, pattern: Pattern, released: &dyn Fn(usize) -> usize) -> Vec<Wait> {
    let first_ns = asked.first().map_or(0, |first| first.queued_ns);
    let wait = |(index, request): (usize, &Asked)| {
        let at_ns = request.queued_ns.saturating_sub(first_ns);
        let under_way = |completions: usize| u32::try_from(index.saturating_sub(completions)).unwrap_or(u32::MAX);
        match pattern {
            Pattern::Closed { .. } | Pattern::Batches { .. } => {
                let completions = released(index);
                let then = course.pause_ns(asked, index, completions).map_or(Then::At(at_ns), Then::Think);
                let under_way_max = match pattern {
                    Pattern::Closed { depth } => depth - 1,
                    _ => under_way(completions),
                };
                Wait { under_way_max, then }
            }
            Pattern::Timer { period_ns, depth } => {
                // A request that came late was held up: its time was the timer's.
                let due_ns = (index as u64).saturating_mul(period_ns);
                Wait { under_way_max: depth.saturating_sub(1), then: Then::At(due_ns.min(at_ns)) }
            }
            Pattern::Open => Wait { under_way_max: u32::MAX, then: Then::At(at_ns) },
        }
    };
    asked.iter().enumerate().map(wait).collect()
}

/// The median of what is there; the order is lost.
fn median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn asked(queued_ns: u64, completed_ns: u64) -> Asked {
        Asked { queued_ns, completed_ns, sector: 0, bytes: 4096, op: Rwbs::READ }
    }

    /// Latencies that differ: 1 to 20 ms.
    fn latency_ns(index: u64) -> u64 {
        (index.wrapping_mul(7919) % 20 + 1) * MS
    }

    /// A process that keeps `depth` under way and pauses for `think` of the request's number.
    fn closed(depth: usize, count: u64, think: impl Fn(u64) -> u64) -> Vec<Asked> {
        let mut slots: Vec<u64> = vec![0; depth];
        let mut made = Vec::new();
        for index in 0..count {
            let slot = (0..depth).min_by_key(|slot| slots[*slot]).unwrap();
            let queued_ns = slots[slot];
            let completed_ns = queued_ns + latency_ns(index);
            made.push(asked(queued_ns, completed_ns));
            slots[slot] = completed_ns + think(index);
        }
        made
    }

    #[test]
    fn a_process_that_waits_for_each_request_is_closed_and_its_pauses_are_found() {
        let found = find(&closed(1, 500, |_| 2 * MS));
        assert_eq!((found.pattern, found.think_ns), (Pattern::Closed { depth: 1 }, [2 * MS; 4]));
        assert!(found.slope.unwrap().abs() < 0.01 && found.explained == 1.0);
        assert_eq!(found.waits[0], Wait { under_way_max: 0, then: Then::At(0) });
        assert_eq!(found.waits[9], Wait { under_way_max: 0, then: Then::Think(2 * MS) });
    }

    #[test]
    fn a_window_of_requests_is_found_with_its_depth() {
        let found = find(&closed(8, 500, |_| 100_000));
        assert_eq!((found.pattern, found.think_ns), (Pattern::Closed { depth: 8 }, [100_000; 4]));
        assert_eq!(found.waits[100], Wait { under_way_max: 7, then: Then::Think(100_000) });
    }

    #[test]
    fn pauses_that_differ_are_a_closed_process_s_all_the_same() {
        let found = find(&closed(1, 2000, |index| index.wrapping_mul(104_729) % 30 * MS));
        assert_eq!(found.pattern, Pattern::Closed { depth: 1 }, "{:?}", found.slope);
    }

    #[test]
    fn a_timer_is_told_by_its_intervals_whatever_requests_take() {
        let made: Vec<Asked> =
            (0..500).map(|index| asked(index * 25 * MS, index * 25 * MS + latency_ns(index))).collect();
        let found = find(&made);
        assert_eq!(found.pattern, Pattern::Timer { period_ns: 25 * MS, depth: 1 }, "{:?}", found.slope);
        assert_eq!(found.waits[10], Wait { under_way_max: 0, then: Then::At(250 * MS) });
    }

    /// Numbers without a pattern, 0 to 1.
    fn chances(count: usize) -> Vec<f64> {
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
    fn a_timer_that_wakes_late_by_more_than_latencies_differ_is_a_timer_all_the_same() {
        // Due every 10 ms, and up to 6 ms late; each takes 0.1 to 0.2 ms.
        let late = chances(800);
        let made: Vec<Asked> = (0..400u64)
            .map(|index| {
                let at_ns = index * 10 * MS + (late[2 * index as usize] * 6e6) as u64;
                asked(at_ns, at_ns + 100_000 + (late[2 * index as usize + 1] * 1e5) as u64)
            })
            .collect();
        let found = find(&made);
        let Pattern::Timer { period_ns, depth: 1 } = found.pattern else {
            panic!("{:?} {:?}", found.pattern, found.slope)
        };
        assert!(period_ns.abs_diff(10 * MS) < MS / 50, "{period_ns}");
        let Then::At(due_ns) = found.waits[399].then else { panic!("{:?}", found.waits[399]) };
        assert!(due_ns <= made[399].queued_ns - made[0].queued_ns, "no request is due later than it came");
    }

    #[test]
    fn pauses_that_differ_by_more_than_latencies_do_add_up_and_are_a_closed_process_s() {
        let chance = chances(800);
        let mut at_ns = 0;
        let made: Vec<Asked> = chance
            .chunks(2)
            .map(|two| {
                let completed_ns = at_ns + 100_000 + (two[1] * 1e5) as u64;
                let made = asked(at_ns, completed_ns);
                at_ns = completed_ns + 4 * MS + (two[0] * 12e6) as u64;
                made
            })
            .collect();
        let found = find(&made);
        assert_eq!(found.pattern, Pattern::Closed { depth: 1 }, "{:?}", found.slope);
    }

    #[test]
    fn requests_at_times_without_a_rule_are_open() {
        let mut at_ns = 0;
        let made: Vec<Asked> = (0..500u64)
            .map(|index| {
                at_ns += (index.wrapping_mul(104_729) % 80) * MS / 2 + 21 * MS;
                asked(at_ns, at_ns + latency_ns(index))
            })
            .collect();
        let found = find(&made);
        assert_eq!((found.pattern, found.explained), (Pattern::Open, 0.0), "{:?}", found.slope);
    }

    #[test]
    fn two_that_are_over_at_one_moment_are_no_batch() {
        // Requests behind each other are merged, and answered together; each answer lets one go, within the time that handling an answer takes.
        let mut made = Vec::new();
        let mut at_ns = 0;
        for pair in 0..100 {
            let over_ns = at_ns + 80 * MS + latency_ns(pair);
            made.extend([asked(at_ns, over_ns), asked(at_ns + MS / 20, over_ns)]);
            at_ns = over_ns + MS / 2;
        }
        assert_eq!(find(&made).pattern, Pattern::Closed { depth: 2 });
    }

    #[test]
    fn batches_wait_for_all_of_the_batch_before() {
        let mut made = Vec::new();
        let mut at_ns = 0;
        for batch in 0..100 {
            let ends: Vec<u64> = (0..4).map(|place| at_ns + latency_ns(batch * 4 + place)).collect();
            made.extend(ends.iter().map(|end_ns| asked(at_ns, *end_ns)));
            at_ns = ends.iter().max().unwrap() + 3 * MS;
        }
        let found = find(&made);
        assert_eq!((found.pattern, found.think_ns[1]), (Pattern::Batches { depth: 4 }, 3 * MS));
        let waits: Vec<u32> = found.waits[40..44].iter().map(|wait| wait.under_way_max).collect();
        assert_eq!(waits, [0, 1, 2, 3], "the second of a batch does not wait for the first");
    }

    #[test]
    fn nothing_and_a_single_request_are_no_trouble() {
        assert_eq!(find(&[]).pattern, Pattern::Closed { depth: 1 });
        let one = find(&[asked(5, u64::MAX)]);
        assert_eq!(one.waits, [Wait { under_way_max: 0, then: Then::At(0) }]);
    }
}
