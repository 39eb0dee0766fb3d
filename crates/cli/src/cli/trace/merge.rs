//! `hoistway trace merge`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace merge`.
#[derive(Args, Debug)]
pub struct MergeArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
