//! Disks against sums that can be done by hand.

use rayon::prelude::*;
use serde::Serialize;

use super::error::AccuracyError;
use super::measure::{next_cylinder_ms, random_read_ms, sequential_mb_s, sequential_write_ms};
use crate::describe::{Description, describe};
use crate::profile::Profile;

/// Random reads of each disk. The standard deviation of a read is a quarter of its mean, so the
/// standard error of the mean is a quarter of a percent.
pub const RANDOM_READS: u32 = 10_000;
/// Sequential commands of each disk: about 200 tracks.
const SEQUENTIAL: u32 = 4000;
/// Sequential writes of 4 KiB: more than two tracks.
const WRITES: u32 = 400;
/// The largest relative error.
const MARGIN: f64 = 0.01;

/// Random 4 KiB reads of a disk against the sum of seek, half a revolution and the rest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RandomReadCheck {
    /// The name of the profile.
    pub drive: String,
    /// Mean seek over pairs of uniform sectors, in ms.
    pub seek_ms: f64,
    /// Half a revolution in ms.
    pub half_revolution_ms: f64,
    /// The sum in ms, with transfer, skews, command and interface.
    pub sum_ms: f64,
    /// The mean of the model in ms.
    pub model_ms: f64,
    /// True if the model is within 1 % of the sum.
    pub reached: bool,
}

/// Sequential transfers and the shortest seek of a disk against its geometry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SequentialCheck {
    /// The name of the profile.
    pub drive: String,
    /// Sequential reads in MB/s, from sectors a track, revolution and skews.
    pub read_mb_s: f64,
    /// Sequential reads of the model in MB/s.
    pub model_read_mb_s: f64,
    /// Sequential 4 KiB writes with caches off in ms: one revolution and the transfer.
    pub write_ms: f64,
    /// The median of such writes of the model in ms.
    pub model_write_ms: f64,
    /// The seek of one cylinder in ms.
    pub single_seek_ms: f64,
    /// The seek of one cylinder of the model in ms; `None` if no sector in reach shows it.
    pub model_single_seek_ms: Option<f64>,
    /// True if all figures are within their margins.
    pub reached: bool,
}

impl RandomReadCheck {
    /// The relative error of the model.
    pub fn error(&self) -> f64 {
        self.model_ms / self.sum_ms - 1.0
    }
}

impl SequentialCheck {
    /// The relative error of the model's read rate.
    pub fn read_error(&self) -> f64 {
        self.model_read_mb_s / self.read_mb_s - 1.0
    }

    /// The relative error of the model's write time.
    pub fn write_error(&self) -> f64 {
        self.model_write_ms / self.write_ms - 1.0
    }
}

/// Both kinds of checks, one of each for every disk.
pub(super) fn checks() -> Result<(Vec<RandomReadCheck>, Vec<SequentialCheck>), AccuracyError> {
    let disks: Vec<(Profile, Description)> = Profile::names()
        .filter_map(Profile::builtin)
        .filter(Profile::is_disk)
        .map(|profile| (profile.clone(), describe(&profile)))
        .collect();
    let (random, sequential) = rayon::join(
        || disks.par_iter().map(|(profile, drive)| random_reads(profile, drive)).collect(),
        || disks.par_iter().map(|(profile, drive)| sequential(profile, drive)).collect(),
    );
    let random: Result<_, AccuracyError> = random;
    let sequential: Result<_, AccuracyError> = sequential;
    Ok((random?, sequential?))
}

fn random_reads(profile: &Profile, drive: &Description) -> Result<RandomReadCheck, AccuracyError> {
    let model_ms = random_read_ms(&profile.clone().without_buffer(), RANDOM_READS)?;
    let mut check = RandomReadCheck {
        drive: drive.name.clone(),
        seek_ms: drive.mean_seek_sectors_ms,
        half_revolution_ms: drive.revolution_ms / 2.0,
        sum_ms: drive.random_read_4k_ms,
        model_ms,
        reached: false,
    };
    check.reached = check.error().abs() <= MARGIN;
    Ok(check)
}

fn sequential(profile: &Profile, drive: &Description) -> Result<SequentialCheck, AccuracyError> {
    let zone = drive.zones.first();
    let (sustained, track) = zone.map_or((0.0, 1), |zone| (zone.sustained_mb_s, zone.sectors_per_track));
    let bare = profile.clone().with_instant_interface().without_overheads();
    // One revolution, because the next sector has just passed, and 8 sectors. A command of a
    // `slide-` drive has no overhead, so its next sector is under the head at once.
    let turns = if drive.name.starts_with("slide-") { 0.0 } else { 1.0 };
    let mut check = SequentialCheck {
        drive: drive.name.clone(),
        read_mb_s: sustained,
        model_read_mb_s: sequential_mb_s(&bare, 64, SEQUENTIAL)?,
        write_ms: drive.revolution_ms * (turns + 8.0 / f64::from(track)),
        model_write_ms: sequential_write_ms(&profile.clone().without_buffer(), WRITES)?,
        single_seek_ms: drive.single_seek_ms,
        model_single_seek_ms: next_cylinder_ms(&bare.without_buffer(), track, drive.surfaces)?,
        reached: false,
    };
    let seek_good = check.model_single_seek_ms.is_none_or(|ms| (ms - check.single_seek_ms).abs() < 1e-5);
    check.reached = check.read_error().abs() <= MARGIN / 2.0 && check.write_error().abs() <= MARGIN && seek_good;
    Ok(check)
}
