//! The input and the result of a world.

use std::sync::Arc;

use hoistway_core::{Kind, ReserveError};
use hoistway_drive::Profile;
use hoistway_fio::JobFile;

use super::process::Process;
use crate::config::HostConfig;
use crate::measure::DriveTime;
use crate::record::Recording;
use crate::settings::Setting;
use crate::workload::recorded::RequestScript;

/// The input of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorldRequest<'a> {
    pub jobs: &'a JobFile,
    pub profile: &'a Profile,
    pub host: &'a HostConfig,
    pub elevator: Kind,
    pub settings: &'a [Setting],
    pub seed: u64,
    pub record: bool,
    /// Recorded requests, one script per job; empty for a workload that fio describes.
    pub scripts: &'a [Arc<RequestScript>],
}

/// The result of a world.
#[derive(Debug)]
pub(crate) struct WorldResult {
    pub processes: Vec<Process>,
    /// From the first start to the last end, without ramp times.
    pub start_ns: u64,
    pub end_ns: u64,
    pub drive: DriveTime,
    pub requests: u64,
    pub bytes: u64,
    pub dirty_pages_max: u64,
    pub turns: u64,
    pub failures: Failures,
    /// True if the world stopped before its end.
    pub is_partial: bool,
    /// True if the elevator, with its tunables, divided the disk among control groups.
    pub divides_by_groups: bool,
    /// Refused reservations: the process id, and the reason.
    pub refused: Vec<(u32, ReserveError)>,
    pub recording: Recording,
}

/// How a world stops before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Without a result.
    Cancel,
    /// With the results so far, as if every process ended now.
    Keep,
}

/// The progress of a world: virtual time, and the part that is done, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WorldProgress {
    pub now_ns: u64,
    pub done: f64,
}

/// Failures in a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// Requests that the drive completed with an error.
    pub requests: u64,
    /// Dirty pages that could not be written and are lost.
    pub pages_lost: u64,
}
