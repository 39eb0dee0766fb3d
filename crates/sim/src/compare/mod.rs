//! Comparisons: one job file under several elevators.

mod answer;
mod build;
mod document;
mod fio_json;
mod groups;
mod notes;
mod request;
mod run;
mod verdict;

pub use answer::{Comparison, DirectionRun, GroupRun, ProcessRun, Run, Spread};
pub use document::ComparisonDocument;
pub use request::{CompareRequest, Progress};
pub use run::{compare, compare_recorded, run_each, run_each_recorded};
