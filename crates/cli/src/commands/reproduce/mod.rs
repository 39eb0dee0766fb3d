//! `hoistway reproduce`: runs published results.

mod table;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use hoistway_reproduce::{Page, ReproduceError, Reproduction, Row, RowProgress, RowResult, reproduce, select};
use hoistway_sim::SimError;

use crate::cli::ReproduceArgs;
use crate::failure::{Exit, Interrupted, UsageError};
use crate::interrupt;
use crate::output::Out;
use crate::progress::Bar;

/// Steps of the progress bar per row.
const STEPS: u64 = 100;

/// Runs the rows and prints the table with its summary, or the JSON.
pub fn run(args: &ReproduceArgs, out: &mut Out) -> Result<Exit> {
    let rows = match select(&args.ids) {
        Err(error @ ReproduceError::UnknownId { .. }) => return Err(UsageError(error.to_string()).into()),
        selected => selected?,
    };
    let results = results(&rows)?;
    if let Some(folder) = &args.page {
        write_page(folder, &Page::new(&results)?)?;
    }
    if args.json {
        out.json(&Reproduction::new(&results))?;
    } else {
        table::print(&results, out)?;
        if let Some(folder) = &args.page {
            out.line("")?;
            out.line(format_args!("The page is in {}.", folder.join(Page::FILE).display()))?;
        }
    }
    Ok(Exit::Success)
}

/// Runs the rows. Ctrl-C stops the runs; a second Ctrl-C ends the process at once.
fn results(rows: &[&'static Row]) -> Result<Vec<RowResult>> {
    let cancel = interrupt::watch()?;
    let bar = Bar::new(STEPS * rows.len() as u64, "reproducing");
    let furthest = AtomicU64::new(0);
    let progress = |step: RowProgress| {
        // A row may need further runs, but the bar never goes back.
        let of_row = STEPS * step.done as u64 / step.of.max(1) as u64;
        let steps = STEPS * step.row as u64 + of_row.min(STEPS);
        bar.set(furthest.fetch_max(steps, Ordering::Relaxed).max(steps));
    };
    let result = reproduce(rows, &progress, &cancel);
    bar.clear();
    match result {
        Err(ReproduceError::Run(SimError::Cancelled)) => Err(Interrupted.into()),
        result => Ok(result?),
    }
}

/// Writes a page and its pictures to a folder.
fn write_page(folder: &Path, page: &Page) -> Result<()> {
    let pictures = folder.join(Page::PICTURES);
    fs::create_dir_all(&pictures).with_context(|| format!("cannot make {}", pictures.display()))?;
    let drawn = page.pictures.iter().map(|(name, picture)| (pictures.join(name), picture));
    for (file, contents) in drawn.chain([(folder.join(Page::FILE), &page.text)]) {
        fs::write(&file, contents).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
