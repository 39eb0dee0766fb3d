//! Cloud volumes against their documented limits.

use serde::Serialize;

use super::error::AccuracyError;
use super::measure::random_iops;
use crate::profile::Profile;

/// Documented rates: the volume, the promise in words, sectors of a read, number of reads, and
/// reads a second.
const PROMISES: [(&str, &str, u32, u32, f64); 3] = [
    ("cloud-gp2", "3,000 operations a second while credits last", 8, 30_000, 3000.0),
    ("cloud-gp3", "3,000 operations a second", 8, 30_000, 3000.0),
    ("cloud-gp3", "125 MiB/s, in reads of 256 KiB", 512, 5000, 500.0),
];
/// The largest relative error of a rate.
const MARGIN: f64 = 0.01;
/// Reads in flight: enough that the latency of the volume does not limit the rate.
pub const CLOUD_DEPTH: u32 = 64;

/// A cloud volume against one documented rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CloudCheck {
    /// The name of the profile.
    pub drive: &'static str,
    /// The documented promise in words.
    pub documented: &'static str,
    /// The documented rate in reads a second.
    pub documented_iops: f64,
    /// The rate of the model in reads a second.
    pub model_iops: f64,
    /// True if the model is within 1 % of the documented rate.
    pub reached: bool,
}

/// One check for each promise.
pub(super) fn checks() -> Result<Vec<CloudCheck>, AccuracyError> {
    type Promise = (&'static str, &'static str, u32, u32, f64);
    let check = |(drive, documented, sectors, reads, documented_iops): Promise| {
        let profile = Profile::builtin(drive).ok_or(AccuracyError::NoDrive { name: drive })?;
        let model_iops = random_iops(&profile, CLOUD_DEPTH, sectors, reads)?;
        let reached = (model_iops / documented_iops - 1.0).abs() <= MARGIN;
        Ok(CloudCheck { drive, documented, documented_iops, model_iops, reached })
    };
    PROMISES.into_iter().map(check).collect()
}
