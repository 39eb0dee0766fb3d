//! `hoistway trace describe`: prints the statistics of a trace.

mod tables;
mod text;

pub use tables::seeks;

use anyhow::{Context as _, Result, bail};
use hoistway_trace::describe::{TraceDescription, describe};

use crate::cli::trace::DescribeArgs;
use crate::commands::trace::input;
use crate::failure::Exit;
use crate::output::Out;

/// Describes a trace.
pub fn run(args: &DescribeArgs, out: &mut Out) -> Result<Exit> {
    let mut source = input::open(&args.input)?;
    let mut description = describe(&mut source)?;
    input::print_notices(&mut source);
    let trace = source.name;
    if description.counts.events == 0 {
        let notes = description.counts.notes;
        bail!("{trace}: the trace has no events of requests, only {notes} messages and names of processes");
    }
    if let Some(process) = &args.process {
        description.select_process(process).context("--process")?;
    }
    if args.json {
        out.json(&TraceDescription { trace, description })?;
    } else if args.process.is_some() {
        text::processes(&description, out)?;
    } else {
        text::whole(&trace, &description, args.top, out)?;
    }
    Ok(Exit::Success)
}
