//! Comparisons of one workload under several elevators: what `hoistway compare` and the playground
//! run, without the machine. The drive nearest to a device is in hoistway-advise.
//!
//! [`CompareSetup`] makes a request from what the user chose and the defaults, [`Compared`] runs it
//! over one or several seeds, [`Judgement`] says what the results mean, and [`ComparisonDocument`]
//! is the answer as JSON (docs/compare-json.md).
//!
//! # Where to change
//!
//! - what can be chosen: `setup.rs`; the drive and the elevators without options, `defaults.rs`;
//!   bounds on the jobs, `shorten.rs`
//! - the runs: `run.rs`; several seeds, `seeds.rs`; the need of memory, `memory.rs`
//! - results per job and when a job starves: `jobs.rs`; the verdict, `verdict.rs`
//! - when a difference is significant: `statistics.rs`
//! - the columns of the table: `columns.rs`; the legends, `legends.rs`
//! - the JSON: `document.rs`; the page, with the feature `page`: `page.rs`
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod columns;
mod defaults;
mod document;
mod drive_work;
mod jobs;
pub mod legends;
mod measures;
mod memory;
#[cfg(feature = "page")]
mod page;
mod progress;
mod run;
mod seeds;
mod setup;
mod shorten;
mod statistics;
mod verdict;

use hoistway_sim::Comparison;

pub use defaults::{
    CompareDefaults, EveryElevator, KERNEL_SCHEDULERS, Named, default_host, named_devices, named_elevators,
    scheduler_name,
};
pub use document::{ComparisonDocument, DocumentContext};
pub use jobs::{JobRun, SeededStarvation, Starvation, StarvedJob, SyncLatency};
pub use measures::Measure;
pub use memory::{MemoryError, MemoryNeed};
#[cfg(feature = "page")]
pub use page::page;
pub use progress::RunShares;
pub use run::{CompareError, Compared};
pub use seeds::{SeededComparison, SeededMeasure, SeededRun};
pub use setup::{CompareChoices, CompareSetup, HostChoice};
pub use shorten::Shortening;
pub use statistics::{Difference, MIN_DIFFERENCE, Spread};
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

    /// Returns true if a job syncs: tables have columns of the latencies of syncs then.
    pub fn syncs(&self) -> bool {
        jobs::syncs(&self.jobs)
    }
}
