//! `hoistway sweep`: a series of simulations, and the page of their results.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use hoistway_machine::{Root, available_bytes};
use hoistway_report::{ReportFile, sheet_page};
use hoistway_sweep::{LocalOptions, PageOptions, Plan, ResultFolder, Results, Summary, SweepProgress, SweepSpec};
use hoistway_units::figures::{duration, grouped};

use crate::cli::SweepArgs;
use crate::failure::{Exit, UsageError, print_message};
use crate::interrupt;
use crate::output::Out;
use crate::progress::Bar;

/// Runs the points of a sweep that have no result yet, counts its points, or draws results.
pub fn run(args: &SweepArgs, out: &mut Out) -> Result<Exit> {
    let report = args.report.as_deref().map(ReportFile::new).transpose()?;
    if args.path.is_dir() {
        return draw_folder(args, report.as_ref(), out);
    }
    let plan = Plan::new(SweepSpec::load(&args.path)?)?;
    if args.points {
        return describe(&plan, args, out);
    }
    let Some(output) = args.output.as_deref() else {
        let text = "where do the results go? Name their folder with --output; --points only counts the points";
        return Err(UsageError(text.to_owned()).into());
    };
    let folder = ResultFolder::open(output)?;
    let begun = Instant::now();
    let summary = simulate(std::slice::from_ref(&plan), &folder, args.threads)?;
    if args.json {
        out.json(&summary)?;
    } else {
        let Summary { points, skipped, simulated, .. } = summary;
        let before = if skipped > 0 { format!(", {} had a result already", grouped(skipped)) } else { String::new() };
        let took = duration(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        out.line(format_args!(
            "{}: {} of {} points simulated{before}, in {took}",
            output.display(),
            grouped(simulated),
            grouped(points)
        ))?;
    }
    out.flush()?;
    if let Some(error) = &summary.first_error {
        print_message(&format!(
            "error: {} of {} points have an error instead of figures, in the column `error`; one of them: {error}",
            grouped(summary.failed),
            grouped(summary.points)
        ));
    }
    if let (Some(report), false) = (&report, summary.is_partial) {
        draw(args, output, report, out)?;
    }
    if summary.is_partial {
        print_message("interrupted: the same command continues with the missing points");
        return Ok(Exit::Interrupted);
    }
    Ok(if summary.failed > 0 { Exit::Failed } else { Exit::Success })
}

/// Draws the results of the folder that the command names.
fn draw_folder(args: &SweepArgs, report: Option<&ReportFile>, out: &mut Out) -> Result<Exit> {
    let folder = args.path.display();
    let problem = match report {
        None => {
            Some(format!("{folder} is a folder: --report FILE.html draws the results in it, and a sweep is a file"))
        }
        Some(_) if args.output.is_some() => Some(format!(
            "{folder} is a folder of results, which --report draws: --output is for the results of a sweep file"
        )),
        Some(_) => None,
    };
    match (report, problem) {
        (Some(report), None) => draw(args, &args.path, report, out).map(|()| Exit::Success),
        (_, problem) => Err(UsageError(problem.unwrap_or_default()).into()),
    }
}

/// Writes the page of all results of a folder.
fn draw(args: &SweepArgs, folder: &Path, report: &ReportFile, out: &mut Out) -> Result<()> {
    let results = Results::read(folder)?;
    let options = PageOptions {
        name: format!("{} points in {}", grouped(results.rows() as u64), folder.display()),
        measure: args.measure.clone(),
        over: args.over.clone(),
    };
    let page = hoistway_sweep::page(&results, &options)?;
    report.write(&sheet_page(&page)?, &AtomicBool::new(false))?;
    if let (Some(path), false) = (&args.report, args.json) {
        out.line(format_args!("The page is in {}.", path.display()))?;
    }
    Ok(())
}

/// Runs the points of some sweeps that have no result in a folder, and shows the progress over all.
pub(super) fn simulate(plans: &[Plan], folder: &ResultFolder, threads: Option<u16>) -> Result<Summary> {
    let cancel = interrupt::watch()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let options = LocalOptions {
        threads: threads.map_or(processors, usize::from),
        available_bytes: available_bytes(&Root::machine()),
    };
    let all: u64 = plans.iter().map(Plan::points).sum();
    let bar = Bar::new(all, "points");
    let mut summary = Summary::default();
    for plan in plans {
        let highest = AtomicU64::new(0);
        let before = summary.points;
        let progress = |SweepProgress { done, .. }: SweepProgress| {
            // Threads report out of order.
            let done = before + highest.fetch_max(done, Ordering::Relaxed).max(done);
            bar.set(done);
            bar.say(&format!("{} of {} points", grouped(done), grouped(all)));
        };
        summary.add(hoistway_sweep::run(plan, folder, options, &progress, &cancel)?);
        if summary.is_partial {
            break;
        }
    }
    bar.clear();
    Ok(summary)
}

/// The output of `--points`.
#[derive(serde::Serialize)]
struct Description {
    /// The number of points.
    points: u64,
    /// The number of files that they share.
    files: usize,
    /// The keys that vary.
    keys: Vec<String>,
}

fn describe(plan: &Plan, args: &SweepArgs, out: &mut Out) -> Result<Exit> {
    let spec = plan.spec();
    let keys: Vec<String> = plan.keys().iter().map(ToString::to_string).collect();
    let files = plan.batches().len();
    if args.json {
        out.json(&Description { points: plan.points(), files, keys })?;
        return Ok(Exit::Success);
    }
    out.line(format_args!("{} points in {} files", grouped(plan.points()), grouped(files as u64)))?;
    let counts = [
        ("job files", spec.jobs.len()),
        ("drives", spec.drives.len()),
        ("hosts", spec.hosts.len()),
        ("elevators", spec.elevators.len()),
        ("seeds", spec.seeds.len()),
    ];
    let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
    out.line(counts.join(", "))?;
    if !keys.is_empty() {
        out.line(format_args!("keys that vary: {}", keys.join(", ")))?;
    }
    Ok(Exit::Success)
}
