//! `hoistway conform`: recorded decisions, replayed.

mod markdown;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::Result;
use hoistway_sim::decisions::{DecisionError, FileReport, ListCount, ScenarioReport, replay_file};
use serde::Serialize;

use crate::cli::ConformArgs;
use crate::failure::{Exit, tell};
use crate::output::Out;
use crate::progress::Bar;

type Replayed = Result<FileReport, DecisionError>;

/// Replays the files, as many side by side as there are cores, and tells of each in the order of the command line.
pub fn run(args: &ConformArgs, out: &mut Out) -> Result<Exit> {
    let mut document = Document { schema: 1, files: Vec::new(), errors: Vec::new() };
    replay_all(&args.files, |path, replayed| {
        match replayed {
            Ok(report) => {
                if !args.json && !args.markdown {
                    tell_of(&report, args.verbose, out)?;
                }
                document.files.push(File::new(report));
            }
            Err(error) => {
                tell(&format!("error: {error}"));
                document.errors.push(Failure { file: path.display().to_string(), message: error.to_string() });
            }
        }
        Ok(())
    })?;
    if args.json {
        out.json(&document)?;
    } else if args.markdown {
        markdown::print(&document, out)?;
    }
    Ok(match document {
        Document { errors, .. } if !errors.is_empty() => Exit::Failed,
        Document { files, .. } if files.iter().any(|file| file.identical != file.total) => Exit::Different,
        _ => Exit::Success,
    })
}

/// The JSON document of `hoistway conform --json`.
#[derive(Serialize)]
struct Document {
    /// The version of this form: 1.
    schema: u32,
    /// The files that were replayed to their ends, in the order of the command line.
    files: Vec<File>,
    /// Those that were not.
    errors: Vec<Failure>,
}

/// One file.
#[derive(Serialize)]
struct File {
    /// Its name, as given.
    file: String,
    /// How many of its scenarios came out identical: the same requests, in the same order, at the same nanoseconds.
    identical: u32,
    /// How many it has.
    total: u32,
    /// How many recorded decisions those hold.
    decisions: u64,
    /// The same by list: `list` and `decisions`.
    lists: Vec<ListCount>,
    /// Whose decisions they are: the scenarios' `source`, each once.
    sources: Vec<&'static str>,
    /// Where each of the others first differs.
    differences: Vec<ScenarioReport>,
}

/// A file that could not be replayed.
#[derive(Serialize)]
struct Failure {
    /// Its name, as given.
    file: String,
    /// What is wrong, and what would be right.
    message: String,
}

impl File {
    fn new(report: FileReport) -> File {
        let FileReport { file, total, identical, decisions, lists, sources, scenarios } = report;
        File { file, identical, total, decisions, lists, sources, differences: scenarios }
    }
}

/// A line a file, and with `verbose` the first difference of each scenario that failed.
fn tell_of(report: &FileReport, verbose: bool, out: &mut Out) -> Result<()> {
    out.line(format_args!("{}  {}/{}", report.file, report.identical, report.total))?;
    for scenario in report.scenarios.iter().filter(|_| verbose) {
        out.line(format_args!("  line {} {}: {}", scenario.line, scenario.name, scenario.difference))?;
        for event in &scenario.last_events {
            out.line(format_args!("    {event}"))?;
        }
    }
    // Files may take a while: what is known is shown.
    Ok(out.flush()?)
}

/// Calls `each` with every file's result in the order of `files`, as soon as it and all before it are known.
fn replay_all(files: &[PathBuf], mut each: impl FnMut(&PathBuf, Replayed) -> Result<()>) -> Result<()> {
    let (next, scenarios) = (AtomicUsize::new(0), AtomicU64::new(0));
    let bar = Bar::counter("scenarios replayed");
    let workers = thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next, scenarios, bar) = (sender.clone(), &next, &scenarios, &bar);
            scope.spawn(move || {
                while let Some((index, path)) = take(files, next) {
                    let replayed = replay_file(path, |_| bar.set(scenarios.fetch_add(1, Ordering::Relaxed) + 1));
                    // Nobody listens any more when the output is closed: then there is nothing left to do.
                    if sender.send((index, replayed)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut known: Vec<Option<Replayed>> = files.iter().map(|_| None).collect();
        let mut told = 0;
        for (index, replayed) in results {
            known[index] = Some(replayed);
            while let Some(replayed) = known.get_mut(told).and_then(Option::take) {
                bar.suspend(|| each(&files[told], replayed))?;
                told += 1;
            }
        }
        Ok(())
    })
}

fn take<'a>(files: &'a [PathBuf], next: &AtomicUsize) -> Option<(usize, &'a PathBuf)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, files.get(index)?))
}
