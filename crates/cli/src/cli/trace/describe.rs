//! `hoistway trace describe`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace describe`.
#[derive(Args, Debug)]
pub struct DescribeArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
