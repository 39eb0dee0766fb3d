//! The progress of the runs of a comparison.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hoistway_sim::Progress;

/// The progress of each run, all of a seed weighted equally, and all seeds.
#[derive(Debug)]
pub struct RunShares {
    seeds: u32,
    /// The shares of all runs, by seed and run, in parts of the seed.
    shares: Mutex<HashMap<(u32, usize), f64>>,
}

impl RunShares {
    /// Creates the shares of the runs of this many seeds.
    pub fn of_seeds(seeds: u32) -> RunShares {
        RunShares { seeds: seeds.max(1), shares: Mutex::default() }
    }

    /// Records the progress of one run of a seed, counted from 0, and returns the share of all runs
    /// that is done, 0 to 1.
    pub fn note(&self, seed: u32, progress: Progress) -> f64 {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.insert((seed, progress.run), progress.done.min(1.0) / progress.runs.max(1) as f64);
        shares.values().sum::<f64>() / f64::from(self.seeds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_runs_of_a_seed_have_the_same_weight() {
        let shares = RunShares::of_seeds(1);
        let at = |run, done| Progress { elevator: None, run, runs: 2, now_ns: 0, done };
        assert_eq!([(0, 0.5), (1, 1.0), (0, 1.2)].map(|(run, done)| shares.note(0, at(run, done))), [0.25, 0.75, 1.0]);
    }

    #[test]
    fn seeds_have_the_same_weight() {
        let shares = RunShares::of_seeds(2);
        let at = |run, runs| Progress { elevator: None, run, runs, now_ns: 0, done: 1.0 };
        assert_eq!((shares.note(0, at(0, 1)), shares.note(1, at(0, 4))), (0.5, 0.625));
    }
}
