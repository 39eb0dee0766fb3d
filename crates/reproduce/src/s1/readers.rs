//! The eight competing readers in the slides.

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::figures::total_bytes;
use crate::runner::{Experiment, Runner};
use crate::verdict::{Line, Measured, Plot};
use hoistway_sim::{ProcessRun, Run};

/// The elevators of the slides, and the prefix of their figures.
const ELEVATORS: [(&str, &str); 3] = [("cfq-v3", "cfq"), ("anticipatory", "as"), ("deadline", "deadline")];

/// The bandwidth of one reader alone, in MB/s.
pub fn single_stream(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let [rate] = runner.means(Experiment::of(row, "cfq-v3")?, row.seeds, |_, alone| [alone / 1e6])?;
    Ok(Measured::default().with("one reader alone", rate))
}

/// The total bandwidth in percent of the single stream, and the time in ms and KiB of a turn.
pub fn shares(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let shares = each(row, runner, "", |run| run.of_single_stream * 100.0)?;
    let turn_ms = each(row, runner, ", a turn", |run| run.runtime_ns as f64 / 1e6 / run.turns as f64)?;
    let turn_kib = each(row, runner, ", data a turn", |run| total_bytes(run) as f64 / 1024.0 / run.turns as f64)?;
    Ok(Measured::default().with_all(shares).with_all(turn_ms).with_all(turn_kib))
}

/// The bandwidth of the fastest process over that of the slowest.
pub fn spreads(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let spread = |run: &Run| run.process_bytes_per_s.max / run.process_bytes_per_s.min;
    Ok(Measured::default().with_all(each(row, runner, "", spread)?))
}

/// The time from the first start to the last end, in s.
pub fn runtimes(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let seconds = |run: &Run| run.runtime_ns as f64 / 1e9;
    // A check: the total of bytes over the runtime equals the total rate, so the ratio is 1.
    let identity = each(row, runner, ", bytes over rate", |run| {
        total_bytes(run) as f64 / run.bytes_per_s * 1e9 / run.runtime_ns as f64
    })?;
    Ok(Measured::default().with_all(each(row, runner, "", seconds)?).with_all(identity))
}

/// The longest latency in ms, and its length in turns.
pub fn longest(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let longest = each(row, runner, "", |run| run.latency_ns.max as f64 / 1e6)?;
    let turns =
        each(row, runner, ", in turns", |run| run.latency_ns.max as f64 / (run.runtime_ns as f64 / run.turns as f64))?;
    Ok(Measured::default().with_all(longest).with_all(turns))
}

/// The mean latency of a read of 4 KiB by the slowest process, in ms. The published figures follow
/// from the rate of that process.
pub fn means(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let of_slowest = |run: &Run| {
        let means = run.processes.iter().map(|process| process.latency_ns.mean / 1e6);
        means.fold(0.0, f64::max)
    };
    let mean = each(row, runner, "", of_slowest)?;
    // Latency over the time of 4096 bytes at the rate of the process: nearly 1, because processes
    // do little but wait.
    let identity = each(row, runner, ", of 4 KiB over the rate", |run| {
        let per_process = |process: &ProcessRun| process.latency_ns.mean * process.bytes_per_s / 4096e9;
        run.processes.iter().map(per_process).sum::<f64>() / run.processes.len() as f64
    })?;
    Ok(Measured::default().with_all(mean).with_all(identity))
}

/// The standard deviation of latencies in ms, and the KiB of a turn that follow from it: a turn has
/// n reads of 4 KiB with n = 1 + (sd / mean)^2.
pub fn deviations(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let deviation = each(row, runner, "", |run| run.latency_ns.stddev / 1e6)?;
    let turn =
        each(row, runner, ", data a turn", |run| 4.0 * (1.0 + (run.latency_ns.stddev / run.latency_ns.mean).powi(2)))?;
    Ok(Measured::default().with_all(deviation).with_all(turn))
}

/// The variation of the bandwidth of a process over time under CFQ, in percent.
pub fn flatness(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let cfq = runner.compared(&Experiment::of(row, "cfq-v3")?.seeds(row.seeds))?;
    let [noise] = runner.means(Experiment::of(row, "cfq-v3")?, row.seeds, |run, _| [noise_of(run)])?;
    let [apart] = runner.means(Experiment::of(row, "cfq-v3")?, row.seeds, |run, _| {
        [run.process_bytes_per_s.max / run.process_bytes_per_s.min]
    })?;
    let plot = cfq.first().and_then(|comparison| comparison.runs.first()).map(over_time);
    let measured = Measured::default().with("cfq", noise * 100.0).with("cfq, fastest by slowest", apart);
    Ok(measured.with_plot(plot))
}

/// The variation of bandwidth under CFQ and the anticipatory elevator, in percent, and their ratio.
pub fn noise(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut found = Measured::default();
    let mut noises = Vec::new();
    for (elevator, name) in &ELEVATORS[..2] {
        let [noise] = runner.means(Experiment::of(row, elevator)?, row.seeds, |run, _| [noise_of(run)])?;
        noises.push(noise);
        found = found.with(*name, noise * 100.0);
    }
    let first = runner.compared(&[Experiment::of(row, "anticipatory")?])?;
    let plot = first.first().and_then(|comparison| comparison.runs.first()).map(over_time);
    Ok(found.with("as by cfq", noises[1] / noises[0]).with_plot(plot))
}

/// A figure of each elevator, averaged over the seeds of the row. Its name is the prefix of the
/// elevator and `suffix`.
fn each(
    row: &Row,
    runner: &mut Runner<'_>,
    suffix: &str,
    of: impl Fn(&Run) -> f64,
) -> Result<Vec<(String, f64)>, ReproduceError> {
    let mut all = Vec::new();
    for (elevator, _) in ELEVATORS {
        all.extend(Experiment::of(row, elevator)?.seeds(row.seeds));
    }
    // Together, so that all runs are parallel.
    runner.compared(&all)?;
    let mut figures = Vec::new();
    for (elevator, name) in ELEVATORS {
        let [figure] = runner.means(Experiment::of(row, elevator)?, row.seeds, |run, _| [of(run)])?;
        figures.push((format!("{name}{suffix}"), figure));
    }
    Ok(figures)
}

/// The standard deviation of the bandwidth of a process over time, over its mean, averaged over the
/// processes, without the first two seconds. Samples are at least 500 ms long and end with a
/// request, as in fio, so that each spans whole rounds of turns.
fn noise_of(run: &Run) -> f64 {
    let of_process = |process: &ProcessRun| {
        let late = process.samples.iter().filter(|sample| sample.at_ns > 2_000_000_000);
        let rates: Vec<f64> = late.map(|sample| sample.bytes_per_s as f64).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64).sqrt() / mean
    };
    run.processes.iter().map(of_process).sum::<f64>() / run.processes.len() as f64
}

/// The plot of bandwidth in MB/s over time in s, with a line per process.
fn over_time(run: &Run) -> Plot {
    let line = |(index, process): (usize, &ProcessRun)| Line {
        name: format!("reader {}", index + 1),
        points: process.samples.iter().map(|s| (s.at_ns as f64 / 1e9, s.bytes_per_s as f64 / 1e6)).collect(),
        published: false,
    };
    let lines = run.processes.iter().enumerate().map(line).collect();
    Plot { x: "time, s".to_owned(), y: "bandwidth of a reader, MB/s".to_owned(), lines }
}
