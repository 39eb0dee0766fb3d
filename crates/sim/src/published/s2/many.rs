//! 128 processes on a disk that takes one command at a time.

use crate::compare::Run;
use crate::published::PublishedError;
use crate::published::expectation::Row;
use crate::published::runner::{Experiment, Runner};
use crate::published::s2::as_posted;
use crate::published::verdict::Measured;

/// Processes of the job.
const PROCESSES: f64 = 128.0;
/// A pool of requests that has room for both halves of each of 128 reads of 1 MiB.
const ROOMY: u32 = 512;

/// Figures of one run.
#[derive(Clone, Copy)]
struct Figures {
    ms_each: f64,
    deviation: f64,
    little: f64,
    each_turn: f64,
}

/// CFQ as it comes, against itself without idling.
pub fn cfq(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let with = figures(runner, experiment(row, "cfq-tree")?, row.seeds)?;
    let without = figures(runner, experiment(row, "cfq-tree")?.with("slice_idle=0"), row.seeds)?;
    let measured = all_figures(with).with("rate by that without idling", without.ms_each / with.ms_each);
    let measured = measured.with("more than without idling", with.ms_each - without.ms_each);
    if row.id == "S2-01" {
        return Ok(measured);
    }
    // Four requests a read: the first one's end is no longer the queue's.
    let quarters = experiment(row, "cfq-tree")?.with_text("bs=1m", "bs=256k");
    let quarters = figures(runner, quarters, row.seeds)?;
    Ok(measured.with("sd / mean of 256 KiB", quarters.deviation))
}

/// CFQ without idling.
pub fn cfq_without_idling(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let without = figures(runner, experiment(row, "cfq-tree")?.with("slice_idle=0"), row.seeds)?;
    let with = figures(runner, experiment(row, "cfq-tree")?, row.seeds)?;
    Ok(all_figures(without).with("less than with idling", with.ms_each - without.ms_each))
}

/// BFQ as posted.
pub fn bfq(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    Ok(all_figures(figures(runner, as_posted(experiment(row, "bfq-v0")?), row.seeds)?))
}

/// BFQ's throughput by CFQ's, both jobs.
pub fn alike(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    for (index, name) in ["random", "pieces"].into_iter().enumerate() {
        let cfq = experiment(row, "cfq-tree")?.with_job(row, index)?;
        let cfq = Experiment { nr_requests: if index == 0 { None } else { Some(ROOMY) }, ..cfq };
        let bfq = as_posted(Experiment { elevator: "bfq-v0".to_owned(), ..cfq.clone() });
        let (cfq, bfq) = (figures(runner, cfq, row.seeds)?, figures(runner, bfq, row.seeds)?);
        measured = measured.with(name, cfq.ms_each / bfq.ms_each);
    }
    Ok(measured)
}

fn experiment(row: &Row, elevator: &str) -> Result<Experiment, PublishedError> {
    let experiment = Experiment::of(row, elevator)?;
    let pieces = row.jobs.first().is_some_and(|job| job.contains("pieces"));
    Ok(Experiment { nr_requests: pieces.then_some(ROOMY), ..experiment })
}

fn figures(runner: &mut Runner<'_>, experiment: Experiment, seeds: u64) -> Result<Figures, PublishedError> {
    let [ms_each, deviation, little, each_turn] = runner.means(experiment, seeds, |run, _| of_run(run))?;
    Ok(Figures { ms_each, deviation, little, each_turn })
}

fn of_run(run: &Run) -> [f64; 4] {
    let reads = run.latency_ns.n as f64;
    let ms_each = run.runtime_ns as f64 / 1e6 / reads;
    // Little's law: processes = rate x latency.
    let little = run.latency_ns.mean / 1e6 / ms_each / PROCESSES;
    [ms_each, run.latency_ns.stddev / run.latency_ns.mean, little, reads / run.turns as f64]
}

fn all_figures(figures: Figures) -> Measured {
    Measured::default()
        .with("time a read", figures.ms_each)
        .with("sd / mean of latencies", figures.deviation)
        .with("Little", figures.little)
        .with("reads a turn", figures.each_turn)
}
