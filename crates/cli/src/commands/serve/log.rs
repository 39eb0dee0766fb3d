//! What the server tells while it runs: lines on standard error, through `tracing`.

use std::io;

use hoistway_control::LogControl;
use tracing::Level;
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

/// By which what is told can be changed while the server runs.
pub struct Handle(reload::Handle<Targets, tracing_subscriber::Registry>);

impl LogControl for Handle {
    fn filter(&self) -> String {
        self.0.with_current(Targets::to_string).unwrap_or_default()
    }

    fn set(&mut self, filter: &str) -> Result<(), String> {
        let filter: Targets = filter.parse().map_err(|error: ParseError| error.to_string())?;
        self.0.reload(filter).map_err(|error| error.to_string())
    }
}

/// Begins to tell: what `RUST_LOG` says, else by the command line. A journal writes down the time
/// itself.
pub fn start(quiet: bool, verbose: u8) -> Handle {
    let level = match (quiet, verbose) {
        (true, _) => Level::ERROR,
        (false, 0) => Level::INFO,
        (false, 1) => Level::DEBUG,
        (false, _) => Level::TRACE,
    };
    // What a client that was killed waited for is dropped unanswered, of which that library warns.
    // The target `hoistway` covers all crates of the workspace: targets match by prefix.
    let usual = || {
        Targets::new()
            .with_default(Level::WARN)
            .with_target("fuser::reply", Level::ERROR)
            .with_target("hoistway", level)
    };
    let filter = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok()).unwrap_or_else(usual);
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_target(false)
        .with_span_events(FmtSpan::NONE)
        .with_ansi(is_coloured());
    let registry = tracing_subscriber::registry().with(filter);
    // Somebody may tell already, in tests of the command within one process; then that is who
    // tells.
    let _ = if std::env::var_os("JOURNAL_STREAM").is_some() {
        registry.with(lines.without_time()).try_init()
    } else {
        registry.with(lines).try_init()
    };
    Handle(handle)
}

/// Colours on a terminal, unless somebody does not want them.
fn is_coloured() -> bool {
    use io::IsTerminal as _;
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
