//! `hoistway compare`: one workload under several elevators.

mod groups;
mod logs;
mod page;
mod run;
mod table;

use std::io;
use std::path::Path;

use anyhow::Result;
use hoistway_core::Kind;
use hoistway_fio::JobFile;
use hoistway_report::compare_page;
use hoistway_sim::{CompareRequest, Comparison, HostConfig};

use crate::atomic_file::ReportFile;
use crate::cli::CompareArgs;
use crate::drive_choice;
use crate::failure::{Exit, UsageError, print_message};
use crate::names::Named;
use crate::output::Out;
use logs::LogFolder;
pub use page::page as report_page;
pub use run::{RunProgressBar, run as simulate};
pub use table::print as print_table;

/// The default job file, and its name.
const EXAMPLE: &str = include_str!("../../../../../examples/competing-readers.fio");
const EXAMPLE_NAME: &str = "examples/competing-readers.fio";
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
    let request = request(args)?;
    let report = args.report.as_deref().map(ReportFile::new).transpose()?;
    let logs = args.logs.as_deref().map(LogFolder::new).transpose()?;
    let workload = Workload { job: job_name(args), global_options: request.jobs.global_options.clone() };
    let description = hoistway_drive::describe(&request.profile);
    let settings: Vec<String> = request.settings.iter().map(|setting| setting.text().to_owned()).collect();
    let (comparison, cancelled) = run::run(&request)?;
    if let Some(report) = &report {
        let page = page::page(&comparison, &workload.job, &description.what, &settings);
        report.write(&compare_page(&page)?, &cancelled)?;
    }
    let logged = logs.as_ref().map(|logs| logs.write(&comparison, &request.jobs, &cancelled)).transpose()?;
    if args.json {
        out.json(&comparison.document(&workload.job, &workload.global_options))?;
        return Ok(Exit::Success);
    }
    out.line(format_args!("{} on {}, seed {}", workload.job, comparison.drive, comparison.seed))?;
    for setting in &settings {
        out.line(format_args!("with {setting}"))?;
    }
    out.line("")?;
    print(&comparison, out)?;
    if let Some(path) = &args.report {
        out.line("")?;
        out.line(format_args!("The page is in {}.", path.display()))?;
    }
    if let (Some(path), Some(count)) = (&args.logs, logged) {
        out.line(format_args!("{count} bandwidth logs are in {}.", path.display()))?;
    }
    Ok(Exit::Success)
}

/// The names and options of the workload for the JSON document.
struct Workload {
    /// The job file as it was named.
    job: String,
    /// The options of the job file's global sections.
    global_options: Vec<(String, String)>,
}

fn job_name(args: &CompareArgs) -> String {
    args.job.as_deref().map_or_else(|| EXAMPLE_NAME.to_owned(), |path| path.display().to_string())
}

fn request(args: &CompareArgs) -> Result<CompareRequest> {
    let elevators = elevators(&args.elevators)?;
    Ok(CompareRequest {
        jobs: jobs(args.job.as_deref())?,
        profile: drive_choice::load(&args.drive)?,
        host: host(args)?,
        elevators,
        settings: args.settings.clone(),
        seed: args.seed,
        // Only the page shows head positions.
        record: args.report.is_some(),
    })
}

fn host(args: &CompareArgs) -> Result<HostConfig> {
    match (&args.host, args.kernel) {
        (Some(path), _) => Ok(HostConfig::load(path)?),
        (None, Some(kernel)) => Ok(HostConfig::kernel(kernel)),
        (None, None) => Ok(HostConfig::default()),
    }
}

/// The named elevators; all if none is named.
pub fn elevators(named: &[Named]) -> Result<Vec<Kind>, UsageError> {
    if named.is_empty() || named == [Named::All] {
        return Ok(Kind::ALL.to_vec());
    }
    let mut elevators = Vec::with_capacity(named.len());
    for named in named {
        match *named {
            Named::All => {
                return Err(UsageError("--elevators names `all` beside others: it stands alone".to_owned()));
            }
            Named::One(kind) if elevators.contains(&kind) => {
                let text = format!("--elevators names `{}` twice: name each once", kind.info().name);
                return Err(UsageError(text));
            }
            Named::One(kind) => elevators.push(kind),
        }
    }
    Ok(elevators)
}

fn jobs(path: Option<&Path>) -> Result<JobFile> {
    if let Some(path) = path {
        return Ok(hoistway_fio::load(path)?);
    }
    let includes = |path: &str, _: &str| Err(io::Error::new(io::ErrorKind::NotFound, path.to_owned()));
    Ok(hoistway_fio::parse(EXAMPLE, EXAMPLE_NAME, &|_| None, &includes)?)
}

fn print(comparison: &Comparison, out: &mut Out) -> Result<()> {
    table::print(comparison, "One stream alone", out)?;
    groups::print(comparison, out)?;
    out.line("")?;
    out.paragraph(0, &format!("In short: {}", comparison.decided_by))?;
    // Notes go to standard error, so that scripts can parse the table.
    comparison.notes.iter().for_each(|note| print_message(&format!("note: {note}")));
    Ok(())
}
