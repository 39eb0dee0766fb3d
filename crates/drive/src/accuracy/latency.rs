//! Latency percentiles against those that were measured with real drives.

use rayon::prelude::*;
use serde::Serialize;

use super::error::AccuracyError;
use super::measure::random_read_times_us;
use super::recorded::Recordings;
use crate::profile::Profile;

/// Profiles of measured drives, and their rows in the table of latencies.
const MEASURED: [(&str, &str); 3] = [
    ("st2000dm006", "seagate_ST2000DM006_2TB_read"),
    ("ssd-sata-consumer", "samsung_850_evo_250GB_read"),
    ("ssd-nvme-tlc-mixed", "micron_7300_pro_3.84TB_read"),
];
const PERCENTILES: [(&str, f64); 5] = [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];
/// The largest relative error of every percentile.
const MARGIN: f64 = 0.15;
/// Random reads of each drive: 200 are above the highest percentile.
const READS: u32 = 20_000;

/// A drive against the latency percentiles that were measured with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyCheck {
    /// The name of the profile.
    pub drive: &'static str,
    /// Percentiles 50, 75, 90, 95 and 99 of random 4 KiB reads, one at a time.
    pub percentiles: Vec<LatencyPercentile>,
    /// The relative error with the largest amount.
    pub largest_error: f64,
    /// True if every percentile is within 15 %.
    pub reached: bool,
}

/// One percentile of a latency distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyPercentile {
    /// The name, such as `p50`.
    pub name: &'static str,
    /// The measured latency in us.
    pub measured_us: f64,
    /// The latency of the model in us.
    pub model_us: f64,
}

/// One check for each measured drive.
pub(super) fn checks(recordings: &Recordings) -> Result<Vec<LatencyCheck>, AccuracyError> {
    MEASURED.par_iter().map(|(drive, row)| check(recordings, drive, row)).collect()
}

fn check(recordings: &Recordings, drive: &'static str, row: &str) -> Result<LatencyCheck, AccuracyError> {
    let profile = Profile::builtin(drive).ok_or(AccuracyError::NoDrive { name: drive })?;
    let times_us = random_read_times_us(&profile, READS)?;
    let mut percentiles = Vec::new();
    let mut largest_error = 0.0f64;
    for (name, share) in PERCENTILES {
        let measured_us = recordings.measured_us(row, name)?;
        let index = (share * (times_us.len().saturating_sub(1)) as f64).round() as usize;
        let model_us = times_us.get(index).copied().unwrap_or(0.0);
        let error = model_us / measured_us - 1.0;
        largest_error = if error.abs() > largest_error.abs() { error } else { largest_error };
        percentiles.push(LatencyPercentile { name, measured_us, model_us });
    }
    Ok(LatencyCheck { drive, percentiles, largest_error, reached: largest_error.abs() <= MARGIN })
}
