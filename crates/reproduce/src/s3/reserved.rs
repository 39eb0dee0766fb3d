//! The effect of reservations on their holders and on other processes.

use hoistway_drive::{Profile, describe};

use super::films::missed;
use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::figures::processes;
use crate::runner::{Experiment, Runner};
use crate::verdict::Measured;
use hoistway_sim::{Run, SliceKind};

const MIB: f64 = (1 << 20) as f64;
/// Best-effort readers have to be idle for 1 ms before the excess is served, so that their requests
/// stay together.
const EXCESS_WAIT: &str = "excess_wait=1";

/// Films with and without greedy readers: the largest change of a film's bandwidth in percent, the
/// missed deadlines, and the bandwidth of the greedy readers in MB/s.
pub fn isolation(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let among = Experiment::of(row, "cfq-bw")?.with(EXCESS_WAIT);
    let films = among.job.split_once("[recorder]").map_or("", |(films, _)| films).to_owned();
    let alone = Experiment { job: films, ..among.clone() };
    let (among, alone) = (runner.compared(&among.seeds(row.seeds))?, runner.compared(&alone.seeds(row.seeds))?);
    let (mut change, mut late, mut others) = (0.0f64, 0.0, f64::INFINITY);
    for (among, alone) in among.iter().zip(&alone) {
        let (among, alone) = (&among.runs[0], &alone.runs[0]);
        for (with, without) in rates(among, "film").zip(rates(alone, "film")) {
            change = change.max((with / without - 1.0).abs() * 100.0);
        }
        late += missed(among, "film");
        others = others.min(rates(among, "greedy").sum());
    }
    Ok(Measured::default().with("change", change).with("missed", late).with("greedy readers", others / 1e6))
}

/// The bandwidth of a greedy reader beside other greedy readers, with and without a reservation, in
/// MiB/s.
pub fn greedy(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let experiment = Experiment::of(row, "cfq-bw")?.with(EXCESS_WAIT);
    let without = experiment.clone().with_text("hoistway_reserve=6m\n", "");
    let rate = |run: &Run, _: f64| [rates(run, "recorder").sum::<f64>() / MIB];
    let [reserved] = runner.means(experiment, row.seeds, rate)?;
    let [unreserved] = runner.means(without, row.seeds, rate)?;
    Ok(Measured::default().with("rate", reserved).with("without reservation", unreserved))
}

/// The bandwidth in MiB/s of a reader that asks for more than its reservation, beside two readers
/// that ask for 8 MiB/s each.
pub fn excess(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let [recorder, least, idle] = runner.means(Experiment::of(row, "cfq-bw")?, row.seeds, |run, _| {
        let least = rates(run, "other").fold(f64::INFINITY, f64::min);
        let idle = run.drive_ns.idle as f64 / run.runtime_ns as f64;
        [rates(run, "recorder").sum::<f64>() / MIB, least / MIB, idle * 100.0]
    })?;
    // The drive must not idle while a process has requests.
    let wanted = if recorder > 31.0 { 0.0 } else { idle };
    let measured = Measured::default().with("reserved reader", recorder).with("best effort, least", least);
    Ok(measured.with("idle", idle).with("idle while more is wanted", wanted))
}

/// The total bandwidth beside a reader that uses little of its reservation, in percent of one
/// reader alone.
pub fn unused(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let with = Experiment::of(row, "cfq-bw")?;
    let other = with.job.replace("rate=2m\nhoistway_reserve=15m", "ioengine=libaio\niodepth=8");
    let alone =
        Experiment { job: other.split_once("[other]").map_or("", |(alone, _)| alone).to_owned(), ..with.clone() };
    let [together, lazy] =
        runner.means(with, row.seeds, |run, _| [run.bytes_per_s, rates(run, "lazy").sum::<f64>() / MIB])?;
    let [alone] = runner.means(alone, row.seeds, |run, _| [run.bytes_per_s])?;
    Ok(Measured::default().with("together", together / alone * 100.0).with("lazy reader", lazy))
}

/// The bandwidth in MiB/s of a fifth of the disk's time, by position and request size.
pub fn positions(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    const NAMES: [&str; 5] = ["outer", "middle", "inner", "large", "small"];
    let experiment = Experiment::of(row, "cfq-tree")?.recorded();
    let figures: [f64; 10] = runner.means(experiment, row.seeds, |run, _| {
        let (time, all) =
            (NAMES.map(|name| served_ns(run, name)), NAMES.map(|name| served_ns(run, name)).iter().sum::<f64>());
        std::array::from_fn(|index| match NAMES.get(index) {
            // Scaled to 200 ms, because the served time differs.
            Some(name) => rates(run, name).sum::<f64>() / MIB * 0.2 / (time[index] / all),
            None => time[index - NAMES.len()] / all * 100.0,
        })
    })?;
    let worth = &figures[..NAMES.len()];
    let mut measured = Measured::default().with_all(NAMES.iter().copied().zip(worth.iter().copied()));
    for (name, time) in NAMES.iter().zip(&figures[NAMES.len()..]) {
        measured = measured.with(format!("{name}, time"), *time);
    }
    let profile = row.drive.as_deref().and_then(Profile::builtin);
    let zones = profile.map_or(f64::NAN, |profile| {
        let drive = describe(&profile);
        drive.sequential_outer_mb_s / drive.sequential_inner_mb_s
    });
    Ok(measured
        .with("by zone", worth[0] / worth[2])
        .with("by pattern", worth[0] / worth[4])
        .with("zones by the drive's", worth[0] / worth[2] / zones))
}

/// The service time of the slices of a job's processes, in ns.
fn served_ns(run: &Run, job: &str) -> f64 {
    let of_job = |pid: u32| run.processes.iter().any(|process| process.pid == pid && process.name == job);
    let slices = run.slices.iter().filter(|slice| slice.kind == SliceKind::Service && of_job(slice.pid));
    slices.map(|slice| (slice.end_ns - slice.start_ns) as f64).sum()
}

/// Bytes a second of each process of a job.
fn rates<'a>(run: &'a Run, job: &'a str) -> impl Iterator<Item = f64> + 'a {
    processes(run, job).map(|process| process.bytes_per_s)
}
