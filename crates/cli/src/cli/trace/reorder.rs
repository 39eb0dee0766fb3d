//! `hoistway trace reorder`.

use clap::{Args, ValueEnum};
use hoistway_trace::reorder::Window;
use hoistway_units::parse_duration_ns;

use super::{TraceInput, TraceOutput};

/// `hoistway trace reorder`.
#[derive(Args, Debug)]
#[command(after_help = "\
The result is a trace of submissions (Q) at the recorded times, in the new order: the requests of a program that, unlike \
tar, accesses its data in disk order. No request moves across a flush.

  hoistway trace reorder tar --by sector -o sweep.bin                       all in one sweep of the head
  hoistway trace reorder tar --by sector --within 128 -o near.bin           within a queue of 128 requests
  hoistway trace reorder tar --by sector -o sweep.bin --drive sata-7200-2006  with the time of a drive for both")]
pub struct ReorderArgs {
    #[command(flatten)]
    pub input: TraceInput,

    /// Sort key
    #[arg(long, value_enum)]
    pub by: SortKey,

    /// Sort this number of requests at a time (128), or the requests within a time (100ms, 1s)
    /// [default: all]
    #[arg(long, value_name = "WINDOW", value_parser = window)]
    pub within: Option<Window>,

    /// Also print the time that this drive takes for both orders, one request at a time: a name
    /// from `hoistway drives`, or FILE.toml
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub drive: Option<String>,

    #[command(flatten)]
    pub output: TraceOutput,
}

/// Sort keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// First sector
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
        Ok(0) => Err("a window must be longer than 0".to_owned()),
        Ok(ns) => Ok(Window::Time(ns)),
        Err(error) => Err(format!("expected a number of requests or a time, as in 128 or 100ms: {error}")),
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
