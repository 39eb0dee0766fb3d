//! What a world is made of, and what is left of it.

use std::sync::Arc;

use hoistway_core::{Kind, ReserveError};
use hoistway_drive::Profile;
use hoistway_fio::JobFile;

use super::process::Process;
use crate::config::HostConfig;
use crate::measure::DriveTime;
use crate::record::Recording;
use crate::settings::Setting;
use crate::workload::recorded::Script;

/// What a world is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorldRequest<'a> {
    pub jobs: &'a JobFile,
    pub profile: &'a Profile,
    pub host: &'a HostConfig,
    pub elevator: Kind,
    pub settings: &'a [Setting],
    pub seed: u64,
    pub record: bool,
    /// Of a recorded workload: what each process did, a job each; none of one that fio describes.
    pub scripts: &'a [Arc<Script>],
    /// The drive is given no more requests at once than this, nor than it takes.
    pub depth_max: Option<u32>,
}

/// What is left of a world.
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
    /// Whether the elevator, as it was tuned, divided the disk among groups.
    pub divides_by_groups: bool,
    /// Reservations that the elevator refused: the process, and why.
    pub refused: Vec<(u32, ReserveError)>,
    pub recording: Recording,
}

/// How far a world has come: virtual time, bytes moved, and bytes to move when that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorldProgress {
    pub now_ns: u64,
    pub bytes: u64,
    pub bytes_total: u64,
}

/// What of a run failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// Requests that the drive answered with an error.
    pub requests: u64,
    /// Dirty pages that could not be written: they are lost.
    pub pages_lost: u64,
}
