//! Operations a second and latency by commands in flight.

use super::under_test::{DriveUnderTest, full_depth};
use super::{DepthPoint, Findings, Probe, ProbeError, run_probe};
use crate::command::{Access, Command, Op};
use crate::drive::Drive;
use crate::random::SplitMix64;

/// Number of random reads at each depth, plus a number for each command in flight.
const READS: u64 = 2000;
const READS_A_COMMAND: u64 = 100;
/// Sectors of a read: 4 KiB.
const READ_SECTORS: u32 = 8;

/// Measures each depth on a copy of the drive.
pub(super) fn probe(drive: &Drive, found: &mut Findings) -> Result<Vec<DepthPoint>, ProbeError> {
    let most = full_depth(drive);
    let doubled = std::iter::successors(Some(1u32), |depth| Some(depth * 2)).take_while(|depth| *depth < most);
    let depths: Vec<u32> = doubled.chain([most]).collect();
    depths.into_iter().map(|depth| run_probe(drive, Probe::Depth, found, |subject| at(subject, depth))).collect()
}

fn at(subject: &mut DriveUnderTest, depth: u32) -> Result<DepthPoint, ProbeError> {
    subject.needs(u64::from(READ_SECTORS))?;
    let count = READS + READS_A_COMMAND * u64::from(depth);
    let series = subject.series(depth, random_reads(subject.capacity_sectors(), count))?;
    Ok(DepthPoint { depth, iops: series.per_s(), mean_ns: series.mean_ns(), p99_ns: series.percentile_ns(0.99) })
}

fn random_reads(capacity_sectors: u64, count: u64) -> impl Iterator<Item = Command> {
    let mut random = SplitMix64::new(2);
    let blocks = capacity_sectors / u64::from(READ_SECTORS);
    (0..count).map(move |_| {
        let sector = random.below(blocks) * u64::from(READ_SECTORS);
        Access { op: Op::Read, sector, sectors: READ_SECTORS }.into()
    })
}
