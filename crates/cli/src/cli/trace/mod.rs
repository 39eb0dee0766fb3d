//! Arguments of the commands of `hoistway trace`, one file for each.

mod convert;
mod cut;
mod describe;
mod info;
mod merge;
mod record;
mod reorder;
mod replay;
mod view;
mod whatif;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hoistway_trace::{ColumnSpec, DeviceId, Format, OffsetUnit, OutputFormat, TimeUnit, time_ns};

pub use convert::ConvertArgs;
pub use cut::CutArgs;
pub use describe::DescribeArgs;
pub use info::InfoArgs;
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
    /// The command
    #[command(subcommand)]
    pub what: TraceCommand,
}

/// The commands of `hoistway trace`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Print the format of a trace, how it was detected, and the contents of the trace
    Info(InfoArgs),
    /// Print statistics: bytes by process, durations of the steps, patterns of submission
    Describe(DescribeArgs),
    /// Draw a trace as a page: all layers, processes and requests on one time axis
    View(ViewArgs),
    /// Record the requests of a block device
    Record(RecordArgs),
    /// Write a trace in another format
    Convert(ConvertArgs),
    /// Keep a part of a trace: an interval, processes, sectors
    Cut(CutArgs),
    /// Combine several traces into one, in order of time
    Merge(MergeArgs),
    /// Sort the requests of a trace by sector, as if the program had read in disk order
    Reorder(ReorderArgs),
    /// Replay the requests of a trace on a file, a device, a server or a drive model
    Replay(ReplayArgs),
    /// Predict the effect of other elevators on the recorded requests
    Whatif(WhatifArgs),
}

/// Input of all commands that read traces.
#[derive(Args, Clone, Debug)]
pub struct TraceInput {
    /// The trace: a file, a folder of Parquet files, the argument of blktrace -o (NAME for
    /// NAME.blktrace.0, .1, ...), a glob, - for standard input, or sample:two-readers; .gz, .zst
    /// and .xz are decompressed
    #[arg(value_name = "TRACE", required = true)]
    pub files: Vec<PathBuf>,
    /// How they are read
    #[command(flatten)]
    pub reading: TraceReading,
}

/// How a trace is read.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceReading {
    /// Format of the trace [default: detected]
    #[arg(long, visible_alias = "from", value_name = "FORMAT", help_heading = "Input", value_parser = str::parse::<Format>)]
    pub format: Option<Format>,
    /// Unit of the times, if the format does not define it: ps, ns, 100ns, us, ms or s
    #[arg(long, value_name = "UNIT", help_heading = "Input", value_parser = str::parse::<TimeUnit>)]
    pub time_unit: Option<TimeUnit>,
    /// Sector size, if the format does not define it [default: 512]
    #[arg(long, value_name = "BYTES", help_heading = "Input", value_parser = clap::value_parser!(u32).range(512..=65_536))]
    pub sector_bytes: Option<u32>,
    /// Fail at the first line that cannot be read, instead of skipping it
    #[arg(long, help_heading = "Input")]
    pub strict: bool,
    /// Unit of the offsets of tencent, oracle-general and lcs: bytes, sectors or objects [default:
    /// detected]
    #[arg(long, value_name = "UNIT", help_heading = "Input", value_parser = str::parse::<OffsetUnit>)]
    pub offset_unit: Option<OffsetUnit>,
    /// Read a table of any other format: its columns, counted from 1 or named by their titles, with
    /// their units, as in time=2:s,op=3:hex,size=4:bytes,offset=5:sectors
    /// [docs/trace-formats.md]
    #[arg(long, value_name = "COLUMNS", help_heading = "Input", value_parser = str::parse::<ColumnSpec>)]
    pub columns: Option<ColumnSpec>,
}

/// Output of all commands that write traces.
#[derive(Args, Clone, Debug)]
pub struct TraceOutput {
    /// Output file; for blktrace-cpus the name before .blktrace.0, .1, ...; for parquet a file
    /// (NAME.parquet) or a new folder for a set of files [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Output format [default: by the extension of FILE (.csv, .json, .iolog, .bin, .parquet),
    /// otherwise blkparse's text]
    #[arg(long = "as", value_name = "FORMAT", help_heading = "Output")]
    pub format_as: Option<WriteFormat>,
    /// Omit the summary at the end of blkparse's text
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Include messages of control groups in blkparse's text: blkparse omits them, but since Linux
    /// 4.14 all messages of BFQ are of this kind
    #[arg(long, help_heading = "Output")]
    pub all_messages: bool,
    /// Number of events in each file of a Parquet set [default: 8388608]
    #[arg(long, value_name = "N", help_heading = "Output", value_parser = clap::value_parser!(u64).range(1..))]
    pub file_events: Option<u64>,
    /// Begin a new file of a Parquet set after each interval of this length: 60 (seconds), 500ms
    #[arg(long, value_name = "TIME", help_heading = "Output", value_parser = time_ns)]
    pub file_interval: Option<u64>,
}

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WriteFormat {
    /// Text as blkparse prints it
    Blkparse,
    /// blktrace's binary format, all CPUs in one file, as btt, `fio --read_iolog` and hoistway read
    /// it
    Blktrace,
    /// blktrace's binary format, one file for each CPU, as `blkparse -i` reads it
    BlktraceCpus,
    /// fio's iolog, version 3: requests with times; fio reads it since 3.31
    Iolog,
    /// fio's iolog, version 2: waits between requests
    Iolog2,
    /// A table of all events with all fields
    Csv,
    /// A table of all events with all fields, compressed, in one file or in a set of files by time:
    /// for DuckDB, Polars, Dask, Spark, and for traces that are larger than memory
    Parquet,
    /// Chrome's JSON for ui.perfetto.dev: requests as threads of their process, phases as slices
    Perfetto,
}

impl From<WriteFormat> for OutputFormat {
    fn from(format: WriteFormat) -> OutputFormat {
        match format {
            WriteFormat::Blkparse => OutputFormat::Blkparse,
            WriteFormat::Blktrace => OutputFormat::Blktrace,
            WriteFormat::BlktraceCpus => OutputFormat::BlktraceCpus,
            WriteFormat::Iolog => OutputFormat::Iolog,
            WriteFormat::Iolog2 => OutputFormat::Iolog2,
            WriteFormat::Csv => OutputFormat::Csv,
            WriteFormat::Parquet => OutputFormat::Parquet,
            WriteFormat::Perfetto => OutputFormat::Perfetto,
        }
    }
}

/// Parses a device from its major and minor number.
fn device(text: &str) -> Result<DeviceId, String> {
    let numbers =
        text.split_once([',', ':']).and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    match numbers {
        Some((major @ 0..=0xFFF, minor @ 0..=0xF_FFFF)) => Ok(DeviceId::new(major, minor)),
        _ => Err("expected major and minor number of a device, as in 8,0 (`lsblk` shows them)".to_owned()),
    }
}
