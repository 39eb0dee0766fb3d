//! The run of a comparison, with its progress bar and Ctrl-C.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use anyhow::Result;
use hoistway_compare::{CompareError, Compared, RunShares};
use hoistway_machine::{Root, available_bytes};
use hoistway_sim::{CompareRequest, Comparison, Progress, SimError, compare};
use hoistway_units::figures::duration;

use crate::failure::{Interrupted, UsageError, print_message};
use crate::interrupt;
use crate::progress::Bar;

/// Steps of the progress bar.
const STEPS: u64 = 1000;
/// Time after which the rest of a comparison is estimated, and the rest from which a note says how
/// to shorten it.
const ESTIMATE_AFTER: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(120);

/// Runs the comparison with as many seeds. Ctrl-C ends the runs with the results so far; a second
/// Ctrl-C ends the process at once. The second value becomes true if Ctrl-C is pressed.
///
/// # Errors
/// [`Interrupted`] if there is no result yet, [`UsageError`] for settings that do not fit the
/// elevators, and [`CompareError`].
pub fn run_seeds(request: &CompareRequest, seeds: u32) -> Result<(Compared, Arc<AtomicBool>)> {
    let cancel = interrupt::watch()?;
    let progress_bar = RunProgressBar { hints: Some(Once::new()), ..RunProgressBar::of_seeds(seeds) };
    let progress = |seed: u32, progress: Progress| progress_bar.set_of_seed(seed, progress);
    let compared = Compared::run(request, seeds, available_bytes(&Root::machine()), &progress, &|_, _| {}, &cancel);
    progress_bar.clear();
    match compared {
        Ok(compared) => Ok((compared, cancel)),
        Err(CompareError::Simulation(error)) => Err(simulation_error(error)),
        Err(error) => Err(error.into()),
    }
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

/// The note on a comparison of which a share was done in this time; `None` if the rest takes less
/// than [`LONG`].
fn long_run_note(elapsed: Duration, share: f64) -> Option<String> {
    let share = share.clamp(0.001, 1.0);
    let total_s = elapsed.as_secs_f64() / share;
    let left_s = total_s - elapsed.as_secs_f64();
    if left_s < LONG.as_secs_f64() {
        return None;
    }
    // The part that takes about a minute, as a power of ten.
    let scale = 10f64.powf((60.0 / total_s).log10().floor()).clamp(1e-6, 0.1);
    let more = if share > 0.001 { "about" } else { "more than" };
    Some(format!(
        "note: {more} {} are left: --runtime 30 or --scale {scale} shortens the jobs; Ctrl-C prints the results so far",
        duration((left_s * 1e9) as u64)
    ))
}

/// The progress bar of several parallel runs.
pub struct RunProgressBar {
    bar: Bar,
    shares_done: RunShares,
    begun: Instant,
    /// Printing of the note on long comparisons, if options can shorten this one.
    hints: Option<Once>,
}

impl RunProgressBar {
    /// Creates a bar for all runs of one seed, including the references.
    pub fn new() -> RunProgressBar {
        RunProgressBar::of_seeds(1)
    }

    /// Creates a bar for the runs of this many seeds.
    pub fn of_seeds(seeds: u32) -> RunProgressBar {
        let (bar, shares_done) = (Bar::new(STEPS, "simulating"), RunShares::of_seeds(seeds));
        RunProgressBar { bar, shares_done, begun: Instant::now(), hints: None }
    }

    /// Reports the progress of one run of the first seed.
    pub fn set(&self, progress: Progress) {
        self.set_of_seed(0, progress);
    }

    /// Reports the progress of one run of a seed, counted from 0.
    fn set_of_seed(&self, seed: u32, progress: Progress) {
        let share = self.shares_done.note(seed, progress);
        self.bar.set((share * STEPS as f64).round() as u64);
        let Some(hints) = self.hints.as_ref().filter(|hints| !hints.is_completed()) else { return };
        let elapsed = self.begun.elapsed();
        if elapsed >= ESTIMATE_AFTER {
            hints.call_once(|| {
                if let Some(note) = long_run_note(elapsed, share) {
                    self.bar.suspend(|| print_message(&note));
                }
            });
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_comparison_names_the_options_that_shorten_it() {
        let elapsed = Duration::from_secs(20);
        assert_eq!(long_run_note(elapsed, 0.5), None);
        let note = long_run_note(elapsed, 0.01).expect("33 minutes are left");
        assert!(note.starts_with("note: about 1,980 s are left: --runtime 30 or --scale 0.01 shortens"), "{note}");
        let unknown = long_run_note(elapsed, 0.0).expect("nothing is done");
        assert!(unknown.starts_with("note: more than 5.55 h are left"), "{unknown}");
    }
}
