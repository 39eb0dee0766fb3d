//! The answer of `hoistway conform`: decision files and recordings of the kernel module, replayed
//! in parallel.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use hoistway_core::Kind;
use serde::Serialize;

use super::decision::List;
use super::error::DecisionError;
use super::file::{FileReport, replay_file};
use super::targets::{Target, targets};
use crate::kernel_recording::{RecordingReport, is_recording, replay_recording};

/// The result of replaying decision files and recordings.
#[derive(Debug, Serialize)]
pub struct Conformance {
    /// The version of this form: 1.
    pub schema: u32,
    /// The decision files that were replayed to their ends, in the order in which they were named.
    pub files: Vec<FileReport>,
    /// The recordings of the kernel module, in the order in which they were named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<RecordingReport>,
    /// The files that could not be replayed.
    pub errors: Vec<FileFailure>,
}

/// The result of one file.
#[derive(Debug)]
pub enum Replayed {
    /// A decision file.
    Scenarios(FileReport),
    /// A recording of the kernel module.
    Recording(RecordingReport),
}

/// A file that could not be replayed.
#[derive(Debug, Serialize)]
pub struct FileFailure {
    /// The name of the file as given.
    pub file: String,
    /// The error, with a remedy.
    pub message: String,
}

/// Scenarios and recorded decisions of some files, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Scenarios with an identical replay.
    pub identical: u64,
    /// All scenarios.
    pub scenarios: u64,
    /// Recorded decisions.
    pub decisions: u64,
}

impl Conformance {
    /// Returns true if every file was replayed and every scenario and recording has an identical
    /// replay.
    pub fn is_identical(&self) -> bool {
        self.errors.is_empty()
            && self.files.iter().all(|file| file.identical == file.total)
            && self.recordings.iter().all(|recording| recording.difference.is_none())
    }

    /// The totals of all files.
    pub fn totals(&self) -> Totals {
        totals(self.files.iter())
    }

    /// The totals of the files that hold decisions of this target's source.
    pub fn totals_of(&self, target: &Target) -> Totals {
        totals(self.files.iter().filter(|file| file.sources.contains(&target.source)))
    }

    /// The lists that at least one file has, in the order of [`List::ALL`].
    pub fn lists(&self) -> Vec<List> {
        let is_recorded = |list: &List| self.files.iter().any(|file| file.decisions_of(*list).is_some());
        List::ALL.into_iter().filter(is_recorded).collect()
    }

    /// The elevators that none of the files holds decisions for.
    pub fn elevators_without_recording(&self) -> Vec<Kind> {
        let is_recorded = |kind: &Kind| {
            targets().iter().any(|target| target.elevator == *kind && self.totals_of(target) != Totals::default())
        };
        hoistway_custom::all().into_iter().filter(|kind| !is_recorded(kind)).collect()
    }
}

fn totals<'a>(files: impl Iterator<Item = &'a FileReport>) -> Totals {
    files.fold(Totals::default(), |sum, file| Totals {
        identical: sum.identical + u64::from(file.identical),
        scenarios: sum.scenarios + u64::from(file.total),
        decisions: sum.decisions + file.decisions,
    })
}

/// Replays decision files and recordings in parallel, one per processor core. The first bytes of a
/// file decide which it is.
///
/// `progress` is called from several threads with the number of scenarios and recordings replayed
/// `progress` is called from several threads with the number of scenarios and recordings replayed
/// so far. `each` is called on this thread with the result of each file, in the order of `files`,
/// as soon as that file and all files before it are done.
/// # Errors
/// The first error of `each`; the replay ends there. A file that cannot be replayed is no error: it
/// is in [`Conformance::errors`].
pub fn replay_files<E>(
    files: &[PathBuf],
    progress: &(dyn Fn(u64) + Sync),
    mut each: impl FnMut(Result<&Replayed, &DecisionError>) -> Result<(), E>,
) -> Result<Conformance, E> {
    let (next, scenarios) = (AtomicUsize::new(0), AtomicU64::new(0));
    let workers = thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let (sender, results) = mpsc::channel();
    let mut conformance = Conformance { schema: 1, files: Vec::new(), recordings: Vec::new(), errors: Vec::new() };
    thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next, scenarios) = (sender.clone(), &next, &scenarios);
            scope.spawn(move || {
                while let Some((index, path)) = take(files, next) {
                    let replayed = replay(path, &|| progress(scenarios.fetch_add(1, Ordering::Relaxed) + 1));
                    // The receiver is dropped after an error of `each`: no result is needed any
                    // more.
                    if sender.send((index, replayed)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut pending: Vec<Option<Result<Replayed, DecisionError>>> = files.iter().map(|_| None).collect();
        let mut reported = 0;
        for (index, replayed) in results {
            pending[index] = Some(replayed);
            while let Some(replayed) = pending.get_mut(reported).and_then(Option::take) {
                each(replayed.as_ref())?;
                conformance.add(&files[reported], replayed);
                reported += 1;
            }
        }
        Ok(conformance)
    })
}

impl Conformance {
    fn add(&mut self, path: &Path, replayed: Result<Replayed, DecisionError>) {
        match replayed {
            Ok(Replayed::Scenarios(report)) => self.files.push(report),
            Ok(Replayed::Recording(report)) => self.recordings.push(report),
            Err(error) => {
                self.errors.push(FileFailure { file: path.display().to_string(), message: error.to_string() });
            }
        }
    }
}

/// Replays a file. `done` is called after each scenario, or after the recording.
fn replay(path: &Path, done: &dyn Fn()) -> Result<Replayed, DecisionError> {
    if !is_recording(path) {
        return replay_file(path, |_| done()).map(Replayed::Scenarios);
    }
    let replayed = replay_recording(path, |_| ());
    done();
    replayed.map(Replayed::Recording).map_err(|error| DecisionError::Recording { file: path.to_owned(), error })
}

fn take<'a>(files: &'a [PathBuf], next: &AtomicUsize) -> Option<(usize, &'a PathBuf)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, files.get(index)?))
}
