//! Sequential rate along the address space.

use super::under_test::DriveUnderTest;
use super::{ProbeError, ZonePoint};
use crate::command::{Access, Command, Op};

/// Number of positions, evenly spaced.
const POINTS: u64 = 64;
/// Sectors of a read: 128 KiB.
const READ_SECTORS: u64 = 256;
/// Reads at a position: 48 MiB are tens of tracks, so that one or two more skews have little
/// effect.
const READS_MAX: u64 = 384;
/// Reads before the measurement: the first ones include the seek to the position.
const READS_BEFORE: u64 = 8;

pub(super) fn probe(subject: &mut DriveUnderTest) -> Result<Vec<ZonePoint>, ProbeError> {
    subject.needs(POINTS * READ_SECTORS * 2)?;
    let part = subject.capacity_sectors() / POINTS;
    let reads = (part / READ_SECTORS).min(READS_MAX);
    let before = READS_BEFORE.min(reads / 2);
    let depth = subject.depth().min(2);
    let mut points = Vec::new();
    for number in 0..POINTS {
        let start = number * part;
        let read = |index: u64| -> Command {
            let sector = start + index * READ_SECTORS;
            Access { op: Op::Read, sector, sectors: READ_SECTORS as u32 }.into()
        };
        subject.series(depth, (0..before).map(read))?;
        let series = subject.series(depth, (before..reads).map(read))?;
        let bytes = series.latencies_ns.len() as u64 * READ_SECTORS * 512;
        if bytes > 0 {
            points.push(ZonePoint { sector: start, mb_s: bytes as f64 * 1e3 / series.elapsed_ns.max(1) as f64 });
        }
    }
    Ok(points)
}
