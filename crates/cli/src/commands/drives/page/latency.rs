//! Latencies that were measured with real drives.

use anyhow::{Context, Result};
use hoistway_drive::Profile;
use rayon::prelude::*;

use super::measure::random_read_times_us;
use super::recorded::Recordings;
use super::{Judged, judged, reached};
use crate::figures::figure;

/// Profiles of drives that somebody measured, and their rows in the table of latencies.
const MEASURED: [(&str, &str); 3] = [
    ("st2000dm006", "seagate_ST2000DM006_2TB_read"),
    ("ssd-sata-consumer", "samsung_850_evo_250GB_read"),
    ("ssd-nvme-tlc-mixed", "micron_7300_pro_3.84TB_read"),
];
const PERCENTILES: [(&str, f64); 5] = [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];
/// All of them are to be right within this part.
const MARGIN: f64 = 0.15;
/// Random reads of each: 200 lie above the highest percentile.
const READS: u32 = 20_000;

/// A line a drive.
pub fn part(recordings: &Recordings) -> Result<String> {
    let rows: Vec<Result<Judged>> = MEASURED.par_iter().map(|(name, of)| row(recordings, name, of)).collect();
    let mut header = vec!["drive"];
    header.extend(PERCENTILES.map(|(name, _)| name));
    header.extend(["furthest off", "within 15 %"]);
    Ok(format!(
        "Random 4 KiB reads one at a time, measured / model in us; measured by the author of ublk-disksim (2026). The profiles' own words say \
         which of their figures were fitted to these.\n\n{}",
        judged(&header, rows)?
    ))
}

fn row(recordings: &Recordings, name: &str, measured: &str) -> Result<Judged> {
    let profile = Profile::builtin(name).with_context(|| format!("no drive {name}"))?;
    let times = random_read_times_us(&profile, READS)?;
    let mut cells = vec![format!("`{name}`")];
    let mut furthest = 0.0f64;
    for (percentile, share) in PERCENTILES {
        let real_us = recordings.measured_us(measured, percentile)?;
        let at = (share * (times.len().saturating_sub(1)) as f64).round() as usize;
        let ours_us = times.get(at).copied().unwrap_or(0.0);
        let off = ours_us / real_us - 1.0;
        furthest = if off.abs() > furthest.abs() { off } else { furthest };
        cells.push(format!("{} / {}", figure(real_us), figure(ours_us)));
    }
    let good = furthest.abs() <= MARGIN;
    cells.extend([format!("{:+.1} %", furthest * 100.0), reached(good)]);
    Ok((cells, good))
}
