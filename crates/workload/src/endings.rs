//! Checks that end a job: the least rate that it accepts, a steady rate, and the largest queue
//! depth within a latency.

use hoistway_fio::{Direction, Directions, Job, LatencyTarget, SteadyFigure, SteadyState};

const NS_PER_S: u64 = 1_000_000_000;
/// Time before the first measurement of a least rate. fio 3.33 ended a job that was too slow from
/// its start after 3 s with `rate_cycle=1000`.
const GRACE_NS: u64 = 2 * NS_PER_S;

/// The amounts that a process has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of requests.
    pub ios: u64,
}

/// The minimum rates of a process: `rate_min` and `rate_iops_min`.
#[derive(Clone, Debug)]
pub struct RateFloor {
    bytes: Directions<u64>,
    ios: Directions<u64>,
    cycle_ns: u64,
    /// Start of the current cycle, and the amounts at that time.
    cycle: Option<(u64, Directions<Moved>)>,
}

impl RateFloor {
    /// The minimum rates of a job; `None` if it has none.
    pub fn new(job: &Job) -> Option<RateFloor> {
        let has = |rates: &Directions<u64>| Direction::ALL.into_iter().any(|direction| *rates.get(direction) > 0);
        (has(&job.rates.rate_min) || has(&job.rates.rate_iops_min)).then(|| RateFloor {
            bytes: job.rates.rate_min,
            ios: job.rates.rate_iops_min,
            cycle_ns: job.rates.rate_cycle_ms.saturating_mul(1_000_000).max(1),
            cycle: None,
        })
    }

    /// Returns true if a rate was too low in the cycle that has ended. `since_ns` is the time since
    /// the start of the process; directions without requests do not count.
    pub fn is_missed(&mut self, since_ns: u64, moved: Directions<Moved>) -> bool {
        let Some((from_ns, before)) = self.cycle else {
            if since_ns >= GRACE_NS {
                self.cycle = Some((since_ns, moved));
            }
            return false;
        };
        let length_ns = since_ns - from_ns.min(since_ns);
        if length_ns < self.cycle_ns {
            return false;
        }
        self.cycle = Some((since_ns, moved));
        let is_low = |least: u64, amount: u64| {
            u128::from(amount) * u128::from(NS_PER_S) < u128::from(least) * u128::from(length_ns)
        };
        Direction::ALL.into_iter().any(|direction| {
            let (now, then) = (moved.get(direction), before.get(direction));
            let has_requests = now.ios > 0;
            has_requests
                && (is_low(*self.bytes.get(direction), now.bytes - then.bytes)
                    || is_low(*self.ios.get(direction), now.ios - then.ios))
        })
    }
}

/// Waits for a steady rate: `steadystate`.
#[derive(Clone, Debug)]
pub struct SteadyRate {
    rule: SteadyState,
    /// Seconds that have to be steady, and seconds before the first of them.
    seconds: usize,
    ramp: usize,
    /// The figure of each second that has begun.
    figures: Vec<u64>,
    judged: usize,
}

impl SteadyRate {
    /// The rule of a job; `None` if it has none.
    pub fn new(job: &Job) -> Option<SteadyRate> {
        let rule = job.end.steadystate?;
        let seconds = job.end.steadystate_duration_ns / NS_PER_S;
        (seconds > 0).then(|| SteadyRate {
            rule,
            seconds: seconds as usize,
            ramp: (job.end.steadystate_ramp_ns / NS_PER_S) as usize,
            figures: Vec::new(),
            judged: 0,
        })
    }

    /// Counts a request that completed so long after the start. Returns true if the seconds before
    /// were steady.
    pub fn record(&mut self, since_ns: u64, bytes: u64) -> bool {
        let second = (since_ns / NS_PER_S) as usize;
        if self.figures.len() <= second {
            self.figures.resize(second + 1, 0);
        }
        self.figures[second] += match self.rule.figure {
            SteadyFigure::Iops => 1,
            SteadyFigure::Bandwidth => bytes,
        };
        if second <= self.judged || second < self.ramp + self.seconds {
            return false;
        }
        self.judged = second;
        self.is_steady(&self.figures[second - self.seconds..second])
    }

    fn is_steady(&self, figures: &[u64]) -> bool {
        let count = figures.len() as f64;
        let mean = figures.iter().sum::<u64>() as f64 / count;
        let deviation = if self.rule.slope {
            // Least squares, with the seconds numbered from 0.
            let middle = (count - 1.0) / 2.0;
            let (mut above, mut below) = (0.0, 0.0);
            for (second, figure) in figures.iter().enumerate() {
                let x = second as f64 - middle;
                above += x * (*figure as f64 - mean);
                below += x * x;
            }
            if below > 0.0 { (above / below).abs() } else { 0.0 }
        } else {
            figures.iter().map(|figure| (*figure as f64 - mean).abs()).fold(0.0, f64::max)
        };
        let limit = if self.rule.percent { self.rule.limit / 100.0 * mean } else { self.rule.limit };
        deviation < limit
    }
}

/// A search for the largest queue depth within a latency: `latency_target`. The depth is doubled
/// until the latency is exceeded, then the range is halved.
#[derive(Clone, Debug)]
pub struct DepthSearch {
    target: LatencyTarget,
    most: u32,
    /// The depth that is tried.
    pub depth: u32,
    /// The largest depth that met the target, and the smallest that did not.
    met: u32,
    missed: u32,
    from_ns: u64,
    requests: u64,
    late: u64,
}

/// The state of a search after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStep {
    /// The current depth is kept.
    Same,
    /// Another depth is tried.
    Depth(u32),
    /// This is the largest depth that met the target; 0 if none did.
    Found(u32),
}

impl DepthSearch {
    /// The search of a job up to a depth; `None` if it has none.
    pub fn new(job: &Job, most: u32) -> Option<DepthSearch> {
        let target = job.latency_target;
        (target.target_ns > 0 && target.window_ns > 0).then(|| DepthSearch {
            target,
            most: most.max(1),
            depth: 1,
            met: 0,
            missed: most.max(1).saturating_add(1),
            from_ns: 0,
            requests: 0,
            late: 0,
        })
    }

    /// Counts a request that completed so long after the start of the process.
    pub fn record(&mut self, since_ns: u64, latency_ns: u64) -> SearchStep {
        self.requests += 1;
        self.late += u64::from(latency_ns > self.target.target_ns);
        if since_ns - self.from_ns.min(since_ns) < self.target.window_ns {
            return SearchStep::Same;
        }
        let within = (self.requests - self.late) as f64 * 100.0 >= self.requests as f64 * self.target.percentile;
        (self.from_ns, self.requests, self.late) = (since_ns, 0, 0);
        match within {
            true => self.met = self.met.max(self.depth),
            false => {
                self.missed = self.depth;
                // What a smaller depth met before may be missed now.
                self.met = self.met.min(self.depth - 1);
            }
        }
        if self.met + 1 >= self.missed {
            self.depth = self.met.max(1);
            return SearchStep::Found(self.met);
        }
        self.depth = match self.missed > self.most {
            true => self.depth.saturating_mul(2).min(self.most),
            false => self.met + (self.missed - self.met) / 2,
        };
        SearchStep::Depth(self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_too_slow_is_found_after_the_first_cycle() {
        let mut job = Job::default();
        job.rates.rate_min.read = 1 << 20;
        let mut floor = RateFloor::new(&job).unwrap();
        let moved = |bytes, ios| Directions { read: Moved { bytes, ios }, ..Directions::default() };
        assert!(!floor.is_missed(NS_PER_S, moved(1000, 1)));
        assert!(!floor.is_missed(2 * NS_PER_S, moved(2000, 2)), "the first cycle begins");
        assert!(!floor.is_missed(2 * NS_PER_S + 500_000_000, moved(2000, 2)));
        assert!(!floor.is_missed(3 * NS_PER_S, moved(2000 + (1 << 20), 3)));
        assert!(floor.is_missed(4 * NS_PER_S, moved(2999 + (2 << 20) - 1000, 4)));
    }

    fn steady_for(rule: SteadyState, duration_ns: u64) -> Job {
        let mut job = Job::default();
        (job.end.steadystate, job.end.steadystate_duration_ns) = (Some(rule), duration_ns);
        job
    }

    #[test]
    fn a_rate_is_steady_when_no_second_is_far_from_the_mean() {
        let rule = SteadyState { figure: SteadyFigure::Iops, slope: false, limit: 10.0, percent: true };
        let job = steady_for(rule, 3 * NS_PER_S);
        let ended = |counts: &[u64]| {
            let mut steady = SteadyRate::new(&job).unwrap();
            (0u64..).zip(counts).find_map(|(second, count)| {
                (0..*count).find(|_| steady.record(second * NS_PER_S, 4096)).map(|_| second)
            })
        };
        assert_eq!(ended(&[100, 100, 100, 100]), Some(3));
        assert_eq!(ended(&[10, 100, 105, 100, 100]), Some(4));
        assert_eq!(ended(&[10, 20, 30, 40, 50, 60]), None);
    }

    #[test]
    fn a_slope_ignores_noise_and_sees_a_trend() {
        let rule = |limit| SteadyState { figure: SteadyFigure::Iops, slope: true, limit, percent: true };
        let steady = |limit, figures: &[u64]| {
            let job = steady_for(rule(limit), NS_PER_S);
            SteadyRate::new(&job).unwrap().is_steady(figures)
        };
        // Noise of 40 % has a slope of -80 / 17.5 a second by least squares, 4.6 % of the mean.
        let noise = [100, 140, 60, 140, 60, 100];
        assert!(!steady(4.5, &noise) && steady(4.6, &noise));
        // Ten a second of a mean of 125 are 8 %.
        assert!(!steady(7.9, &[100, 110, 120, 130, 140, 150]) && steady(8.1, &[100, 110, 120, 130, 140, 150]));
    }

    #[test]
    fn the_search_finds_the_largest_depth_within_the_latency() {
        let target = LatencyTarget { target_ns: 1_000, window_ns: 10, percentile: 90.0, run: false };
        let job = Job { latency_target: target, ..Job::default() };
        for (limit, most) in [(23u32, 128u32), (1, 128), (128, 128), (0, 64), (64, 64)] {
            let mut search = DepthSearch::new(&job, most).unwrap();
            let mut now_ns = 0;
            let found = loop {
                now_ns += 11;
                let latency_ns = if search.depth <= limit { 900 } else { 1_100 };
                if let SearchStep::Found(depth) = search.record(now_ns, latency_ns) {
                    break depth;
                }
                assert!(now_ns < 1_000, "{limit} of {most}");
            };
            assert_eq!(found, limit, "of {most}");
        }
    }
}
