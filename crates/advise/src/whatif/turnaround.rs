//! Learns from a recording how the think times of its processes depend on the idle time of the
//! machine before a completion.
//!
//! Its own wait says less about a process: one that waited for long continues at once if other
//! processes kept the machine awake.

use hoistway_sim::WakeUp;
use hoistway_trace::dependencies::{PatternAnalysis, Release, ReleaseDelay};

use super::recording::{RecordedProcess, Recording};

/// The minimum number of pairs of turnarounds for the slope of a process.
const PAIRS_MIN: usize = 16;
/// The minimum ratio of the idle times of a pair.
const PAIR_RATIO: f64 = 1.2;
/// The minimum standard error of a slope: 0.03 us after 1 ms.
const ERROR_MIN: f64 = 1.0;
/// A slope counts if it exceeds its standard error by this factor.
const SIGNIFICANT: f64 = 3.0;

/// One recorded turnaround.
#[derive(Clone, Copy, Debug)]
struct Turnaround {
    /// Time in ns for which no process submitted a request or received a completion, before the
    /// completion that the process waited for.
    idle_ns: u64,
    /// Time in ns from that completion to the request.
    think_ns: u64,
}

/// A slope of turnarounds over the roots ([`WakeUp::root`]) of the idle times.
struct Slope {
    value: f64,
    /// Standard error.
    error: f64,
}

/// The turnarounds of a recording with the idle times of the machine before them: for each process
/// and request, `None` if no completion released the request.
pub(super) struct IdleTimes(Vec<Vec<Option<Turnaround>>>);

impl IdleTimes {
    /// Finds the turnarounds of a recording, whose processes follow the rules in `findings`.
    pub(super) fn new(recording: &Recording, findings: &[PatternAnalysis]) -> IdleTimes {
        let activities_ns = activities(recording);
        let processes = recording.processes.iter().zip(findings);
        IdleTimes(processes.map(|(process, finding)| turnarounds(process, finding, &activities_ns).collect()).collect())
    }

    /// The idle time in ns before the release of each request, for each process; 0 for requests
    /// that no completion released.
    pub(super) fn idle_ns(&self) -> impl Iterator<Item = Vec<u64>> + '_ {
        let idle_ns = |found: &Option<Turnaround>| found.map_or(0, |turnaround| turnaround.idle_ns);
        self.0.iter().map(move |process| process.iter().map(idle_ns).collect())
    }

    /// The time that the machine took to wake up. Each process has a slope of its turnarounds over
    /// the idle times; the machine's is their mean, weighted by accuracy. A slope that is not
    /// significant, or negative, counts as none.
    pub(super) fn wake_up(&self) -> WakeUp {
        let (mut sum, mut weights) = (0.0, 0.0);
        for Slope { value, error } in self.0.iter().filter_map(|process| slope(process)) {
            let weight = 1.0 / error.max(ERROR_MIN).powi(2);
            sum += weight * value;
            weights += weight;
        }
        let recorded_max_ns = self.0.iter().flatten().flatten().map(|turnaround| turnaround.idle_ns).max().unwrap_or(0);
        let is_significant = sum > SIGNIFICANT * f64::sqrt(weights);
        WakeUp { growth: if is_significant { sum / weights } else { 0.0 }, recorded_max_ns }
    }
}

/// The times of all submissions and completions in ns, ascending.
fn activities(recording: &Recording) -> Vec<u64> {
    let requests = || recording.processes.iter().flat_map(|process| &process.requests);
    let completed = requests().filter(|request| request.is_completed()).map(|request| request.completed_ns);
    let mut activities_ns: Vec<u64> = requests().map(|request| request.queued_ns).chain(completed).collect();
    activities_ns.sort_unstable();
    activities_ns
}

/// The turnaround of each request; `None` if no completion released it.
fn turnarounds<'a>(
    process: &'a RecordedProcess,
    finding: &'a PatternAnalysis,
    activities_ns: &'a [u64],
) -> impl Iterator<Item = Option<Turnaround>> + 'a {
    process.requests.iter().zip(&finding.waits).map(|(request, wait)| {
        let Release { then: ReleaseDelay::Think(think_ns), .. } = *wait else { return None };
        let completed_ns = request.queued_ns.checked_sub(think_ns)?;
        let before = activities_ns.partition_point(|at_ns| *at_ns < completed_ns);
        let last_ns = *activities_ns.get(before.checked_sub(1)?)?;
        Some(Turnaround { idle_ns: completed_ns - last_ns, think_ns })
    })
}

/// The median slope over pairs of turnarounds whose idle times are half the distribution apart,
/// which is robust against outliers.
fn slope(process: &[Option<Turnaround>]) -> Option<Slope> {
    let mut points: Vec<Turnaround> = process.iter().flatten().copied().collect();
    points.sort_unstable_by_key(|turnaround| turnaround.idle_ns);
    let pairs = points.iter().zip(points.get(points.len() / 2..)?);
    let mut slopes: Vec<f64> = pairs
        .filter(|(low, high)| high.idle_ns as f64 > low.idle_ns as f64 * PAIR_RATIO)
        .map(|(low, high)| {
            let longer_ns = high.think_ns as f64 - low.think_ns as f64;
            longer_ns / (WakeUp::root(high.idle_ns) - WakeUp::root(low.idle_ns))
        })
        .collect();
    if slopes.len() < PAIRS_MIN {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let at = |quarters: usize| slopes[slopes.len() * quarters / 4];
    // The quartiles of a normal distribution are 1.35 standard deviations apart, and the standard
    // error of a median is 1.25 times that of a mean.
    let error = (at(3) - at(1)) / 1.35 * 1.25 / (slopes.len() as f64).sqrt();
    Some(Slope { value: at(2), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_trace::Rwbs;
    use hoistway_trace::dependencies::{SubmittedRequest, find_pattern};

    const US: u64 = 1_000;

    /// A process of depth 1 whose requests take 1, 2, 4 or 8 ms, and whose turnarounds are those of
    /// `think_us` of the logarithm and the number of the request.
    fn recording(think_us: impl Fn(u64, u64) -> u64) -> Recording {
        let mut at_ns = 0;
        let requests = (0..400u64).map(|number| {
            let power = number.wrapping_mul(7919) % 4;
            let queued_ns = at_ns;
            let completed_ns = queued_ns + ((1_000 * US) << power);
            at_ns = completed_ns + think_us(power, number) * US;
            SubmittedRequest { queued_ns, completed_ns, sector: 8 * number, bytes: 4096, op: Rwbs::READ }
        });
        let process = RecordedProcess { name: "reader".into(), pid: 1, requests: requests.collect() };
        Recording { processes: vec![process], from_ns: 0, until_ns: at_ns }
    }

    fn learn(recording: &Recording) -> IdleTimes {
        let findings: Vec<PatternAnalysis> =
            recording.processes.iter().map(|process| find_pattern(&process.requests)).collect();
        IdleTimes::new(recording, &findings)
    }

    #[test]
    fn turnarounds_that_grow_with_the_idle_time_are_learned() {
        // 40, 57, 80 and 113 us after 1, 2, 4 and 8 ms.
        let grown_us = |power: u64| [40, 57, 80, 113][power as usize];
        let learned = learn(&recording(|power, number| 200 + grown_us(power) + number.wrapping_mul(104_729) % 10));
        let idle_ns = learned.idle_ns().next().expect("a process");
        assert_eq!(idle_ns[..3], [0, 1_000 * US, 8_000 * US], "no completion released the first");
        let wake_up = learned.wake_up();
        assert_eq!(wake_up.recorded_max_ns, 8_000 * US);
        let think_us = |idle_us: u64| wake_up.think_ns(318 * US, 8_000 * US, idle_us * US) / US;
        assert_eq!(think_us(8_000), 318);
        assert!((230..=255).contains(&think_us(1_000)), "{}", think_us(1_000));
        assert!((380..=400).contains(&think_us(32_000)), "{}", think_us(32_000));
    }

    #[test]
    fn think_times_that_do_not_depend_on_the_idle_time_show_no_wake_up() {
        assert_eq!(learn(&recording(|_, number| 200 + number.wrapping_mul(104_729) % 97)).wake_up().growth, 0.0);
        assert_eq!(learn(&recording(|power, _| 500 - 40 * power)).wake_up().growth, 0.0, "a negative slope");
    }

    #[test]
    fn another_process_keeps_the_machine_awake() {
        let mut recording = recording(|_, _| 200);
        // Requests of 0.1 ms in short intervals.
        let requests = (0..40_000u64).map(|number| {
            let queued_ns = number * 150 * US;
            let completed_ns = queued_ns + 100 * US;
            SubmittedRequest { queued_ns, completed_ns, sector: 8 * number, bytes: 4096, op: Rwbs::READ }
        });
        recording.processes.push(RecordedProcess { name: "busy".into(), pid: 2, requests: requests.collect() });
        let learned = learn(&recording);
        let idle_ns = learned.idle_ns().next().expect("a process");
        assert!(idle_ns.iter().all(|idle_ns| *idle_ns <= 100 * US));
    }

    #[test]
    fn a_think_time_begins_at_the_completion_and_contains_no_wait_in_the_queue() {
        // The same program under two elevators, one of which lets its requests wait for long.
        let served = |factor: u64| {
            let mut recording = recording(|_, _| 200);
            let mut shift_ns = 0;
            for request in &mut recording.processes[0].requests {
                request.queued_ns += shift_ns;
                shift_ns += (request.completed_ns + shift_ns - request.queued_ns) * factor;
                request.completed_ns += shift_ns;
            }
            find_pattern(&recording.processes[0].requests).think_ns
        };
        assert_eq!(served(0), [200 * US; 4]);
        assert_eq!(served(30), [200 * US; 4]);
    }
}
