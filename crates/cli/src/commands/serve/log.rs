//! What the server tells while it runs: lines on standard error, through `tracing`.

use std::io;

use hoistway_serve::server::Log;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

/// By which what is told can be changed while the server runs.
pub struct Handle(reload::Handle<EnvFilter, tracing_subscriber::Registry>);

impl Log for Handle {
    fn filter(&self) -> String {
        self.0.with_current(EnvFilter::to_string).unwrap_or_default()
    }

    fn set(&mut self, filter: &str) -> Result<(), String> {
        let filter = EnvFilter::try_new(filter).map_err(|error| error.to_string())?;
        self.0.reload(filter).map_err(|error| error.to_string())
    }
}

/// Begins to tell: what `RUST_LOG` says, else by the command line. A journal writes down the time itself.
pub fn start(quiet: bool, verbose: u8) -> Handle {
    let level = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "info",
        (false, 1) => "debug",
        (false, _) => "trace",
    };
    // What a client that was killed waited for is dropped unanswered, of which that library warns.
    let usual = || {
        EnvFilter::new(format!(
            "warn,fuser::reply=error,hoistway_serve={level},hoistway_mount={level},hoistway={level}"
        ))
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| usual());
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_target(false)
        .with_span_events(FmtSpan::NONE)
        .with_ansi(is_coloured());
    let registry = tracing_subscriber::registry().with(filter);
    // Somebody may tell already, in tests of the command within one process; then that is who tells.
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
