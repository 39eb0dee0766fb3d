//! `hoistway trace convert`.

use clap::Args;

use super::{TraceInput, TraceOutput, WriteFormat};

/// `hoistway trace convert`.
#[derive(Args, Debug)]
#[command(after_help = CONVERT_HELP)]
pub struct ConvertArgs {
    #[command(flatten)]
    pub input: TraceInput,
    #[command(flatten)]
    pub output: TraceOutput,
    /// The same as --as
    #[arg(long, value_name = "FORMAT", hide = true, conflicts_with = "format_as")]
    pub to: Option<WriteFormat>,
}

const CONVERT_HELP: &str = "\
Input formats: blktrace (versions 7 and 8), blkparse (text), ftrace (text of tracefs and of trace-cmd report), trace-dat (trace-cmd's \
file), perf (perf script), biosnoop (bcc, bpftrace), iolog and fio-lat (fio), msr, alibaba, tencent, spc (UMass), systor17, fiu, vscsi and \
cloudphysics, disksim, mqsim, blkreplay, csv (hoistway's own), parquet. Format and compression are detected; trace info explains how.

Examples:
  hoistway trace convert sda                          sda.blktrace.0, .1, ... as blkparse's text
  hoistway trace convert sda -o sda.json              a page for ui.perfetto.dev
  hoistway trace convert src2_0.csv.gz -o src2.iolog  for fio --read_iolog=src2.iolog
  hoistway trace convert trace.txt -o trace.csv       every event as a line of a table
  hoistway trace convert sda --as parquet -o events   a set of Parquet files in the new folder events";
