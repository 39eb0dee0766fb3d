//! The answer at the top of a comparison page: for each job, bars of throughput and of latency
//! under each elevator.

use serde::Serialize;

use crate::charts::{Entry, Legend};
use crate::data::{ComparePage, ElevatorResult, JobRow};
use crate::format::figure;
use crate::palette::Pair;
use crate::table::latencies_in_us;

/// The bars of a job.
#[derive(Serialize)]
pub struct JobBars {
    /// The name of the job; "all processes" for a workload of one job.
    name: String,
    /// The elevators in the order of the page.
    bars: Vec<ElevatorBars>,
}

/// The two bars of an elevator.
#[derive(Serialize)]
struct ElevatorBars {
    elevator: String,
    colour: Pair,
    starves: bool,
    /// Throughput in MB/s and the 99th percentile of the latency in the page's unit.
    lengths: [BarLength; 2],
}

#[derive(Serialize)]
struct BarLength {
    /// The length as a part of the longest bar of the column, 0 to 1.
    part: f64,
    /// The value with its digits.
    figure: String,
}

/// What one elevator did for one job.
struct Outcome {
    bytes_per_s: f64,
    p99_ns: u64,
    starves: bool,
}

/// The unit of the latencies of a page, and its length in ns.
pub fn latency_unit(page: &ComparePage) -> (&'static str, f64) {
    if latencies_in_us(page) { ("µs", 1e3) } else { ("ms", 1e6) }
}

/// The bars of each job of a page, with the colours of the legend of elevators.
pub fn answer(page: &ComparePage, legends: &[Legend]) -> Vec<JobBars> {
    if page.jobs.is_empty() {
        let outcome =
            |e: &ElevatorResult| Outcome { bytes_per_s: e.bytes_per_s, p99_ns: e.latency.p99_ns, starves: e.starves };
        return vec![bars(page, legends, "all processes", page.elevators.iter().map(outcome).collect())];
    }
    let job = |job: &JobRow| {
        let outcomes = job.results.iter().map(|result| Outcome {
            bytes_per_s: result.bytes_per_s,
            p99_ns: result.p99_ns,
            starves: result.starves,
        });
        bars(page, legends, &job.name, outcomes.collect())
    };
    page.jobs.iter().map(job).collect()
}

fn bars(page: &ComparePage, legends: &[Legend], name: &str, outcomes: Vec<Outcome>) -> JobBars {
    let colours = legends.iter().find(|legend| legend.id == "elevator").map_or(&[][..], |legend| &legend.entries);
    let (_, unit_ns) = latency_unit(page);
    let values: Vec<[f64; 2]> = outcomes.iter().map(|o| [o.bytes_per_s / 1e6, o.p99_ns as f64 / unit_ns]).collect();
    let most = [0, 1].map(|at| values.iter().map(|value| value[at]).fold(0.0, f64::max));
    let bar = |((elevator, entry), (outcome, value)): ((&ElevatorResult, _), (&Outcome, &[f64; 2]))| {
        let entry: &Entry = entry;
        let length = |at: usize| BarLength {
            part: if most[at] > 0.0 { value[at] / most[at] } else { 0.0 },
            figure: figure(value[at]),
        };
        ElevatorBars {
            elevator: elevator.name.clone(),
            colour: entry.colour.clone(),
            starves: outcome.starves,
            lengths: [length(0), length(1)],
        }
    };
    let bars = page.elevators.iter().zip(colours).zip(outcomes.iter().zip(&values)).map(bar).collect();
    JobBars { name: name.to_owned(), bars }
}
