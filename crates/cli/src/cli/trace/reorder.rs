//! `hoistway trace reorder`.

use clap::{Args, ValueEnum};
use hoistway_trace::reorder::Window;
use hoistway_units::parse_duration_ns;

use super::{TraceInput, TraceOutput};

/// `hoistway trace reorder`.
#[derive(Args, Debug)]
#[command(after_help = "\
What a program would have asked for that knows where its data lie, as tar does not: a trace of submissions (Q), the \
first of the new order at the time of the first of the old one, and so on. Nothing is moved over a flush.

  hoistway trace reorder tar --by sector -o sweep.bin                       all in one sweep of the head
  hoistway trace reorder tar --by sector --within 128 -o near.bin           as far as a queue of 128 sees
  hoistway trace reorder tar --by sector -o sweep.bin --drive sata-7200-2006  and how long a drive takes for both")]
pub struct ReorderArgs {
    #[command(flatten)]
    pub input: TraceInput,

    /// What to sort by
    #[arg(long, value_enum)]
    pub by: SortKey,

    /// Sort so many requests at a time (128), or those that come within a time (100ms, 1s) [default: all]
    #[arg(long, value_name = "WINDOW", value_parser = window)]
    pub within: Option<Window>,

    /// Tell how long this drive takes for both orders, one request at a time: a name that `hoistway drives` shows, or FILE.toml
    #[arg(long, value_name = "DRIVE")]
    pub drive: Option<String>,

    #[command(flatten)]
    pub output: TraceOutput,
}

/// What requests are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// Where they lie on the device
    Sector,
}

fn window(text: &str) -> Result<Window, String> {
    if let Ok(requests) = text.parse() {
        return if requests == 0 {
            Err("a window has at least 1 request".to_owned())
        } else {
            Ok(Window::Requests(requests))
        };
    }
    match parse_duration_ns(text) {
        Ok(0) => Err("a window lasts longer than no time".to_owned()),
        Ok(ns) => Ok(Window::Time(ns)),
        Err(error) => Err(format!("a number of requests or a time would be right, as in 128 or 100ms: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_requests_or_times() {
        assert_eq!(window("128"), Ok(Window::Requests(128)));
        assert_eq!(window("100ms"), Ok(Window::Time(100_000_000)));
        for wrong in ["0", "0s", "all", "-1", "5 apples"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}
