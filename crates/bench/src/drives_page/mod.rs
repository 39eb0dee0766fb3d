//! The accuracy of the drive models as the tables and plots of docs/drives.md.

mod disks;
mod others;

use hoistway_drive::accuracy::{AccuracyReport, RecordingCheck};
use hoistway_report::{DistributionPoint, distribution_svg};

/// Writes one part of the page without its heading.
type Part = fn(&AccuracyReport) -> String;

/// The headings and parts of the page in their order.
const PARTS: [(&str, Part); 9] = [
    ("All drives", others::all_drives),
    ("Sums by hand", disks::hand_sums),
    ("Recorded drives", disks::recordings),
    ("Command queues", disks::command_queues),
    ("Several streams", disks::streams),
    ("Measured latencies", others::latencies),
    ("Flash", others::flash),
    ("Cloud volumes", others::cloud),
    ("Fitted from scratch", disks::fits),
];

/// Returns the tables of docs/drives.md in Markdown: nine sections with their headings.
pub fn page(report: &AccuracyReport) -> String {
    let section = |(heading, part): &(&str, Part)| format!("## {heading}\n\n{}\n", part(report).trim_end());
    PARTS.iter().map(section).collect::<Vec<_>>().join("\n")
}

/// Returns the plots of the recorded drives, each an SVG picture with the name of its drive.
pub fn plots(report: &AccuracyReport) -> Vec<(String, String)> {
    report.recordings.iter().map(|check| (check.drive.to_owned(), plot(check))).collect()
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
