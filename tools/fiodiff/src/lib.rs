//! Generated fio jobs, run by fio and by the workload of the simulator, and their differences.
//!
//! [`run`] generates a job from each seed, runs the jobs with real fio in batches, runs the same
//! jobs in virtual time on a drive of negligible cost, and compares each job and direction: number
//! of requests, bytes, syncs, the sequence or the set of requests, distributions, runtimes. A job
//! that differs and has a clock is run again with a few others, as long as it differs, because a
//! machine that pauses delays fio. A job that still differs is made as short as possible.
//!
//! | what | where |
//! |---|---|
//! | the options of generated jobs | `grammar.rs` |
//! | the kinds of jobs that hoistway refuses because the rules of fio are not known | `crates/fio/src/unmodelled.rs` |
//! | a job, as text | `case.rs` |
//! | runs of fio | `theirs.rs` |
//! | runs of hoistway | `ours.rs` |
//! | what is compared, and how exactly | `compare.rs`; distributions: `distributions.rs`, `statistics.rs` |
//! | the smallest job that differs | `shrink.rs` |

#![forbid(unsafe_code)]

mod case;
mod compare;
mod distributions;
mod figures;
pub mod grammar;
mod ours;
mod shrink;
mod statistics;
mod theirs;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

pub use case::Case;
pub use theirs::version;

use compare::Verdict;

/// Jobs that run in one process of fio.
const BATCH: u64 = 12;
/// Jobs that run in one process of fio when they are run again.
const BATCH_AGAIN: usize = 4;
/// Runs after which a difference counts: a pause of the machine delays fio in some of them.
const ATTEMPTS: u32 = 8;

/// The extent of a run.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The first seed.
    pub seed: u64,
    /// Most jobs.
    pub count: u64,
    /// Whether jobs with pauses, rates and times are run, too. Other work on the machine delays
    /// fio in them, and they are repeated until nothing does.
    pub paced: bool,
    /// Time after which no further batch begins.
    pub time: Option<Duration>,
    /// Directory in which job files and outputs of differing jobs are kept.
    pub keep: Option<PathBuf>,
}

/// What a run found.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Jobs that were run by fio and by hoistway, and compared.
    pub compared: u64,
    /// Jobs that hoistway refused, with its message.
    pub refused: Vec<(u64, String)>,
    /// Jobs that fio refused or that failed in it, with its message.
    pub failed: Vec<(u64, String)>,
    /// Jobs that differ.
    pub differences: Vec<Difference>,
}

/// A job that differs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed of the generated job.
    pub seed: u64,
    /// The smallest job file with a difference.
    pub job: String,
    /// The difference, in a sentence.
    pub text: String,
}

/// Runs jobs and compares them. `report` is called after each batch.
///
/// # Errors
/// fio cannot be started, or a directory for its files cannot be created.
pub fn run(extent: &Extent, report: &mut dyn FnMut(&Outcome)) -> Result<Outcome> {
    let start = Instant::now();
    let mut outcome = Outcome::default();
    let mut suspects = Vec::new();
    let mut next = extent.seed;
    let end = extent.seed.saturating_add(extent.count);
    while next < end && extent.time.is_none_or(|time| start.elapsed() < time) {
        let seeds = next..end.min(next + BATCH);
        next = seeds.end;
        let cases = seeds.map(grammar::generate).filter(|case| extent.paced || !case.is_paced());
        suspects.extend(batch(cases.collect(), &mut outcome)?);
        report(&outcome);
    }
    // Pauses of the machine come and go: the jobs with a clock are run again in turn, and not each
    // in a row.
    let (mut paced, others): (Vec<Case>, Vec<Case>) = suspects.into_iter().partition(Case::is_paced);
    for _ in 0..ATTEMPTS {
        let mut remaining = Vec::new();
        for cases in paced.chunks(BATCH_AGAIN) {
            remaining.extend(batch(cases.to_vec(), &mut outcome)?);
            report(&outcome);
        }
        paced = remaining;
    }
    for case in others.into_iter().chain(paced) {
        conclude(&case, extent, &mut outcome)?;
        report(&outcome);
    }
    Ok(outcome)
}

/// Runs a batch of jobs, and compares each. Returns the jobs that differ, or that failed with
/// others.
fn batch(cases: Vec<Case>, outcome: &mut Outcome) -> Result<Vec<Case>> {
    let mut accepted = Vec::new();
    for case in cases {
        match ours::run(&case) {
            Ok(ours) => accepted.push((case, ours)),
            Err(message) => outcome.refused.push((case.seed, message)),
        }
    }
    let theirs = theirs::run(&accepted.iter().map(|(case, ours)| (case, ours.files.as_slice())).collect::<Vec<_>>())?;
    let mut suspects = Vec::new();
    for ((case, ours), theirs) in accepted.into_iter().zip(theirs) {
        match theirs {
            Ok(theirs) if compare::compare(&ours, &theirs).is_none() => outcome.compared += 1,
            _ => suspects.push(case),
        }
    }
    Ok(suspects)
}

/// Adds the verdict on a job that differed from fio in all runs so far.
fn conclude(case: &Case, extent: &Extent, outcome: &mut Outcome) -> Result<()> {
    match examine(case)? {
        Verdict::Same => outcome.compared += 1,
        Verdict::Refused(message) => outcome.refused.push((case.seed, message)),
        Verdict::Failed(message) => outcome.failed.push((case.seed, message)),
        Verdict::Differs(text) => {
            outcome.compared += 1;
            let (small, text) = shrink::shrink(case, text)?;
            if let Some(directory) = &extent.keep {
                keep(directory, &small, &text)?;
            }
            outcome.differences.push(Difference { seed: case.seed, job: small.text(), text });
        }
    }
    Ok(())
}

/// Runs a job alone, several times as long as it differs. Differences of jobs without pauses, rates
/// and times do not depend on the machine.
fn examine(case: &Case) -> Result<Verdict> {
    let mut verdict = Verdict::Same;
    for _ in 0..if case.is_paced() { ATTEMPTS } else { 1 } {
        let ours = match ours::run(case) {
            Ok(ours) => ours,
            Err(message) => return Ok(Verdict::Refused(message)),
        };
        let theirs = theirs::run(&[(case, &ours.files)])?.remove(0);
        verdict = match theirs {
            Err(message) => Verdict::Failed(message),
            Ok(theirs) => match compare::compare(&ours, &theirs) {
                None => return Ok(Verdict::Same),
                Some(text) => Verdict::Differs(text),
            },
        };
    }
    Ok(verdict)
}

fn keep(directory: &std::path::Path, case: &Case, text: &str) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join(format!("{}.fio", case.name())), format!("# {text}\n{}", case.text()))?;
    Ok(())
}
