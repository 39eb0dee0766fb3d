//! Compares elevators on a job file: `compare JOBFILE DRIVE SEED [ELEVATOR...]`; without elevators,
//! all of them.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, HostConfig, compare, elevator_of_name};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, drive, seed, elevators @ ..] = arguments.as_slice() else {
        return Err("usage: compare JOBFILE DRIVE SEED [ELEVATOR...]".into());
    };
    let jobs = hoistway_fio::load(file)?;
    let profile = Profile::builtin(drive).ok_or_else(|| format!("there is no drive `{drive}`"))?;
    let elevators = match elevators {
        [] => Kind::ALL.to_vec(),
        names => names.iter().map(|name| elevator_of_name(name)).collect::<Result<_, _>>()?,
    };
    let host = HostConfig::default();
    let request =
        CompareRequest { jobs, profile, host, elevators, settings: Vec::new(), seed: seed.parse()?, record: false };
    let begun = Instant::now();
    let comparison = compare(&request, &|_| {}, &AtomicBool::new(false))?;
    let wall_s = begun.elapsed().as_secs_f64();
    println!("single stream {:.2} MB/s; simulated in {wall_s:.2} s", comparison.single_stream_bytes_per_s / 1e6);
    for run in &comparison.runs {
        let (latency, drive) = (&run.latency_ns, &run.drive_ns);
        let part = |ns: u64| ns as f64 * 100.0 / run.runtime_ns.max(1) as f64;
        println!(
            "{:14} {:8.3} MB/s {:5.1} %  processes {:.0}..{:.0} kB/s jain {:.4}  runtime {:.2} s",
            run.elevator,
            run.bytes_per_s / 1e6,
            run.of_single_stream * 100.0,
            run.process_bytes_per_s.min / 1e3,
            run.process_bytes_per_s.max / 1e3,
            run.jain.unwrap_or(f64::NAN),
            run.runtime_ns as f64 / 1e9,
        );
        println!(
            "    latency ms: mean {:.3} sd {:.2} p99 {:.2} max {:.1}; drive %: overhead {:.1} seek {:.1} rotation {:.1} transfer {:.1} idle {:.1}; {} requests, {} turns",
            latency.mean / 1e6,
            latency.stddev / 1e6,
            latency.p99 as f64 / 1e6,
            latency.max as f64 / 1e6,
            part(drive.overhead),
            part(drive.seek),
            part(drive.rotation),
            part(drive.transfer),
            part(drive.idle),
            run.drive_requests,
            run.turns,
        );
    }
    Ok(())
}
