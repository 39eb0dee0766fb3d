//! `hoistway trace replay`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace replay`.
#[derive(Args, Debug)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
