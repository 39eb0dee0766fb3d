//! Prints the result of a replay beside the recording.

use anyhow::Result;
use hoistway_record::replay::{Figures, Kind};
use serde_json::{Value, json};

use super::Replayed;
use super::load::Loaded;
use crate::cli::trace::{ReplayArgs, TimingChoice};
use crate::figures::{bytes, figure};
use crate::output::{self, Out};

const KINDS: [(Kind, &str); 4] =
    [(Kind::Read, "reads"), (Kind::Write, "writes"), (Kind::Discard, "discards"), (Kind::Flush, "flushes")];
/// Maximum number of printed processes, in descending order of bytes.
const PROCESSES: usize = 10;

pub fn text(args: &ReplayArgs, loaded: &Loaded, replayed: &Replayed, out: &mut Out) -> Result<()> {
    let (recorded, outcome) = (loaded.plan.recorded(), &replayed.outcome);
    let when = match args.timing {
        TimingChoice::Recorded => "at the recorded times".to_owned(),
        TimingChoice::Asap => format!("as fast as possible, up to {} at once", outcome.replayed.depth_max),
        TimingChoice::Dependent => "each after the completions that it waited for".to_owned(),
    };
    let scaled = if args.scale == 1.0 { String::new() } else { format!(", times {}", args.scale) };
    out.line(format_args!("{} on {}", loaded.name, replayed.target))?;
    out.line(format_args!(
        "{} requests of {} processes on device {}, {when}{scaled}",
        loaded.plan.requests().len(),
        loaded.plan.processes().len(),
        loaded.device
    ))?;
    let left_out = loaded.left_out_words();
    if left_out.starts_with("left out") {
        out.line(left_out)?;
    }
    if outcome.interrupted {
        out.line("interrupted: the figures cover the requests before the interruption")?;
    }
    out.line("")?;
    kinds(recorded, &outcome.replayed, out)?;
    out.line("")?;
    processes(loaded, &outcome.replayed, out)?;
    out.line("")?;
    out.line(format_args!(
        "duration {} s, recorded {} s; maximum of outstanding requests {}, recorded {}",
        figure(seconds(outcome.replayed.elapsed_ns)),
        figure(seconds(recorded.elapsed_ns)),
        outcome.replayed.depth_max,
        recorded.depth_max
    ))?;
    if args.timing == TimingChoice::Asap {
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

pub fn json(args: &ReplayArgs, loaded: &Loaded, replayed: &Replayed, out: &mut Out) -> Result<()> {
    let outcome = &replayed.outcome;
    let left_out = loaded.plan.left_out();
    let timing = match args.timing {
        TimingChoice::Recorded => "recorded",
        TimingChoice::Asap => "asap",
        TimingChoice::Dependent => "dependent",
    };
    let quantiles = |histogram: &hdrhistogram::Histogram<u64>| percentiles(histogram);
    let side = |figures: &Figures| {
        let kinds = KINDS.map(|(kind, name)| {
            let of = figures.of(kind);
            (name.to_owned(), json!({"requests": of.requests, "bytes": of.bytes, "latency_ns": quantiles(&of.latency)}))
        });
        let processes: Vec<Value> = (loaded.plan.processes().iter().zip(&figures.processes))
            .map(|((_, pid), of)| {
                let name = loaded.names.get(pid);
                json!({"pid": pid, "name": name, "requests": of.requests, "bytes": of.bytes, "latency_ns": quantiles(&of.latency)})
            })
            .collect();
        json!({
            "elapsed_ns": figures.elapsed_ns,
            "bytes_per_s": figures.bytes_per_s(),
            "depth_max": figures.depth_max,
            "kinds": kinds.into_iter().collect::<serde_json::Map<String, Value>>(),
            "processes": processes,
        })
    };
    out.json(&json!({
        "schema": 1,
        "trace": loaded.name,
        "target": replayed.target,
        "device": loaded.device.to_string(),
        "timing": timing,
        "scale": args.scale,
        "requests": loaded.plan.requests().len(),
        "left_out": {
            "changing": left_out.changing,
            "discards": left_out.discards,
            "flushes": left_out.flushes,
            "others": left_out.others,
            "endings": left_out.endings,
        },
        "failed": outcome.failed,
        "first_error": outcome.first_error,
        "interrupted": outcome.interrupted,
        "lag_ns": quantiles(&outcome.lag),
        "replayed": side(&outcome.replayed),
        "recorded": side(loaded.plan.recorded()),
    }))
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
            Kind::Read | Kind::Write => [rate(is.bytes, replayed.elapsed_ns), rate(was.bytes, recorded.elapsed_ns)],
            Kind::Discard | Kind::Flush => [String::new(), String::new()],
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

fn processes(loaded: &Loaded, replayed: &Figures, out: &mut Out) -> Result<()> {
    let recorded = loaded.plan.recorded();
    let header = ["process", "requests", "data", "MB/s", "recorded", "p50 ms", "recorded", "p99 ms", "recorded"];
    let mut table = output::table(&header, 1);
    let mut indices: Vec<usize> = (0..replayed.processes.len()).collect();
    indices.sort_by_key(|index| std::cmp::Reverse(recorded.processes.get(*index).map_or(0, |process| process.bytes)));
    for index in indices.iter().take(PROCESSES) {
        let (Some(is), Some(was)) = (replayed.processes.get(*index), recorded.processes.get(*index)) else { continue };
        let pid = loaded.plan.processes().get(*index).map_or(0, |(_, pid)| *pid);
        table.add_row([
            loaded.name_of(pid),
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

fn percentiles(histogram: &hdrhistogram::Histogram<u64>) -> Value {
    if histogram.is_empty() {
        return Value::Null;
    }
    let at = |quantile: f64| histogram.value_at_quantile(quantile);
    json!({
        "mean": histogram.mean(),
        "p50": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "p99.9": at(0.999),
        "max": histogram.max(),
    })
}

fn ms(histogram: &hdrhistogram::Histogram<u64>, quantile: f64) -> String {
    if histogram.is_empty() { "-".to_owned() } else { figure(histogram.value_at_quantile(quantile) as f64 / 1e6) }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
