//! Cloud volumes against what is documented of them.

use anyhow::{Context, Result};
use hoistway_drive::Profile;

use super::measure::random_iops;
use super::recorded::Recordings;
use super::{Judged, judged, reached};

/// What a volume's documentation promises: which volume, what of it, random reads of so many sectors, how many, and how many a second.
const PROMISES: [(&str, &str, u32, u32, f64); 3] = [
    ("cloud-gp2", "3,000 operations a second while credits last", 8, 30_000, 3000.0),
    ("cloud-gp3", "3,000 operations a second", 8, 30_000, 3000.0),
    ("cloud-gp3", "125 MiB/s, in reads of 256 KiB", 512, 5000, 500.0),
];
/// All of them are kept to within this part.
const MARGIN: f64 = 0.01;
/// Reads that are asked for at a time: enough that the volume's latency does not limit them.
const DEPTH: u32 = 64;

/// A line a promise.
pub fn part(_: &Recordings) -> Result<String> {
    let row = |(name, what, sectors, reads, promised): (&str, &str, u32, u32, f64)| -> Result<Judged> {
        let profile = Profile::builtin(name).with_context(|| format!("no drive {name}"))?;
        let found = random_iops(&profile, DEPTH, sectors, reads)?;
        let kept = (found / promised - 1.0).abs() <= MARGIN;
        let cells =
            [format!("`{name}`"), what.to_owned(), format!("{promised:.0}"), format!("{found:.1}"), reached(kept)];
        Ok((cells.to_vec(), kept))
    };
    let header = ["volume", "documented", "reads/s", "model, reads/s", "within 1 %"];
    Ok(format!(
        "{DEPTH} reads at a time. That 100 GiB of gp2 burst for 5.4 million / (3000 - 300) = 2000 s, and run at 300 operations a second from \
         there, takes 6 million reads to see: a test of its own does it (`crates/drive/tests/it/cloud.rs`).\n\n{}",
        judged(&header, PROMISES.into_iter().map(row))?
    ))
}
