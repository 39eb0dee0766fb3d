//! The answer at the top of a comparison page: for each job, bars of throughput and of latency
//! under each elevator.

use serde::Serialize;

use crate::charts::{Entry, Legend};
use crate::data::{ComparePage, ElevatorResult, JobResult};
use crate::format::figure;
use crate::palette::Pair;
use crate::table::latency_unit;

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

/// The bars of each job of a page, with the colours of the legend of elevators.
pub fn answer(page: &ComparePage, legends: &[Legend]) -> Vec<JobBars> {
    if page.jobs.is_empty() {
        let of_all = |elevator: &ElevatorResult| JobResult {
            bytes_per_s: elevator.bytes_per_s,
            p99_ns: elevator.latency.p99_ns,
            starves: elevator.starves,
            ..JobResult::default()
        };
        let results: Vec<JobResult> = page.elevators.iter().map(of_all).collect();
        return vec![bars(page, legends, "all processes", &results)];
    }
    page.jobs.iter().map(|job| bars(page, legends, &job.name, &job.results)).collect()
}

fn bars(page: &ComparePage, legends: &[Legend], name: &str, results: &[JobResult]) -> JobBars {
    let entries = legends.iter().find(|legend| legend.id == "elevator").map_or(&[][..], |legend| &legend.entries);
    let (_, scale) = latency_unit(page);
    let values = |result: &JobResult| [result.bytes_per_s / 1e6, result.p99_ns as f64 * scale];
    let most = [0, 1].map(|at| results.iter().map(|result| values(result)[at]).fold(0.0, f64::max));
    let bar = |(entry, result): (&Entry, &JobResult)| ElevatorBars {
        elevator: entry.name.clone(),
        colour: entry.colour.clone(),
        starves: result.starves,
        lengths: [0, 1].map(|at| BarLength {
            part: if most[at] > 0.0 { values(result)[at] / most[at] } else { 0.0 },
            figure: figure(values(result)[at]),
        }),
    };
    JobBars { name: name.to_owned(), bars: entries.iter().zip(results).map(bar).collect() }
}
