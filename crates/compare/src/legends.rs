//! Legends of the tables of a comparison, and their marks.

use hoistway_sim::Comparison;
use hoistway_units::figures::figure;

use super::{Judgement, Measure, SeededComparison};

/// The mark of the best value of a column.
pub const BEST: &str = "*";
/// The mark of an elevator, or of a figure, if a job starves.
pub const STARVES: &str = "!";
/// The mark of figures that cannot be distinguished from the best.
pub const CHANCE: &str = "=";

/// The meaning of the latencies of syncs.
const SYNCS: &str = " sync p99 and sync max: how long it waits for an fsync or fdatasync, in the job with the longest \
                     waits; mean to max leave these out.";

/// The legend of the table of elevators; `reference` is the label of the single stream.
pub fn table(comparison: &Comparison, judgement: &Judgement, reference: &str) -> String {
    let starves = match judgement.starves.contains(&true) {
        true => format!("; {STARVES} marks an elevator under which a job starves, and which is never the best"),
        false => String::new(),
    };
    let syncs = if judgement.syncs() { SYNCS } else { "" };
    let drive = match comparison.rotational {
        true => "seek, rot., data and idle: the shares of time for seeks, rotation, transfers and without a request",
        false => "data and idle: the shares of time for transfers and without a request",
    };
    let in_turn = match comparison.runs.iter().any(|run| run.jain.is_none()) {
        true => " Jain's index is left out, because some processes ran one after another.",
        false => "",
    };
    format!(
        "{BEST} marks the best of a column{starves}. {reference} gets {} MB/s (10^6 bytes a second). slowest-fastest: \
         MB/s of the slowest and of the fastest process. mean to max: how long a process waits for a request.{syncs} \
         {drive}; the remainder is overhead of the drive.{in_turn}",
        figure(comparison.single_stream_bytes_per_s / 1e6)
    )
}

/// The legend of the table of jobs, which lacks `left_out` jobs.
pub fn jobs(judgement: &Judgement, left_out: usize) -> String {
    let starves = match judgement.starves.contains(&true) {
        true => format!(
            " {STARVES}: the job starves. One of its processes gets less than a tenth of a fair share (the rate of the job \
             alone, divided by the number of processes that run at the same time), or a request waits 10 s and a \
             hundred times as long as half of the others."
        ),
        false => String::new(),
    };
    let syncs = match judgement.syncs() {
        true => " p99 and max: how long it waits for a request; sync p99 and sync max: for an fsync or fdatasync.",
        false => "",
    };
    let more = if left_out > 0 { format!(" {left_out} more jobs are in --json.") } else { String::new() };
    format!("MB/s: all processes of the job; slowest: the slowest of them.{syncs}{starves}{more}")
}

/// The legend of the table of several seeds.
pub fn seeds(seeded: &SeededComparison) -> String {
    let count = seeded.seeds.len();
    let starving = seeded.elevators.iter().filter(|run| run.starves > 0);
    let starving: Vec<String> = starving.map(|run| format!("{} (with {} of {count})", run.name, run.starves)).collect();
    let starves = match starving.is_empty() {
        true => String::new(),
        false => format!(" {STARVES}: a job starves under {}.", starving.join(", ")),
    };
    let mut measures = seeded.elevators.iter().flat_map(|run| &run.measures);
    let syncs = if measures.any(|measure| measure.measure == Measure::SyncP99Ns) { SYNCS } else { "" };
    format!(
        "Means over {count} seeds, each with its interval of 95 % (Student's t). {BEST} marks the best of a column; {CHANCE}: \
         the difference to the best may be chance (the interval of 95 % of the differences, seed by seed, contains \
         0).{starves} slowest: the slowest process. mean to max: how long a process waits for a request.{syncs}"
    )
}

/// What an interrupted comparison lacks; `wanted` is the number of seeds that were to run.
pub fn partial(comparison: &Comparison, seeds: Option<&SeededComparison>, wanted: Option<u32>) -> String {
    if !comparison.is_partial {
        let done = seeds.map_or(1, |seeded| seeded.seeds.len());
        return format!("PARTIAL: interrupted after {done} of {} seeds.", wanted.unwrap_or(1));
    }
    let ended = comparison.runs.iter().filter(|run| !run.is_partial).count();
    let seconds = comparison.runs.iter().filter(|run| run.is_partial).map(|run| run.runtime_ns as f64 / 1e9);
    let (least, most) = seconds.fold((f64::INFINITY, 0.0), |(least, most), s| (s.min(least), s.max(most)));
    format!(
        "PARTIAL: interrupted. {ended} elevators are complete, the others ended after {} to {} s of simulated time, before their \
         jobs: times, totals and longest waits do not compare.",
        figure(if least.is_finite() { least } else { 0.0 }),
        figure(most)
    )
}
