//! `hoistway trace convert`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace convert`.
#[derive(Args, Debug)]
pub struct ConvertArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
