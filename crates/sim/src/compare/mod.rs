//! Comparisons: one job file under several elevators.

mod answer;
mod build;
mod film;
mod fio_json;
mod groups;
mod notes;
mod parallel;
mod request;
mod run;

pub use answer::{Comparison, DirectionRun, GroupRun, ProcessRun, Run, Spread};
pub use film::{Film, FilmWindow, FilmedProcess, film};
pub use parallel::with_threads;
pub use request::{CompareRequest, Progress};
pub use run::{ALONE_MAX, ALONE_NS, compare, compare_recorded, compare_until, run_each, run_each_recorded};
