//! `hoistway trace view`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace view`.
#[derive(Args, Debug)]
pub struct ViewArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
