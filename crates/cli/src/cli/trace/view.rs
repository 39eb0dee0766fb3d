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

    /// Where to write the page; otherwise the trace's name with .html, in this folder
    #[arg(short, long, value_name = "PAGE.html")]
    pub output: Option<PathBuf>,

    /// Write single requests to a folder beside the page (PAGE.detail), however many they are; up to 150,000 are in the page itself
    #[arg(long)]
    pub detail: bool,

    /// Write nothing, but answer a browser on this machine: the page, and single requests as it asks for them. The port is any that is free, unless told
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0", conflicts_with_all = ["output", "detail"])]
    pub serve: Option<SocketAddr>,

    /// The page's heading instead of the trace's name
    #[arg(long)]
    pub title: Option<String>,
}
