//! Predictions as text and as a page.

use anyhow::Result;
use hoistway_advise::TraceCase;
use hoistway_advise::whatif::{Confidence, Level, MISS_MAX, ProcessFidelity};
use hoistway_report::{ComparePage, Fact};
use hoistway_sim::Comparison;
use hoistway_trace::dependencies::{Pattern, PatternAnalysis};

use crate::commands::compare;
use crate::output::{self, Out};
use hoistway_units::figures::figure;

/// Prints trace, drive and elevator.
pub fn heading(case: &TraceCase, out: &mut Out) -> Result<()> {
    let recording = case.model.recording();
    let seconds = recording.until_ns.saturating_sub(recording.from_ns) as f64 / 1e9;
    let requests: usize = recording.processes.iter().map(|process| process.requests.len()).sum();
    let drive = case.machine.profile.name();
    out.line(format_args!(
        "{}: {requests} requests in {} s under {}, on {drive}",
        case.name,
        figure(seconds),
        case.recorded_under.info().name
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

/// Prints what the requests of each process wait for.
pub fn processes(case: &TraceCase, out: &mut Out) -> Result<()> {
    out.heading("What requests waited for")?;
    let header = ["  process", "waits for", "requests", "think p50", "p90", "explained"];
    let mut table = output::table(&header, 2);
    for (process, finding) in case.model.findings() {
        let waits = matches!(finding.pattern, Pattern::Closed { .. } | Pattern::Batches { .. });
        let think = |place: usize| if waits { time(finding.think_ns[place]) } else { "-".into() };
        table.add_row([
            format!("  {} ({})", process.name, process.pid),
            rule(finding),
            process.requests.len().to_string(),
            think(1),
            think(2),
            format!("{:.0} %", finding.explained * 100.0),
        ]);
    }
    out.table(&mut table)?;
    Ok(out.line("")?)
}

/// The dependency rule of a process in words.
pub fn rule(finding: &PatternAnalysis) -> String {
    match finding.pattern {
        Pattern::Closed { depth: 1 } => "the request before".into(),
        Pattern::Closed { depth } => format!("one of {depth} under way"),
        Pattern::Batches { depth } => format!("all of a batch of up to {depth}"),
        Pattern::Timer { period_ns, .. } => format!("a timer of {}", time(period_ns)),
        Pattern::Open => "nothing visible in the trace".into(),
    }
}

/// Prints recorded and predicted figures under the elevator of the recording.
pub fn fidelity(case: &TraceCase, out: &mut Out) -> Result<()> {
    out.heading(format_args!("The error of the model: {}, recorded and predicted", case.recorded_under.info().name))?;
    let header = ["  process", "MB/s", "predicted", "off", "mean ms", "predicted", "off", "p99 ms", "predicted", "off"];
    let mut table = output::table(&header, 1);
    for process in case.fidelity.processes.iter().chain([&case.fidelity.all]) {
        let mut row = vec![process_name(process)];
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
        "The model is judged by throughput and mean latency of all processes together, and of each process with at least 100 requests.",
    )?)
}

fn process_name(process: &ProcessFidelity) -> String {
    match (process.pid, process.is_judged()) {
        (0, _) => "  all".into(),
        (pid, true) => format!("  {} ({pid})", process.name),
        (pid, false) => format!("  {} ({pid}), few", process.name),
    }
}

/// Prints how far the prediction can be trusted.
pub fn confidence(confidence: &Confidence, out: &mut Out) -> Result<()> {
    out.heading(format_args!("Confidence: {}", level(confidence.level)))?;
    Ok(confidence.reasons.iter().try_for_each(|reason| out.paragraph(2, &sentence(reason)))?)
}

/// The message for a model that is not good enough for predictions.
pub fn refusal(case: &TraceCase) -> String {
    let worst = case.fidelity.judged().max_by(|a, b| a.miss().total_cmp(&b.miss()));
    let what = worst.map_or(String::new(), |worst| {
        format!(
            ": {} by {} in throughput and {} in mean latency",
            process_name(worst).trim(),
            off(worst.throughput_error()),
            off(worst.mean_latency_error())
        )
    });
    format!(
        "error: the model misses the recording under {} by more than {:.0} %{what}: predictions for other elevators would be meaningless.\n\
         Check that --recorded, --drive and --depth match the recording.",
        case.recorded_under.info().name,
        MISS_MAX * 100.0
    )
}

/// The page of `compare` with the error of the model.
pub fn page(case: &TraceCase, comparison: &Comparison, confidence: &Confidence) -> ComparePage {
    let settings: Vec<String> = case.machine.settings.iter().map(|setting| setting.text().to_owned()).collect();
    let drive = hoistway_drive::describe(&case.machine.profile).what;
    let mut page = compare::report_page(comparison, &case.name, &drive, &settings);
    page.title = format!("What if: {}", case.name);
    page.subtitle = format!(
        "{} elevators, predicted from a trace recorded under {}",
        comparison.runs.len(),
        case.recorded_under.info().name
    );
    // Process ids distinguish processes of the same name.
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
        page.facts
            .push(fact(&format!("{} under {}", process_name(process).trim(), case.recorded_under.info().name), value));
    }
    let rules = case
        .model
        .findings()
        .map(|(process, finding)| format!("{} ({}) waits for {}.", process.name, process.pid, rule(finding)));
    page.notes.extend(rules.chain(confidence.reasons.iter().map(|reason| sentence(reason))));
    page.notes.extend(case.notes.iter().map(|note| sentence(note)));
    page
}

fn level(level: Level) -> &'static str {
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

/// A time in a suitable unit.
fn time(ns: u64) -> String {
    match ns {
        ns if ns < 1_000_000 => format!("{} us", figure(ns as f64 / 1e3)),
        ns if ns < 1_000_000_000 => format!("{} ms", figure(ns as f64 / 1e6)),
        ns => format!("{} s", figure(ns as f64 / 1e9)),
    }
}
