//! Runs a comparison over one or several seeds, with as many runs at a time as memory allows.

use std::sync::atomic::{AtomicBool, Ordering};

use hoistway_sim::{CompareRequest, Comparison, Progress, Run, SimError, compare_until, with_threads};

use super::memory::{MemoryError, MemoryNeed};
use super::seeds::SeededComparison;

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The comparison with the first seed.
    pub comparison: Comparison,
    /// The figures over all seeds, if there are several.
    pub seeds: Option<SeededComparison>,
    /// True if the runs were cancelled before all were complete.
    pub is_partial: bool,
}

/// Reasons for which a comparison has no result.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The runs do not fit into the memory of the machine.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A simulation failed, or was cancelled before there was a result.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl Compared {
    /// Runs the comparison with `seeds` seeds from that of the request. When `cancel` becomes true,
    /// the runs end with the results so far.
    ///
    /// `available` is the number of bytes that the runs may allocate; without it, as many runs as
    /// the machine has processors happen at a time. `progress` gets the number of the seed, from
    /// 0, with the progress of a run. `each` gets the seed and the runs of each seed beyond the
    /// first.
    ///
    /// # Errors
    /// [`CompareError`].
    pub fn run(
        request: &CompareRequest,
        seeds: u32,
        available: Option<u64>,
        progress: &(dyn Fn(u32, Progress) + Sync),
        each: &(dyn Fn(u64, &[Run]) + Sync),
        cancel: &AtomicBool,
    ) -> Result<Compared, CompareError> {
        let threads = match MemoryNeed::of(request).threads(available) {
            Ok(threads) => threads,
            Err(refusal) => {
                refuse_unsuitable(request)?;
                return Err(refusal.into());
            }
        };
        with_threads(threads, || {
            let comparison = compare_until(request, &|at| progress(0, at), cancel)?;
            let seeds = match comparison.is_partial {
                false if seeds > 1 => {
                    let seeded = SeededComparison::run(request, &comparison, seeds, progress, each, cancel)?;
                    Some(seeded).filter(|seeded| seeded.seeds.len() > 1)
                }
                _ => None,
            };
            Ok(Compared { comparison, seeds, is_partial: cancel.load(Ordering::Relaxed) })
        })
    }
}

/// Refuses jobs that no amount of memory would help, such as files larger than the drive.
fn refuse_unsuitable(request: &CompareRequest) -> Result<(), SimError> {
    match compare_until(request, &|_| {}, &AtomicBool::new(true)) {
        Ok(_) | Err(SimError::Cancelled) => Ok(()),
        Err(error) => Err(error),
    }
}
