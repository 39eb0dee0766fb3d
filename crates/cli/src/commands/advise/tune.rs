//! `hoistway advise --tune`: searches tunables and prints the result.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use hoistway_advise::tune::wording::{behind_the_front, reasons, restarts, verdict};
use hoistway_advise::tune::{QUEUE_NAMES, SelectionError, Space, TuneProgress, has, select_spaces};
use hoistway_advise::{Case, ChangePlan, TuneReport, TuneRequest, TuneResult, Verdict, tune, tune_page, value_text};
use hoistway_report::ReportFile;

use super::request::usage;
use super::{apply, print_json, render, simulation_error};
use crate::cli::AdviseArgs;
use crate::failure::{Exit, print_message};
use crate::names::did_you_mean;
use crate::output::{Out, table, wrap};
use crate::progress::Bar;

/// The default duration of a search, in seconds.
const SECONDS: u64 = 60;
/// The number of rows of the front that are printed.
const FRONT_ROWS: usize = 12;

/// Runs a search and prints the result.
pub fn run(
    args: &AdviseArgs,
    case: &Case,
    report: Option<&ReportFile>,
    cancel: &AtomicBool,
    out: &mut Out,
) -> Result<Exit> {
    let request = TuneRequest {
        bench: case.bench.clone(),
        now: case.now.clone(),
        spaces: spaces(args, case)?,
        objective: case.objective.clone(),
        seed: args.seed,
        evaluations: args.evaluations.map(|most| most as usize),
    };
    let tuned = search(args, &request, cancel)?;
    let chosen = if tuned.verdict == Verdict::Change { &tuned.winner } else { &case.now };
    let plan = ChangePlan::new(case, chosen);
    if let Some(report) = report {
        report.write(&hoistway_report::sheet_page(&tune_page(case, &tuned, &plan))?, cancel)?;
    }
    if args.json {
        print_json(&TuneReport::new(case, &tuned, &plan), out)?;
    } else {
        print(args, case, &tuned, &plan, out)?;
    }
    apply::run(args, case, &plan, tuned.verdict, out)
}

fn search(args: &AdviseArgs, request: &TuneRequest, cancel: &AtomicBool) -> Result<TuneResult> {
    let begun = Instant::now();
    let seconds = args.seconds.or(args.evaluations.is_none().then_some(SECONDS));
    let is_over = || seconds.is_some_and(|seconds| begun.elapsed() >= Duration::from_secs(seconds));
    let length = seconds.map_or_else(|| request.evaluations.unwrap_or(1) as u64, |seconds| seconds * 10);
    let bar = Bar::new(length, "searching");
    let figure = request.objective.goals[0].figure.clone();
    let last = Cell::new(0);
    let report = |progress: TuneProgress| {
        let steps = match seconds {
            Some(_) => begun.elapsed().as_millis() as u64 / 100,
            None => progress.evaluations as u64,
        };
        bar.set(steps.min(length));
        if let (Some((name, mean)), true) = (progress.best, progress.evaluations != last.get()) {
            last.set(progress.evaluations);
            bar.say(&format!(
                "{}: {} tried, best {figure} {} by {name}",
                progress.stage,
                progress.evaluations,
                value_text(mean.abs(), figure.metric.unit())
            ));
        }
    };
    let tuned = tune(request, &is_over, &report, cancel).map_err(simulation_error);
    bar.clear();
    tuned
}

/// The search spaces of `--tunables`.
fn spaces(args: &AdviseArgs, case: &Case) -> Result<Vec<Space>> {
    select_spaces(case, &args.tunables).map_err(|error| {
        usage(match &error {
            SelectionError::Scheduler { name, known } => format!(
                "--tunables: `{name}` is no scheduler that could be set{}; there are {}, and {} of the queue",
                did_you_mean(name, known.iter().copied()),
                known.join(", "),
                QUEUE_NAMES.join(", ")
            ),
            SelectionError::Tunable { scheduler, tunable, known } => format!(
                "--tunables: {scheduler} has no tunable `{tunable}` that could be searched{}; {}",
                did_you_mean(tunable, known.iter().copied()),
                has(known)
            ),
            SelectionError::BelowTheQueue => error.to_string(),
        })
    })
}

fn print(args: &AdviseArgs, case: &Case, tuned: &TuneResult, plan: &ChangePlan, out: &mut Out) -> Result<()> {
    render::heading(case, out)?;
    out.paragraph(0, &format!("{} choices were tried; the search {}.", tuned.tried.len(), restarts(tuned.restarts)))?;
    if args.evaluations.is_none() {
        out.paragraph(
            0,
            &format!("--evaluations {} --seed {} repeats the search on any machine.", tuned.tried.len(), args.seed),
        )?;
    }
    out.line("")?;
    front(tuned, out)?;
    out.line("")?;
    for line in wrap(&verdict(tuned), 0, out.columns()) {
        out.heading(line)?;
    }
    reasons(tuned).iter().try_for_each(|text| out.paragraph(2, text))?;
    let confidence = case.confidence();
    out.paragraph(2, &format!("Confidence {}: {}.", confidence.level.name(), confidence.reasons.join("; ")))?;
    apply::print(plan, out)?;
    let warnings: Vec<_> = case.subject.iter().flat_map(|subject| &subject.warnings).collect();
    if !warnings.is_empty() {
        out.line("")?;
        out.heading("To be known")?;
        warnings.iter().try_for_each(|warning| out.paragraph(2, &format!("- {}", warning.text)))?;
    }
    if let Some(path) = &args.report {
        out.line("")?;
        out.line(format_args!("The page is in {}.", path.display()))?;
    }
    case.notes.iter().for_each(|note| print_message(&format!("note: {note}")));
    Ok(())
}

/// Prints the trials that no other trial beats in both figures.
fn front(tuned: &TuneResult, out: &mut Out) -> Result<()> {
    let (goal, other) = (&tuned.figures[0], &tuned.figures[tuned.other]);
    out.heading(format_args!("No other trial is better in both {goal} and {other}"))?;
    let (goal_head, other_head) = (goal.to_string(), other.to_string());
    let mut rows = table(&["what", &goal_head, &other_head, "constraints"], 1);
    let step = tuned.front.len().div_ceil(FRONT_ROWS).max(1);
    for index in tuned.front.iter().step_by(step) {
        let tried = &tuned.tried[*index];
        let keeps = if tried.score.violation > 0.0 { "broken" } else { "kept" };
        rows.add_row([
            tried.choice.name(),
            value_text(tried.spreads[0].mean, goal.metric.unit()),
            value_text(tried.spreads[tuned.other].mean, other.metric.unit()),
            keeps.to_owned(),
        ]);
    }
    out.table(&mut rows)?;
    if let Some(text) = behind_the_front(tuned) {
        out.line("")?;
        out.paragraph(0, &text)?;
    }
    if step > 1 {
        out.line(format_args!(
            "({} of {} shown; --json and --report have them all)",
            tuned.front.len().div_ceil(step),
            tuned.front.len()
        ))?;
    }
    Ok(())
}
