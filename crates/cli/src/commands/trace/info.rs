//! `hoistway trace info`: prints the format of a trace, and what the trace holds.

use anyhow::Result;
use hoistway_trace::info::{InputFormat, TraceInfo};

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
    let mut table = output::table(&["holds", "number", "remark"], 1);
    if let Some(last) = table.column_iter_mut().last() {
        last.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for (name, number, remark) in info.rows() {
        table.add_row([name, &number, remark]);
    }
    out.table(&mut table)?;
    if let Some(missing) = info.requests.missing() {
        out.line("")?;
        out.paragraph(0, &format!("For service times, {missing}."))?;
    }
    Ok(())
}
