//! `hoistway trace describe`.

mod tables;
mod text;

pub use tables::seeks;

use anyhow::{Result, bail};
use hoistway_trace::describe::{Describer, Description, ProcessFigures};
use hoistway_trace::{Batch, Source};
use serde::Serialize;

use crate::cli::trace::DescribeArgs;
use crate::commands::trace::input;
use crate::failure::Exit;
use crate::output::Out;

/// So many names of processes are told to whoever asks for one that is not there.
const NAMES_SHOWN: usize = 10;

/// Describes a trace.
pub fn run(args: &DescribeArgs, out: &mut Out) -> Result<Exit> {
    let mut source = input::open(&args.input)?;
    let mut told = describe(&mut source)?;
    input::tell_notices(&mut source);
    let name = source.name;
    if told.counts.events == 0 {
        bail!("{name}: nothing happened in this trace: it has no events of requests");
    }
    if let Some(process) = &args.process {
        told.processes = chosen(told.processes, process)?;
    }
    if args.json {
        out.json(&Document { trace: &name, told: &told })?;
    } else if args.process.is_some() {
        text::processes(&told, out)?;
    } else {
        text::whole(&name, &told, args.top, out)?;
    }
    Ok(Exit::Success)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    trace: &'a str,
    #[serde(flatten)]
    told: &'a Description,
}

fn describe(source: &mut dyn Source) -> Result<Description> {
    let (mut describe, mut batch) = (Describer::new(), Batch::new());
    loop {
        source.next(&mut batch)?;
        if batch.is_empty() {
            return Ok(describe.finish());
        }
        describe.take(&batch);
    }
}

/// The processes of a name or number.
fn chosen(processes: Vec<ProcessFigures>, wanted: &str) -> Result<Vec<ProcessFigures>> {
    let is_wanted =
        |process: &ProcessFigures| process.name == wanted || wanted.parse().is_ok_and(|pid: u32| pid == process.pid);
    if processes.iter().any(is_wanted) {
        return Ok(processes.into_iter().filter(is_wanted).collect());
    }
    let mut names: Vec<String> = processes.iter().map(|process| text::title(&process.name, process.pid)).collect();
    let more = names.len().saturating_sub(NAMES_SHOWN);
    names.truncate(NAMES_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    bail!("--process {wanted}: no such process made requests; there are {}{more}", names.join(", "))
}
