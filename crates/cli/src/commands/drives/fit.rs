//! `hoistway drives --fit`: fits a profile to a trace.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Error, Result};
use hoistway_drive::Profile;
use hoistway_drive::fit::{Base, FitKind, FitOptions, FittedProfile, fit_profile};
use hoistway_drive::recording;
use hoistway_machine::create_unused;

use super::agreement;
use super::describe::section;
use crate::cli::{DriveKind, DrivesArgs};
use crate::failure::print_message;
use crate::output::Out;

/// Fits a profile to `trace`, then prints the result and writes or prints the profile.
pub fn run(trace: &Path, args: &DrivesArgs, out: &mut Out) -> Result<()> {
    let records = recording::load(trace)?;
    let base = args.base.as_deref().map(|base| Profile::choose_text(base, Path::new(""))).transpose()?;
    let kind = args.kind.map(|kind| match kind {
        DriveKind::Disk => FitKind::Disk,
        DriveKind::Flash => FitKind::Flash,
    });
    let base = base.as_ref().map(|text| Base { toml: &text.toml, file_name: &text.file });
    let options = FitOptions { name: profile_name(args.output.as_deref().unwrap_or(trace)), kind, base };
    let fitted = fit_profile(&records, &options).with_context(|| trace.display().to_string())?;
    if let Some(path) = &args.output {
        let written =
            create_unused(path).map_err(Error::from).and_then(|mut file| Ok(file.write_all(fitted.toml.as_bytes())?));
        written.with_context(|| format!("{}: cannot write the profile", path.display()))?;
    }
    if args.json {
        out.json(&fitted)?;
        return Ok(());
    }
    fitted.warnings.iter().for_each(|warning| print_message(&format!("warning: {warning}")));
    write_figures(&fitted, out)?;
    write_errors(&fitted, out)?;
    write_profile(&fitted, args.output.as_deref(), out)
}

/// The name of the new profile: the file name up to the first dot.
fn profile_name(path: &Path) -> &str {
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or("fitted");
    file_name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("fitted")
}

fn write_figures(fitted: &FittedProfile, out: &mut Out) -> Result<()> {
    out.heading("Fitted")?;
    let width = fitted.found.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    for finding in &fitted.found {
        out.line(format_args!("  {:width$}  {}", finding.what, finding.value))?;
        out.line(format_args!("  {:width$}  from {}", "", finding.from))?;
    }
    section("Not determined by the trace", out)?;
    fitted.undetermined.iter().try_for_each(|sentence| out.paragraph(2, sentence))?;
    Ok(())
}

fn write_errors(fitted: &FittedProfile, out: &mut Out) -> Result<()> {
    section("Remaining error, in ms", out)?;
    let rows = [("fitted to", &fitted.fitted_to), ("held out", &fitted.held_out)];
    agreement::write("half", &rows, out)?;
    out.line("")?;
    out.paragraph(2, agreement::MEANING)?;
    Ok(())
}

fn write_profile(fitted: &FittedProfile, output: Option<&Path>, out: &mut Out) -> Result<()> {
    let Some(path) = output else {
        section("The profile", out)?;
        return Ok(fitted.toml.lines().try_for_each(|line| out.line(line))?);
    };
    let path = path.display();
    out.line("")?;
    out.paragraph(
        0,
        &format!("Wrote {path}: `hoistway drives {path}` describes it, `hoistway compare --drive {path}` uses it."),
    )?;
    Ok(())
}
