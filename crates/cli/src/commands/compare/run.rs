//! The run itself: how far it is, and how it is stopped.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use hoistway_core::Kind;
use hoistway_sim::{CompareRequest, Comparison, Progress, SimError, compare};

use crate::failure::{Interrupted, UsageError};
use crate::interrupt;
use crate::progress::Bar;

/// Steps of the bar.
const STEPS: u64 = 1000;

/// Runs the comparison. Ctrl-C stops it; a second one ends the process on the spot. The flag that comes back becomes true
/// when Ctrl-C is pressed after the run.
///
/// # Errors
/// [`Interrupted`], [`UsageError`] for settings that do not fit the elevators, and [`SimError`].
pub fn run(request: &CompareRequest) -> Result<(Comparison, Arc<AtomicBool>)> {
    let cancel = interrupt::watch()?;
    let headway = Headway::new(request.elevators.len() + 1);
    let result = compare(request, &|progress| headway.set(progress), &cancel);
    headway.clear();
    match result {
        Ok(comparison) => Ok((comparison, cancel)),
        Err(SimError::Cancelled) => Err(Interrupted.into()),
        Err(error @ (SimError::SettingUnused { .. } | SimError::TunableValue { .. })) => {
            Err(UsageError(error.to_string()).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A bar that shows how far several runs have come.
pub struct Headway {
    bar: Bar,
    ways: Ways,
}

impl Headway {
    /// Of so many runs, the reference among them.
    pub fn new(runs: usize) -> Headway {
        Headway { bar: Bar::new(STEPS, "simulating"), ways: Ways::new(runs) }
    }

    /// One of them has come so far.
    pub fn set(&self, progress: Progress) {
        self.bar.set(self.ways.note(progress));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.clear();
    }
}

/// How far each run has come: the reference and one an elevator, each of which counts alike.
struct Ways {
    runs: usize,
    shares: Mutex<HashMap<Option<Kind>, f64>>,
}

impl Ways {
    fn new(runs: usize) -> Ways {
        Ways { runs, shares: Mutex::new(HashMap::new()) }
    }

    /// Notes one report and answers how many steps all runs together have come.
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
    fn each_run_counts_alike_whatever_its_size() {
        let ways = Ways::new(2);
        let at = |elevator, bytes, bytes_total| Progress { elevator, now_ns: 0, bytes, bytes_total };
        assert_eq!(ways.note(at(None, 5, 10)), 250);
        assert_eq!(ways.note(at(Some(Kind::Noop), 100, 100)), 750);
        assert_eq!(ways.note(at(None, 12, 10)), 1000, "a job that is bound by time may move more than its size");
    }
}
