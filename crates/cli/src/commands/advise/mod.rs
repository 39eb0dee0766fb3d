//! `hoistway advise`: which scheduler a device wants for a workload, and why.

mod apply;
mod case;
mod confidence;
mod json;
mod overview;
mod page;
mod subject;
mod tell;
mod tune;

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use hoistway_advise::{Advice, AdviceRequest, AdviseError, Choice, FLOOR, Verdict, advise, usual_variants};

use crate::cli::AdviseArgs;
use crate::commands::compare::WholeFile;
use crate::failure::{Exit, Interrupted, UsageError, tell as tell_on_stderr};
use crate::interrupt;
use crate::output::Out;
use crate::progress::Bar;
use case::Case;
use subject::Subject;

/// Answers.
pub fn run(args: &AdviseArgs, out: &mut Out) -> Result<Exit> {
    apply::check(args)?;
    let subject = args.device.as_deref().map(|name| Subject::find(args, name)).transpose()?;
    if args.use_.is_none() && args.job.is_none() && args.trace.is_none() {
        return overview::run(args, subject, out);
    }
    let report = args.report.as_deref().map(WholeFile::new).transpose()?;
    let cancel = interrupt::watch()?;
    let case = match Case::find(args, subject, &cancel)? {
        case::Found::Case(case) => *case,
        case::Found::Refused(refusal) => {
            tell_on_stderr(&refusal);
            return Ok(Exit::Failed);
        }
    };
    if args.tune {
        return tune::run(args, &case, report.as_ref(), &cancel, out);
    }
    let answer = answer(args, &case, &cancel)?;
    if let Some(report) = &report {
        report.write(&hoistway_report::sheet_page(&page::advice(&case, &answer))?, &cancel)?;
    }
    let plan = apply::Plan::new(&case, answer.chosen());
    if args.json {
        out.json(&json::advice(&case, &answer, &plan))?;
    } else {
        tell::advice(&case, &answer, &plan, out)?;
        if let Some(path) = &args.report {
            out.line("")?;
            out.line(format_args!("The page is in {}.", path.display()))?;
        }
    }
    apply::run(args, &case, &plan, answer.advice.verdict, out)
}

/// All that was found out.
pub struct Answer {
    pub advice: Advice,
    /// What the drive's own queue hides, if it takes several requests at once.
    pub depth: Option<Depth>,
}

impl Answer {
    /// What to set; with [`Verdict::Leave`] what is set.
    pub fn chosen(&self) -> &Choice {
        &self.advice.judged[self.advice.chosen].choice
    }
}

/// What would be if the drive were given one request at a time.
pub struct Depth {
    /// How many it takes now.
    pub depth: u32,
    /// How far the schedulers lie apart in the first goal: the worst over the best, less 1; at that depth and at 1.
    pub apart: [f64; 2],
    /// The same advice with a depth of one.
    pub advice: Advice,
}

fn answer(args: &AdviseArgs, case: &Case, cancel: &AtomicBool) -> Result<Answer> {
    let plain: Vec<Choice> = case.candidates.iter().map(|kind| Choice::plain(*kind)).collect();
    let variants = case.candidates.iter().flat_map(|kind| usual_variants(*kind));
    let others = hoistway_core::Kind::ALL.iter().filter(|kind| args.all && !case.candidates.contains(kind));
    let request = AdviceRequest {
        bench: case.bench.clone(),
        now: case.now.clone(),
        choices: plain.iter().cloned().chain(variants).collect(),
        told_only: others.map(|kind| Choice::plain(*kind)).collect(),
        objective: case.objective.clone(),
        seeds: args.seeds,
        seed: args.seed,
        floor: case.floor(),
    };
    let bar = Bar::new(1000, "simulating");
    let progress_bar = |over: usize, all: usize| bar.set(over as u64 * 1000 / all.max(1) as u64);
    let advice = advise(&request, &progress_bar, cancel).map_err(failed)?;
    let depth = depth(case, &request, &advice, &plain, cancel)?;
    bar.clear();
    Ok(Answer { advice, depth })
}

/// What the drive's own choice among several requests hides. Only an arm has a way to choose.
fn depth(
    case: &Case,
    request: &AdviceRequest,
    advice: &Advice,
    plain: &[Choice],
    cancel: &AtomicBool,
) -> Result<Option<Depth>> {
    let own = hoistway_drive::describe(&case.bench.profile).depth;
    let depth = case.bench.host.depth_max.map_or(own, |most| own.min(most));
    if depth < 2 || !case.bench.profile.is_rotational() {
        return Ok(None);
    }
    let request = AdviceRequest {
        now: advice.judged[advice.chosen].choice.clone(),
        choices: plain.iter().map(|choice| Choice { queue_depth: Some(1), ..choice.clone() }).collect(),
        told_only: Vec::new(),
        ..request.clone()
    };
    let at_one = advise(&request, &|_, _| {}, cancel).map_err(failed)?;
    let apart = [apart(advice, None), apart(&at_one, Some(1))];
    Ok(Some(Depth { depth, apart, advice: at_one }))
}

/// The worst mean of the first goal over the best, less 1, among schedulers as they come.
fn apart(advice: &Advice, queue_depth: Option<u32>) -> f64 {
    let is_plain = |choice: &Choice| choice.tunables.is_empty() && choice.queue_depth == queue_depth;
    let means = advice.judged.iter().filter(|judged| judged.can_be_set && is_plain(&judged.choice));
    let means = means.filter_map(|judged| judged.spreads.first()).map(|spread| spread.mean);
    let (low, high) = means.fold((f64::INFINITY, 0.0f64), |(low, high), mean| (low.min(mean), high.max(mean)));
    if low > 0.0 && high.is_finite() { high / low - 1.0 } else { f64::NAN }
}

impl Case {
    /// What is too small to be told: a model cannot tell less than it misses the recording by.
    fn floor(&self) -> f64 {
        self.recorded.as_ref().map_or(FLOOR, |recorded| recorded.fidelity.miss().max(FLOOR))
    }
}

/// Errors as other commands have them.
pub fn failed(error: AdviseError) -> anyhow::Error {
    if error.is_cancelled() { Interrupted.into() } else { error.into() }
}

/// A command line that makes no sense.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Whether something is to be set.
pub fn is_change(verdict: Verdict) -> bool {
    verdict == Verdict::Change
}
