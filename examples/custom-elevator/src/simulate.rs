//! Simulates four sequential readers under `slices` and two built-in elevators, without the command
//! line of hoistway.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use hoistway_core::Kind;
use hoistway_sim::{CompareRequest, HostConfig, compare, drive::Profile, fio};

const JOB: &str = "[readers]\nrw=read\nsize=16m\nnumjobs=4\n";

fn main() -> Result<(), Box<dyn Error>> {
    let no_includes = |_: &str, _: &str| Err(std::io::ErrorKind::NotFound.into());
    let request = CompareRequest {
        jobs: fio::parse(JOB, "readers.fio", &|_| None, &no_includes)?,
        profile: Profile::builtin("sata-7200-2006").ok_or("a built-in drive")?,
        host: HostConfig::default(),
        elevators: vec![custom_elevator::register_slices()?, Kind::Deadline, Kind::Noop],
        settings: Vec::new(),
        seed: 1,
        record: false,
    };
    let comparison = compare(&request, &|_progress| {}, &AtomicBool::new(false))?;
    for (kind, run) in request.elevators.iter().zip(&comparison.runs) {
        println!("{:8} {:5.1} MB/s", kind.info().name, run.bytes_per_s / 1e6);
    }
    Ok(())
}
