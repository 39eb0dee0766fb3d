//! Predictions as text.

use anyhow::Result;
use hoistway_advise::TraceCase;
use hoistway_advise::whatif::wording::{rule, sentence, time, title};
use hoistway_advise::whatif::{
    Confidence, FIDELITY_COLUMNS, Fidelity, MISS_MAX, Unvalidated, fidelity_row, process_name,
};
use hoistway_trace::dependencies::{Pattern, PatternAnalysis};

use crate::output::{self, Out};
use hoistway_units::figures::{figure, magnitude};

/// Maximum number of printed processes of a trace without completions.
const PROCESSES_SHOWN: usize = 20;

/// Prints trace, drive and elevator.
pub fn heading(case: &TraceCase, out: &mut Out) -> Result<()> {
    let recording = case.model.recording();
    let seconds = recording.until_ns.saturating_sub(recording.from_ns) as f64 / 1e9;
    let requests: usize = recording.processes.iter().map(|process| process.requests.len()).sum();
    let drive = case.machine.profile.name();
    let under = case.recorded_under().map_or_else(String::new, |kind| format!(" under {}", kind.info().name));
    out.line(format_args!("{}: {requests} requests in {} s{under}, on {drive}", case.name, figure(seconds)))?;
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

/// Prints the assumptions of a model that is not compared with the recording.
pub fn assumptions(of: &Unvalidated, out: &mut Out) -> Result<()> {
    out.heading(format_args!("Assumed, because {}", of.why))?;
    of.assumptions.iter().try_for_each(|assumption| out.paragraph(2, &sentence(assumption)))?;
    Ok(out.line("")?)
}

/// Prints the processes of a trace without completions, those with the most requests first.
pub fn assumed_processes(case: &TraceCase, out: &mut Out) -> Result<()> {
    let issuer = if case.model.has_streams() { "  stream" } else { "  process" };
    let mut table = output::table(&[issuer, "waits for", "requests", "gap p50", "p90", "p99"], 2);
    let mut processes: Vec<_> = case.model.findings().collect();
    processes.sort_by_key(|(process, _)| std::cmp::Reverse(process.requests.len()));
    for (process, finding) in processes.iter().take(PROCESSES_SHOWN) {
        let name = if case.model.has_streams() { process.name.clone() } else { title(&process.name, process.pid) };
        let gaps = finding.think_ns.iter().skip(1).map(|ns| time(*ns));
        let row = [format!("  {name}"), assumed_rule(finding), process.requests.len().to_string()];
        table.add_row(row.into_iter().chain(gaps));
    }
    out.table(&mut table)?;
    if let Some(more) = processes.len().checked_sub(PROCESSES_SHOWN).filter(|more| *more > 0) {
        out.line(format_args!("  and {more} more (--json has all)"))?;
    }
    Ok(out.line("")?)
}

/// The assumed rule of a process in words.
fn assumed_rule(finding: &PatternAnalysis) -> String {
    match finding.pattern {
        Pattern::Open => "its recorded time".into(),
        _ => format!("{} and its gap", rule(finding)),
    }
}

/// Prints recorded and predicted figures under the elevator of the recording.
pub fn fidelity(fidelity: &Fidelity, out: &mut Out) -> Result<()> {
    out.heading(format_args!("The error of the model: {}, recorded and predicted", fidelity.elevator))?;
    let header: Vec<&str> = ["  process"].into_iter().chain(FIDELITY_COLUMNS).collect();
    let mut table = output::table(&header, 1);
    for process in fidelity.processes.iter().chain([&fidelity.all]) {
        let mut row = fidelity_row(process);
        row[0].insert_str(0, "  ");
        table.add_row(row);
    }
    out.table(&mut table)?;
    out.line("")?;
    Ok(out.paragraph(
        0,
        "The model is judged by throughput and mean latency of all processes together, and of each process with at least 100 requests.",
    )?)
}

/// Prints how far the prediction can be trusted.
pub fn confidence(confidence: &Confidence, out: &mut Out) -> Result<()> {
    out.heading(format_args!("Confidence: {}", confidence.level.name()))?;
    Ok(confidence.reasons.iter().try_for_each(|reason| out.paragraph(2, &sentence(reason)))?)
}

/// The message for a model that is not good enough for predictions.
pub fn refusal(fidelity: &Fidelity) -> String {
    let worst = fidelity.judged().max_by(|a, b| a.miss().total_cmp(&b.miss()));
    let what = worst.map_or(String::new(), |worst| {
        format!(
            ": {} by {} in throughput and {} in mean latency",
            process_name(worst),
            magnitude(worst.throughput_error()),
            magnitude(worst.mean_latency_error())
        )
    });
    format!(
        "error: the model misses the recording under {} by more than {:.0} %{what}: predictions for other elevators would be meaningless.\n\
         Check that --recorded, --drive and --depth match the recording.",
        fidelity.elevator,
        MISS_MAX * 100.0
    )
}
