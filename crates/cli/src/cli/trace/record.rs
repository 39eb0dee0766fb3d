//! `hoistway trace record`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace record`.
#[derive(Args, Debug)]
pub struct RecordArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
