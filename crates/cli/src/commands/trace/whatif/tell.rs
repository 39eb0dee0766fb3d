//! What is printed, and the page.

use anyhow::Result;
use hoistway_report::{ComparePage, Fact};
use hoistway_sim::Comparison;
use hoistway_sim::whatif::{Confidence, Level, MISS_MAX, ProcessFidelity};
use hoistway_trace::dependencies::{Pattern, PatternAnalysis};

use super::Case;
use crate::commands::compare;
use crate::figures::figure;
use crate::output::{self, Out};

/// The trace, the drive, the elevator.
pub fn heading(case: &Case, out: &mut Out) -> Result<()> {
    let recording = case.model.recording();
    let seconds = recording.until_ns.saturating_sub(recording.from_ns) as f64 / 1e9;
    let requests: usize = recording.processes.iter().map(|process| process.asked.len()).sum();
    let drive = case.machine.profile.name();
    out.line(format_args!(
        "{}: {requests} requests in {} s under {}, on {drive}",
        case.trace,
        figure(seconds),
        case.recorded.info().name
    ))?;
    if let Some(fitted) = &case.fitted {
        let errors = &fitted.held_out.errors;
        out.paragraph(
            0,
            &format!(
                "The drive is fitted to the first half of the trace's service times; the second half it predicts to {} ms (RMS, request by request; they take {} ms on average).",
                figure(errors.rms_ms),
                figure(errors.recorded_mean_ms)
            ),
        )?;
    }
    Ok(out.line("")?)
}

/// What each process waits for.
pub fn processes(case: &Case, out: &mut Out) -> Result<()> {
    out.heading("What requests waited for")?;
    let header = ["  process", "waits for", "requests", "think p50", "p90", "explained"];
    let mut table = output::table(&header, 2);
    for (process, finding) in case.model.findings() {
        let waits = matches!(finding.pattern, Pattern::Closed { .. } | Pattern::Batches { .. });
        let think = |place: usize| if waits { time(finding.think_ns[place]) } else { "-".into() };
        table.add_row([
            format!("  {} ({})", process.name, process.pid),
            rule(finding),
            process.asked.len().to_string(),
            think(1),
            think(2),
            format!("{:.0} %", finding.explained * 100.0),
        ]);
    }
    out.table(&mut table)?;
    Ok(out.line("")?)
}

/// A rule in a few words.
pub fn rule(finding: &PatternAnalysis) -> String {
    match finding.pattern {
        Pattern::Closed { depth: 1 } => "the request before".into(),
        Pattern::Closed { depth } => format!("one of {depth} under way"),
        Pattern::Batches { depth } => format!("all of a batch of up to {depth}"),
        Pattern::Timer { period_ns, .. } => format!("a timer of {}", time(period_ns)),
        Pattern::Open => "nothing that the trace shows".into(),
    }
}

/// Recorded against predicted, on the elevator that was recorded.
pub fn fidelity(case: &Case, out: &mut Out) -> Result<()> {
    out.heading(format_args!("The error of the model: {}, recorded and predicted", case.recorded.info().name))?;
    let header = ["  process", "MB/s", "predicted", "off", "mean ms", "predicted", "off", "p99 ms", "predicted", "off"];
    let mut table = output::table(&header, 1);
    for process in case.fidelity.processes.iter().chain([&case.fidelity.all]) {
        let mut row = vec![who(process)];
        let (was, is) = (&process.recorded, &process.predicted);
        row.extend([figure(was.bytes_per_s / 1e6), figure(is.bytes_per_s / 1e6), off(process.throughput_error())]);
        row.extend([was, is].map(|figures| figure(figures.latency_ns.mean / 1e6)));
        row.push(off(process.mean_latency_error()));
        row.extend([was, is].map(|figures| figure(figures.latency_ns.p99 as f64 / 1e6)));
        row.push(off(process.p99_latency_error()));
        table.add_row(row);
    }
    out.table(&mut table)?;
    out.line("")?;
    Ok(out.paragraph(
        0,
        "Throughput and mean latency of all together, and of each process of at least 100 requests, are what the model is judged by.",
    )?)
}

fn who(process: &ProcessFidelity) -> String {
    match (process.pid, process.is_judged()) {
        (0, _) => "  all".into(),
        (pid, true) => format!("  {} ({pid})", process.name),
        (pid, false) => format!("  {} ({pid}), few", process.name),
    }
}

/// What the prediction is worth.
pub fn confidence(confidence: &Confidence, out: &mut Out) -> Result<()> {
    out.heading(format_args!("Confidence: {}", level(confidence.level)))?;
    Ok(confidence.reasons.iter().try_for_each(|reason| out.paragraph(2, &sentence(reason)))?)
}

/// Why nothing is predicted.
pub fn refusal(case: &Case) -> String {
    let worst = case.fidelity.judged().max_by(|a, b| a.miss().total_cmp(&b.miss()));
    let what = worst.map_or(String::new(), |worst| {
        format!(
            ": {} by {} in throughput and {} in mean latency",
            who(worst).trim(),
            off(worst.throughput_error()),
            off(worst.mean_latency_error())
        )
    });
    format!(
        "error: the model misses what was recorded under {} by more than {:.0} %{what}: what it says of other elevators would be worth nothing.\n\
         Is --recorded right, is --drive the drive that was recorded, and --depth its depth?",
        case.recorded.info().name,
        MISS_MAX * 100.0
    )
}

/// The page of `compare`, with the error of the model beside.
pub fn page(case: &Case, comparison: &Comparison, confidence: &Confidence) -> ComparePage {
    let settings: Vec<String> = case.machine.settings.iter().map(|setting| setting.text().to_owned()).collect();
    let drive = hoistway_drive::describe(&case.machine.profile).what;
    let mut page = compare::report_page(comparison, &case.trace, &drive, &settings);
    page.title = format!("What if: {}", case.trace);
    page.subtitle = format!(
        "{} elevators, predicted from a trace recorded under {}",
        comparison.runs.len(),
        case.recorded.info().name
    );
    // Processes of the same name are told apart by their numbers.
    let run = comparison.runs.first().map_or(&[][..], |run| &run.processes);
    for (name, process) in page.processes.iter_mut().zip(run) {
        *name = format!("{} ({})", process.name, process.pid);
    }
    if let Some(fact) = page.facts.iter_mut().find(|fact| fact.label == "job file") {
        fact.label = "trace".into();
    }
    let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
    page.facts.push(fact("error of the model", format!("{:.1} % at most", case.fidelity.miss() * 100.0)));
    page.facts.push(fact("confidence", level(confidence.level).to_owned()));
    for process in case.fidelity.processes.iter().chain([&case.fidelity.all]) {
        let value = format!(
            "{} MB/s recorded, {} predicted ({}); mean latency {} ms, {} ({}); p99 {} ms, {} ({})",
            figure(process.recorded.bytes_per_s / 1e6),
            figure(process.predicted.bytes_per_s / 1e6),
            off(process.throughput_error()),
            figure(process.recorded.latency_ns.mean / 1e6),
            figure(process.predicted.latency_ns.mean / 1e6),
            off(process.mean_latency_error()),
            figure(process.recorded.latency_ns.p99 as f64 / 1e6),
            figure(process.predicted.latency_ns.p99 as f64 / 1e6),
            off(process.p99_latency_error()),
        );
        page.facts.push(fact(&format!("{} under {}", who(process).trim(), case.recorded.info().name), value));
    }
    let rules = case
        .model
        .findings()
        .map(|(process, finding)| format!("{} ({}) waits for {}.", process.name, process.pid, rule(finding)));
    page.notes.extend(rules.chain(confidence.reasons.iter().map(|reason| sentence(reason))));
    page.notes.extend(case.notes.iter().map(|note| sentence(note)));
    page
}

pub fn level(level: Level) -> &'static str {
    match level {
        Level::High => "high",
        Level::Fair => "fair",
        Level::Low => "low",
    }
}

fn off(error: f64) -> String {
    if error.is_finite() { format!("{:+.1} %", error * 100.0) } else { "all of it".into() }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// A time in its best unit.
fn time(ns: u64) -> String {
    match ns {
        ns if ns < 1_000_000 => format!("{} us", figure(ns as f64 / 1e3)),
        ns if ns < 1_000_000_000 => format!("{} ms", figure(ns as f64 / 1e6)),
        ns => format!("{} s", figure(ns as f64 / 1e9)),
    }
}
