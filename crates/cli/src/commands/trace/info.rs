//! `hoistway trace info`: the format of a trace, and what the trace holds.

use anyhow::Result;
use hoistway_trace::Source;
use hoistway_trace::describe::{Counts, Describer, Description};
use hoistway_trace::request::{RequestTracker, StepCounts};
use hoistway_trace::{Batch, Detection};
use serde::Serialize;

use crate::cli::trace::InfoArgs;
use crate::commands::trace::input;
use crate::failure::Exit;
use crate::output::{self, Out};
use hoistway_units::figures::figure;

/// The JSON document.
#[derive(Debug, Serialize)]
struct Info<'a> {
    /// Version of this document.
    schema: u32,
    trace: &'a str,
    inputs: Vec<InputFormat<'a>>,
    duration_ns: u64,
    devices: Vec<&'a str>,
    processes: u64,
    queue_depth_max: Option<u64>,
    requests: StepCounts,
    counts: &'a Counts,
}

/// The format of an input.
#[derive(Debug, Serialize)]
struct InputFormat<'a> {
    file: &'a str,
    format: &'static str,
    compression: Option<&'static str>,
    detected_from: &'a str,
}

/// Prints the format and the contents of a trace.
pub fn run(args: &InfoArgs, out: &mut Out) -> Result<Exit> {
    let mut source = input::open(&args.input)?;
    let (mut describer, mut tracker, mut batch) = (Describer::new(), RequestTracker::new(), Batch::new());
    let mut steps = StepCounts::default();
    loop {
        source.next(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        describer.take(&batch);
        tracker.take(&batch);
        tracker.take_finished().for_each(|request| steps.add(&request));
    }
    tracker.into_outstanding().iter().for_each(|request| steps.add(request));
    let description = describer.finish();
    if args.json {
        out.json(&document(&source.name, source.detections(), &description, steps))?;
    } else {
        text(source.detections(), &description, &steps, out)?;
    }
    input::print_notices(&mut source);
    Ok(Exit::Success)
}

fn document<'a>(
    trace: &'a str,
    detections: &'a [Detection],
    description: &'a Description,
    requests: StepCounts,
) -> Info<'a> {
    let input = |detection: &'a Detection| InputFormat {
        file: &detection.file,
        format: detection.format.name(),
        compression: detection.compression,
        detected_from: &detection.reason,
    };
    Info {
        schema: 1,
        trace,
        inputs: detections.iter().map(input).collect(),
        duration_ns: description.duration_ns,
        devices: description.devices.iter().map(|device| device.device.as_str()).collect(),
        processes: processes(description),
        queue_depth_max: depth_max(description),
        requests,
        counts: &description.counts,
    }
}

fn text(detections: &[Detection], description: &Description, steps: &StepCounts, out: &mut Out) -> Result<()> {
    for Detection { file, compression, format, reason } in detections {
        let packed = compression.map(|tool| format!(", unpacked by {tool}")).unwrap_or_default();
        out.line(format_args!("{file}: {} ({}){packed}", format.title(), format.name()))?;
        out.paragraph(2, &format!("detected from {reason}"))?;
    }
    out.line("")?;
    let Counts { reads, writes, notes, events, .. } = &description.counts;
    let seconds = figure(description.duration_ns as f64 / 1e9);
    let rows = [
        ("events", events.to_string(), ""),
        ("submissions (Q)", (reads.queued + writes.queued).to_string(), "without them, an issue is the first step"),
        ("merges (M, F)", (reads.merged + writes.merged).to_string(), ""),
        ("insertions (I)", (reads.inserted + writes.inserted).to_string(), "the time in the elevator needs them"),
        ("issues (D)", (reads.issued + writes.issued).to_string(), "the time in the drive needs them"),
        ("completions (C)", (reads.completed + writes.completed).to_string(), "latencies and depths need them"),
        ("messages and names", notes.to_string(), "slices of the elevator, names of processes"),
        ("requests", steps.requests.to_string(), ""),
        ("  with a latency", steps.with_latency.to_string(), "a completion and an earlier step"),
        ("  with a service time", steps.with_service_time.to_string(), "both D and C: `whatif --drive fit` needs 400"),
        ("queue depth, most", depth_max(description).map_or("unknown".to_owned(), |most| most.to_string()), ""),
        ("processes", processes(description).to_string(), "0 if the format has none"),
        ("devices", description.devices.len().to_string(), ""),
        ("seconds", seconds, "from the first event to the last"),
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

/// Number of processes, if the format has them.
fn processes(description: &Description) -> u64 {
    let known = description.processes.iter().filter(|process| process.pid > 0 || !process.name.is_empty()).count();
    known as u64 + description.processes_left_out
}

fn depth_max(description: &Description) -> Option<u64> {
    (description.completions() > 0).then_some(description.depth.under_way_over_time.max)
}
