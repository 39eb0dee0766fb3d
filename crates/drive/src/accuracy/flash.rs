//! Flash drives against the limits of their parts and the closed form of write amplification.

use rayon::prelude::*;
use serde::Serialize;

use super::error::AccuracyError;
use super::measure::{random_iops, random_read_ms, write_amplification};
use crate::describe::{FlashDescription, describe};
use crate::profile::Profile;

const READS: u32 = 20_000;
/// Random writes of 4 KiB over which the write amplification is measured.
pub const FLASH_WRITES: u32 = 60_000;
/// The largest relative error of rates, and of the write amplification.
const RATE_MARGIN: f64 = 0.05;
const AMPLIFICATION_MARGIN: f64 = 0.1;

/// A flash drive against the sum of its parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlashCheck {
    /// The name of the profile.
    pub drive: String,
    /// One random 4 KiB read in us: the sum of its parts.
    pub sum_us: f64,
    /// One random 4 KiB read of the model in us.
    pub model_us: f64,
    /// The upper bound of random 4 KiB reads a second.
    pub limit_iops: f64,
    /// The part that sets the upper bound: `controller`, `link` or `dies`.
    pub limit: &'static str,
    /// Random 4 KiB reads a second of the model at full depth.
    pub model_iops: f64,
    /// Write amplification by the closed form; `None` unless the drive starts in the steady state.
    pub closed_form: Option<f64>,
    /// Write amplification of the model; `None` unless the drive starts in the steady state.
    pub write_amplification: Option<f64>,
    /// True if all figures are within their margins.
    pub reached: bool,
}

/// One check for each flash drive.
pub(super) fn checks() -> Result<Vec<FlashCheck>, AccuracyError> {
    let drives: Vec<Profile> = Profile::names().filter_map(Profile::builtin).collect();
    let checked: Vec<_> = drives.par_iter().map(check).collect();
    checked.into_iter().filter_map(Result::transpose).collect()
}

/// The largest rate of random 4 KiB reads, the part that sets it, and true if the model can reach
/// it because the dies could do at least twice as much.
fn limit(flash: &FlashDescription, link_mb_s: f64, depth: u32) -> (f64, &'static str, bool) {
    let dies = f64::from(flash.dies);
    let busy = dies * (1.0 - (1.0 - 1.0 / dies).powf(f64::from(depth)));
    let page_us = flash.page_read_us.iter().sum::<f64>() / flash.page_read_us.len().max(1) as f64;
    let read_us = page_us + 4096.0 / flash.channel_mb_s;
    let limits =
        [(1e6 / flash.command_us, "controller"), (link_mb_s * 1e6 / 4096.0, "link"), (busy * 1e6 / read_us, "dies")];
    let least = limits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, "dies"));
    (least.0, least.1, 2.0 * least.0 <= busy * 1e6 / read_us)
}

fn check(profile: &Profile) -> Result<Option<FlashCheck>, AccuracyError> {
    let drive = describe(profile);
    let Some(flash) = &drive.flash else { return Ok(None) };
    let link_mb_s = drive.interface_mb_s.unwrap_or(f64::INFINITY);
    let (limit_iops, limit, reachable) = limit(flash, link_mb_s, drive.depth);
    let model_us = random_read_ms(profile, READS)? * 1000.0;
    let model_iops = random_iops(profile, drive.depth, 8, READS)?;
    let steady = flash.precondition.starts_with("steady");
    let write_amplification = if steady { write_amplification(profile, FLASH_WRITES)? } else { None };
    let sum_us = drive.random_read_4k_ms * 1000.0;
    let one_good = (model_us / sum_us - 1.0).abs() <= RATE_MARGIN;
    let many_good = model_iops <= limit_iops * (1.0 + RATE_MARGIN)
        && (!reachable || model_iops >= limit_iops * (1.0 - RATE_MARGIN));
    let amplification_good =
        write_amplification.is_none_or(|found| (found / flash.write_amplification - 1.0).abs() <= AMPLIFICATION_MARGIN);
    Ok(Some(FlashCheck {
        sum_us,
        model_us,
        limit_iops,
        limit,
        model_iops,
        closed_form: steady.then_some(flash.write_amplification),
        write_amplification,
        reached: one_good && many_good && amplification_good,
        drive: drive.name,
    }))
}
