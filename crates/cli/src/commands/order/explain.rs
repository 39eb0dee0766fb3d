//! `hoistway order --explain`: compares the cost of four orders on a simulated drive.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use hoistway_advise::device_facts::NearestDrive;
use hoistway_drive::Profile;
use hoistway_machine::Root;
use hoistway_order::explain::{CostError, DriveChoice, FileSurvey};
use hoistway_order::{Tree, walk};
use hoistway_report::ReportFile;

use super::errors::ErrorLog;
use super::source::NameSource;
use super::{Request, page, render};
use crate::cli::{ByChoice, OrderArgs};
use crate::failure::{Exit, UsageError};
use crate::output::Out;
use crate::progress::Bar;

/// Finds all names, reads all extents, and prints the cost of each order.
pub fn run(args: &OrderArgs, out: &mut Out) -> Result<Exit> {
    let request = Request::new(args);
    let profile = args.drive.as_deref().map(Profile::choose).transpose()?;
    let page_file = args.report.as_deref().map(ReportFile::new).transpose()?;
    let mut errors = ErrorLog::new(args.by == ByChoice::Block);
    let tree = find(args, &request, &mut errors)?;
    let survey = survey(tree, request.sync, &mut errors);
    let nearest = |device: &str| {
        let found = NearestDrive::new(&Root::machine(), device)?;
        Ok((found.drive, found.why))
    };
    let drives = profile.as_ref().map_or(DriveChoice::OfDevice(&nearest), DriveChoice::Given);
    let report = survey.report(drives).map_err(|error| match error {
        CostError::DriveTooSmall { .. } => anyhow::Error::from(UsageError(error.to_string())),
        error => error.into(),
    })?;
    if let Some(file) = page_file {
        file.write(&page::page(&report)?, &AtomicBool::new(false))?;
    }
    if args.json {
        out.json(&report)?;
    } else {
        render::print(&report, out)?;
        if let Some(path) = &args.report {
            out.line("")?;
            out.line(format_args!("The page is in {}.", path.display()))?;
        }
    }
    out.flush()?;
    Ok(errors.finish())
}

fn find(args: &OrderArgs, request: &Request, errors: &mut ErrorLog) -> Result<Tree> {
    let mut tree = Tree::new();
    let bar = Bar::counter("names found");
    let found = |names: usize| bar.set(names as u64);
    let options: walk::Options<'_> = request.walk_options(&found);
    let mut source = NameSource::new(args, &options, &mut tree, errors)?;
    while source.read_batch(usize::MAX, &mut tree, errors)? {}
    source.report_duplicates();
    Ok(tree)
}

fn survey(tree: Tree, sync: bool, errors: &mut ErrorLog) -> FileSurvey {
    let bar = std::cell::OnceCell::new();
    let progress = |total: usize, done: usize| {
        bar.get_or_init(|| Bar::new(total as u64, "reading extents")).set(done as u64);
    };
    FileSurvey::new(tree, sync, &progress, &mut |error| errors.add(error))
}
