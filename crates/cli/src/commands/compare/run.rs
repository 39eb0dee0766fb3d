//! The run of a comparison, with its progress bar and Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use hoistway_advise::compare::{MemoryNeed, RunShares, SeededComparison};
use hoistway_machine::{Root, available_bytes};
use hoistway_sim::{CompareRequest, Comparison, Progress, SimError, compare, compare_until, with_threads};

use crate::failure::{Interrupted, UsageError};
use crate::interrupt;
use crate::progress::Bar;

/// Steps of the progress bar.
const STEPS: u64 = 1000;

/// The result of a comparison.
pub struct Compared {
    /// The comparison with the first seed.
    pub comparison: Comparison,
    /// The figures over all seeds, if there are several.
    pub seeds: Option<SeededComparison>,
    /// True if Ctrl-C ended the runs before all were complete.
    pub is_partial: bool,
    /// Becomes true if Ctrl-C is pressed after the runs.
    pub cancelled: Arc<AtomicBool>,
}

/// Runs the comparison with as many seeds. Ctrl-C ends the runs with the results so far; a second
/// Ctrl-C ends the process at once.
///
/// # Errors
/// [`Interrupted`] if there is no result yet, [`UsageError`] for settings that do not fit the
/// elevators, and [`SimError`].
pub fn run_seeds(request: &CompareRequest, seeds: u32) -> Result<Compared> {
    let threads = MemoryNeed::of(request).threads(available_bytes(&Root::machine()))?;
    with_threads(threads, || compare_seeds(request, seeds))
}

fn compare_seeds(request: &CompareRequest, seeds: u32) -> Result<Compared> {
    let cancel = interrupt::watch()?;
    let progress_bar = RunProgressBar::of_seeds(seeds);
    let comparison =
        compare_until(request, &|progress| progress_bar.set(progress), &cancel).map_err(simulation_error)?;
    let more = |seed: u32, progress: Progress| progress_bar.set_of_seed(seed, progress);
    let seeds = match comparison.is_partial {
        false if seeds > 1 => Some(SeededComparison::run(request, &comparison, seeds, &more, &cancel)),
        _ => None,
    };
    progress_bar.clear();
    let seeds = match seeds {
        Some(Err(error)) => return Err(simulation_error(error)),
        Some(Ok(seeded)) => Some(seeded).filter(|seeded| seeded.seeds.len() > 1),
        None => None,
    };
    Ok(Compared { is_partial: cancel.load(Ordering::Relaxed), comparison, seeds, cancelled: cancel })
}

/// Runs a comparison; the same as [`run_seeds`] with one seed, but Ctrl-C ends it without a result.
///
/// # Errors
/// The errors of [`run_seeds`].
pub fn run(request: &CompareRequest) -> Result<(Comparison, Arc<AtomicBool>)> {
    let cancel = interrupt::watch()?;
    let progress_bar = RunProgressBar::new();
    let result = compare(request, &|progress| progress_bar.set(progress), &cancel);
    progress_bar.clear();
    Ok((result.map_err(simulation_error)?, cancel))
}

fn simulation_error(error: SimError) -> anyhow::Error {
    match error {
        SimError::Cancelled => Interrupted.into(),
        error @ (SimError::SettingUnused { .. } | SimError::TunableValue { .. }) => {
            UsageError(error.to_string()).into()
        }
        error => error.into(),
    }
}

/// The progress bar of several parallel runs.
pub struct RunProgressBar {
    bar: Bar,
    shares_done: RunShares,
}

impl RunProgressBar {
    /// Creates a bar for all runs of one seed, including the references.
    pub fn new() -> RunProgressBar {
        RunProgressBar::of_seeds(1)
    }

    /// Creates a bar for the runs of so many seeds.
    pub fn of_seeds(seeds: u32) -> RunProgressBar {
        RunProgressBar { bar: Bar::new(STEPS, "simulating"), shares_done: RunShares::of_seeds(seeds) }
    }

    /// Reports the progress of one run of the first seed.
    pub fn set(&self, progress: Progress) {
        self.set_of_seed(0, progress);
    }

    /// Reports the progress of one run of a seed, counted from 0.
    fn set_of_seed(&self, seed: u32, progress: Progress) {
        self.bar.set((self.shares_done.note(seed, progress) * STEPS as f64).round() as u64);
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.clear();
    }
}
