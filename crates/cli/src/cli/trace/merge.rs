//! `hoistway trace merge`.

use clap::Args;
use hoistway_trace::time_ns;

use super::{TraceInput, TraceOutput};

/// `hoistway trace merge`.
#[derive(Args, Debug)]
#[command(after_help = MERGE_HELP)]
pub struct MergeArgs {
    #[command(flatten)]
    pub input: TraceInput,
    /// Offsets that are added to the times of the traces, in order: 0,1.5,-20ms (seconds without a
    /// unit) [default: 0]
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = shift, allow_hyphen_values = true)]
    pub shift: Vec<i64>,
    /// Align the starts of all traces (before --shift), for recordings with unrelated clocks
    #[arg(long)]
    pub align: bool,
    #[command(flatten)]
    pub output: TraceOutput,
}

const MERGE_HELP: &str = "\
Each TRACE is one trace: the argument of blktrace -o stands for the files of all CPUs. Traces may have different formats.

Examples:
  hoistway trace merge sda sdb -o both.bin                  two disks of one recording
  hoistway trace merge monday.bin tuesday.bin --align -q    two recordings side by side, as text
  hoistway trace merge a.csv b.csv --shift 0,2.5 -o c.csv   the second 2.5 s later";

fn shift(text: &str) -> Result<i64, String> {
    let (sign, time) = match text.strip_prefix('-') {
        Some(time) => (-1, time),
        None => (1, text),
    };
    let ns = time_ns(time.strip_prefix('+').unwrap_or(time))?;
    i64::try_from(ns).map(|ns| sign * ns).map_err(|_| format!("`{text}` is more than 292 years"))
}
