//! `hoistway trace whatif`: what other elevators would have made of the recorded requests.

mod json;
mod load;
mod tell;

use anyhow::{Context, Result};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_drive::fit::{FitOptions, FittedProfile, fit_profile};
use hoistway_report::compare_page;
use hoistway_sim::whatif::{Confidence, Fidelity, Loaded, Machine, Model, WhatifError, service_times};
use hoistway_sim::{Comparison, SimError};

use crate::cli::trace::WhatifArgs;
use crate::commands::compare::{self, WholeFile};
use crate::drive_choice;
use crate::failure::{Exit, Interrupted, UsageError, tell as tell_on_stderr};
use crate::interrupt;
use crate::output::Out;

/// The drive that is fitted to the trace, instead of one that is named.
const FIT: &str = "fit";
/// What the fitted drive is called.
const FITTED: &str = "fitted-to-the-trace";

/// What is told, whatever came out.
pub struct Case {
    /// The trace as it was named.
    pub trace: String,
    pub recorded: Kind,
    pub model: Model,
    pub machine: Machine,
    /// The drive was fitted to the trace.
    pub fitted: Option<FittedProfile>,
    pub fidelity: Fidelity,
    pub notes: Vec<String>,
}

/// Predicts, or says by how much the model misses the recording.
pub fn run(args: &WhatifArgs, out: &mut Out) -> Result<Exit> {
    let elevators = compare::elevators(&args.elevators)?;
    let report = args.report.as_deref().map(WholeFile::new).transpose()?;
    let cancel = interrupt::watch()?;
    let (loaded, trace) = load::load(args)?;
    let recorded = recorded_elevator(args, &loaded, &trace)?;
    let (profile, fitted) = drive(args, &loaded, &trace)?;
    let machine = Machine {
        profile,
        depth_max: args.depth.or(loaded.setting.depth),
        kernel: args.kernel,
        groups: loaded.setting.is_server,
        settings: args.settings.clone(),
        seed: 1,
    };
    let Loaded { recording, notes, .. } = loaded;
    let model = Model::new(recording).with_context(|| trace.clone())?;
    let fidelity = model.fidelity(recorded, &machine, &cancel).map_err(failed)?;
    let mut case = Case { trace, recorded, model, machine, fitted, fidelity, notes };
    case.notes.extend(case.model.notes().iter().cloned());
    if !case.fidelity.holds() {
        return refuse(&case, args, out);
    }
    let bar = compare::RunProgressBar::new(elevators.len() + 1);
    let comparison = case.model.predict(&elevators, &case.machine, report.is_some(), &|way| bar.set(way), &cancel);
    bar.clear();
    let comparison = comparison.map_err(failed)?;
    let confidence = case.fidelity.confidence(&case.model, Some(&comparison));
    if let Some(report) = &report {
        report.write(&compare_page(&tell::page(&case, &comparison, &confidence))?, &cancel)?;
    }
    print(&case, &comparison, &confidence, args, out)?;
    Ok(Exit::Success)
}

fn print(
    case: &Case,
    comparison: &Comparison,
    confidence: &Confidence,
    args: &WhatifArgs,
    out: &mut Out,
) -> Result<()> {
    if args.json {
        return out.json(&json::Document::new(case, Some(comparison), confidence));
    }
    tell::heading(case, out)?;
    tell::processes(case, out)?;
    tell::fidelity(case, out)?;
    out.line("")?;
    out.heading("Predicted")?;
    compare::print_table(comparison, "The busiest process alone", out)?;
    out.line("")?;
    out.paragraph(0, &format!("In short: {}", comparison.decided_by))?;
    out.line("")?;
    tell::confidence(confidence, out)?;
    if let Some(path) = &args.report {
        out.line("")?;
        out.line(format_args!("The page is in {}.", path.display()))?;
    }
    case.notes.iter().for_each(|note| tell_on_stderr(&format!("note: {note}")));
    Ok(())
}

/// The model is too far from what was recorded: its error, and nothing else.
fn refuse(case: &Case, args: &WhatifArgs, out: &mut Out) -> Result<Exit> {
    let confidence = case.fidelity.confidence(&case.model, None);
    if args.json {
        out.json(&json::Document::new(case, None, &confidence))?;
    } else {
        tell::heading(case, out)?;
        tell::processes(case, out)?;
        tell::fidelity(case, out)?;
    }
    out.flush()?;
    case.notes.iter().for_each(|note| tell_on_stderr(&format!("note: {note}")));
    tell_on_stderr(&tell::refusal(case));
    Ok(Exit::Failed)
}

fn recorded_elevator(args: &WhatifArgs, loaded: &Loaded, trace: &str) -> Result<Kind> {
    if let Some(kind) = args.recorded {
        return Ok(kind);
    }
    if let [first, second, ..] = loaded.setting.elevators.as_slice() {
        let text = format!(
            "{trace}: the elevator was switched from {} to {} while it was recorded: cut the trace where that happened (`hoistway trace cut`), or name the one that counts with --recorded",
            first.info().name,
            second.info().name
        );
        return Err(UsageError(text).into());
    }
    let told = loaded.setting.elevators.first().copied();
    Ok(told.ok_or_else(|| {
        UsageError(format!(
            "{trace}: the trace does not tell under which elevator it was recorded: say it with --recorded NAME (`cat /sys/block/DEVICE/queue/scheduler` shows it in brackets)"
        ))
    })?)
}

fn drive(args: &WhatifArgs, loaded: &Loaded, trace: &str) -> Result<(Profile, Option<FittedProfile>)> {
    let told = loaded.setting.drive.as_deref().filter(|name| Profile::builtin(name).is_some());
    let choice = args.drive.as_deref().or(told).unwrap_or(FIT);
    if choice != FIT {
        return Ok((drive_choice::load(choice)?, None));
    }
    let records = service_times(&loaded.lives);
    let fitted = fit_profile(&records, &FitOptions { name: FITTED, kind: None, base: None })
        .with_context(|| format!("{trace}: no drive can be fitted to it: name one with --drive"))?;
    Ok((fitted.profile.clone(), Some(fitted)))
}

/// Errors of predictions as other commands have them.
fn failed(error: WhatifError) -> anyhow::Error {
    match error {
        WhatifError::Sim(SimError::Cancelled) => Interrupted.into(),
        WhatifError::Sim(error @ (SimError::SettingUnused { .. } | SimError::TunableValue { .. })) => {
            UsageError(error.to_string()).into()
        }
        error => error.into(),
    }
}
