//! The gain in throughput from a command queue.

use rayon::prelude::*;
use serde::Serialize;

use super::error::AccuracyError;
use super::measure::random_read_iops;
use crate::describe::describe;
use crate::profile::Profile;

/// The queue depths at which every disk is measured.
pub const QUEUE_DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Random reads at each depth.
pub const QUEUE_READS: u32 = 3000;
/// The relative fall of a rate from one depth to the next that counts as sampling noise.
const NOISE: f64 = 0.01;
/// Published gains from depth 1 to 32: the disk, the window of its queue, and the gain.
const WINDOWS: [(&str, u32, f64); 2] = [("cmr-8tb", 4, 1.7), ("cmr-20tb", 32, 2.9)];
/// The largest relative error of a gain.
const GAIN_MARGIN: f64 = 0.05;

/// Random 4 KiB read rates of a disk by queue depth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueDepthCheck {
    /// The name of the profile.
    pub drive: String,
    /// The rate at each of [`QUEUE_DEPTHS`] that the disk supports.
    pub rates: Vec<QueueRate>,
    /// The rate at the largest depth over the rate at depth 1.
    pub gain: f64,
    /// True if the rate never falls by more than 1 % from one depth to the next.
    pub reached: bool,
}

/// A random read rate at one queue depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QueueRate {
    /// Commands in flight.
    pub depth: u32,
    /// Reads a second.
    pub iops: f64,
}

/// The gain of a queue with a window of the oldest commands, against a published gain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueWindowCheck {
    /// The name of the profile.
    pub drive: &'static str,
    /// The number of oldest commands among which the queue chooses.
    pub window: u32,
    /// The rate of the model at depth 32 over the rate at depth 1.
    pub gain: f64,
    /// The published gain.
    pub expected: f64,
    /// True if the model is within 5 % of the published gain.
    pub reached: bool,
}

/// Both kinds of checks.
pub(super) fn checks() -> Result<(Vec<QueueDepthCheck>, Vec<QueueWindowCheck>), AccuracyError> {
    let disks: Vec<Profile> = Profile::names()
        .filter_map(Profile::builtin)
        .filter(|profile| profile.is_disk() && describe(profile).depth > 1)
        .collect();
    let (depths, windows) = rayon::join(
        || disks.par_iter().map(depths).collect(),
        || WINDOWS.par_iter().map(|(drive, window, expected)| gain(drive, *window, *expected)).collect(),
    );
    let depths: Result<_, AccuracyError> = depths;
    let windows: Result<_, AccuracyError> = windows;
    Ok((depths?, windows?))
}

fn gain(drive: &'static str, window: u32, expected: f64) -> Result<QueueWindowCheck, AccuracyError> {
    let text = format!(
        "name = \"{drive}\"\nwhat = \"\"\nsource = \"\"\nbase = \"{drive}\"\n[queue]\ndepth = 32\npolicy = \"satf\"\nwindow = {window}\n"
    );
    let profile = Profile::from_toml(&text, drive)?;
    let gain = random_read_iops(&profile, 32, QUEUE_READS)? / random_read_iops(&profile, 1, QUEUE_READS)?;
    let reached = (gain / expected - 1.0).abs() <= GAIN_MARGIN;
    Ok(QueueWindowCheck { drive, window, gain, expected, reached })
}

fn depths(profile: &Profile) -> Result<QueueDepthCheck, AccuracyError> {
    let largest = describe(profile).depth;
    let rate = |depth| Ok(QueueRate { depth, iops: random_read_iops(profile, depth, QUEUE_READS)? });
    let rates: Result<Vec<QueueRate>, AccuracyError> =
        QUEUE_DEPTHS.into_iter().filter(|depth| *depth <= largest).map(rate).collect();
    let rates = rates?;
    let reached = rates.windows(2).all(|pair| pair[1].iops >= pair[0].iops * (1.0 - NOISE));
    let gain = rates.last().zip(rates.first()).map_or(1.0, |(last, first)| last.iops / first.iops);
    Ok(QueueDepthCheck { drive: profile.name().to_owned(), rates, gain, reached })
}
