//! `hoistway trace cut`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace cut`.
#[derive(Args, Debug)]
pub struct CutArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
