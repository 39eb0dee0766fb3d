//! `hoistway trace view`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::TraceInput;

/// `hoistway trace view`.
#[derive(Args, Debug)]
pub struct ViewArgs {
    #[command(flatten)]
    pub input: TraceInput,

    /// Output file [default: the name of the trace with .html, in the current folder]
    #[arg(short, long, value_name = "PAGE.html")]
    pub output: Option<PathBuf>,

    /// Write all single requests to a folder beside the page (PAGE.detail); without it, the page
    /// contains up to 150,000
    #[arg(long)]
    pub detail: bool,

    /// Serve the page and single requests to a browser on this machine instead of writing files
    /// [default port: any free one]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0", conflicts_with_all = ["output", "detail"])]
    pub serve: Option<SocketAddr>,

    /// Heading of the page [default: the name of the trace]
    #[arg(long)]
    pub title: Option<String>,
}
