//! Pacing: caps on bandwidth and on requests a second.

use hoistway_fio::{Direction, Directions, Job, RateProcess};
use rand_pcg::Pcg64;

use crate::distribution::unit;

/// The caps of one process. A process that fell behind catches up, as in fio.
#[derive(Clone, Debug)]
pub struct Pacing {
    poisson: bool,
    /// Time of pauses that the process does not catch up.
    paused_ns: u64,
    lanes: Directions<Option<Lane>>,
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
}

impl Pacing {
    /// The caps of a job.
    pub fn new(job: &Job) -> Pacing {
        let lane = |direction| {
            let bytes = job.rate.get(direction).map(|rate| (rate, true));
            let ios = job.rate_iops.get(direction).map(|rate| (rate, false));
            bytes.or(ios).map(|(rate, by_bytes)| Lane { rate: rate.max(1), by_bytes, made: 0, next_ns: 0 })
        };
        let lanes =
            Directions { read: lane(Direction::Read), write: lane(Direction::Write), trim: lane(Direction::Trim) };
        Pacing { poisson: job.rate_process == RateProcess::Poisson, paused_ns: 0, lanes }
    }

    /// Due time of the next request of a direction, in ns since the process's start.
    pub fn due_ns(&self, direction: Direction) -> u64 {
        self.lanes.get(direction).map_or(0, |lane| lane.next_ns.saturating_add(self.paused_ns))
    }

    /// Moves all further requests by a pause.
    pub fn pause(&mut self, ns: u64) {
        self.paused_ns = self.paused_ns.saturating_add(ns);
    }

    /// Counts a request of `bytes` bytes.
    pub fn made(&mut self, direction: Direction, bytes: u64, rng: &mut Pcg64) {
        let poisson = self.poisson;
        let Some(lane) = self.lanes.get_mut(direction) else { return };
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
        job.rate.read = Some(1 << 20);
        let (mut pacing, mut rng) = (Pacing::new(&job), Pcg64::new(1, 1));
        for request in 0..100 {
            assert_eq!(pacing.due_ns(Direction::Read), request * 3_906_250);
            pacing.made(Direction::Read, 4096, &mut rng);
        }
        assert_eq!(pacing.due_ns(Direction::Write), 0);
    }

    #[test]
    fn poisson_gaps_have_the_mean_of_the_rate_and_are_not_even() {
        let mut job = Job { rate_process: RateProcess::Poisson, ..Job::default() };
        job.rate_iops.write = Some(1000);
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
}
