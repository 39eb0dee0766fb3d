//! The log of server and mount, through `tracing`: lines on standard error, or entries of the
//! systemd journal. Names of tenants, clients and files in them are escaped.

use std::{fmt, io};

use hoistway_control::{LogControl, log_filter};
use hoistway_units::printable::one_line;
use tracing::Level;
use tracing::field::Field;
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt::format::{FmtSpan, Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::journal::Journal;
use crate::failure::print_message;

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
    let filter = std::env::var("RUST_LOG").ok().and_then(|text| filter_of_environment(&text)).unwrap_or_else(default);
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .fmt_fields(debug_fn(write_field))
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

/// Parses the value of `RUST_LOG`. An invalid one is reported, and the command line decides.
fn filter_of_environment(text: &str) -> Option<Targets> {
    match log_filter::check(text) {
        Ok(warning) => {
            warning.iter().for_each(|warning| print_message(&format!("warning: RUST_LOG: {warning}")));
            text.parse().ok()
        }
        Err(error) => {
            print_message(&format!("warning: RUST_LOG: {error}: the variable is ignored"));
            None
        }
    }
}

/// Writes a field of an event: the message, which comes first, or ` name=value`.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = one_line(format_args!("{value:?}")).to_string();
    match field.name() {
        "message" => write!(writer, "{value}"),
        // What the crate `log` knows of its record.
        name if name.starts_with("log.") => Ok(()),
        name if writer.has_ansi_escapes() => write!(writer, " \x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}"),
        name => write!(writer, " {name}={value}"),
    }
}

/// Returns true if standard error is a terminal and `NO_COLOR` is not set.
fn is_coloured() -> bool {
    use io::IsTerminal as _;
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
