//! The memory of a drive: spans that are reread, and writes that complete before they can be on the
//! media.

use super::under_test::DriveUnderTest;
use super::{BURST_BYTES_MAX, Cache, Findings, Probe, ProbeError, SpanPoint, run_probe};
use crate::command::{Access, Command, Op};
use crate::drive::Drive;
use crate::random::SplitMix64;

/// Sectors of a read or a write: 4 KiB.
const BLOCK_SECTORS: u64 = 8;
const BLOCK_BYTES: u64 = BLOCK_SECTORS * 512;
/// Number of span sizes, from 4 KiB to 64 MiB.
const SPANS: u32 = 15;
/// Memory is present if the fastest reads take at most this share of the slowest.
const FAST: f64 = 0.5;
/// A span is in memory if its reads take at most this many times the fastest.
const FULL: f64 = 3.0;
/// The largest number of writes in a burst.
const BURST_MAX: usize = (BURST_BYTES_MAX / BLOCK_BYTES) as usize;
/// Number of writes to the media that establish their service time.
const MEDIA_WRITES: u64 = 50;
/// Number of first writes of a burst. They complete in memory if they take less than half of a
/// media write.
const FIRST_WRITES: usize = 8;
/// A write waited if it took this many times the first writes. A burst ends when half of the last
/// 32 writes waited.
const WAITED: f64 = 4.0;
const WAITED_OF_32: u32 = 16;
/// The largest number of distant reads that are looked for in memory.
const SEGMENTS_MAX: u32 = 4096;
/// Pause in which the drive can read ahead.
const PAUSE_NS: u64 = 30_000_000;

/// Measures each span on a copy of the drive.
pub(super) fn probe(drive: &Drive, found: &mut Findings) -> Result<Cache, ProbeError> {
    let mut spans = Vec::new();
    for exponent in 0..SPANS {
        let blocks = 1u64 << exponent;
        if blocks * BLOCK_SECTORS <= drive.capacity_sectors() / 2 {
            let mut timed = |ahead| run_probe(drive, Probe::Cache, found, |subject| span_ns(subject, blocks, ahead));
            spans.push(SpanPoint { bytes: blocks * BLOCK_BYTES, again_ns: timed(false)?, ahead_ns: timed(true)? });
        }
    }
    let slow_ns = spans.iter().map(|point: &SpanPoint| point.again_ns.max(point.ahead_ns)).fold(0.0, f64::max);
    let least_ns = spans.iter().map(|point| point.again_ns.min(point.ahead_ns)).fold(f64::INFINITY, f64::min);
    let limit_ns = if least_ns <= slow_ns * FAST { least_ns * FULL } else { 0.0 };
    let largest = |of: fn(&SpanPoint) -> f64, least: u64| {
        let fast = spans.iter().take_while(|point| of(point) <= limit_ns).last();
        fast.map(|point| point.bytes).filter(|bytes| *bytes > least)
    };
    let read_bytes = largest(|point| point.again_ns, 0);
    // The first block was requested, not read ahead.
    let ahead_bytes = largest(|point| point.ahead_ns, BLOCK_BYTES);
    let segments = segments(drive, found, limit_ns)?;
    let write_bytes = run_probe(drive, Probe::Cache, found, burst)?;
    Ok(Cache { spans, read_bytes, ahead_bytes, segments, write_bytes })
}

/// Reads a span, or only its first block for read-ahead, and then measures reads of the whole span
/// in random order.
fn span_ns(subject: &mut DriveUnderTest, blocks: u64, ahead: bool) -> Result<f64, ProbeError> {
    // The span is in the middle of the drive. Reads at even steps would be in phase with tracks and
    // skews.
    let start = subject.capacity_sectors() / 2 / BLOCK_SECTORS * BLOCK_SECTORS;
    let start = start.min(subject.capacity_sectors() - blocks * BLOCK_SECTORS);
    let mut order: Vec<u64> = (0..blocks).collect();
    let mut random = SplitMix64::new(6);
    for end in (1..blocks).rev() {
        order.swap(end as usize, random.below(end + 1) as usize);
    }
    if ahead {
        subject.series(1, [read(start)])?;
        subject.wait(PAUSE_NS);
    } else {
        subject.series(1, (0..blocks).map(|number| read(start + number * BLOCK_SECTORS)))?;
    }
    let again = order.into_iter().map(|number| read(start + number * BLOCK_SECTORS));
    Ok(subject.series(1, again)?.mean_ns())
}

fn read(sector: u64) -> Command {
    Access { op: Op::Read, sector, sectors: BLOCK_SECTORS as u32 }.into()
}

/// The largest number of distant reads that memory holds together, by doubling and then by
/// bisection.
fn segments(drive: &Drive, found: &mut Findings, fast_ns: f64) -> Result<Option<u32>, ProbeError> {
    let mut remembers =
        |positions: u32| run_probe(drive, Probe::Cache, found, |subject| positions_ns(subject, positions));
    let (mut most, mut too_many) = (0, 1);
    while too_many <= SEGMENTS_MAX && remembers(too_many)? <= fast_ns {
        (most, too_many) = (too_many, too_many * 2);
    }
    while too_many - most > 1 && too_many <= SEGMENTS_MAX {
        let between = most.midpoint(too_many);
        if remembers(between)? <= fast_ns { most = between } else { too_many = between }
    }
    Ok((most > 0).then_some(most))
}

/// The mean latency of rereading positions that are spread over the drive.
fn positions_ns(subject: &mut DriveUnderTest, positions: u32) -> Result<f64, ProbeError> {
    let apart = subject.capacity_sectors() / u64::from(positions) / BLOCK_SECTORS * BLOCK_SECTORS;
    for number in 0..u64::from(positions) {
        subject.series(1, [read(number * apart)])?;
        subject.wait(PAUSE_NS);
    }
    Ok(subject.series(1, (0..u64::from(positions)).map(|number| read(number * apart)))?.mean_ns())
}

/// The size of a burst of random writes that memory takes; `None` if the first writes wait for the
/// media.
fn burst(subject: &mut DriveUnderTest) -> Result<Option<u64>, ProbeError> {
    let mut random = SplitMix64::new(3);
    let blocks = subject.capacity_sectors() / BLOCK_SECTORS;
    let mut write = |fua: bool| -> Command {
        let sector = random.below(blocks) * BLOCK_SECTORS;
        Command::Transfer { access: Access { op: Op::Write, sector, sectors: BLOCK_SECTORS as u32 }, fua }
    };
    let media_ns = subject.series(1, (0..MEDIA_WRITES).map(|_| write(true)))?.mean_ns();
    let first_ns = subject.series(1, (0..FIRST_WRITES).map(|_| write(false)))?.mean_ns();
    if first_ns >= media_ns / 2.0 {
        return Ok(None);
    }
    // The last 32 writes, one bit each: 1 if the write waited.
    let mut waited = 0u32;
    for number in FIRST_WRITES..BURST_MAX {
        let latency_ns = subject.series(1, [write(false)])?.mean_ns();
        waited = waited << 1 | u32::from(latency_ns > first_ns * WAITED);
        if waited.count_ones() >= WAITED_OF_32 {
            let since_first = 31 - waited.leading_zeros() as usize;
            return Ok(Some((number - since_first) as u64 * BLOCK_BYTES));
        }
    }
    Ok(Some(BURST_BYTES_MAX))
}
