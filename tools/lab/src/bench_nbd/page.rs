//! Renders the sections of docs/serve-benchmarks.md.

use std::fmt::Write;

use super::connections::{ACTIVE, ConnectionFigures, OPEN};
use super::remote;
use super::sharing::Shares;
use super::transport::{Medians, Sample, Workload};
use crate::goals::{Goal, goal_rows, grouped};

/// The path of the page from the root.
pub const PAGE: &str = "docs/serve-benchmarks.md";

/// Renders the tables of the cost of a request, and the goals.
pub fn cost(tables: &[(Workload, Medians)], goals: &[Goal], rounds: u32, seconds: f64) -> String {
    let mut text = format!("Medians of {rounds} rounds of {seconds} s each.\n\n");
    goal_rows(&mut text, goals);
    for (workload, medians) in tables {
        let _ = writeln!(text, "\n### {}\n", workload.title);
        let unit = if workload.in_bytes { "MB/s" } else { "IOPS" };
        let _ = writeln!(
            text,
            "| server | {unit} | p50 (us) | p99 (us) | server CPU per operation (us) | least of the rounds |\n|---|---|---|---|---|---|"
        );
        for server in workload.servers.iter() {
            let Some(sample) = medians.get(server) else {
                let _ = writeln!(text, "| {} | not installed | | | |", server.name());
                continue;
            };
            let rate = if workload.in_bytes { sample.bytes_per_s / 1e6 } else { sample.operations_per_s };
            let _ = writeln!(
                text,
                "| {} | {} | {:.0} | {:.0} | {:.2} | {:.2} |",
                server.name(),
                grouped(rate),
                sample.p50_us,
                sample.p99_us,
                sample.server_us,
                sample.server_us_least
            );
        }
    }
    text
}

/// Renders the table of shares.
pub fn sharing(results: &[Shares]) -> String {
    let mut text =
        "| case | elevator | duration | target | measured | deviation | tolerance |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for row in results {
        let word = if row.holds() { String::new() } else { " **no**".to_owned() };
        let _ = writeln!(
            text,
            "| {} | {} | {} s | {} | {} | {:+.1} % | {}{word} |",
            row.what, row.under, row.seconds, row.wanted, row.found, row.off_percent, row.bound
        );
    }
    text
}

/// Renders the section on many connections.
pub fn connections(figures: &ConnectionFigures, goals: &[Goal]) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut text = format!(
        "{OPEN} connections open, {ACTIVE} of them busy with one 4 KiB read at a time each, for {} s:\n\n",
        figures.seconds
    );
    goal_rows(&mut text, goals);
    let _ = write!(
        text,
        "\n| | |\n|---|---|\n\
         | resident memory without connections | {:.1} MiB |\n\
         | with {OPEN} connections open | {:.1} MiB ({:.1} KiB a connection) |\n\
         | with {ACTIVE} of them busy | {:.1} MiB |\n\
         | operations a second | {} |\n\
         | operations per busy connection, least : most | {} : {} |\n",
        mib(figures.alone_bytes),
        mib(figures.open_bytes),
        (figures.open_bytes.saturating_sub(figures.alone_bytes)) as f64 / 1024.0 / OPEN as f64,
        mib(figures.busy_bytes),
        grouped(figures.operations_per_s),
        figures.least,
        figures.most,
    );
    text
}

/// Renders the table of hoistway in front of another server, with ratios to the direct connection.
pub fn in_front(tables: &[(Workload, Medians)], machine: &str, rounds: u32, seconds: f64) -> String {
    let mut text = format!(
        "{machine}\nMedians of {rounds} rounds of {seconds} s each, in which the servers alternate.\n\n| load | server | rate | of the direct one | p50 (us) | p99 (us) |\n|---|---|---|---|---|---|\n"
    );
    for (workload, medians) in tables {
        let rate = |sample: &Sample| if workload.in_bytes { sample.bytes_per_s / 1e6 } else { sample.operations_per_s };
        let unit = if workload.in_bytes { "MB/s" } else { "IOPS" };
        let direct = medians.get(&remote::DIRECT).map(rate);
        for server in &workload.servers {
            let Some(sample) = medians.get(server) else { continue };
            let ratio = direct.map_or(String::new(), |direct| format!("{:.2}", rate(sample) / direct));
            let _ = writeln!(
                text,
                "| {} | {} | {} {unit} | {ratio} | {:.0} | {:.0} |",
                workload.title,
                server.name(),
                grouped(rate(sample)),
                sample.p50_us,
                sample.p99_us
            );
        }
    }
    text
}
