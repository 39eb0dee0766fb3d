//! `hoistway compare`: one workload under several elevators.

mod groups;
mod jobs;
mod logs;
mod run;
mod seeds;
mod table;

use std::io;
use std::path::Path;

use anyhow::Result;
use hoistway_advise::compare::{
    CompareDefaults, ComparisonDocument, DocumentContext, Judgement, Named, Shortening, default_host, legends,
    named_elevators, page,
};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_fio::JobFile;
use hoistway_machine::Root;
use hoistway_report::{ReportFile, compare_page};
use hoistway_sim::{CompareRequest, HostConfig};

use crate::cli::CompareArgs;
use crate::failure::{Exit, UsageError, print_message};
use crate::names::HostKernel;
use crate::output::Out;
use logs::LogFolder;
use run::Compared;
pub use run::{RunProgressBar, run as simulate};
pub use table::print as print_table;

/// The default job file, and its name.
const EXAMPLE: &str = include_str!("../../../../../examples/reader-and-writer.fio");
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
    let (request, mut setup) = request(args)?;
    let report = args.report.as_deref().map(ReportFile::new).transpose()?;
    let logs = args.logs.as_deref().map(LogFolder::new).transpose()?;
    let mut compared = run::run_seeds(&request, args.seeds.unwrap_or(1))?;
    compared.comparison.notes.append(&mut setup.notes);
    let judgement = Judgement::over_seeds(&compared.comparison, compared.seeds.as_ref());
    let exit = if compared.is_partial { Exit::Interrupted } else { Exit::Success };
    let mut written = Vec::new();
    // Files hold complete results only.
    if let (Some(report), Some(path), false) = (&report, &args.report, compared.is_partial) {
        let drive = hoistway_drive::describe(&request.profile).what;
        let page = page(&compared.comparison, &judgement, &setup.job, &drive, &setup.settings);
        report.write(&compare_page(&page)?, &compared.cancelled)?;
        written.push(format!("The page is in {}.", path.display()));
    }
    if let (Some(logs), Some(path), false) = (&logs, &args.logs, compared.is_partial) {
        let count = logs.write(&compared.comparison, &request.jobs, &compared.cancelled)?;
        written.push(format!("{count} bandwidth logs are in {}.", path.display()));
    }
    if args.json {
        let context = DocumentContext {
            job: &setup.job,
            global_options: &request.jobs.global_options,
            host: &setup.host,
            defaults: args.drive.is_none().then_some(&setup.defaults),
            seeds: compared.seeds.as_ref(),
            is_partial: compared.is_partial,
        };
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
fn print(args: &CompareArgs, setup: &Setup, compared: &Compared, judgement: &Judgement, out: &mut Out) -> Result<()> {
    let Compared { comparison, seeds, is_partial, .. } = compared;
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

/// The host in two or three words.
fn host_name(args: &CompareArgs, host: &HostConfig) -> String {
    match (&args.host, host.kernel) {
        (Some(path), _) => format!("host {}", path.display()),
        (None, Some(kernel)) => format!("Linux {}", kernel.name()),
        (None, None) => "each elevator in its own kernel".to_owned(),
    }
}

/// The facts of a comparison beside its request.
struct Setup {
    /// The job file as it was named.
    job: String,
    /// The host in a few words.
    host: String,
    /// Tunables that differ from their defaults.
    settings: Vec<String>,
    defaults: CompareDefaults,
    /// Notes on the shortening of jobs.
    notes: Vec<String>,
}

fn request(args: &CompareArgs) -> Result<(CompareRequest, Setup)> {
    let mut jobs = jobs(args.job.as_deref())?;
    let shortening = Shortening { runtime_ns: args.runtime, scale: args.scale };
    let notes = shortening.apply(&mut jobs);
    let root = args.root.as_ref().map_or_else(Root::machine, Root::at);
    let defaults = CompareDefaults::new(&root, &jobs);
    let elevators = elevators(&args.elevators, || defaults.elevators.clone())?;
    let request = CompareRequest {
        jobs,
        profile: Profile::choose(args.drive.as_deref().unwrap_or(defaults.drive))?,
        host: host(args, &elevators)?,
        elevators,
        settings: args.settings.clone(),
        seed: args.seed,
        // Only the page shows head positions.
        record: args.report.is_some(),
    };
    let setup = Setup {
        job: args.job.as_deref().map_or_else(|| EXAMPLE_NAME.to_owned(), |path| path.display().to_string()),
        host: host_name(args, &request.host),
        settings: shortening.texts().chain(request.settings.iter().map(|setting| setting.text().to_owned())).collect(),
        defaults,
        notes,
    };
    Ok((request, setup))
}

fn host(args: &CompareArgs, elevators: &[Kind]) -> Result<HostConfig> {
    match (&args.host, args.kernel) {
        (Some(path), _) => Ok(HostConfig::load(path)?),
        (None, Some(HostKernel::One(kernel))) => Ok(HostConfig::kernel(kernel)),
        (None, Some(HostKernel::Own)) => Ok(HostConfig::default()),
        (None, None) => Ok(default_host(elevators)),
    }
}

/// The named elevators; those of `default` if none is named.
pub fn elevators(named: &[Named], default: impl FnOnce() -> Vec<Kind>) -> Result<Vec<Kind>, UsageError> {
    named_elevators(named, default).map_err(|error| UsageError(format!("--elevators {error}")))
}

fn jobs(path: Option<&Path>) -> Result<JobFile> {
    if let Some(path) = path {
        return Ok(hoistway_fio::load(path)?);
    }
    let includes = |path: &str, _: &str| Err(io::Error::new(io::ErrorKind::NotFound, path.to_owned()));
    Ok(hoistway_fio::parse(EXAMPLE, EXAMPLE_NAME, &|_| None, &includes)?)
}
