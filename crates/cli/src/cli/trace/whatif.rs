//! `hoistway trace whatif`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace whatif`.
#[derive(Args, Debug)]
pub struct WhatifArgs {
    #[command(flatten)]
    pub input: TraceInput,
}
