//! `hoistway conform`: replays recorded decisions and recordings of the kernel module.

use anyhow::{Context, Result};
use hoistway_conform::decisions::{FileReport, Replayed, replay_files};
use hoistway_conform::kernel_recording::{RecordingReport, for_each_record};
use hoistway_conform::markdown;

use crate::cli::ConformArgs;
use crate::failure::{Exit, print_message};
use crate::output::Out;
use crate::progress::Bar;

/// Replays the files and prints the result of each in the order of the command line.
pub fn run(args: &ConformArgs, out: &mut Out) -> Result<Exit> {
    if args.print {
        return print_records(args, out);
    }
    let bar = Bar::counter("scenarios replayed");
    let prints_lines = !args.json && !args.markdown;
    let conformance = replay_files(&args.files, &|scenarios| bar.set(scenarios), |replayed| {
        bar.suspend(|| match replayed {
            Ok(Replayed::Scenarios(report)) if prints_lines => print_file(report, args.verbose, out),
            Ok(Replayed::Recording(report)) if prints_lines => print_recording(report, out),
            Ok(_) => Ok(()),
            Err(error) => {
                print_message(&format!("error: {error}"));
                Ok(())
            }
        })
    })?;
    bar.clear();
    if args.json {
        out.json(&conformance)?;
    } else if args.markdown {
        markdown(&conformance).lines().try_for_each(|line| out.line(line))?;
    }
    Ok(match conformance {
        conformance if conformance.is_identical() => Exit::Success,
        conformance if conformance.errors.is_empty() => Exit::Different,
        _ => Exit::Failed,
    })
}

/// Prints a line for a file, and with `verbose` the first difference of each scenario that differs.
fn print_file(report: &FileReport, verbose: bool, out: &mut Out) -> Result<()> {
    out.line(format_args!("{}  {}/{}", report.file, report.identical, report.total))?;
    for scenario in report.differences.iter().filter(|_| verbose) {
        out.line(format_args!("  line {} {}: {}", scenario.line, scenario.name, scenario.difference))?;
        for event in &scenario.last_events {
            out.line(format_args!("    {event}"))?;
        }
    }
    // The next file may take a while: the line appears now.
    Ok(out.flush()?)
}

/// Prints a line for a recording, and the first difference with the records before it and the
/// state.
fn print_recording(report: &RecordingReport, out: &mut Out) -> Result<()> {
    let note = if report.complete { "" } else { "  (read before its end)" };
    out.line(format_args!("{}  {}/{}{note}", report.file, report.identical, report.records))?;
    if let Some(difference) = &report.difference {
        out.line(format_args!("  {difference}"))?;
        for (heading, lines) in [("before:", &difference.before), ("the replay:", &difference.state)] {
            out.line(format_args!("    {heading}"))?;
            lines.iter().try_for_each(|line| out.line(format_args!("      {line}")))?;
        }
    }
    Ok(out.flush()?)
}

/// Prints the records of recordings.
fn print_records(args: &ConformArgs, out: &mut Out) -> Result<Exit> {
    for file in &args.files {
        let printed = for_each_record(file, |record| -> Result<()> { Ok(out.line(record)?) });
        printed.with_context(|| file.display().to_string())?;
    }
    out.flush()?;
    Ok(Exit::Success)
}
