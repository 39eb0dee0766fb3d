//! The eight competing readers of the slides.

use super::Measured;
use crate::compare::{ProcessRun, Run};
use crate::published::PublishedError;
use crate::published::expectation::Row;
use crate::published::runner::{Experiment, Runner};
use crate::published::verdict::{Line, Plot};

/// The slides' elevators, and what figures of theirs are called.
const ELEVATORS: [(&str, &str); 3] = [("cfq-v3", "cfq"), ("anticipatory", "as"), ("deadline", "deadline")];

/// One process alone.
pub fn alone(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let [rate] = runner.means(Experiment::of(row, "cfq-v3")?, row.seeds, |_, alone| [alone / 1e6])?;
    Ok(Measured::default().with("one reader alone", rate))
}

/// All together, as a part of the single stream; and the turns that make it so.
pub fn shares(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let shares = each(row, runner, "", |run| run.of_single_stream * 100.0)?;
    let turn_ms = each(row, runner, ", a turn", |run| run.runtime_ns as f64 / 1e6 / run.turns as f64)?;
    let turn_kib = each(row, runner, ", data a turn", |run| bytes(run) / 1024.0 / run.turns as f64)?;
    Ok(Measured::default().with_all(shares).with_all(turn_ms).with_all(turn_kib))
}

/// The fastest process's rate over the slowest's.
pub fn spreads(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let spread = |run: &Run| run.process_bytes_per_s.max / run.process_bytes_per_s.min;
    Ok(Measured::default().with_all(each(row, runner, "", spread)?))
}

/// From the first start to the last end.
pub fn runtimes(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let seconds = |run: &Run| run.runtime_ns as f64 / 1e9;
    // The identity: all bytes over the runtime are the aggregate rate.
    let identity =
        each(row, runner, ", bytes over rate", |run| bytes(run) / run.bytes_per_s * 1e9 / run.runtime_ns as f64)?;
    Ok(Measured::default().with_all(each(row, runner, "", seconds)?).with_all(identity))
}

/// The longest latency, and how many turns it is.
pub fn longest(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let longest = each(row, runner, "", |run| run.latency_ns.max as f64 / 1e6)?;
    let turns =
        each(row, runner, ", in turns", |run| run.latency_ns.max as f64 / (run.runtime_ns as f64 / run.turns as f64))?;
    Ok(Measured::default().with_all(longest).with_all(turns))
}

/// The mean latency of a read of 4 KiB.
pub fn means(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mean = each(row, runner, "", |run| run.latency_ns.mean / 1e6)?;
    // 4096 bytes over a process's own rate: what a process does beside waiting is next to nothing.
    let identity = each(row, runner, ", of 4 KiB over the rate", |run| {
        let per_process = |process: &ProcessRun| process.latency_ns.mean * process.bytes_per_s / 4096e9;
        run.processes.iter().map(per_process).sum::<f64>() / run.processes.len() as f64
    })?;
    Ok(Measured::default().with_all(mean).with_all(identity))
}

/// The standard deviation of latencies, and the data of a turn that it stands for: n (1 + cv^2) = 1
/// + (sd / mean)^2 reads.
pub fn deviations(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let deviation = each(row, runner, "", |run| run.latency_ns.stddev / 1e6)?;
    let turn =
        each(row, runner, ", data a turn", |run| 4.0 * (1.0 + (run.latency_ns.stddev / run.latency_ns.mean).powi(2)))?;
    Ok(Measured::default().with_all(deviation).with_all(turn))
}

/// How far a process's bandwidth goes up and down over time under CFQ.
pub fn flatness(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let cfq = runner.compared(&Experiment::of(row, "cfq-v3")?.seeds(row.seeds))?;
    let [noise] = runner.means(Experiment::of(row, "cfq-v3")?, row.seeds, |run, _| [noise_of(run)])?;
    let [apart] = runner.means(Experiment::of(row, "cfq-v3")?, row.seeds, |run, _| {
        [run.process_bytes_per_s.max / run.process_bytes_per_s.min]
    })?;
    let plot = cfq.first().and_then(|comparison| comparison.runs.first()).map(over_time);
    let measured = Measured::default().with("cfq", noise * 100.0).with("cfq, fastest by slowest", apart);
    Ok(measured.drawn(plot))
}

/// The same under the anticipatory elevator, beside CFQ's.
pub fn noise(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut found = Measured::default();
    let mut noises = Vec::new();
    for (elevator, name) in &ELEVATORS[..2] {
        let [noise] = runner.means(Experiment::of(row, elevator)?, row.seeds, |run, _| [noise_of(run)])?;
        noises.push(noise);
        found = found.with(*name, noise * 100.0);
    }
    let first = runner.compared(&[Experiment::of(row, "anticipatory")?])?;
    let plot = first.first().and_then(|comparison| comparison.runs.first()).map(over_time);
    Ok(found.with("as by cfq", noises[1] / noises[0]).drawn(plot))
}

/// A figure of each elevator's runs, mean over the row's seeds, called by the elevator and `what`.
fn each(
    row: &Row,
    runner: &mut Runner<'_>,
    what: &str,
    of: impl Fn(&Run) -> f64,
) -> Result<Vec<(String, f64)>, PublishedError> {
    let mut all = Vec::new();
    for (elevator, _) in ELEVATORS {
        all.extend(Experiment::of(row, elevator)?.seeds(row.seeds));
    }
    // All of them at once, so that they run side by side.
    runner.compared(&all)?;
    let mut figures = Vec::new();
    for (elevator, name) in ELEVATORS {
        let [figure] = runner.means(Experiment::of(row, elevator)?, row.seeds, |run, _| [of(run)])?;
        figures.push((format!("{name}{what}"), figure));
    }
    Ok(figures)
}

fn bytes(run: &Run) -> f64 {
    run.processes.iter().map(|process| process.bytes as f64).sum()
}

/// The standard deviation of a process's bandwidth over time by its mean, after the first second:
/// the mean over the processes. Samples are at least 500 ms long and end with a request, as fio
/// took them: each spans whole rounds of turns.
fn noise_of(run: &Run) -> f64 {
    let of_process = |process: &ProcessRun| {
        let late = process.samples.iter().filter(|sample| sample.at_ns > 2_000_000_000);
        let rates: Vec<f64> = late.map(|sample| sample.bytes_per_s as f64).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64).sqrt() / mean
    };
    run.processes.iter().map(of_process).sum::<f64>() / run.processes.len() as f64
}

/// A line a process: MB/s over seconds.
fn over_time(run: &Run) -> Plot {
    let line = |(index, process): (usize, &ProcessRun)| Line {
        name: format!("reader {}", index + 1),
        points: process.samples.iter().map(|s| (s.at_ns as f64 / 1e9, s.bytes_per_s as f64 / 1e6)).collect(),
        published: false,
    };
    let lines = run.processes.iter().enumerate().map(line).collect();
    Plot { x: "time, s".to_owned(), y: "bandwidth of a reader, MB/s".to_owned(), lines }
}
