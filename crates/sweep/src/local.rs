//! Runs a sweep on the processors of this machine.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hoistway_sim::with_threads;
use rayon::prelude::*;

use crate::batch::{Batch, BatchError, simulate};
use crate::folder::{FolderError, ResultFolder};
use crate::plan::Plan;

/// How a sweep runs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalOptions {
    /// The number of simulations at a time.
    pub threads: usize,
    /// The memory for all of them, in bytes; `None` if it is not known.
    pub available_bytes: Option<u64>,
}

/// The state of a sweep: points that have a result, with those of earlier runs, and all points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepProgress {
    /// Points that have a result, or that equal another point.
    pub done: u64,
    /// All points.
    pub points: u64,
}

/// The result of a run of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// The number of points of the sweep; equal random choices count each.
    pub points: u64,
    /// Points that had a result before, or that equal another point.
    pub skipped: u64,
    /// Points whose result this run wrote, those with an error included.
    pub simulated: u64,
    /// Points that have an error instead of figures, those of earlier runs included.
    pub failed: u64,
    /// The error of one of these points.
    pub first_error: Option<String>,
    /// True if the run was cancelled before its end.
    pub is_partial: bool,
}

impl Summary {
    /// Adds what the run of another sweep did.
    pub fn add(&mut self, other: Summary) {
        self.points += other.points;
        self.skipped += other.skipped;
        self.simulated += other.simulated;
        self.failed += other.failed;
        self.note_error(other.first_error.as_deref());
        self.is_partial |= other.is_partial;
    }

    fn note_error(&mut self, error: Option<&str>) {
        if self.first_error.is_none() {
            self.first_error = error.map(str::to_owned);
        }
    }
}

/// Reasons for which a sweep ends early; the results so far are in the folder.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Results cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A batch cannot be simulated.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// Runs all points of a sweep that have no result in the folder. When `cancel` becomes true, the
/// run ends with the batches that are complete.
///
/// `progress` is called from several threads.
///
/// # Errors
/// [`SweepError`], the first that a thread meets.
pub fn run(
    plan: &Plan,
    folder: &ResultFolder,
    options: LocalOptions,
    progress: &(dyn Fn(SweepProgress) + Sync),
    cancel: &AtomicBool,
) -> Result<Summary, SweepError> {
    folder.write_sweep(plan)?;
    let points = plan.points();
    let done = AtomicU64::new(0);
    let add = |count: u64| progress(SweepProgress { done: done.fetch_add(count, Ordering::Relaxed) + count, points });
    let each_bytes = options.available_bytes.map(|bytes| bytes / 10 * 9 / options.threads.max(1) as u64);
    let summary = Mutex::new(Summary { points, ..Summary::default() });
    let count = |change: &dyn Fn(&mut Summary)| {
        if let Ok(mut summary) = summary.lock() {
            change(&mut summary);
        }
    };
    let batch = |batch: Batch| -> Result<(), SweepError> {
        let all = batch.points.end - batch.points.start;
        let (failed, first_error) = (Cell::new(0), Cell::new(None));
        let missing = batch.missing(plan, |point| {
            if let Some(error) = folder.error_of(point) {
                failed.set(failed.get() + 1);
                first_error.set(Some(error));
            }
            folder.has(point)
        });
        let skipped = all - missing.len() as u64;
        if skipped > 0 {
            add(skipped);
            count(&|summary| {
                summary.skipped += skipped;
                summary.failed += failed.get();
                summary.note_error(first_error.get());
            });
        }
        match simulate(plan, missing, each_bytes, &|| add(1), cancel) {
            Err(BatchError::Cancelled) => count(&|summary| summary.is_partial = true),
            Err(error) => return Err(error.into()),
            Ok(None) => {}
            Ok(Some(files)) => {
                folder.write_batch(&files)?;
                count(&|summary| {
                    summary.simulated += files.rows as u64;
                    summary.failed += files.failed as u64;
                    summary.note_error(files.first_error.as_deref());
                });
            }
        }
        Ok(())
    };
    let batches: Vec<_> = plan.batches().collect();
    with_threads(options.threads, || {
        batches.into_par_iter().with_max_len(1).try_for_each(|one| {
            if cancel.load(Ordering::Relaxed) {
                count(&|summary| summary.is_partial = true);
                return Ok(());
            }
            batch(one)
        })
    })?;
    Ok(summary.into_inner().unwrap_or_default())
}
