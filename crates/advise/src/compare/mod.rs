//! Comparisons with the devices of this machine ([`device_defaults`]) and as a page ([`page()`]).
//! The rest of `hoistway compare` is the crate `hoistway-compare`, which this module re-exports.

mod defaults;
mod page;

pub use defaults::{NearestDrive, device_defaults};
pub use hoistway_compare::{
    CompareChoices, CompareDefaults, CompareError, CompareSetup, Compared, ComparisonDocument, DocumentContext,
    EveryElevator, HostChoice, JobRun, Judgement, Measure, MemoryError, MemoryNeed, Named, RunShares, SeededComparison,
    SeededMeasure, SeededRun, SeededStarvation, Shortening, Starvation, StarvedJob, SyncLatency, Verdict, columns,
    default_host, legends, named_elevators,
};
pub use page::page;
