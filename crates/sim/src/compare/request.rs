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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The elevator of the run; `None` for the single-stream reference.
    pub elevator: Option<Kind>,
    /// The virtual time of the run, in ns.
    pub now_ns: u64,
    /// Bytes moved so far.
    pub bytes: u64,
    /// Bytes to move in all, as far as sizes are known.
    pub bytes_total: u64,
}
