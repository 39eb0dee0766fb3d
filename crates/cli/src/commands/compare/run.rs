//! The run of a comparison, with its progress bar and Ctrl-C.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use hoistway_core::Kind;
use hoistway_sim::{CompareRequest, Comparison, Progress, SimError, compare};

use crate::failure::{Interrupted, UsageError};
use crate::interrupt;
use crate::progress::Bar;

/// Steps of the progress bar.
const STEPS: u64 = 1000;

/// Runs the comparison. Ctrl-C stops the run; a second Ctrl-C ends the process at once. The
/// returned flag becomes true if Ctrl-C is pressed after the run.
///
/// # Errors
/// [`Interrupted`], [`UsageError`] for settings that do not fit the elevators, and [`SimError`].
pub fn run(request: &CompareRequest) -> Result<(Comparison, Arc<AtomicBool>)> {
    let cancel = interrupt::watch()?;
    let progress_bar = RunProgressBar::new(request.elevators.len() + 1);
    let result = compare(request, &|progress| progress_bar.set(progress), &cancel);
    progress_bar.clear();
    match result {
        Ok(comparison) => Ok((comparison, cancel)),
        Err(SimError::Cancelled) => Err(Interrupted.into()),
        Err(error @ (SimError::SettingUnused { .. } | SimError::TunableValue { .. })) => {
            Err(UsageError(error.to_string()).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// The progress bar of several parallel runs.
pub struct RunProgressBar {
    bar: Bar,
    shares_done: RunShares,
}

impl RunProgressBar {
    /// Creates a bar for `runs` runs, including the reference.
    pub fn new(runs: usize) -> RunProgressBar {
        RunProgressBar { bar: Bar::new(STEPS, "simulating"), shares_done: RunShares::new(runs) }
    }

    /// Reports the progress of one run.
    pub fn set(&self, progress: Progress) {
        self.bar.set(self.shares_done.note(progress));
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.clear();
    }
}

/// The progress of each run, all weighted equally.
struct RunShares {
    runs: usize,
    shares: Mutex<HashMap<Option<Kind>, f64>>,
}

impl RunShares {
    fn new(runs: usize) -> RunShares {
        RunShares { runs, shares: Mutex::new(HashMap::new()) }
    }

    /// Records the progress of one run and returns the number of steps of all runs together.
    fn note(&self, progress: Progress) -> u64 {
        let share = progress.bytes as f64 / progress.bytes_total.max(1) as f64;
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.insert(progress.elevator, share.min(1.0));
        let sum: f64 = shares.values().sum();
        (sum / self.runs as f64 * STEPS as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_runs_have_the_same_weight_in_the_progress() {
        let shares_done = RunShares::new(2);
        let at = |elevator, bytes, bytes_total| Progress { elevator, now_ns: 0, bytes, bytes_total };
        assert_eq!(shares_done.note(at(None, 5, 10)), 250);
        assert_eq!(shares_done.note(at(Some(Kind::Noop), 100, 100)), 750);
        assert_eq!(shares_done.note(at(None, 12, 10)), 1000, "a job that is bound by time may move more than its size");
    }
}
