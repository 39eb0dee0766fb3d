//! What a command queue is worth.

use anyhow::Result;
use hoistway_drive::{Profile, describe};
use rayon::prelude::*;

use super::measure::random_read_iops;
use super::recorded::Recordings;
use super::{Judged, judged, reached};

/// Depths that are measured.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Random reads at each.
const READS: u32 = 3000;
/// What a rate may fall from one depth to the next for the sample's sake, as a part of it.
const NOISE: f64 = 0.01;

/// A line a disk that takes several commands at once.
pub fn part(_: &Recordings) -> Result<String> {
    let disks = Profile::names()
        .filter_map(Profile::builtin)
        .filter(|profile| profile.is_disk() && describe(profile).depth > 1);
    let disks: Vec<Profile> = disks.collect();
    let rows: Vec<Result<Judged>> = disks.par_iter().map(row).collect();
    let depths = DEPTHS.map(|depth| format!("depth {depth}"));
    let mut header = vec!["drive"];
    header.extend(depths.iter().map(String::as_str));
    header.extend(["deepest / 1", "never falls"]);
    Ok(format!(
        "Random 4 KiB reads a second, so many in the drive at a time; {READS} reads each. More commands to choose from never make a drive \
         slower (but for the sample: 1 %).\n\n{}\nFrom what is published a drive gains from 1.7 times (one that looks at its 4 oldest commands only) to 2.9 times (one that \
         looks at all 32). With 5 %:\n\n{}",
        judged(&header, rows)?,
        judged(&["drive", "window", "depth 32 / 1", "expected", "reached"], windows())?
    ))
}

/// What windows of 4 and of all 32 commands gain.
fn windows() -> Vec<Result<Judged>> {
    let gains = [("cmr-8tb", 4, 1.7), ("cmr-20tb", 32, 2.9)];
    gains.par_iter().map(|(base, window, expected)| gain(base, *window, *expected)).collect()
}

fn gain(base: &str, window: u32, expected: f64) -> Result<Judged> {
    let text = format!(
        "name = \"{base}\"\nwhat = \"\"\nsource = \"\"\nbase = \"{base}\"\n[queue]\ndepth = 32\npolicy = \"satf\"\nwindow = {window}\n"
    );
    let profile = Profile::from_toml(&text, base)?;
    let gain = random_read_iops(&profile, 32, READS)? / random_read_iops(&profile, 1, READS)?;
    let good = (gain / expected - 1.0).abs() <= 0.05;
    Ok((vec![format!("`{base}`"), window.to_string(), format!("{gain:.2}"), expected.to_string(), reached(good)], good))
}

fn row(profile: &Profile) -> Result<Judged> {
    let depths = DEPTHS.into_iter().filter(|depth| *depth <= describe(profile).depth);
    let rates: Vec<f64> = depths.map(|depth| random_read_iops(profile, depth, READS)).collect::<Result<_>>()?;
    let good = rates.windows(2).all(|pair| pair[1] >= pair[0] * (1.0 - NOISE));
    let mut cells = vec![format!("`{}`", profile.name())];
    cells.extend(
        DEPTHS.iter().enumerate().map(|(at, _)| rates.get(at).map_or("-".to_owned(), |rate| format!("{rate:.0}"))),
    );
    let gain = rates.last().zip(rates.first()).map_or(1.0, |(last, first)| last / first);
    cells.extend([format!("{gain:.2}"), reached(good)]);
    Ok((cells, good))
}
