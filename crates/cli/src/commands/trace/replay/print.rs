//! Prints the result of a replay beside the recording, as tables.

use anyhow::Result;
use hoistway_record::replay::{Figures, KINDS, OmittedRequests, ReplayTrace, RequestKind, Timing};

use super::Replayed;
use crate::output::{self, Out};
use hoistway_units::figures::{bytes, figure};

/// Maximum number of printed processes, in descending order of bytes.
const PROCESSES: usize = 10;

/// Prints totals, kinds and processes.
pub fn text(trace: &ReplayTrace, replayed: &Replayed, out: &mut Out) -> Result<()> {
    let (recorded, options, outcome) = (trace.plan.recorded(), replayed.options, &replayed.outcome);
    let timing = match options.timing {
        Timing::Recorded => "at the recorded times".to_owned(),
        Timing::Asap { .. } => format!("as fast as possible, up to {} at once", outcome.replayed.depth_max),
        Timing::Dependent if !trace.plan.has_completions() => {
            "each after the previous one of its process, with the recorded gaps".to_owned()
        }
        Timing::Dependent => "each after the completions that it waited for".to_owned(),
    };
    let scaled = if options.scale == 1.0 { String::new() } else { format!(", times {}", options.scale) };
    out.line(format_args!("{} on {}", trace.name, replayed.target))?;
    out.line(format_args!(
        "{} requests of {} processes on device {}, {timing}{scaled}",
        trace.plan.requests().len(),
        trace.plan.processes().len(),
        trace.device
    ))?;
    let left_out = trace.plan.left_out();
    if left_out != OmittedRequests::default() {
        out.line(left_out)?;
    }
    if outcome.interrupted {
        out.line("interrupted: the figures cover the requests before the interruption")?;
    }
    out.line("")?;
    kinds(recorded, &outcome.replayed, out)?;
    out.line("")?;
    processes(trace, &outcome.replayed, out)?;
    out.line("")?;
    out.line(format_args!(
        "duration {} s, recorded {} s; maximum of outstanding requests {}, recorded {}",
        figure(seconds(outcome.replayed.elapsed_ns)),
        figure(seconds(recorded.elapsed_ns)),
        outcome.replayed.depth_max,
        if trace.plan.has_completions() { recorded.depth_max.to_string() } else { "unknown".to_owned() }
    ))?;
    if matches!(options.timing, Timing::Asap { .. }) {
        return Ok(());
    }
    let ms = |quantile: f64| figure(outcome.lag.value_at_quantile(quantile) as f64 / 1e6);
    out.line(format_args!(
        "lag of submissions in ms: {} (p50), {} (p90), {} (p99), {} (p99.9), {} (max)",
        ms(0.5),
        ms(0.9),
        ms(0.99),
        ms(0.999),
        figure(outcome.lag.max() as f64 / 1e6)
    ))?;
    Ok(())
}

fn kinds(recorded: &Figures, replayed: &Figures, out: &mut Out) -> Result<()> {
    let header = ["", "requests", "data", "MB/s", "recorded", "p50 ms", "recorded", "p99 ms", "recorded"];
    let mut table = output::table(&header, 1);
    for (kind, name) in KINDS {
        let (was, is) = (recorded.of(kind), replayed.of(kind));
        if was.requests == 0 && is.requests == 0 {
            continue;
        }
        let rate = |bytes: u64, elapsed_ns: u64| figure(bytes as f64 * 1e3 / elapsed_ns.max(1) as f64);
        let rates = match kind {
            RequestKind::Read | RequestKind::Write => {
                [rate(is.bytes, replayed.elapsed_ns), rate(was.bytes, recorded.elapsed_ns)]
            }
            RequestKind::Discard | RequestKind::Flush => [String::new(), String::new()],
        };
        let [is_rate, was_rate] = rates;
        table.add_row([
            name.to_owned(),
            is.requests.to_string(),
            if is.bytes > 0 { bytes(is.bytes) } else { String::new() },
            is_rate,
            was_rate,
            ms(&is.latency, 0.5),
            ms(&was.latency, 0.5),
            ms(&is.latency, 0.99),
            ms(&was.latency, 0.99),
        ]);
    }
    Ok(out.table(&mut table)?)
}

fn processes(trace: &ReplayTrace, replayed: &Figures, out: &mut Out) -> Result<()> {
    let recorded = trace.plan.recorded();
    let header = ["process", "requests", "data", "MB/s", "recorded", "p50 ms", "recorded", "p99 ms", "recorded"];
    let mut table = output::table(&header, 1);
    let mut indices: Vec<usize> = (0..replayed.processes.len()).collect();
    indices.sort_by_key(|index| std::cmp::Reverse(recorded.processes.get(*index).map_or(0, |process| process.bytes)));
    for index in indices.iter().take(PROCESSES) {
        let (Some(is), Some(was)) = (replayed.processes.get(*index), recorded.processes.get(*index)) else { continue };
        let pid = trace.plan.processes().get(*index).map_or(0, |(_, pid)| *pid);
        table.add_row([
            trace.process_title(pid),
            is.requests.to_string(),
            bytes(is.bytes),
            figure(is.bytes as f64 * 1e3 / replayed.elapsed_ns.max(1) as f64),
            figure(was.bytes as f64 * 1e3 / recorded.elapsed_ns.max(1) as f64),
            ms(&is.latency, 0.5),
            ms(&was.latency, 0.5),
            ms(&is.latency, 0.99),
            ms(&was.latency, 0.99),
        ]);
    }
    out.table(&mut table)?;
    if indices.len() > PROCESSES {
        out.line(format_args!("and {} more processes (--json has all)", indices.len() - PROCESSES))?;
    }
    Ok(())
}

fn ms(histogram: &hdrhistogram::Histogram<u64>, quantile: f64) -> String {
    if histogram.is_empty() { "-".to_owned() } else { figure(histogram.value_at_quantile(quantile) as f64 / 1e6) }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
