//! Runs of a drive alone, one command at a time or several.

use anyhow::Result;
use hoistway_drive::{Access, Command, Drive, Op, Profile, closed_loop};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Sectors of 4 KiB.
const SECTORS: u32 = 8;

/// The mean time in ms of so many random 4 KiB reads, one at a time.
pub fn random_read_ms(profile: &Profile, count: u32) -> Result<f64> {
    Ok(1000.0 / random_read_iops(profile, 1, count)?)
}

/// Random 4 KiB reads a second, `depth` at a time.
pub fn random_read_iops(profile: &Profile, depth: u32, count: u32) -> Result<f64> {
    random_iops(profile, depth, SECTORS, count)
}

/// Random reads of `sectors` a second, `depth` at a time, each beginning at a multiple of 4 KiB.
pub fn random_iops(profile: &Profile, depth: u32, sectors: u32, count: u32) -> Result<f64> {
    let mut drive = Drive::new(profile);
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let blocks = (drive.capacity_sectors() - u64::from(sectors)) / u64::from(SECTORS);
    let reads = (0..count).map(|_| command(Op::Read, random.random_range(0..=blocks) * u64::from(SECTORS), sectors));
    let end_ns = closed_loop(&mut drive, 0, depth, reads, |_, _| {})?;
    Ok(f64::from(count) * 1e9 / end_ns as f64)
}

/// The times in us of random 4 KiB reads, one at a time, the shortest first.
pub fn random_read_times_us(profile: &Profile, count: u32) -> Result<Vec<f64>> {
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

/// Units programmed for each that random writes of 4 KiB brought, so many of them; `None` for a drive without flash.
pub fn write_amplification(profile: &Profile, count: u32) -> Result<Option<f64>> {
    let mut drive = Drive::new(profile);
    let mut random = Pcg64Mcg::seed_from_u64(9);
    let blocks = drive.capacity_sectors() / u64::from(SECTORS);
    let writes = (0..count).map(|_| command(Op::Write, random.random_range(0..blocks) * u64::from(SECTORS), SECTORS));
    closed_loop(&mut drive, 0, 32, writes, |_, _| {})?;
    Ok(drive.write_amplification())
}

/// MB/s of `count` reads one behind the other from the drive's first sector on, one at a time.
pub fn sequential_mb_s(profile: &Profile, sectors: u32, count: u32) -> Result<f64> {
    let times_ms = sequential_ms(profile, Op::Read, sectors, count)?;
    Ok(f64::from(count) * f64::from(sectors) * 512.0 / (times_ms.iter().sum::<f64>() * 1000.0))
}

/// The median time in ms of such writes of 4 KiB.
pub fn sequential_write_ms(profile: &Profile, count: u32) -> Result<f64> {
    let mut times_ms = sequential_ms(profile, Op::Write, SECTORS, count)?;
    times_ms.sort_by(f64::total_cmp);
    Ok(times_ms.get(times_ms.len() / 2).copied().unwrap_or(0.0))
}

/// The time in ms of each of `count` commands one behind the other after the first.
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

/// The arm's time to a neighbouring cylinder in ms: from the first sector to the one that begins the next cylinder, which is one or
/// all surfaces of tracks away. `None` where neither is.
pub fn next_cylinder_ms(profile: &Profile, sectors_per_track: u32, surfaces: u32) -> Result<Option<f64>> {
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
