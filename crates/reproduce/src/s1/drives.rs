//! The three drives of the slides, measured command by command.

use hoistway_drive::{Access, Drive, Op, Profile, describe};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::verdict::Measured;

/// Spindle speeds of the drives in the slides, in revolutions a minute.
const SPEEDS: [u32; 3] = [5400, 7200, 15_000];
/// Number of reads over which times are averaged.
const READS: u32 = 20_000;

/// Seek time, rotational delay and transfer rate of each drive.
pub fn table(row: &Row) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for speed in SPEEDS {
        let description = describe(&profile(row, speed)?);
        let rate = description.zones.first().map_or(0.0, |zone| zone.media_mb_s * 1e6 / f64::from(1 << 20));
        measured = measured
            .with(format!("{speed}: seek"), description.mean_seek_sectors_ms)
            .with(format!("{speed}: rotation"), 30_000.0 / f64::from(speed))
            .with(format!("{speed}: rate"), rate);
    }
    Ok(measured)
}

/// The transfer time of 4 KiB from the first track, in us.
pub fn transfer(row: &Row) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for speed in SPEEDS {
        let mut drive = Drive::new(&profile(row, speed)?);
        let service =
            drive.serve(0, Access { op: Op::Read, sector: 0, sectors: 8 }).map_err(ReproduceError::defect)?.service;
        measured = measured.with(speed.to_string(), service.phases.transfer_ns as f64 / 1000.0);
    }
    Ok(measured)
}

/// The rate of random reads of `sectors` sectors, one at a time, in KiB/s, and the seek time and
/// rotational delay of a read, in ms.
pub fn random_reads(row: &Row, sectors: u32) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for speed in SPEEDS {
        let mut drive = Drive::new(&profile(row, speed)?);
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let (mut now_ns, mut seek_ns, mut rotation_ns) = (0, 0, 0);
        for _ in 0..READS {
            let sector = random.random_range(0..drive.capacity_sectors() - u64::from(sectors));
            let service =
                drive.serve(now_ns, Access { op: Op::Read, sector, sectors }).map_err(ReproduceError::defect)?.service;
            now_ns = service.finish_ns;
            seek_ns += service.phases.seek_ns;
            rotation_ns += service.phases.rotation_ns;
        }
        let kib = f64::from(READS) * f64::from(sectors) / 2.0;
        let ms_each = |ns: u64| ns as f64 / 1e6 / f64::from(READS);
        measured = measured
            .with(speed.to_string(), kib * 1e9 / now_ns as f64)
            .with(format!("{speed}: seek"), ms_each(seek_ns))
            .with(format!("{speed}: rotation"), ms_each(rotation_ns));
    }
    Ok(measured)
}

fn profile(row: &Row, speed: u32) -> Result<Profile, ReproduceError> {
    row.profile_of(&format!("slide-{speed}"))
}
