//! What a comparison is asked for, and how far it has come.

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_fio::JobFile;

use crate::config::HostConfig;
use crate::settings::Setting;

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// The jobs.
    pub jobs: JobFile,
    /// The drive.
    pub profile: Profile,
    /// The machine.
    pub host: HostConfig,
    /// The elevators, in the order of the result; at least one.
    pub elevators: Vec<Kind>,
    /// Tunables that differ from their defaults.
    pub settings: Vec<Setting>,
    /// What all random numbers come from.
    pub seed: u64,
    /// Whether head positions and slices are kept.
    pub record: bool,
}

/// How far one of the runs has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The elevator; `None` for the single-stream reference.
    pub elevator: Option<Kind>,
    /// The virtual time, in ns.
    pub now_ns: u64,
    /// Bytes that have been moved.
    pub bytes: u64,
    /// Bytes to be moved, as far as sizes tell.
    pub bytes_total: u64,
}
