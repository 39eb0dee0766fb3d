//! The series of the charts of a comparison: rates over time, percentiles, and head positions.

use hoistway_sim::{Comparison, ProcessRun, Run, SliceKind};
use serde::Serialize;

/// The maximum number of points of a head track: more are thinned evenly.
const HEAD_MAX: usize = 4000;
/// The maximum number of slices of a run.
const SLICES_MAX: usize = 4000;

/// The series of all runs.
#[derive(Serialize)]
pub(super) struct Charts {
    /// The processes, which every run has: process id and name.
    processes: Vec<(u32, String)>,
    /// One entry per elevator, in the order of the document.
    elevators: Vec<ElevatorCharts>,
}

/// The series of one run.
#[derive(Serialize)]
struct ElevatorCharts {
    name: String,
    /// Percent, and latency in ns.
    percentiles: Vec<(f64, u64)>,
    /// The rate of each process: seconds, and bytes a second in the window that begins then.
    rates: Vec<Vec<(f64, f64)>>,
    /// Seconds, sector, and the index of the process; -1 for requests of the kernel.
    head: Vec<(f64, u64, i32)>,
    /// Start and end in seconds, and the index of the process.
    slices: Vec<(f64, f64, i32)>,
}

impl Charts {
    pub fn of(comparison: &Comparison) -> Charts {
        let processes = comparison.runs.first().map_or(&[][..], |run| &run.processes);
        let mut clones = std::collections::BTreeMap::new();
        let names = processes.iter().map(|process| {
            let clone: &mut u32 = clones.entry(process.job).or_default();
            *clone += 1;
            (process.pid, format!("{}.{}", process.name, *clone - 1))
        });
        Charts { processes: names.collect(), elevators: comparison.runs.iter().map(ElevatorCharts::of).collect() }
    }
}

impl ElevatorCharts {
    fn of(run: &Run) -> ElevatorCharts {
        let place = |pid: u32| {
            run.processes
                .iter()
                .position(|process| process.pid == pid)
                .and_then(|at| i32::try_from(at).ok())
                .unwrap_or(-1)
        };
        let step = run.head.len().div_ceil(HEAD_MAX).max(1);
        let served = run.slices.iter().filter(|slice| slice.kind == SliceKind::Service);
        ElevatorCharts {
            name: run.elevator.clone(),
            percentiles: [(0.0, run.latency_ns.min)]
                .into_iter()
                .chain(run.latency_percentiles_ns.iter().copied())
                .collect(),
            rates: run.processes.iter().map(rates).collect(),
            head: run.head.iter().step_by(step).map(|at| (seconds(at.at_ns), at.sector, place(at.pid))).collect(),
            slices: served
                .take(SLICES_MAX)
                .map(|slice| (seconds(slice.start_ns), seconds(slice.end_ns), place(slice.pid)))
                .collect(),
        }
    }
}

fn rates(process: &ProcessRun) -> Vec<(f64, f64)> {
    let end_ns = process.start_ns.saturating_add(process.runtime_ns);
    let windows = (0u64..).zip(&process.windows).filter_map(|(index, window)| {
        let start_ns = process.start_ns.saturating_add(index.saturating_mul(process.window_ns));
        // The last window is as long as the process ran in it.
        let length_ns = end_ns.saturating_sub(start_ns).min(process.window_ns);
        (length_ns > process.window_ns / 4).then(|| (seconds(start_ns), window.bytes as f64 * 1e9 / length_ns as f64))
    });
    windows.collect()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
