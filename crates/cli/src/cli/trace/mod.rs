//! `hoistway trace`: the arguments of its commands, a file each.

mod convert;
mod cut;
mod describe;
mod merge;
mod record;
mod reorder;
mod replay;
mod view;
mod whatif;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use convert::ConvertArgs;
pub use cut::CutArgs;
pub use describe::DescribeArgs;
pub use merge::MergeArgs;
pub use record::{ByChoice, RecordArgs};
pub use reorder::ReorderArgs;
pub use replay::{LayerChoice, ReplayArgs, TimingChoice};
pub use view::ViewArgs;
pub use whatif::WhatifArgs;

/// `hoistway trace`.
#[derive(Args, Debug)]
#[command(disable_help_subcommand = true)]
pub struct TraceArgs {
    /// What to do
    #[command(subcommand)]
    pub what: TraceCommand,
}

/// What `hoistway trace` does.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Say who did how much, how long each step took, and what requests waited for
    Describe(DescribeArgs),
    /// Draw a trace as a page: every layer, process and request on one axis of time
    View(ViewArgs),
    /// Record what passes through a block device
    Record(RecordArgs),
    /// Write a trace in another format
    Convert(ConvertArgs),
    /// Keep a part of a trace: a span of time, processes, sectors
    Cut(CutArgs),
    /// Make one trace of several, in the order of time
    Merge(MergeArgs),
    /// Sort the requests of a trace by sector, as one sweep of the head would serve them
    Reorder(ReorderArgs),
    /// Do the requests of a trace again, on a file, a device, a server or a drive model
    Replay(ReplayArgs),
    /// Say what other elevators would have made of the recorded requests
    Whatif(WhatifArgs),
}

/// What is read: the same for all commands that read traces.
#[derive(Args, Clone, Debug)]
pub struct TraceInput {
    /// The trace: a file, what blktrace's -o was given (NAME for NAME.blktrace.0, .1, ...), a glob, or - for standard input; .gz, .zst and .xz are read as they are
    #[arg(value_name = "TRACE", required = true)]
    pub files: Vec<PathBuf>,
}
