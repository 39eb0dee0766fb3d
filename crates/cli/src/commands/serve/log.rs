//! The log of server and mount, through `tracing`: lines on standard error, or entries of the
//! systemd journal.

use std::io;

use hoistway_control::LogControl;
use tracing::Level;
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::journal::Journal;

/// Changes the filter of the log at run time.
pub struct LogHandle(reload::Handle<Targets, tracing_subscriber::Registry>);

impl LogControl for LogHandle {
    fn filter(&self) -> String {
        self.0.with_current(Targets::to_string).unwrap_or_default()
    }

    fn set(&mut self, filter: &str) -> Result<(), String> {
        let filter: Targets = filter.parse().map_err(|error: ParseError| error.to_string())?;
        self.0.reload(filter).map_err(|error| error.to_string())
    }
}

/// Starts the log with the filter of `RUST_LOG`, otherwise with that of the command line. It goes
/// to the systemd journal if standard error is connected to it.
pub fn start(quiet: bool, verbose: u8) -> LogHandle {
    let level = match (quiet, verbose) {
        (true, _) => Level::ERROR,
        (false, 0) => Level::INFO,
        (false, 1) => Level::DEBUG,
        (false, _) => Level::TRACE,
    };
    // Requests of a killed process are dropped without a reply, of which the FUSE library warns.
    // The target `hoistway` covers all crates of the workspace: targets match by prefix.
    let default = || {
        Targets::new()
            .with_default(Level::WARN)
            .with_target("fuser::reply", Level::ERROR)
            .with_target("hoistway", level)
    };
    let filter = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok()).unwrap_or_else(default);
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_target(false)
        .with_span_events(FmtSpan::NONE)
        .with_ansi(is_coloured());
    let registry = tracing_subscriber::registry().with(filter);
    // Tests that run several commands in one process keep the first subscriber.
    let _ = match Journal::of_standard_error() {
        Some(journal) => registry.with(journal).try_init(),
        None => registry.with(lines).try_init(),
    };
    LogHandle(handle)
}

/// Returns true if standard error is a terminal and `NO_COLOR` is not set.
fn is_coloured() -> bool {
    use io::IsTerminal as _;
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
