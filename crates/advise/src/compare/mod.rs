//! Comparisons: the drive, the elevators and the host of `hoistway compare` without options, and
//! the meaning of its results.

mod defaults;
mod document;
mod drive_work;
mod jobs;
pub mod legends;
mod measures;
mod memory;
mod page;
mod progress;
mod run;
mod seeds;
mod setup;
mod shorten;
mod verdict;

use hoistway_sim::Comparison;

pub use defaults::{CompareDefaults, EveryElevator, Named, NearestDrive, default_host, named_elevators};
pub use document::{ComparisonDocument, DocumentContext};
pub use jobs::{JobRun, SeededStarvation, Starvation, StarvedJob};
pub use measures::Measure;
pub use memory::{MemoryError, MemoryNeed};
pub use page::page;
pub use progress::RunShares;
pub use run::{CompareError, Compared};
pub use seeds::{SeededComparison, SeededMeasure, SeededRun};
pub use setup::{CompareChoices, CompareSetup, HostChoice};
pub use shorten::Shortening;
pub use verdict::Verdict;

/// What the results of a comparison mean.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Judgement {
    /// The results of the jobs, for each elevator in the order of the runs.
    pub jobs: Vec<Vec<JobRun>>,
    /// For each elevator, true if a job starves under it.
    pub starves: Vec<bool>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Judgement {
    /// Judges a comparison.
    pub fn of(comparison: &Comparison) -> Judgement {
        Judgement::over_seeds(comparison, None)
    }

    /// Judges a comparison by the figures of several seeds, of which it is the first.
    pub fn over_seeds(comparison: &Comparison, seeds: Option<&SeededComparison>) -> Judgement {
        let jobs = jobs::job_runs(comparison);
        Judgement { starves: jobs::starves(&jobs), verdict: Verdict::of(comparison, &jobs, seeds), jobs }
    }
}
