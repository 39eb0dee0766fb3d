//! Measurements of a drive alone, with one command or several in flight.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::closed_loop::closed_loop;
use crate::command::{Access, AccessError, Command, Op};
use crate::drive::Drive;
use crate::profile::Profile;

type Result<T> = std::result::Result<T, AccessError>;

/// Sectors of a 4 KiB block.
const SECTORS: u32 = 8;

/// Mean service time in ms of `count` random 4 KiB reads, one at a time.
pub(super) fn random_read_ms(profile: &Profile, count: u32) -> Result<f64> {
    Ok(1000.0 / random_read_iops(profile, 1, count)?)
}

/// Random 4 KiB reads a second with `depth` in flight, over `count` reads.
pub(super) fn random_read_iops(profile: &Profile, depth: u32, count: u32) -> Result<f64> {
    random_iops(profile, depth, SECTORS, count)
}

/// Random reads of `sectors` a second with `depth` in flight. Each begins at a multiple of 4 KiB.
pub(super) fn random_iops(profile: &Profile, depth: u32, sectors: u32, count: u32) -> Result<f64> {
    let mut drive = Drive::new(profile);
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let blocks = (drive.capacity_sectors() - u64::from(sectors)) / u64::from(SECTORS);
    let reads = (0..count).map(|_| command(Op::Read, random.random_range(0..=blocks) * u64::from(SECTORS), sectors));
    let end_ns = closed_loop(&mut drive, 0, depth, reads, |_, _| {})?;
    Ok(f64::from(count) * 1e9 / end_ns as f64)
}

/// Service times in us of `count` random 4 KiB reads, one at a time, in rising order.
pub(super) fn random_read_times_us(profile: &Profile, count: u32) -> Result<Vec<f64>> {
    let mut drive = Drive::new(profile);
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let blocks = drive.capacity_sectors() / u64::from(SECTORS);
    let reads = (0..count).map(|_| command(Op::Read, random.random_range(0..blocks) * u64::from(SECTORS), SECTORS));
    let mut times_us = Vec::with_capacity(count as usize);
    closed_loop(&mut drive, 0, 1, reads, |submitted_ns, completion| {
        times_us.push((completion.service.finish_ns - submitted_ns) as f64 / 1000.0);
    })?;
    times_us.sort_by(f64::total_cmp);
    Ok(times_us)
}

/// Write amplification of `count` random 4 KiB writes; `None` for every drive but flash.
pub(super) fn write_amplification(profile: &Profile, count: u32) -> Result<Option<f64>> {
    let mut drive = Drive::new(profile);
    let mut random = Pcg64Mcg::seed_from_u64(9);
    let blocks = drive.capacity_sectors() / u64::from(SECTORS);
    let writes = (0..count).map(|_| command(Op::Write, random.random_range(0..blocks) * u64::from(SECTORS), SECTORS));
    closed_loop(&mut drive, 0, 32, writes, |_, _| {})?;
    Ok(drive.write_amplification())
}

/// Requests that are measured for streams and random writes: 512 MiB of 64 KiB, many times a write
/// cache.
const REQUESTS: u32 = 8192;

/// Rate in MB/s of sequential streams in turn, one request at a time. Writes end with a flush.
pub(super) fn streams_mb_s(profile: &Profile, op: Op, streams: u32, sectors: u32) -> Result<f64> {
    let mut drive = Drive::new(profile);
    let apart = drive.capacity_sectors() / 2 / u64::from(streams);
    let requests = (0..REQUESTS).map(|index| {
        let (stream, number) = (u64::from(index % streams), u64::from(index / streams));
        command(op, stream * apart + number * u64::from(sectors), sectors)
    });
    let end_ns = closed_loop(&mut drive, 0, 1, requests, |_, _| {})?;
    let end_ns = drive.serve(end_ns, Command::Flush)?.service.finish_ns;
    Ok(f64::from(REQUESTS) * f64::from(sectors) * 512.0 / (end_ns as f64 / 1000.0))
}

/// Random 4 KiB writes a second, one at a time, with a flush at their end.
pub(super) fn random_writes_iops(profile: &Profile) -> Result<f64> {
    let mut drive = Drive::new(profile);
    let mut random = Pcg64Mcg::seed_from_u64(13);
    let blocks = drive.capacity_sectors() / u64::from(SECTORS);
    let writes =
        (0..REQUESTS).map(|_| command(Op::Write, random.random_range(0..blocks) * u64::from(SECTORS), SECTORS));
    let end_ns = closed_loop(&mut drive, 0, 1, writes, |_, _| {})?;
    let end_ns = drive.serve(end_ns, Command::Flush)?.service.finish_ns;
    Ok(f64::from(REQUESTS) * 1e9 / end_ns as f64)
}

/// Rate in MB/s of `count` sequential reads from the first sector on, one at a time.
pub(super) fn sequential_mb_s(profile: &Profile, sectors: u32, count: u32) -> Result<f64> {
    let times_ms = sequential_ms(profile, Op::Read, sectors, count)?;
    Ok(f64::from(count) * f64::from(sectors) * 512.0 / (times_ms.iter().sum::<f64>() * 1000.0))
}

/// Median service time in ms of `count` sequential 4 KiB writes, one at a time.
pub(super) fn sequential_write_ms(profile: &Profile, count: u32) -> Result<f64> {
    let mut times_ms = sequential_ms(profile, Op::Write, SECTORS, count)?;
    times_ms.sort_by(f64::total_cmp);
    Ok(times_ms.get(times_ms.len() / 2).copied().unwrap_or(0.0))
}

/// Service time in ms of each of `count` sequential commands; one more before them is not counted.
fn sequential_ms(profile: &Profile, op: Op, sectors: u32, count: u32) -> Result<Vec<f64>> {
    let mut drive = Drive::new(profile);
    let next = |index: u32| command(op, u64::from(index) * u64::from(sectors), sectors);
    let mut now_ns = drive.serve(0, next(0))?.service.finish_ns;
    let mut times_ms = Vec::with_capacity(count as usize);
    for index in 1..=count {
        let finish_ns = drive.serve(now_ns, next(index))?.service.finish_ns;
        times_ms.push((finish_ns - now_ns) as f64 / 1e6);
        now_ns = finish_ns;
    }
    Ok(times_ms)
}

/// Seek time in ms from the first cylinder to the next.
///
/// The next cylinder begins after one track or after a track on every surface. `None` if neither
/// position is on the next cylinder.
pub(super) fn next_cylinder_ms(profile: &Profile, sectors_per_track: u32, surfaces: u32) -> Result<Option<f64>> {
    for sector in [1, surfaces].map(|tracks| u64::from(tracks) * u64::from(sectors_per_track)) {
        let mut drive = Drive::new(profile);
        let first = drive.serve(0, command(Op::Read, 0, 1))?.service;
        let service = drive.serve(first.finish_ns, command(Op::Read, sector, 1))?.service;
        if first.cylinder.abs_diff(service.cylinder) == 1 {
            return Ok(Some(service.phases.seek_ns as f64 / 1e6));
        }
    }
    Ok(None)
}

fn command(op: Op, sector: u64, sectors: u32) -> Command {
    Access { op, sector, sectors }.into()
}
