//! `hoistway trace info`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace info`.
#[derive(Args, Debug)]
#[command(after_help = "The whole trace is read. `hoistway trace info a.csv --from spc` skips the detection.")]
pub struct InfoArgs {
    #[command(flatten)]
    pub input: TraceInput,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
