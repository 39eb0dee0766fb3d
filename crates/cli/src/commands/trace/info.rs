//! `hoistway trace info`: prints the format of a trace, and what the trace holds.

use anyhow::Result;
use hoistway_trace::info::{InputFormat, TraceInfo};
use hoistway_units::figures::figure;

use crate::cli::trace::InfoArgs;
use crate::commands::trace::input;
use crate::failure::Exit;
use crate::output::{self, Out};

/// Prints the format and the contents of a trace.
pub fn run(args: &InfoArgs, out: &mut Out) -> Result<Exit> {
    let mut source = input::open(&args.input)?;
    let (name, detections) = (source.name.clone(), source.detections().to_vec());
    let info = TraceInfo::read(&mut source, &name, &detections)?;
    if args.json {
        out.json(&info)?
    } else {
        text(&info, out)?
    }
    input::print_notices(&mut source);
    Ok(Exit::Success)
}

fn text(info: &TraceInfo, out: &mut Out) -> Result<()> {
    for InputFormat { file, format, title, compression, detected_from } in &info.inputs {
        let packed = compression.map(|tool| format!(", unpacked by {tool}")).unwrap_or_default();
        out.line(format_args!("{file}: {title} ({format}){packed}"))?;
        out.paragraph(2, &format!("detected from {detected_from}"))?;
    }
    out.line("")?;
    let (reads, writes, steps) = (&info.counts.reads, &info.counts.writes, &info.requests);
    let depth = info.queue_depth_max.map_or("unknown".to_owned(), |most| most.to_string());
    let rows = [
        ("events", info.counts.events.to_string(), ""),
        ("submissions (Q)", (reads.queued + writes.queued).to_string(), "without them, an issue is the first step"),
        ("merges (M, F)", (reads.merged + writes.merged).to_string(), ""),
        ("insertions (I)", (reads.inserted + writes.inserted).to_string(), "the time in the elevator needs them"),
        ("issues (D)", (reads.issued + writes.issued).to_string(), "the time in the drive needs them"),
        ("completions (C)", (reads.completed + writes.completed).to_string(), "latencies and depths need them"),
        ("messages and names", info.counts.notes.to_string(), "slices of the elevator, names of processes"),
        ("requests", steps.requests.to_string(), ""),
        ("  with a latency", steps.with_latency.to_string(), "a completion and an earlier step"),
        ("  with a service time", steps.with_service_time.to_string(), "both D and C: `whatif --drive fit` needs 400"),
        ("queue depth, most", depth, ""),
        ("processes", info.processes.to_string(), "0 if the format has none"),
        ("devices", info.devices.len().to_string(), ""),
        ("seconds", figure(info.duration_ns as f64 / 1e9), "from the first event to the last"),
    ];
    let mut table = output::table(&["holds", "number", "remark"], 1);
    if let Some(last) = table.column_iter_mut().last() {
        last.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for (name, number, remark) in rows {
        table.add_row([name.to_owned(), number, remark.to_owned()]);
    }
    out.table(&mut table)?;
    if let Some(missing) = steps.missing() {
        out.line("")?;
        out.paragraph(0, &format!("For service times, {missing}."))?;
    }
    Ok(())
}
