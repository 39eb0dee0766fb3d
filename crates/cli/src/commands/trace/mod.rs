//! `hoistway trace`: block traces.

mod convert;
mod cut;
mod describe;
mod info;
pub mod input;
mod merge;
mod output;
mod record;
mod reorder;
mod replay;
mod view;
mod whatif;

use anyhow::Result;

use crate::cli::trace::{TraceArgs, TraceCommand};
use crate::failure::Exit;
use crate::output::Out;

/// Runs the selected command.
pub fn run(args: &TraceArgs, out: &mut Out) -> Result<Exit> {
    match &args.what {
        TraceCommand::Info(args) => info::run(args, out),
        TraceCommand::Describe(args) => describe::run(args, out),
        TraceCommand::View(args) => view::run(args, out),
        TraceCommand::Record(args) => record::run(args, out),
        TraceCommand::Convert(args) => convert::run(args),
        TraceCommand::Cut(args) => cut::run(args),
        TraceCommand::Merge(args) => merge::run(args),
        TraceCommand::Reorder(args) => reorder::run(args, out),
        TraceCommand::Replay(args) => replay::run(args, out),
        TraceCommand::Whatif(args) => whatif::run(args, out),
    }
}
