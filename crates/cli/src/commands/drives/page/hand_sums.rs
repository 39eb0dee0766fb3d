//! The models against sums that can be done by hand.

use anyhow::Result;
use hoistway_drive::{Description, Profile, describe};
use rayon::prelude::*;

use super::measure::{next_cylinder_ms, random_read_ms, sequential_mb_s, sequential_write_ms};
use super::recorded::Recordings;
use super::{Judged, judged, reached};

/// Random reads a drive. Their times differ by a quarter of their mean: the mean's own error is a quarter of a percent.
const RANDOM_READS: u32 = 10_000;
/// Sequential commands a drive: some 200 tracks.
const SEQUENTIAL: u32 = 4000;
/// Sequential writes of 4 KiB: two tracks and more.
const WRITES: u32 = 400;
/// What a sum may be off, as a part of it.
const MARGIN: f64 = 0.01;

/// The disks.
fn disks() -> Vec<(Profile, Description)> {
    let disks = Profile::names().filter_map(Profile::builtin).filter(Profile::is_disk);
    disks.map(|profile| (profile.clone(), describe(&profile))).collect()
}

/// Three tables: random reads, what lies in a row, and the arm.
pub fn part(_: &Recordings) -> Result<String> {
    let disks = disks();
    let (random, row) = rayon::join(|| random(&disks), || in_a_row(&disks));
    let (random, row) = (random?, row?);
    Ok(format!(
        "**Random reads of 4 KiB, one at a time, the buffer off:** the mean seek over uniform sectors, half a revolution, and the rest: \
         transfer, skews crossed, command and interface. {RANDOM_READS} reads; the goal is the sum to within 1 %.\n\n{random}\n\
         **In a row:** reads of 32 KiB against sectors a track over the revolutions that a cylinder takes with its skews, the buffer on, no \
         overheads and an instant interface, 0.5 %; the median of writes of 4 KiB with caches off, each of \
         which waits for the next revolution (but on drives whose commands take no time), 1 %; and the \
         arm's move to the next cylinder against the seek curve, exactly.\n\n{row}"
    ))
}

fn random(disks: &[(Profile, Description)]) -> Result<String> {
    let rows: Vec<Result<Judged>> = disks
        .par_iter()
        .map(|(profile, drive)| {
            let found = random_read_ms(&profile.clone().without_buffer(), RANDOM_READS)?;
            let (seek, half, sum) = (drive.mean_seek_sectors_ms, drive.revolution_ms / 2.0, drive.random_read_4k_ms);
            let off = found / sum - 1.0;
            let good = off.abs() <= MARGIN;
            let ms = |value: f64| format!("{value:.2}");
            let rest = format!("{:.2}", sum - seek - half);
            let row = vec![name(drive), ms(seek), ms(half), rest, ms(sum), ms(found), percent(off), reached(good)];
            Ok((row, good))
        })
        .collect();
    let header = ["drive", "seek, ms", "half a turn, ms", "rest, ms", "sum, ms", "model, ms", "off by", "within 1 %"];
    judged(&header, rows)
}

fn in_a_row(disks: &[(Profile, Description)]) -> Result<String> {
    let rows: Vec<Result<Judged>> = disks.par_iter().map(|(profile, drive)| row(profile, drive)).collect();
    let header = [
        "drive",
        "reads, MB/s",
        "model, MB/s",
        "off by",
        "4 KiB writes, ms",
        "model, ms",
        "off by",
        "next cylinder, ms",
        "model, ms",
        "all reached",
    ];
    judged(&header, rows)
}

fn row(profile: &Profile, drive: &Description) -> Result<Judged> {
    let zone = drive.zones.first();
    let (sustained, track) = zone.map_or((0.0, 1), |zone| (zone.sustained_mb_s, zone.sectors_per_track));
    let bare = profile.clone().with_instant_interface().without_overheads();
    let read = sequential_mb_s(&bare, 64, SEQUENTIAL)?;
    // A revolution, for the next sector has just gone, and 8 sectors. A drive of the slides takes no time for its commands: the next
    // sector comes right then.
    let turns = if drive.name.starts_with("slide-") { 0.0 } else { 1.0 };
    let turn_ms = drive.revolution_ms * (turns + 8.0 / f64::from(track));
    let written_ms = sequential_write_ms(&profile.clone().without_buffer(), WRITES)?;
    let arm_ms = next_cylinder_ms(&bare.without_buffer(), track, drive.surfaces)?;
    let (read_off, write_off) = (read / sustained - 1.0, written_ms / turn_ms - 1.0);
    let arm_good = arm_ms.is_none_or(|ms| (ms - drive.single_seek_ms).abs() < 1e-5);
    let good = read_off.abs() <= MARGIN / 2.0 && write_off.abs() <= MARGIN && arm_good;
    let cells = vec![
        name(drive),
        format!("{sustained:.1}"),
        format!("{read:.1}"),
        percent(read_off),
        format!("{turn_ms:.2}"),
        format!("{written_ms:.2}"),
        percent(write_off),
        format!("{:.3}", drive.single_seek_ms),
        arm_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.3}")),
        reached(good),
    ];
    Ok((cells, good))
}

fn name(drive: &Description) -> String {
    format!("`{}`", drive.name)
}

fn percent(part: f64) -> String {
    format!("{:+.2} %", part * 100.0)
}
