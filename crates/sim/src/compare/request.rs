//! The input of a comparison, and its progress.

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_fio::JobFile;

use crate::config::HostConfig;
use crate::settings::Setting;

/// The input of a comparison.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// The jobs of the workload.
    pub jobs: JobFile,
    /// The profile of the drive.
    pub profile: Profile,
    /// The host.
    pub host: HostConfig,
    /// The elevators, in the order of the result; at least one.
    pub elevators: Vec<Kind>,
    /// Tunables that differ from their defaults.
    pub settings: Vec<Setting>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// If true, head positions and slices are recorded.
    pub record: bool,
}

/// The progress of one of the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The elevator of the run; `None` for a reference, a job alone.
    pub elevator: Option<Kind>,
    /// The number of the run, from 0, and the number of all runs, references included.
    pub run: usize,
    /// The number of all runs.
    pub runs: usize,
    /// The virtual time of the run, in ns.
    pub now_ns: u64,
    /// The part of the run that is done, 0 to 1: of the bytes, or of the time if that bounds the
    /// jobs.
    pub done: f64,
}
