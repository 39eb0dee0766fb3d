//! docs/serve-benchmarks.md from what was measured.

use std::fmt::Write;

use super::crowd::{ACTIVE, Crowd, OPEN};
use super::sharing::Shares;
use super::transport::{Medians, Workload};
use crate::goals::{Goal, goal_rows, grouped};

/// The path of the page from the root.
pub const PAGE: &str = "docs/serve-benchmarks.md";

/// The tables of what a request costs, and the goals.
pub fn cost(tables: &[(Workload, Medians)], goals: &[Goal], rounds: u32, seconds: f64) -> String {
    let mut text = format!("Medians of {rounds} rounds of {seconds} s each.\n\n");
    goal_rows(&mut text, goals);
    for (workload, medians) in tables {
        let _ = writeln!(text, "\n### {}\n", workload.title);
        let unit = if workload.in_bytes { "MB/s" } else { "IOPS" };
        let _ = writeln!(
            text,
            "| server | {unit} | p50 (us) | p99 (us) | server CPU an operation (us) | least of the rounds |\n|---|---|---|---|---|---|"
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

/// The table of shares.
pub fn sharing(results: &[Shares]) -> String {
    let mut text =
        "| what | under | for | wanted | found | off by | within |\n|---|---|---|---|---|---|---|\n".to_owned();
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

/// What the crowd needed.
pub fn crowd(crowd: &Crowd, goals: &[Goal]) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut text = format!(
        "{OPEN} connections open, {ACTIVE} of them busy with one 4 KiB read at a time each, for {} s:\n\n",
        crowd.seconds
    );
    goal_rows(&mut text, goals);
    let _ = write!(
        text,
        "\n| | |\n|---|---|\n\
         | resident memory before anybody came | {:.1} MiB |\n\
         | with {OPEN} connections open | {:.1} MiB ({:.1} KiB a connection) |\n\
         | with {ACTIVE} of them busy | {:.1} MiB |\n\
         | operations a second | {} |\n\
         | operations of the busy connection that had fewest : most | {} : {} |\n",
        mib(crowd.alone_bytes),
        mib(crowd.open_bytes),
        (crowd.open_bytes.saturating_sub(crowd.alone_bytes)) as f64 / 1024.0 / OPEN as f64,
        mib(crowd.busy_bytes),
        grouped(crowd.operations_per_s),
        crowd.least,
        crowd.most,
    );
    text
}
