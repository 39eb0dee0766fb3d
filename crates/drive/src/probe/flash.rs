//! Probes for flash drives: command sizes, and random overwrites of a full drive.

use super::under_test::{DriveUnderTest, full_depth};
use super::{Findings, Overwrite, OverwritePoint, Probe, ProbeError, SizePoint, run_probe};
use crate::command::{Access, Command, Op};
use crate::drive::Drive;
use crate::random::SplitMix64;

/// Sizes from 4 KiB to 1 MiB, in sectors.
const SIZES: [u32; 9] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048];
/// Commands of each size: as many as transfer 64 MiB, within these limits.
const COMMANDS_MIN: u64 = 200;
const COMMANDS_MAX: u64 = 4000;
const BYTES_A_SIZE: u64 = 64 << 20;
/// Sectors of a random write: 4 KiB.
const WRITE_SECTORS: u64 = 8;
/// Sectors of a filling write: 1 MiB.
const FILL_SECTORS: u64 = 2048;
/// The largest part that is filled and overwritten: the first 32 GiB.
const FILLED_SECTORS_MAX: u64 = 32 << 21;
/// The largest number of random writes, and the number of windows in which their rate is measured.
const WRITES_MAX: u64 = 3_000_000;
const WINDOWS: u64 = 80;
/// Garbage collection has set in when the rate is below this share of the first window's.
const ONSET: f64 = 0.7;

/// Measures each size on a copy of the drive.
pub(super) fn sizes(drive: &Drive, found: &mut Findings) -> Result<Vec<SizePoint>, ProbeError> {
    let mut points = Vec::new();
    for sectors in SIZES.into_iter().filter(|sectors| u64::from(*sectors) <= drive.capacity_sectors()) {
        let bytes = u64::from(sectors) * 512;
        let count = (BYTES_A_SIZE / bytes).clamp(COMMANDS_MIN, COMMANDS_MAX);
        let mut measure = |op: Op, depth: u32| {
            run_probe(drive, Probe::Sizes, found, |subject| {
                subject.series(depth, at_random(subject.capacity_sectors(), op, sectors, count))
            })
        };
        let (one, all) = (1, full_depth(drive));
        let mb_s = |per_s: f64| per_s * bytes as f64 / 1e6;
        points.push(SizePoint {
            bytes,
            read_ns: measure(Op::Read, one)?.mean_ns(),
            read_mb_s: mb_s(measure(Op::Read, all)?.per_s()),
            write_ns: measure(Op::Write, one)?.mean_ns(),
            write_mb_s: mb_s(measure(Op::Write, all)?.per_s()),
        });
    }
    Ok(points)
}

fn at_random(capacity_sectors: u64, op: Op, sectors: u32, count: u64) -> impl Iterator<Item = Command> {
    let mut random = SplitMix64::new(4);
    let positions = (capacity_sectors / u64::from(sectors)).max(1);
    (0..count).map(move |_| Access { op, sector: random.below(positions) * u64::from(sectors), sectors }.into())
}

/// Fills the drive sequentially, then overwrites as much at random, within the limits above.
pub(super) fn overwrite(subject: &mut DriveUnderTest) -> Result<Overwrite, ProbeError> {
    subject.needs(FILL_SECTORS)?;
    let depth = subject.depth();
    let span = subject.capacity_sectors().min(FILLED_SECTORS_MAX) / FILL_SECTORS * FILL_SECTORS;
    let fill = |number: u64| -> Command {
        Access { op: Op::Write, sector: number * FILL_SECTORS, sectors: FILL_SECTORS as u32 }.into()
    };
    subject.series(depth, (0..span / FILL_SECTORS).map(fill))?;
    let writes = (span / WRITE_SECTORS).min(WRITES_MAX);
    let mut random = SplitMix64::new(5);
    let mut windows = Vec::new();
    for window in 1..=WINDOWS {
        let count = (writes / WINDOWS).max(1);
        let write = |_| -> Command {
            let sector = random.below(span / WRITE_SECTORS) * WRITE_SECTORS;
            Access { op: Op::Write, sector, sectors: WRITE_SECTORS as u32 }.into()
        };
        let series = subject.series(depth, (0..count).map(write))?;
        let (written, bytes) = (window * count * WRITE_SECTORS * 512, WRITE_SECTORS as f64 * 512.0);
        windows.push(OverwritePoint { bytes: written, mb_s: series.per_s() * bytes / 1e6 });
    }
    if span < subject.capacity_sectors() {
        subject.notes.push(format!("only the first {} GiB were filled and overwritten", span >> 21));
    }
    if writes < span / WRITE_SECTORS {
        let part = writes as f64 * 100.0 / (span / WRITE_SECTORS) as f64;
        subject.notes.push(format!("{writes} random writes are {part:.0} % of the filled part: this is the limit"));
    }
    let first = windows.first().map_or(0.0, |window| window.mb_s);
    let last = &windows[windows.len() - windows.len() / 10..];
    Ok(Overwrite {
        onset_bytes: windows.iter().find(|window| window.mb_s < first * ONSET).map(|window| window.bytes),
        steady_mb_s: last.iter().map(|window| window.mb_s).sum::<f64>() / last.len().max(1) as f64,
        windows,
    })
}
