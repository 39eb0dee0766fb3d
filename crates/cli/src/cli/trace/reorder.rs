//! `hoistway trace reorder`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace reorder`.
#[derive(Args, Debug)]
pub struct ReorderArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
