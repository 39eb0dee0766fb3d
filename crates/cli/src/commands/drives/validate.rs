//! `hoistway drives --validate`: a drive model against a trace of the drive.

use std::path::Path;

use anyhow::{Context, Result};
use hoistway_drive::Profile;
use hoistway_drive::fit::Agreement;
use hoistway_drive::recording;
use hoistway_drive::validation::{RecordedRotation, ValidationReport};

use super::agreement;
use crate::cli::DrivesArgs;
use crate::failure::print_message;
use crate::output::Out;

/// Replays `trace` with the model of a drive and prints the errors by kind of request.
pub fn run(choice: &str, trace: &Path, args: &DrivesArgs, out: &mut Out) -> Result<()> {
    let profile = Profile::choose(choice)?;
    let profile = if args.buffer_off { profile.without_buffer() } else { profile };
    let records = recording::load(trace)?;
    let report = ValidationReport::measure(&profile, &records).with_context(|| trace.display().to_string())?;
    if args.json {
        return out.json(&report);
    }
    report.warnings.iter().for_each(|warning| print_message(&format!("warning: {warning}")));
    write(&report, trace, out)
}

fn write(report: &ValidationReport, trace: &Path, out: &mut Out) -> Result<()> {
    out.heading(format_args!("{} against {}, in ms", report.drive, trace.display()))?;
    let rows: Vec<(&str, &Agreement)> = report.kinds.iter().map(|row| (row.kind, &row.agreement)).collect();
    agreement::write("kind", &rows, out)?;
    out.line("")?;
    if let Some(all) = report.kind("all") {
        let percent = hoistway_units::figures::percent(all.relative_demerit);
        out.paragraph(2, &format!("The demerit of all requests is {percent} % of the mean recorded service time."))?;
    }
    if let Some(RecordedRotation { revolution_ns, coherence }) = report.rotation {
        let rpm = 6e10 / revolution_ns;
        out.paragraph(
            2,
            &format!(
                "Revolution and initial angle are fitted to the trace: {revolution_ns:.1} ns, {rpm:.1} rpm, coherence {coherence:.2}. \
                 All other figures are those of the profile."
            ),
        )?;
    }
    out.paragraph(2, agreement::MEANING)?;
    out.paragraph(
        2,
        "Sequential requests begin where the one before ends; at once means within 1 ms after the previous completion.",
    )?;
    Ok(())
}
