//! `hoistway conform`: replays recorded decisions.

mod markdown;

use anyhow::Result;
use hoistway_sim::decisions::{FileReport, replay_files};

use crate::cli::ConformArgs;
use crate::failure::{Exit, print_message};
use crate::output::Out;
use crate::progress::Bar;

/// Replays the files and prints the result of each in the order of the command line.
pub fn run(args: &ConformArgs, out: &mut Out) -> Result<Exit> {
    let bar = Bar::counter("scenarios replayed");
    let prints_lines = !args.json && !args.markdown;
    let conformance = replay_files(&args.files, &|scenarios| bar.set(scenarios), |replayed| {
        bar.suspend(|| match replayed {
            Ok(report) if prints_lines => print_file(report, args.verbose, out),
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
        markdown::print(&conformance, out)?;
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
