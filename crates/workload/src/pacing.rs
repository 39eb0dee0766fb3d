//! Pacing: caps on bandwidth and on requests a second.

use hoistway_fio::{Direction, Directions, Job, RateProcess};
use rand_pcg::Pcg64;

use crate::distribution::unit;

/// The caps of one process. A process that fell behind catches up, as in fio.
#[derive(Clone, Debug)]
pub struct Pacing {
    poisson: bool,
    lanes: Directions<Option<Lane>>,
    /// The direction of the last request.
    last: Direction,
}

/// The cap of one direction.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Units a second: bytes, or requests.
    rate: u64,
    by_bytes: bool,
    /// Units made since the start; with Poisson arrivals, the due time of the next request.
    made: u64,
    next_ns: u64,
    /// Time that is not caught up, in ns: of the next request and all further ones, and of all
    /// further ones only.
    missed_ns: u64,
    missed_later_ns: u64,
}

impl Lane {
    fn due_ns(self) -> u64 {
        self.next_ns.saturating_add(self.missed_ns)
    }
}

impl Pacing {
    /// The caps of a job.
    pub fn new(job: &Job) -> Pacing {
        let lane = |direction| {
            let bytes = job.rates.rate.get(direction).map(|rate| (rate, true));
            let ios = job.rates.rate_iops.get(direction).map(|rate| (rate, false));
            bytes.or(ios).map(|(rate, by_bytes)| Lane {
                rate: rate.max(1),
                by_bytes,
                made: 0,
                next_ns: 0,
                missed_ns: 0,
                missed_later_ns: 0,
            })
        };
        let lanes =
            Directions { read: lane(Direction::Read), write: lane(Direction::Write), trim: lane(Direction::Trim) };
        Pacing { poisson: job.rates.rate_process == RateProcess::Poisson, lanes, last: Direction::Read }
    }

    /// Due time of the next request of a direction, in ns since the process's start.
    pub fn due_ns(&self, direction: Direction) -> u64 {
        self.lanes.get(direction).map_or(0, Lane::due_ns)
    }

    /// The direction of the next request of a job that reads and writes, given the one that was
    /// drawn, at a time since the process's start. The cap of a direction does not hold back the
    /// other one: if the drawn direction is not due, the other one is taken, or, if neither is due,
    /// the one that is due first.
    pub fn direction(&self, drawn: Direction, since_ns: u64) -> Direction {
        let other = match drawn {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
            Direction::Trim => return drawn,
        };
        let (drawn_ns, other_ns) = (self.due_ns(drawn).max(since_ns), self.due_ns(other).max(since_ns));
        if other_ns < drawn_ns { other } else { drawn }
    }

    /// Drops what a pause makes the direction of the last request miss, from `since_ns` after the
    /// process's start for `ns` (`rate_ignore_thinktime`).
    ///
    /// The rule was measured with fio 3.33. If the next request is due in the pause, it follows the
    /// pause and the later ones follow it in their intervals. If it is due after the pause, it is
    /// made when it is due, and the later ones are delayed by the pause.
    pub fn pause(&mut self, since_ns: u64, ns: u64) {
        let Some(lane) = self.lanes.get_mut(self.last) else { return };
        let end_ns = since_ns.saturating_add(ns);
        match end_ns.checked_sub(lane.due_ns()) {
            Some(late_ns) => lane.missed_ns = lane.missed_ns.saturating_add(late_ns),
            None => lane.missed_later_ns = lane.missed_later_ns.saturating_add(ns),
        }
    }

    /// Counts a request of `bytes` bytes.
    pub fn made(&mut self, direction: Direction, bytes: u64, rng: &mut Pcg64) {
        let poisson = self.poisson;
        self.last = direction;
        let Some(lane) = self.lanes.get_mut(direction) else { return };
        lane.missed_ns = lane.missed_ns.saturating_add(std::mem::take(&mut lane.missed_later_ns));
        let units = if lane.by_bytes { bytes } else { 1 };
        if poisson {
            // The gaps of a Poisson process are exponential: -ln(u) times their mean, with u above
            // 0.
            let mean_ns = units as f64 * 1e9 / lane.rate as f64;
            lane.next_ns = lane.next_ns.saturating_add((-(1.0 - unit(rng)).ln() * mean_ns) as u64);
        } else {
            lane.made = lane.made.saturating_add(units);
            let due = u128::from(lane.made) * 1_000_000_000 / u128::from(lane.rate);
            lane.next_ns = u64::try_from(due).unwrap_or(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_a_megabyte_a_second_spaces_4_kib_by_4_ms() {
        let mut job = Job::default();
        job.rates.rate.read = Some(1 << 20);
        let (mut pacing, mut rng) = (Pacing::new(&job), Pcg64::new(1, 1));
        for request in 0..100 {
            assert_eq!(pacing.due_ns(Direction::Read), request * 3_906_250);
            pacing.made(Direction::Read, 4096, &mut rng);
        }
        assert_eq!(pacing.due_ns(Direction::Write), 0);
    }

    #[test]
    fn poisson_gaps_have_the_mean_of_the_rate_and_are_not_even() {
        let mut job = Job::default();
        job.rates.rate_process = RateProcess::Poisson;
        job.rates.rate_iops.write = Some(1000);
        let (mut pacing, mut rng) = (Pacing::new(&job), Pcg64::new(1, 1));
        let mut gaps = Vec::new();
        for _ in 0..10_000 {
            let before = pacing.due_ns(Direction::Write);
            pacing.made(Direction::Write, 4096, &mut rng);
            gaps.push((pacing.due_ns(Direction::Write) - before) as f64 / 1e6);
        }
        let mean = gaps.iter().sum::<f64>() / 10_000.0;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 10_000.0;
        // An exponential distribution's deviation is its mean.
        assert!((mean - 1.0).abs() < 0.03 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    }

    /// The due times of reads at 100 a second, each followed by a pause, in ms.
    fn paused(pause_ms: u64, requests: usize) -> Vec<u64> {
        let mut job = Job::default();
        job.rates.rate_ignore_thinktime = true;
        job.rates.rate_iops.read = Some(100);
        let (mut pacing, mut rng) = (Pacing::new(&job), Pcg64::new(1, 1));
        let mut now_ns = 0;
        let mut made = Vec::new();
        for _ in 0..requests {
            now_ns = now_ns.max(pacing.due_ns(Direction::Read));
            made.push(now_ns / 1_000_000);
            pacing.made(Direction::Read, 4096, &mut rng);
            pacing.pause(now_ns, pause_ms * 1_000_000);
            now_ns += pause_ms * 1_000_000;
        }
        made
    }

    /// The times are those of `fio` 3.33 with `rate_iops=100`, `rate_ignore_thinktime=1` and
    /// `thinktime` of 3, 8, 12 and 20 ms, from `write_iolog`.
    #[test]
    fn what_a_pause_made_a_job_miss_is_not_caught_up() {
        assert_eq!(paused(3, 6), [0, 10, 23, 36, 49, 62]);
        assert_eq!(paused(8, 4), [0, 10, 28, 46]);
        assert_eq!(paused(12, 6), [0, 12, 24, 36, 48, 60]);
        assert_eq!(paused(20, 5), [0, 20, 40, 60, 80]);
    }

    #[test]
    fn a_capped_direction_does_not_hold_back_the_other() {
        let mut job = Job::default();
        job.rates.rate_iops.write = Some(20);
        let (mut pacing, mut rng) = (Pacing::new(&job), Pcg64::new(1, 1));
        assert_eq!(pacing.direction(Direction::Write, 0), Direction::Write);
        pacing.made(Direction::Write, 4096, &mut rng);
        assert_eq!(pacing.direction(Direction::Write, 49_999_999), Direction::Read);
        assert_eq!(pacing.direction(Direction::Write, 50_000_000), Direction::Write);
        job.rates.rate_iops.read = Some(100);
        let mut pacing = Pacing::new(&job);
        pacing.made(Direction::Write, 4096, &mut rng);
        pacing.made(Direction::Read, 4096, &mut rng);
        // Neither is due: reads are due after 10 ms, writes after 50.
        assert_eq!(pacing.direction(Direction::Write, 1), Direction::Read);
    }
}
