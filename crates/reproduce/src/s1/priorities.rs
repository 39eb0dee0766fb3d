//! Priorities, classes and default tunables in the slides.

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::figures::{job_bytes, processes, total_bytes};
use crate::runner::{Experiment, Runner};
use crate::verdict::{Line, Measured, Plot};
use hoistway_core::{Class, Priority};
use hoistway_sim::SliceKind;
use hoistway_sim::{ProcessRun, Run};

/// The shares of eight readers of priorities 0 to 7 in percent, and the time in s at which each has
/// read its 128 MiB.
pub fn shares(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let long = Experiment::of(row, "cfq-v3")?;
    let short = long.clone().with_job(row, 1)?;
    let shares: [f64; 8] = runner.means(long, row.seeds, |run, _| {
        let all = total_bytes(run);
        std::array::from_fn(|level| job_bytes(run, &format!("p{level}")) * 100.0 / all as f64)
    })?;
    let ends: [f64; 8] = runner.means(short, row.seeds, |run, _| {
        std::array::from_fn(|level| {
            let name = format!("p{level}");
            processes(run, &name)
                .map(|process| (process.start_ns + process.runtime_ns) as f64 / 1e9)
                .fold(0.0, f64::max)
        })
    })?;
    let named = |what: &'static str, all: [f64; 8]| (0..).zip(all).map(move |(at, x)| (format!("level {at}{what}"), x));
    let due = |level: u32| f64::from((180 - 20 * level) * (8 - level)) / 48.0;
    let line = |name: &str, published, of: &dyn Fn(u32) -> f64| Line {
        name: name.to_owned(),
        points: (0..8).map(|level| (f64::from(level), of(level))).collect(),
        published,
    };
    let plot = Plot {
        x: "level".to_owned(),
        y: "part of the disk, %".to_owned(),
        lines: vec![line("due", true, &due), line("ours", false, &|level| shares[level as usize])],
    };
    Ok(Measured::default().with_all(named("", shares)).with_all(named(", end", ends)).with_plot(Some(plot)))
}

/// Four streams that start one after the other: their bandwidth while all four run, in percent of a
/// single stream.
pub fn streams(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for (elevator, name) in [("cfq-v3", "cfq"), ("deadline", "deadline")] {
        let [part] = runner.means(Experiment::of(row, elevator)?, row.seeds, |run, alone| {
            let late = |process: &ProcessRun| {
                let windows = process.windows.iter().zip(0u64..);
                let of_end = windows.filter(|(_, index)| {
                    (32_000_000_000..40_000_000_000).contains(&(process.start_ns + index * process.window_ns))
                });
                of_end.map(|(window, _)| window.bytes).sum::<u64>()
            };
            [run.processes.iter().map(late).sum::<u64>() as f64 / 8.0 / alone * 100.0]
        })?;
        measured = measured.with(name, part);
    }
    Ok(measured)
}

/// The time of five dependent reads on an idle disk, in ms.
pub fn five_reads(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let [ms, reads, kib, seek] = runner.means(Experiment::of(row, "cfq-v3")?, row.seeds, |run, _| {
        let count = run.processes.len() as f64;
        let ms: f64 = run.processes.iter().map(|process| process.runtime_ns as f64 / 1e6).sum();
        let reads: u64 = run.processes.iter().map(|process| process.read.ios).sum();
        let bytes = total_bytes(run);
        let seek_ms = run.drive_ns.seek as f64 / 1e6 / run.drive_requests as f64;
        [ms / count, reads as f64 / count, bytes as f64 / 1024.0 / count, seek_ms]
    })?;
    Ok(Measured::default().with("time", ms).with("reads", reads).with("data", kib).with("seek", seek))
}

/// The time of five dependent reads with think times while four streams run, in ms.
pub fn five_reads_under_load(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for (elevator, name) in [("cfq-v3", "cfq"), ("deadline", "deadline")] {
        let [mean, longest] = runner.means(Experiment::of(row, elevator)?, row.seeds, |run, _| {
            let ms: Vec<f64> = processes(run, "open").map(|process| process.runtime_ns as f64 / 1e6).collect();
            [ms.iter().sum::<f64>() / ms.len() as f64, ms.iter().copied().fold(0.0, f64::max)]
        })?;
        measured = measured.with(name, mean).with(format!("{name}, longest"), longest);
    }
    Ok(measured)
}

/// The bandwidth of a reader while a writer runs, in MB/s.
pub fn reader_with_writer(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for (elevator, name) in [("cfq-v3", "cfq"), ("deadline", "deadline")] {
        let [rate] = runner.means(Experiment::of(row, elevator)?, row.seeds, |run, _| {
            [job_bytes(run, "reader") / run.runtime_ns as f64 * 1000.0]
        })?;
        measured = measured.with(name, rate);
    }
    Ok(measured)
}

/// The defaults of the tunables of CFQ.
pub fn defaults(row: &Row) -> Result<Measured, ReproduceError> {
    let kind = hoistway_sim::elevator_of_name(row.elevators.first().map_or("", String::as_str))?;
    let tunables = kind.info().tunables.iter().map(|tunable| (tunable.name, tunable.default as f64));
    Ok(Measured::default().with_all(tunables))
}

/// The priority level that follows from a nice value, for processes without a set priority.
pub fn levels() -> Measured {
    let nices = [-20i8, -16, -15, 0, 4, 5, 15, 19];
    let level = |nice: i8| f64::from(Priority::UNSET.effective(nice).level());
    let best_effort = nices.iter().all(|nice| Priority::UNSET.effective(*nice).class() == Class::BestEffort);
    let measured = Measured::default().with_all(nices.map(|nice| (format!("nice {nice}"), level(nice))));
    measured.with("best effort", f64::from(u8::from(best_effort)))
}

/// The share of two real-time readers beside a best-effort reader in percent, and their mean slice
/// in ms.
pub fn real_time(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let [part, slice_ms] = runner.means(Experiment::of(row, "cfq-v3")?.recorded(), row.seeds, |run, _| {
        let [urgent, usual] = ["urgent", "usual"].map(|name| job_bytes(run, name));
        let of_urgent = |pid: u32| run.processes.iter().any(|process| process.pid == pid && process.name == "urgent");
        let slices = run.slices.iter().filter(|slice| slice.kind == SliceKind::Service && of_urgent(slice.pid));
        let ms: Vec<f64> = slices.map(|slice| (slice.end_ns - slice.start_ns) as f64 / 1e6).collect();
        [urgent * 100.0 / (urgent + usual), ms.iter().sum::<f64>() / ms.len() as f64]
    })?;
    Ok(Measured::default().with("real time", part).with("slice", slice_ms))
}

/// The idle time of the disk in ms before CFQ serves the idle class, and the KiB that the idle
/// class moves on a busy disk.
pub fn idle_class(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let thinking = Experiment::of(row, "cfq-v3")?.recorded();
    let busy = thinking.clone().with_text("thinktime=250ms", "thinktime=0");
    let [grace_ms] = runner.means(thinking, row.seeds, |run, _| [least_grace_ms(run)])?;
    let [bytes] = runner.means(busy, row.seeds, |run, _| [job_bytes(run, "leftover")])?;
    Ok(Measured::default().with("grace", grace_ms).with("beside a stream", bytes / 1024.0))
}

/// The minimum time in ms from the end of a best-effort request to a request of the idle class.
fn least_grace_ms(run: &Run) -> f64 {
    let pid = |name: &str| run.processes.iter().find(|process| process.name == name).map(|process| process.pid);
    let (usual, leftover) = (pid("usual"), pid("leftover"));
    let pairs = run.head.windows(2).filter(|pair| Some(pair[0].pid) == usual && Some(pair[1].pid) == leftover);
    let service_ns = run.processes.iter().find(|process| process.name == "usual").map_or(0, |p| p.latency_ns.p50);
    let gaps = pairs.map(|pair| (pair[1].at_ns - pair[0].at_ns).saturating_sub(service_ns) as f64 / 1e6);
    gaps.fold(f64::INFINITY, f64::min)
}

/// The ratio of bandwidths with and without idling, and the times for which the disk idles, in ms.
pub fn idling(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let streams = Experiment::of(row, "cfq-v3")?;
    let random = streams.clone().with_job(row, 1)?;
    let rate = |run: &Run, _: f64| [run.bytes_per_s];
    let mut by = [0.0; 2];
    for (index, experiment) in [streams.clone(), random].into_iter().enumerate() {
        let [with] = runner.means(experiment.clone(), row.seeds, rate)?;
        let [without] = runner.means(experiment.with("slice_idle=0"), row.seeds, rate)?;
        by[index] = with / without;
    }
    let [longest, idle] = runner.means(streams.recorded(), row.seeds, |run, _| {
        let idle = run.slices.iter().filter(|slice| slice.kind == SliceKind::Idle);
        let longest = idle.map(|slice| (slice.end_ns - slice.start_ns) as f64 / 1e6).fold(0.0, f64::max);
        [longest, run.drive_ns.idle as f64 / 1e6]
    })?;
    let measured = Measured::default().with("sequential", by[0]).with("random", by[1]);
    Ok(measured.with("longest idling", longest).with("idle in all", idle))
}
