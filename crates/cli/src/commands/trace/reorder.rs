//! `hoistway trace reorder`: sorts the requests of a trace by sector.

use anyhow::{Context, Result};
use hoistway_advise::ReorderTime;
use hoistway_drive::Profile;
use hoistway_trace::describe::SeekFigures;
use hoistway_trace::reorder::{ReorderSummary, ReorderedSource, Window};

use super::describe::seeks;
use super::{input, output};
use crate::cli::trace::ReorderArgs;
use crate::failure::{Exit, print_message};
use crate::output::Out;
use hoistway_units::figures::figure;

/// Writes the sorted trace and prints its statistics.
pub fn run(args: &ReorderArgs, out: &mut Out) -> Result<Exit> {
    let profile = args.drive.as_deref().map(Profile::choose).transpose()?;
    let source = input::open(&args.input)?;
    let (name, files) = (source.name.clone(), source.files.clone());
    let time = profile.as_ref().map(ReorderTime::new);
    let mut sorted = ReorderedSource::new(source, args.within.unwrap_or(Window::All), time);
    let exit = output::write(&mut sorted, &args.output, &name, &files)?;
    let Some((summary, time)) = sorted.into_summary() else { return Ok(exit) };
    if args.output.output.is_none() {
        // Standard output holds the trace.
        print_message(&sentence(&summary));
    } else {
        out.line(format_args!("{name}: {} requests sorted by sector in {}", summary.requests, sweeps(&summary)))?;
        out.line("")?;
        out.table(&mut seeks(&[("before", &summary.before), ("after", &summary.after)]))?;
    }
    if let (Some(drive), Some(time)) = (&args.drive, time) {
        let total_ns = time.total_ns().context("--drive: the drive cannot serve the requests of the trace")?;
        let [before, after] = total_ns.map(|ns| ns as f64 / 1e9);
        let text = format!(
            "{drive} takes {} s in the recorded order and {} s in this order, one request at a time.",
            figure(before),
            figure(after)
        );
        if args.output.output.is_none() {
            print_message(&text);
        } else {
            out.line("")?;
            out.paragraph(0, &text)?;
        }
    }
    Ok(exit)
}

fn sentence(summary: &ReorderSummary) -> String {
    let mean = |of: &SeekFigures| figure(of.distance_sectors.mean * 512.0 / 1e6);
    format!(
        "{} requests in {}: the mean distance was {} MB and is {} MB",
        summary.requests,
        sweeps(summary),
        mean(&summary.before),
        mean(&summary.after)
    )
}

fn sweeps(summary: &ReorderSummary) -> String {
    if summary.sweeps == 1 { "one sweep".to_owned() } else { format!("{} sweeps", summary.sweeps) }
}
