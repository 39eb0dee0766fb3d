//! 128 processes on a disk that accepts one command at a time.

use super::posted::as_posted;
use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::runner::{Experiment, Runner};
use crate::verdict::Measured;
use hoistway_sim::Run;

/// Number of processes of the job.
const PROCESSES: f64 = 128.0;
/// Size of a request pool that holds both halves of each of 128 reads of 1 MiB.
const ROOMY: u32 = 512;

/// Averages over the runs of an experiment.
#[derive(Clone, Copy)]
struct Figures {
    /// Time of a read, in ms.
    ms_each: f64,
    /// Standard deviation of latencies over their mean.
    deviation: f64,
    /// Number of processes by Little's law, over the actual number.
    little: f64,
    /// Reads in a turn.
    each_turn: f64,
}

/// CFQ with its defaults, compared with CFQ without idling.
pub fn cfq(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let with = figures(runner, experiment(row, "cfq-tree")?, row.seeds)?;
    let without = figures(runner, experiment(row, "cfq-tree")?.with("slice_idle=0"), row.seeds)?;
    let measured = all_figures(with).with("rate by that without idling", without.ms_each / with.ms_each);
    let measured = measured.with("more than without idling", with.ms_each - without.ms_each);
    if row.id == "S2-01" {
        return Ok(measured);
    }
    // With four requests per read, the completion of the first one does not empty the queue.
    let quarters = experiment(row, "cfq-tree")?.with_text("bs=1m", "bs=256k");
    let quarters = figures(runner, quarters, row.seeds)?;
    Ok(measured.with("sd / mean of 256 KiB", quarters.deviation))
}

/// CFQ without idling.
pub fn cfq_without_idling(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let without = figures(runner, experiment(row, "cfq-tree")?.with("slice_idle=0"), row.seeds)?;
    let with = figures(runner, experiment(row, "cfq-tree")?, row.seeds)?;
    Ok(all_figures(without).with("less than with idling", with.ms_each - without.ms_each))
}

/// BFQ as posted in 2008.
pub fn bfq(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    Ok(all_figures(figures(runner, as_posted(experiment(row, "bfq-v0")?), row.seeds)?))
}

/// The throughput of BFQ over that of CFQ, for both jobs.
pub fn throughput_ratio(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
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

fn experiment(row: &Row, elevator: &str) -> Result<Experiment, ReproduceError> {
    let experiment = Experiment::of(row, elevator)?;
    let pieces = row.jobs.first().is_some_and(|job| job.contains("pieces"));
    Ok(Experiment { nr_requests: pieces.then_some(ROOMY), ..experiment })
}

fn figures(runner: &mut Runner<'_>, experiment: Experiment, seeds: u64) -> Result<Figures, ReproduceError> {
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
