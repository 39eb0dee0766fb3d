//! `hoistway trace info`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace info`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads the whole trace.

  hoistway trace info trace.dat            trace-cmd's file
  hoistway trace info sda.txt.gz --json    the same for a program
  hoistway trace info a.csv --from spc     skips the detection")]
pub struct InfoArgs {
    #[command(flatten)]
    pub input: TraceInput,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
