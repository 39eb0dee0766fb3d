//! `hoistway trace whatif`: predicts a recorded workload under other elevators.

mod render;

use anyhow::Result;
use hoistway_advise::whatif::{Fidelity, LoadedTrace, LoopModel, WhatifError, WhatifReport, validation, whatif_page};
use hoistway_advise::{Confidence, ModelBasis, TraceCase, TraceCaseError, TraceCaseRequest, TraceDrive};
use hoistway_compare::Judgement;
use hoistway_drive::Profile;
use hoistway_report::{ReportFile, compare_page};
use hoistway_sim::Comparison;

use crate::cli::trace::WhatifArgs;
use crate::commands::advise::trace_error;
use crate::commands::compare;
use crate::commands::trace::input;
use crate::failure::{Exit, UsageError, print_message, print_text};
use crate::interrupt;
use crate::output::Out;

/// The value of `--drive` that fits a drive to the trace.
const FIT: &str = "fit";

/// Predicts, or prints the error of a model that is not good enough.
pub fn run(args: &WhatifArgs, out: &mut Out) -> Result<Exit> {
    let elevators = compare::elevators(&args.elevators, hoistway_custom::all)?;
    let report = args.report.as_deref().map(ReportFile::new).transpose()?;
    let cancel = interrupt::watch()?;
    let (loaded, name) = load(args)?;
    let drive = match args.drive.as_deref() {
        None => TraceDrive::FromTrace,
        Some(FIT) => TraceDrive::Fitted,
        Some(choice) => TraceDrive::Given(Box::new(Profile::choose(choice)?)),
    };
    if args.loop_model.is_some() && loaded.contents.has_completions() {
        let text = format!(
            "--loop: {name} has completions, from which the command finds what requests waited for; leave --loop out"
        );
        return Err(UsageError(text).into());
    }
    let request = TraceCaseRequest {
        name,
        loaded,
        recorded_under: args.recorded,
        loop_model: args.loop_model.unwrap_or(LoopModel::Open),
        drive,
        depth_max: args.depth,
        kernel: args.kernel,
        settings: args.settings.clone(),
    };
    let case = TraceCase::new(request, &cancel).map_err(trace_error)?;
    if let ModelBasis::Validated { fidelity, .. } = &case.basis
        && !fidelity.holds()
    {
        return refuse(&case, fidelity, args, out);
    }
    let bar = compare::RunProgressBar::new();
    let comparison =
        case.model.predict(&elevators, &case.machine, report.is_some(), &|progress| bar.set(progress), &cancel);
    bar.clear();
    let comparison = comparison.map_err(|error| trace_error(TraceCaseError::Simulation(Box::new(error))))?;
    let confidence = case.confidence(Some(&comparison));
    if let Some(report) = &report {
        report.write(&compare_page(&whatif_page(&case, &comparison, &confidence))?, &cancel)?;
    }
    print(&case, &comparison, &confidence, args, out)?;
    Ok(Exit::Success)
}

/// Reads the trace; the second value is its name.
fn load(args: &WhatifArgs) -> Result<(LoadedTrace, String)> {
    let mut opened = input::open(&args.input)?;
    match LoadedTrace::read(&mut opened, args.device.as_deref()) {
        Ok(loaded) => Ok((loaded, opened.name)),
        Err(error @ WhatifError::NoDevice { .. }) => Err(UsageError(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}

fn print(
    case: &TraceCase,
    comparison: &Comparison,
    confidence: &Confidence,
    args: &WhatifArgs,
    out: &mut Out,
) -> Result<()> {
    if args.json {
        return out.json(&WhatifReport::new(case, Some(comparison), confidence));
    }
    render::heading(case, out)?;
    match &case.basis {
        ModelBasis::Validated { fidelity, .. } => {
            render::processes(case, out)?;
            render::fidelity(fidelity, out)?;
            out.line("")?;
            out.heading("Predicted")?;
        }
        ModelBasis::Unvalidated(of) => {
            render::assumptions(of, out)?;
            render::assumed_processes(case, out)?;
            out.heading(format_args!("Predicted, {}", validation(false)))?;
        }
    }
    let judgement = Judgement::of(comparison);
    compare::print_table(comparison, &judgement, "The busiest process alone", out)?;
    out.line("")?;
    out.paragraph(0, &format!("In short: {}", judgement.verdict.text()))?;
    out.line("")?;
    render::confidence(confidence, out)?;
    if let Some(path) = &args.report {
        out.line("")?;
        out.line(format_args!("The page is in {}.", path.display()))?;
    }
    case.notes.iter().for_each(|note| print_message(&format!("note: {note}")));
    Ok(())
}

/// Prints only the error of a model that is not good enough for predictions.
fn refuse(case: &TraceCase, fidelity: &Fidelity, args: &WhatifArgs, out: &mut Out) -> Result<Exit> {
    if args.json {
        out.json(&WhatifReport::new(case, None, &case.confidence(None)))?;
    } else {
        render::heading(case, out)?;
        render::processes(case, out)?;
        render::fidelity(fidelity, out)?;
    }
    out.flush()?;
    case.notes.iter().for_each(|note| print_message(&format!("note: {note}")));
    print_text(&render::refusal(fidelity));
    Ok(Exit::Failed)
}
