//! `hoistway drives --markdown`: every drive measured, as the tables of docs/drives.md, and the plots beside it.

mod all;
mod cloud;
mod fitted;
mod flash;
mod hand_sums;
mod latency;
mod measure;
mod plot;
mod queueing;
mod recorded;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rayon::prelude::*;

use crate::output::Out;
use recorded::Recordings;

/// A part of the page: its heading and its text.
type Part = (&'static str, fn(&Recordings) -> Result<String>);

/// What the page has, in this order.
const PARTS: [Part; 8] = [
    ("All drives", all::part),
    ("Sums by hand", hand_sums::part),
    ("Recorded drives", recorded::part),
    ("Command queues", queueing::part),
    ("Measured latencies", latency::part),
    ("Flash", flash::part),
    ("Cloud volumes", cloud::part),
    ("Fitted from scratch", fitted::part),
];

/// Prints the parts, and writes a plot of each recorded drive into `plots` if a folder is named.
///
/// # Errors
/// What keeps a recording from being read or a plot from being written.
pub fn print(recordings: &Path, plots: Option<&Path>, out: &mut Out) -> Result<()> {
    let recordings = Recordings::read(recordings)?;
    let parts: Vec<Result<String>> = PARTS
        .par_iter()
        .map(|(heading, make)| Ok(format!("## {heading}\n\n{}", make(&recordings)?.trim_end())))
        .collect();
    let parts: Vec<String> = parts.into_iter().collect::<Result<_>>()?;
    parts.join("\n\n").lines().try_for_each(|line| out.line(line))?;
    let Some(plots) = plots else { return Ok(()) };
    for (name, svg) in recordings.plots() {
        let file = plots.join(format!("{name}.svg"));
        fs::write(&file, svg).with_context(|| format!("{}: cannot write the plot", file.display()))?;
    }
    Ok(())
}

/// A Markdown table.
fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}|{}\n{rows}", line(&header), "---|".repeat(header.len()))
}

/// Whether a goal is reached, as a table's cell.
fn reached(reached: bool) -> String {
    if reached { "yes" } else { "**no**" }.to_owned()
}

/// A row of a table, and whether it reaches its goal.
type Judged = (Vec<String>, bool);

/// A table of rows with goals, and how many reach theirs.
fn judged(header: &[&str], rows: impl IntoIterator<Item = Result<Judged>>) -> Result<String> {
    let (rows, good): (Vec<_>, Vec<_>) = rows.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let reached = good.iter().filter(|reached| **reached).count();
    Ok(format!("{}\n{reached} of {} reach the goal.\n", table(header, &rows), good.len()))
}
