//! The table of jobs: a few rows per job, a column per elevator.

use anyhow::Result;
use comfy_table::Table;
use hoistway_compare::columns::ms;
use hoistway_compare::legends::{self, STARVES};
use hoistway_compare::{JobRun, Judgement};
use hoistway_sim::Comparison;
use hoistway_units::figures::figure;

use super::groups::parts;
use crate::output::{self, Out, width};

/// The maximum number of jobs of the table; the JSON has all.
const JOBS_MAX: usize = 24;

/// Prints the results of each job, if there are several.
pub fn print(comparison: &Comparison, judgement: &Judgement, out: &mut Out) -> Result<()> {
    let count = judgement.jobs.first().map_or(0, Vec::len);
    if count < 2 {
        return Ok(());
    }
    let names: Vec<&str> = comparison.runs.iter().map(|run| run.elevator.as_str()).collect();
    let of = |part: std::ops::Range<usize>| table(&names[part.clone()], &judgement.jobs[part]);
    for part in parts(names.len(), |part| out.takes(width(&of(part)))) {
        out.line("")?;
        out.table(&mut of(part))?;
    }
    out.line("")?;
    out.paragraph(0, &legends::jobs(judgement, count.saturating_sub(JOBS_MAX)))?;
    Ok(())
}

fn table(names: &[&str], runs: &[Vec<JobRun>]) -> Table {
    let header: Vec<&str> = ["job", ""].into_iter().chain(names.iter().copied()).collect();
    let mut table = output::table(&header, 2);
    for (index, first) in runs.first().into_iter().flatten().enumerate().take(JOBS_MAX) {
        let mut row = |name: &str, figure: &str, cell: &dyn Fn(&JobRun) -> String| {
            let cells = runs.iter().map(|jobs| jobs.get(index).map_or_else(String::new, cell));
            table.add_row([name.to_owned(), figure.to_owned()].into_iter().chain(cells));
        };
        let mark = |is_starved: bool| if is_starved { STARVES } else { " " };
        let by_rate = |job: &JobRun| job.starved.is_some_and(|starved| starved.processes > 0);
        let by_wait = |job: &JobRun| job.starved.is_some_and(|starved| starved.wait_ns.is_some());
        let rate = |bytes_per_s: f64| figure(bytes_per_s / 1e6);
        if first.processes > 1 {
            let name = format!("{} ({} processes)", first.name, first.processes);
            row(&name, "MB/s", &|job| format!("{} ", rate(job.bytes_per_s)));
            row("", "slowest", &|job| format!("{}{}", rate(job.process_bytes_per_s.min), mark(by_rate(job))));
        } else {
            row(&first.name, "MB/s", &|job| format!("{}{}", rate(job.bytes_per_s), mark(by_rate(job))));
        }
        row("", "p99 ms", &|job| format!("{} ", ms(job.latency_ns.p99 as f64)));
        row("", "max ms", &|job| format!("{}{}", ms(job.latency_ns.max as f64), mark(by_wait(job))));
        if runs.iter().filter_map(|jobs| jobs.get(index)).any(|job| job.sync_ns.n > 0) {
            let sync = |job: &JobRun, ns: u64| if job.sync_ns.n > 0 { ms(ns as f64) } else { "-".to_owned() };
            row("", "sync p99 ms", &|job| format!("{} ", sync(job, job.sync_ns.p99)));
            row("", "sync max ms", &|job| format!("{} ", sync(job, job.sync_ns.max)));
        }
    }
    table
}
