//! What 1,000 processors would do, computed from the measured cost of a point, of its planning, and
//! of a pair of files.

use std::fmt::Write;

use anyhow::Result;

use super::Bench;
use super::run::{self, SMALL, TYPICAL, machine, median};
use crate::goals::grouped;
use crate::sections::Section;

/// The processors of the computation.
const PROCESSORS: f64 = 1000.0;
/// The points of the measured sweeps.
const SMALL_POINTS: u64 = 2000;
const TYPICAL_POINTS: u64 = 100;
/// The greatest number of points of a file that a sweep chooses itself.
const POINTS_PER_FILE: u64 = 256;

/// The maximum number of seeds of a sweep; more points have several numbers of readers.
const SEEDS_MAX: u64 = 1_000_000;

/// The measured costs, in seconds of one processor of two.
struct Costs {
    /// A typical point.
    point: f64,
    /// A point that has a result already: its planning and its name.
    planned: f64,
    /// A pair of files, written and synced.
    files: f64,
}

/// Measures the costs, and computes the time of larger sweeps.
pub fn measure(bench: &Bench) -> Result<Section> {
    let costs = costs(bench)?;
    let ms = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
    let mut text = format!(
        "```console no-run\n$ cargo xtask bench-sweep --only cluster\n```\n\n{}\n\n\
         Measured on one processor of two: a typical point takes {}; planning a point that has a result, {}; a pair of files with one point each, \
         written and synced, {}. Computed from these, for {} processors that share a folder:\n\n\
         | points | batches | processors with work | points/s | s | files written a second |\n|---|---|---|---|---|---|\n",
        machine(),
        ms(costs.point),
        ms(costs.planned),
        ms(costs.files),
        grouped(PROCESSORS)
    );
    let mut least_files = f64::NAN;
    for (points, each) in [(100_000, None), (100_000, Some(10)), (1_000_000, None), (10_000_000, None)] {
        let batches = batches(bench, points, each)?;
        let each_batch = points as f64 / batches * (costs.point + costs.planned) + costs.files;
        // Each processor takes whole batches.
        let seconds = (batches / PROCESSORS).ceil() * each_batch;
        let rate = 2.0 * batches / seconds;
        least_files = rate;
        let given = each.map_or(String::new(), |each| format!(", `points_per_file = {each}`"));
        let _ = writeln!(
            text,
            "| {}{given} | {} | {} | {} | {seconds:.1} | {} |",
            grouped(points as f64),
            grouped(batches),
            grouped(batches.min(PROCESSORS)),
            grouped(points as f64 / seconds),
            grouped(rate)
        );
    }
    let wanted = PROCESSORS * POINTS_PER_FILE as f64;
    let _ = write!(
        text,
        "\nThe first limit is the number of batches: a file has up to {POINTS_PER_FILE} points, so that a sweep of fewer than {} points has fewer batches \
         than processors, unless `points_per_file` is smaller. \
         The second is the shared folder: it has to create and sync about {} files a second; this machine's disk takes {} from one writer. \
         The simulations share nothing else: each worker plans its own batches.\n",
        grouped(wanted),
        grouped(least_files),
        grouped(2.0 / costs.files.max(1e-9))
    );
    Ok(Section { text, goals: Vec::new() })
}

fn costs(bench: &Bench) -> Result<Costs> {
    let (mut points, mut planned, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        let each = |seconds: f64, count: u64| 2.0 * seconds / count as f64;
        let typical = TYPICAL.sweep(bench, TYPICAL_POINTS, "")?;
        points.push(each(run::sweep(bench, &typical, &run::empty(bench)?)?.seconds, TYPICAL_POINTS));
        let shared = SMALL.sweep(bench, SMALL_POINTS, &format!("points_per_file = {POINTS_PER_FILE}\n"))?;
        let results = run::empty(bench)?;
        let few_files = run::sweep(bench, &shared, &results)?.seconds;
        planned.push(each(run::sweep(bench, &shared, &results)?.seconds, SMALL_POINTS));
        let single = SMALL.sweep(bench, SMALL_POINTS, "points_per_file = 1\n")?;
        let many_files = run::sweep(bench, &single, &run::empty(bench)?)?.seconds;
        let more_files = SMALL_POINTS - SMALL_POINTS.div_ceil(POINTS_PER_FILE);
        files.push(each((many_files - few_files).max(0.0), more_files));
    }
    run::empty(bench)?;
    Ok(Costs { point: median(points), planned: median(planned), files: median(files) })
}

/// The number of batches of a sweep of this many points.
fn batches(bench: &Bench, points: u64, each: Option<u64>) -> Result<f64> {
    let seeds = points.min(SEEDS_MAX);
    let readers: Vec<String> = (1..=points / seeds).map(|count| count.to_string()).collect();
    let each = each.map_or(String::new(), |each| format!("points_per_file = {each}\n"));
    let rest = format!("{each}[vary]\n\"job.reader.numjobs\" = [{}]\n", readers.join(", "));
    run::batches(bench, &SMALL.sweep(bench, seeds, &rest)?)
}
