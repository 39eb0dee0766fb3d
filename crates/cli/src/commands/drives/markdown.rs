//! `hoistway drives --markdown`: the accuracy report as the tables and plots of docs/drives.md.

mod disks;
mod others;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use hoistway_drive::accuracy::{AccuracyReport, RecordingCheck};
use hoistway_report::{DistributionPoint, distribution_svg};

use crate::output::Out;

/// Writes one part of the page without its heading.
type Part = fn(&AccuracyReport) -> String;

/// The headings and parts of the page in their order.
const PARTS: [(&str, Part); 8] = [
    ("All drives", others::all_drives),
    ("Sums by hand", disks::hand_sums),
    ("Recorded drives", disks::recordings),
    ("Command queues", disks::command_queues),
    ("Measured latencies", others::latencies),
    ("Flash", others::flash),
    ("Cloud volumes", others::cloud),
    ("Fitted from scratch", disks::fits),
];

/// Measures every drive, prints the page, and writes the plot of each recorded drive into `plots`.
///
/// # Errors
/// The errors of [`AccuracyReport::measure`], and a plot that cannot be written.
pub fn run(recordings: &Path, plots: Option<&Path>, out: &mut Out) -> Result<()> {
    let report = AccuracyReport::measure(recordings)?;
    for (index, (heading, part)) in PARTS.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        out.line(format_args!("## {heading}\n"))?;
        part(&report).trim_end().lines().try_for_each(|line| out.line(line))?;
    }
    let Some(plots) = plots else { return Ok(()) };
    for check in &report.recordings {
        let file = plots.join(format!("{}.svg", check.drive));
        fs::write(&file, plot(check)).with_context(|| format!("{}: cannot write the plot", file.display()))?;
    }
    Ok(())
}

fn plot(check: &RecordingCheck) -> String {
    let point = |point: &hoistway_drive::validation::CurvePoint| DistributionPoint {
        share: point.share,
        recorded_ms: point.recorded_ms,
        predicted_ms: point.predicted_ms,
    };
    distribution_svg(check.drive, &check.curve.iter().map(point).collect::<Vec<_>>())
}

/// A Markdown table.
fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}|{}\n{rows}", line(&header), "---|".repeat(header.len()))
}

/// A Markdown table of checks whose last cell says if the goal is reached, and the number that
/// reach it.
fn checks(header: &[&str], rows: impl IntoIterator<Item = (Vec<String>, bool)>) -> String {
    let row = |(mut cells, reached): (Vec<String>, bool)| {
        cells.push(if reached { "yes" } else { "**no**" }.to_owned());
        (cells, reached)
    };
    let (rows, reached): (Vec<_>, Vec<_>) = rows.into_iter().map(row).unzip();
    let count = reached.iter().filter(|reached| **reached).count();
    format!("{}\n{count} of {} reach the goal.\n", table(header, &rows), reached.len())
}

/// The name of a drive as code.
fn code(name: &str) -> String {
    format!("`{name}`")
}
