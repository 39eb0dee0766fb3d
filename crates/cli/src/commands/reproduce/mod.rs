//! `hoistway reproduce`: runs published results.

mod markdown;
mod table;

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use hoistway_reproduce::{ReproduceError, Reproduction, Row, RowProgress, RowResult, reproduce, select};
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
        markdown::write(folder, &results)?;
    }
    if args.json {
        out.json(&Reproduction::new(&results))?;
    } else {
        table::print(&results, out)?;
        if let Some(folder) = &args.page {
            out.line(format_args!("\nThe page is in {}.", folder.join(markdown::PAGE).display()))?;
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
