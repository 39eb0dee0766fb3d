//! The error of a model as a table: recorded figures beside predicted ones.

use hoistway_report::{NamedTable, Table};
use hoistway_units::figures::{change, figure};

use super::fidelity::{Fidelity, ProcessFidelity};

/// The columns of recorded and predicted figures after the name of the process.
pub const FIDELITY_COLUMNS: [&str; 9] =
    ["MB/s", "predicted", "off", "mean ms", "predicted", "off", "p99 ms", "predicted", "off"];

/// The name of a process and its figures in [`FIDELITY_COLUMNS`].
pub fn fidelity_row(process: &ProcessFidelity) -> Vec<String> {
    let mut row = vec![process_name(process)];
    let (was, is) = (&process.recorded, &process.predicted);
    row.extend([figure(was.bytes_per_s / 1e6), figure(is.bytes_per_s / 1e6), change(process.throughput_error())]);
    row.extend([was, is].map(|figures| figure(figures.latency_ns.mean / 1e6)));
    row.push(change(process.mean_latency_error()));
    row.extend([was, is].map(|figures| figure(figures.latency_ns.p99 as f64 / 1e6)));
    row.push(change(process.p99_latency_error()));
    row
}

/// The name and id of a process; one that is not judged is marked as having few requests.
pub fn process_name(process: &ProcessFidelity) -> String {
    match (process.pid, process.is_judged()) {
        (0, _) => "all".into(),
        (pid, true) => format!("{} ({pid})", process.name),
        (pid, false) => format!("{} ({pid}), few", process.name),
    }
}

/// The error of the model for each process and for all together.
pub fn fidelity_table(fidelity: &Fidelity) -> NamedTable {
    let head = ["process"].into_iter().chain(FIDELITY_COLUMNS);
    NamedTable {
        title: "Error of the model".to_owned(),
        intro: format!(
            "The recording under {} beside its prediction: throughput in MB/s, mean latency and 99th percentile in ms, and how far the prediction is off.",
            fidelity.elevator
        ),
        table: Table {
            head: head.map(str::to_owned).collect(),
            rows: fidelity.processes.iter().chain([&fidelity.all]).map(fidelity_row).collect(),
            marked: None,
        },
    }
}
