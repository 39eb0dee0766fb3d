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
    /// What is added to the times of each trace, in their order: 0,1.5,-20ms (seconds where there is no unit) [default: 0]
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = shift, allow_hyphen_values = true)]
    pub shift: Vec<i64>,
    /// Let all traces begin at the same instant (before --shift): for recordings whose clocks have nothing to do with each other
    #[arg(long)]
    pub align: bool,
    #[command(flatten)]
    pub output: TraceOutput,
}

const MERGE_HELP: &str = "\
Each TRACE is one trace: what blktrace's -o was given stands for the files of all CPUs. Traces may be of different formats.

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
