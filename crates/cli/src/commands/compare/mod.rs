//! `hoistway compare`: one workload under several elevators.

mod groups;
mod jobs;
mod logs;
mod run;
mod seeds;
mod table;

use std::io;

use anyhow::Result;
use hoistway_advise::device_facts::device_defaults;
use hoistway_compare::{
    CompareChoices, CompareDefaults, CompareSetup, Compared, ComparisonDocument, DocumentContext, HostChoice,
    Judgement, Named, Shortening, legends, named_elevators, page,
};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_fio::JobFile;
use hoistway_machine::Root;
use hoistway_report::{ReportFile, compare_page};
use hoistway_sim::HostConfig;

use crate::cli::CompareArgs;
use crate::failure::{Exit, UsageError, print_message};
use crate::output::Out;
use logs::LogFolder;
pub use run::{RunProgressBar, run as simulate};
pub use table::print as print_table;

/// The default job file, and its name.
const EXAMPLE: &str = include_str!("../../../data/reader-and-writer.fio");
const EXAMPLE_NAME: &str = "examples/reader-and-writer.fio";
/// The default page when hoistway is started without arguments.
const EXAMPLE_PAGE: &str = "hoistway-report.html";

/// Runs hoistway without arguments: compares the example job and writes a page.
pub fn run_example(out: &mut Out) -> Result<Exit> {
    out.line(format_args!("No command was given: this is `hoistway compare --report {EXAMPLE_PAGE}`."))?;
    out.line("See `hoistway --help` for what else there is.")?;
    out.line("")?;
    out.flush()?;
    run(&CompareArgs { report: Some(EXAMPLE_PAGE.into()), ..CompareArgs::default() }, out)
}

/// Runs the comparison, writes the page if one is requested, and prints the table or the JSON.
pub fn run(args: &CompareArgs, out: &mut Out) -> Result<Exit> {
    let mut setup = setup(args)?;
    let report = args.report.as_deref().map(ReportFile::new).transpose()?;
    let logs = args.logs.as_deref().map(LogFolder::new).transpose()?;
    let (mut compared, cancelled) = run::run_seeds(&setup.request, args.seeds.unwrap_or(1))?;
    compared.comparison.notes.append(&mut setup.notes);
    let judgement = Judgement::over_seeds(&compared.comparison, compared.seeds.as_ref());
    let exit = if compared.is_partial { Exit::Interrupted } else { Exit::Success };
    let mut written = Vec::new();
    // Files hold complete results only.
    if let (Some(report), Some(path), false) = (&report, &args.report, compared.is_partial) {
        let drive = hoistway_drive::describe(&setup.request.profile).what;
        let page = page(&compared.comparison, &judgement, &setup.job, &drive, &setup.host, &setup.settings);
        report.write(&compare_page(&page)?, &cancelled)?;
        written.push(format!("The page is in {}.", path.display()));
    }
    if let (Some(logs), Some(path), false) = (&logs, &args.logs, compared.is_partial) {
        let count = logs.write(&compared.comparison, &setup.request.jobs, &cancelled)?;
        written.push(format!("{count} bandwidth logs are in {}.", path.display()));
    }
    if args.json {
        let context = DocumentContext::new(&setup, &compared);
        out.json(&ComparisonDocument::new(&compared.comparison, &judgement, &context))?;
        return Ok(exit);
    }
    print(args, &setup, &compared, &judgement, out)?;
    if !written.is_empty() {
        out.line("")?;
        written.iter().try_for_each(|line| out.line(line))?;
    }
    // Notes go to standard error, so that scripts can parse the table.
    compared.comparison.notes.iter().for_each(|note| print_message(&format!("note: {note}")));
    if compared.is_partial {
        out.flush()?;
        print_message("interrupted: the result is partial, and neither page nor logs were written");
    }
    Ok(exit)
}

/// Prints the results as text.
fn print(
    args: &CompareArgs,
    setup: &CompareSetup,
    compared: &Compared,
    judgement: &Judgement,
    out: &mut Out,
) -> Result<()> {
    let Compared { comparison, seeds, is_partial } = compared;
    let seed_text = match seeds {
        Some(seeded) => format!("{} seeds from {}", seeded.seeds.len(), comparison.seed),
        None => format!("seed {}", comparison.seed),
    };
    out.line(format_args!("{} on {}, {}, {seed_text}", setup.job, comparison.drive, setup.host))?;
    for setting in &setup.settings {
        out.line(format_args!("with {setting}"))?;
    }
    print_defaults(args, &setup.defaults, out)?;
    if *is_partial {
        out.paragraph(0, &legends::partial(comparison, seeds.as_ref(), args.seeds))?;
    }
    out.line("")?;
    match seeds {
        Some(seeded) => seeds::print(seeded, out)?,
        None => table::print(comparison, judgement, "One stream alone", out)?,
    }
    jobs::print(comparison, judgement, out)?;
    groups::print(comparison, out)?;
    out.line("")?;
    let partial = if *is_partial { ", of the partial result" } else { "" };
    Ok(out.paragraph(0, &format!("In short{partial}: {}", judgement.verdict.text()))?)
}

/// Prints which drive and which elevators were taken although the command line names none, and why.
fn print_defaults(args: &CompareArgs, defaults: &CompareDefaults, out: &mut Out) -> Result<()> {
    if args.drive.is_none() {
        out.paragraph(0, &format!("drive: {}, {} (see --drive)", defaults.drive, defaults.why))?;
    }
    if args.elevators.is_empty() && defaults.device.is_some() {
        out.paragraph(0, &format!("elevators: {} (see --elevators)", defaults.why_elevators))?;
    }
    Ok(())
}

fn setup(args: &CompareArgs) -> Result<CompareSetup> {
    let jobs = jobs(args)?;
    let root = args.root.as_ref().map_or_else(Root::machine, Root::at);
    let choices = CompareChoices {
        job: name_of_jobs(args),
        defaults: device_defaults(&root, &jobs),
        jobs,
        shortening: Shortening { runtime_ns: args.runtime, scale: args.scale },
        drive: args.drive.as_deref().map(Profile::choose).transpose()?,
        elevators: args.elevators.clone(),
        settings: args.settings.clone(),
        host: match (&args.host, &args.kernel) {
            (Some(path), _) => HostChoice::Config(path.display().to_string(), Box::new(HostConfig::load(path)?)),
            (None, Some(host)) => host.clone(),
            (None, None) => HostChoice::Default,
        },
        seed: args.seed,
        // Only the page shows head positions.
        record: args.report.is_some(),
    };
    Ok(CompareSetup::new(choices).map_err(wrong_elevators)?)
}

/// The named elevators; those of `default` if none is named.
pub fn elevators(named: &[Named], default: impl FnOnce() -> Vec<Kind>) -> Result<Vec<Kind>, UsageError> {
    named_elevators(named, default).map_err(wrong_elevators)
}

fn wrong_elevators(problem: String) -> UsageError {
    UsageError(format!("--elevators {problem}"))
}

/// The name of the workload: its file, or fio's command line.
fn name_of_jobs(args: &CompareArgs) -> String {
    match &args.job {
        Some(path) => path.display().to_string(),
        None if args.fio.is_empty() => EXAMPLE_NAME.to_owned(),
        None => format!("fio {}", args.fio.join(" ")),
    }
}

fn jobs(args: &CompareArgs) -> Result<JobFile> {
    if let Some(path) = &args.job {
        return Ok(hoistway_fio::load(path)?);
    }
    if !args.fio.is_empty() {
        let line = hoistway_fio::command_line(&args.fio).map_err(|error| UsageError(error.to_string()))?;
        let mut jobs = line.source.jobs()?;
        if !line.without_effect.is_empty() {
            let names: Vec<String> = line.without_effect.iter().map(|name| format!("`--{name}`")).collect();
            jobs.differences.push(format!("options of fio without effect on a simulation: {}", names.join(", ")));
        }
        return Ok(jobs);
    }
    let includes = |path: &str, _: &str| Err(io::Error::new(io::ErrorKind::NotFound, path.to_owned()));
    Ok(hoistway_fio::parse(EXAMPLE, EXAMPLE_NAME, &|_| None, &includes)?)
}
