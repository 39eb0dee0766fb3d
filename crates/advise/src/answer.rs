//! Advice for a case: the evaluated choices, and the effect of the drive's own queue.

use std::sync::atomic::AtomicBool;

use hoistway_core::Kind;

use crate::advice::{Advice, AdviceRequest, Verdict, advise};
use crate::bench::{AdviseError, RunProgress};
use crate::case::Case;
use crate::choice::{Choice, usual_variants};
use crate::device_facts::{ModelQuality, PriorityUse, priority_use};
use hoistway_compare::scheduler_name;

/// How to answer a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerOptions {
    /// The number of seeds, 2 or more.
    pub seeds: u32,
    /// The seed that all others follow from.
    pub seed: u64,
    /// True to simulate the schedulers of other kernels too; they are never advised.
    pub all_schedulers: bool,
}

/// The answer of `hoistway advise` for a workload.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The advice.
    pub advice: Advice,
    /// The same with one request at a time in the drive; `None` for a drive that takes one request
    /// at a time, or has no arm.
    pub depth: Option<DepthComparison>,
}

/// The effect of a drive that takes several requests at once and orders them itself.
#[derive(Clone, Debug)]
pub struct DepthComparison {
    /// The current depth.
    pub depth: u32,
    /// The difference between the schedulers in the first goal, the worst over the best less 1: at
    /// the current depth, and at depth 1.
    pub apart: [f64; 2],
    /// The advice at depth 1.
    pub advice: Advice,
}

impl Answer {
    /// Simulates all choices of a case. `progress` gets the number of finished runs and of all
    /// runs.
    ///
    /// # Errors
    /// [`AdviseError`] if a simulation fails or is cancelled, or with fewer than two seeds.
    pub fn of(
        case: &Case,
        options: AnswerOptions,
        progress: RunProgress<'_>,
        cancel: &AtomicBool,
    ) -> Result<Answer, AdviseError> {
        let plain: Vec<Choice> = case.candidates.iter().map(|kind| Choice::plain(*kind)).collect();
        let variants = case.candidates.iter().flat_map(|kind| usual_variants(*kind));
        let all = hoistway_custom::all();
        let is_compared = |kind: &Kind| options.all_schedulers || *kind == Kind::Paternoster;
        let others = all.iter().filter(|kind| is_compared(kind) && !case.candidates.contains(kind));
        let request = AdviceRequest {
            bench: case.bench.clone(),
            now: case.now.clone(),
            choices: plain.iter().cloned().chain(variants).collect(),
            for_comparison: others.map(|kind| Choice::plain(*kind)).collect(),
            objective: case.objective.clone(),
            seeds: options.seeds,
            seed: options.seed,
            min_difference: case.min_difference(),
        };
        let advice = advise(&request, progress, cancel)?;
        let depth = compare_depths(case, &request, &advice, &plain, cancel)?;
        Ok(Answer { advice, depth })
    }

    /// The advised choice; with [`Verdict::Leave`] the current one.
    pub fn chosen(&self) -> &Choice {
        &self.advice.judged[self.advice.chosen].choice
    }

    /// Facts to know about the device and the request, a sentence each.
    pub fn warnings(&self, case: &Case) -> Vec<String> {
        let mut warnings: Vec<String> =
            case.subject.iter().flat_map(|subject| &subject.warnings).map(|warning| warning.text.clone()).collect();
        let chosen = self.chosen().kind;
        if case.bench.asks_for_priorities() && priority_use(chosen) == PriorityUse::None {
            warnings.push(format!("the workload asks for I/O priorities, and {} ignores them", scheduler_name(chosen)));
        }
        if self.advice.verdict == Verdict::Change {
            warnings.extend(lost_priorities(case.now.kind, chosen));
        }
        if case.drive.quality == ModelQuality::Unknown && case.subject.is_none() {
            warnings.push("the drive below is not known".into());
        }
        if !case.missing.is_empty() {
            let module = case.missing.iter().find(|name| **name != "none");
            let module = module.map_or("bfq", |name| if *name == "kyber" { "kyber-iosched" } else { name });
            warnings.push(format!(
                "not offered by this kernel now, and so not judged: {} (`modprobe {module}` may bring it)",
                case.missing.join(", ")
            ));
        }
        warnings
    }
}

/// Compares the current depth with one request at a time. Only a drive with an arm reorders
/// requests to its advantage.
fn compare_depths(
    case: &Case,
    request: &AdviceRequest,
    advice: &Advice,
    plain: &[Choice],
    cancel: &AtomicBool,
) -> Result<Option<DepthComparison>, AdviseError> {
    let depth = case.depth();
    if depth < 2 || !case.bench.profile.is_rotational() {
        return Ok(None);
    }
    let request = AdviceRequest {
        now: advice.judged[advice.chosen].choice.clone(),
        choices: plain.iter().map(|choice| Choice { queue_depth: Some(1), ..choice.clone() }).collect(),
        for_comparison: Vec::new(),
        ..request.clone()
    };
    let at_one = advise(&request, &|_, _| {}, cancel)?;
    let apart = [apart(advice, None), apart(&at_one, Some(1))];
    Ok(Some(DepthComparison { depth, apart, advice: at_one }))
}

/// The worst mean of the first goal over the best, less 1, among schedulers with default tunables.
fn apart(advice: &Advice, queue_depth: Option<u32>) -> f64 {
    let is_plain = |choice: &Choice| choice.tunables.is_empty() && choice.queue_depth == queue_depth;
    let plain = advice.judged.iter().filter(|judged| judged.can_be_set && is_plain(&judged.choice));
    let means = plain.filter_map(|judged| judged.spreads.first()).map(|spread| spread.mean);
    let (low, high) = means.fold((f64::INFINITY, 0.0f64), |(low, high), mean| (low.min(mean), high.max(mean)));
    if low > 0.0 && high.is_finite() { high / low - 1.0 } else { f64::NAN }
}

/// The effect of `ionice` that a change of the scheduler loses.
fn lost_priorities(now: Kind, chosen: Kind) -> Option<String> {
    let name = scheduler_name(chosen);
    match (priority_use(now), priority_use(chosen)) {
        (PriorityUse::Class | PriorityUse::ClassAndLevel, PriorityUse::None) => {
            Some(format!("once {name} is set `ionice` has no effect any more: {name} ignores priorities"))
        }
        (PriorityUse::ClassAndLevel, PriorityUse::Class) => Some(format!(
            "once {name} is set only the class of `ionice` counts (-c1, -c2, -c3), and the level (-n) no more"
        )),
        _ => None,
    }
}
