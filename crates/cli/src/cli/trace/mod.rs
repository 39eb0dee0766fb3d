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

use clap::{Args, Subcommand, ValueEnum};
use hoistway_trace::{DeviceId, Format, TimeUnit};

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
    /// What format it is in [default: found out from its beginning]
    #[arg(long, value_name = "FORMAT", help_heading = "Input", value_parser = format)]
    pub format: Option<Format>,
    /// What its times count, where the format leaves that open: ps, ns, 100ns, us, ms or s
    #[arg(long, value_name = "UNIT", help_heading = "Input", value_parser = time_unit)]
    pub time_unit: Option<TimeUnit>,
    /// The size of its sectors, where the format leaves that open [default: 512]
    #[arg(long, value_name = "BYTES", help_heading = "Input", value_parser = clap::value_parser!(u32).range(512..=65_536))]
    pub sector_bytes: Option<u32>,
}

/// What is written: the same for all commands that write traces.
#[derive(Args, Clone, Debug)]
pub struct TraceOutput {
    /// The file to write; of blktrace-cpus the name before .blktrace.0, .1, ... [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// The format to write [default: by the end of FILE's name (.csv, .json, .iolog, .bin), otherwise blkparse's text]
    #[arg(long = "as", value_name = "FORMAT", help_heading = "Output")]
    pub format_as: Option<WriteFormat>,
    /// Leave the summary at the end of blkparse's text out
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Write notes that belong to a control group into blkparse's text, too: blkparse leaves them out, BFQ writes no others since Linux 4.14
    #[arg(long, help_heading = "Output")]
    pub all_messages: bool,
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WriteFormat {
    /// Text as blkparse prints it
    Blkparse,
    /// blktrace's binary format, all CPUs in one file: what btt, `fio --read_iolog` and hoistway read
    Blktrace,
    /// blktrace's binary format, a file a CPU: what `blkparse -i` reads
    BlktraceCpus,
    /// fio's iolog, version 3: requests with their times; fio reads it since 3.31
    Iolog,
    /// fio's iolog, version 2: waits between requests
    Iolog2,
    /// A table of all events with all that is known of them
    Csv,
    /// Chrome's JSON for ui.perfetto.dev: a lane for each request of a process, phases as slices
    Perfetto,
}

/// A device by its numbers.
fn device(text: &str) -> Result<DeviceId, String> {
    let numbers =
        text.split_once([',', ':']).and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    match numbers {
        Some((major @ 0..=0xFFF, minor @ 0..=0xF_FFFF)) => Ok(DeviceId::new(major, minor)),
        _ => Err("a device has two numbers, as in 8,0 (`lsblk` shows them)".to_owned()),
    }
}

fn format(name: &str) -> Result<Format, String> {
    Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
        let known = Format::ALL.map(Format::name).join(", ");
        format!("there is no format `{name}`; there are {known}")
    })
}

fn time_unit(name: &str) -> Result<TimeUnit, String> {
    TimeUnit::from_name(name).ok_or_else(|| {
        let known = TimeUnit::ALL.map(TimeUnit::name).join(", ");
        format!("there is no unit `{name}`; there are {known}")
    })
}
