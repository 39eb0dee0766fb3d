//! Flash drives against sums: what their parts can do at most, and what writing over costs.

use anyhow::Result;
use hoistway_drive::{FlashDescription, Profile, describe};
use rayon::prelude::*;

use super::measure::{random_iops, random_read_ms, write_amplification};
use super::recorded::Recordings;
use super::{Judged, judged, reached};
use crate::figures::figure;

const READS: u32 = 20_000;
const WRITES: u32 = 60_000;
/// How far rates may be from the sum, as a part of it; and write amplification.
const RATE_MARGIN: f64 = 0.05;
const AMPLIFICATION_MARGIN: f64 = 0.1;

/// A line a drive.
pub fn part(_: &Recordings) -> Result<String> {
    let drives: Vec<Profile> = Profile::names().filter_map(Profile::builtin).collect();
    let rows: Vec<_> = drives.par_iter().map(row).collect();
    let rows = rows.into_iter().filter_map(Result::transpose);
    let header = [
        "drive",
        "one read, us",
        "model, us",
        "reads/s at most",
        "limit",
        "model, reads/s at full depth",
        "amplification, closed form",
        "model",
        "all reached",
    ];
    Ok(format!(
        "One 4 KiB read: command, interface, the mean page, its way over channel and link. Many: the least of what the controller takes in, the \
         link carries, and D dies read of which D (1 - (1 - 1/D)^depth) are busy. Where dies are the limit this is a bound, for some of them have \
         queues while others are idle: the goal is 5 % where controller or link allow no more than half of what the dies do, and no more than the limit otherwise. {WRITES} random \
         writes of 4 KiB program so many units for each; the closed form is P. Desnoyers' for greedy cleaning (\"Analytic modeling of SSD write \
         performance\", SYSTOR 2012), 10 %; drives that begin written once in order are left out of it.\n\n{}",
        judged(&header, rows)?
    ))
}

/// The most random 4 KiB reads a second, what limits them, and whether the limit can be reached: the dies are far from theirs then.
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

fn row(profile: &Profile) -> Result<Option<Judged>> {
    let drive = describe(profile);
    let Some(flash) = &drive.flash else { return Ok(None) };
    let (most, limit, reachable) = limit(flash, drive.interface_mb_s.unwrap_or(f64::INFINITY), drive.depth);
    let one_us = random_read_ms(profile, READS)? * 1000.0;
    let many = random_iops(profile, drive.depth, 8, READS)?;
    let steady = flash.precondition.starts_with("steady");
    let amplified = if steady { write_amplification(profile, WRITES)? } else { None };
    let sum_us = drive.random_read_4k_ms * 1000.0;
    let one_good = (one_us / sum_us - 1.0).abs() <= RATE_MARGIN;
    let many_good = many <= most * (1.0 + RATE_MARGIN) && (!reachable || many >= most * (1.0 - RATE_MARGIN));
    let amplified_good =
        amplified.is_none_or(|found| (found / flash.write_amplification - 1.0).abs() <= AMPLIFICATION_MARGIN);
    let good = one_good && many_good && amplified_good;
    let closed = if steady { format!("{:.2}", flash.write_amplification) } else { "-".to_owned() };
    let cells = vec![
        format!("`{}`", drive.name),
        figure(sum_us),
        figure(one_us),
        format!("{most:.0}"),
        limit.to_owned(),
        format!("{many:.0}"),
        closed,
        amplified.map_or_else(|| "-".to_owned(), |found| format!("{found:.2}")),
        reached(good),
    ];
    Ok(Some((cells, good)))
}
