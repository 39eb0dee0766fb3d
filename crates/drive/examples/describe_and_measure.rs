//! Describes a drive, measures random reads at several queue depths, and probes it from outside.
//!
//! `cargo run -p hoistway-drive --example describe_and_measure -- [NAME|FILE.toml]`
//!
//! Every answer is a plain value with a JSON form, so a binding for another language needs only
//! these calls.

use std::error::Error;

use hoistway_drive::probe::{Probe, ProbeReport};
use hoistway_drive::{Access, Drive, DriveList, Op, Profile, closed_loop};

fn main() -> Result<(), Box<dyn Error>> {
    let choice = std::env::args().nth(1).unwrap_or_else(|| "cmr-8tb".to_owned());
    let profile = match Profile::builtin(&choice) {
        Some(profile) => profile,
        None => Profile::load(&choice)?,
    };

    // The figures of the profile, without a run.
    println!("{}", serde_json::to_string_pretty(&DriveList::new([profile.clone()]))?);

    // A host that keeps `depth` random 4 KiB reads in flight.
    for depth in [1, 8, 32] {
        let mut drive = Drive::new(&profile);
        let blocks = drive.capacity_sectors() / 8;
        let reads = (0..1000u64).map(|number| {
            let sector = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks * 8;
            Access { op: Op::Read, sector, sectors: 8 }.into()
        });
        let mut slowest_ns = 0;
        let end_ns = closed_loop(&mut drive, 0, depth, reads, |submitted_ns, completion| {
            slowest_ns = slowest_ns.max(completion.service.finish_ns - submitted_ns);
        })?;
        println!("depth {depth}: {:.0} reads/s, slowest {:.1} ms", 1e12 / end_ns as f64, slowest_ns as f64 / 1e6);
    }

    // The same drive, measured with commands and a clock alone.
    let report = ProbeReport::measure(&profile, &[Probe::Zones])?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
