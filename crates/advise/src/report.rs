//! The serialised answers of `hoistway advise`; docs/advise.md describes the fields.

use std::collections::BTreeMap;

use crate::whatif::Confidence;
use hoistway_machine::Assignment;
use serde::Serialize;

use crate::advice::{EvaluatedChoice, Validation, Verdict};
use crate::answer::{Answer, DepthComparison};
use crate::case::{Case, WorkloadKind};
use crate::change_plan::{ChangePlan, PlannedRule};
use crate::choice::Choice;
use crate::device_facts::ModelQuality;
use crate::job_changes::JobChange;
use crate::objective::{Constraint, Figure, Goal, Unit};
use crate::tune::{Trial, TuneResult};
use hoistway_compare::scheduler_name;
use hoistway_compare::{Difference, Spread};

/// The version of the serialised forms.
const SCHEMA: u32 = 1;

/// The request that an answer belongs to.
#[derive(Debug, Serialize)]
pub struct CaseReport<'a> {
    /// The version of the serialised form: 1.
    pub schema: u32,
    /// The device; `None` without one.
    pub device: Option<SubjectReport<'a>>,
    /// The workload.
    pub workload: WorkloadReport<'a>,
    /// The goals and constraints.
    pub objective: ObjectiveReport<'a>,
    /// The drive model.
    pub drive: DriveReport<'a>,
    /// The simulated host.
    pub host: HostReport,
    /// The settings that choices are compared with.
    pub now: ChoiceReport<'a>,
    /// True if `now` is set on the device.
    pub now_is_set: bool,
    /// Schedulers of current kernels that cannot be set here.
    pub not_offered: &'a [&'static str],
    /// How far the answer can be trusted.
    pub confidence: Confidence,
    /// Deviations of the simulated workload from the requested one.
    pub notes: &'a [String],
}

/// The device of a request.
#[derive(Debug, Serialize)]
pub struct SubjectReport<'a> {
    /// The device to be set.
    pub name: &'a str,
    /// The device in one line.
    pub line: String,
    /// The device that the user named, if that is another.
    pub named: Option<&'a str>,
    /// Further devices that are set in the same way.
    pub alike: Vec<&'a str>,
}

/// The workload of a request.
#[derive(Debug, Serialize)]
pub struct WorkloadReport<'a> {
    /// The workload in words.
    pub what: &'a str,
    /// The kind of workload.
    pub kind: WorkloadKind,
    /// The recording, for a trace.
    pub recorded: Option<RecordedReport<'a>>,
}

/// The recording of a request.
#[derive(Debug, Serialize)]
pub struct RecordedReport<'a> {
    /// The scheduler of the recording.
    pub under: &'static str,
    /// The relative error of the model.
    pub miss: f64,
    /// How far predictions can be trusted.
    pub confidence: &'a Confidence,
}

/// The objective of a request.
#[derive(Debug, Serialize)]
pub struct ObjectiveReport<'a> {
    /// The objective as text.
    pub text: &'a str,
    /// The objective of a typical use in words.
    pub merit: Option<&'a str>,
    /// The goals.
    pub goals: &'a [Goal],
    /// The constraints.
    pub constraints: &'a [Constraint],
}

/// The drive model of a request.
#[derive(Debug, Serialize)]
pub struct DriveReport<'a> {
    /// The name of the model.
    pub profile: &'a str,
    /// The reason for the model.
    pub why: &'a str,
    /// How near the model is to the drive.
    pub standing: ModelQuality,
}

/// The simulated host of a request.
#[derive(Debug, Serialize)]
pub struct HostReport {
    /// The kernel whose block layer is simulated; `None` for hoistway's own server.
    pub kernel: Option<&'static str>,
    /// The number of processors.
    pub cpus: u32,
    /// The size of the page cache in MiB.
    pub page_cache_mib: u64,
    /// The longest read-ahead in KiB.
    pub read_ahead_kib: u64,
    /// The largest number of requests in the drive.
    pub depth_max: Option<u32>,
}

/// A scheduler with tunables.
#[derive(Debug, Serialize)]
pub struct ChoiceReport<'a> {
    /// The choice in one line.
    pub name: String,
    /// The scheduler.
    pub scheduler: &'static str,
    /// Tunables that differ from their defaults.
    pub tunables: BTreeMap<&'a str, i64>,
    /// The longest read-ahead in KiB; `None` for the current one.
    pub read_ahead_kb: Option<u64>,
    /// The number of requests in the queue; `None` for the current one.
    pub nr_requests: Option<u32>,
    /// The depth of the drive; `None` for the current one.
    pub queue_depth: Option<u32>,
}

/// A figure of a choice, compared with the current settings.
#[derive(Debug, Serialize)]
pub struct ComparedFigure<'a> {
    /// The figure.
    pub figure: String,
    /// The unit: `ns`, `bytes/s` or empty.
    pub unit: &'static str,
    /// Mean and spread over the seeds.
    #[serde(flatten)]
    pub spread: &'a Spread,
    /// The difference to the current settings.
    pub against_now: &'a Difference,
}

/// A figure of a choice.
#[derive(Debug, Serialize)]
pub struct FigureReport<'a> {
    /// The figure.
    pub figure: String,
    /// The unit: `ns`, `bytes/s` or empty.
    pub unit: &'static str,
    /// Mean and spread over the seeds.
    #[serde(flatten)]
    pub spread: &'a Spread,
}

/// An evaluated choice.
#[derive(Debug, Serialize)]
pub struct EvaluatedReport<'a> {
    /// The choice.
    #[serde(flatten)]
    pub choice: ChoiceReport<'a>,
    /// True if the choice can be advised.
    pub can_be_set: bool,
    /// The constraints that the choice breaks.
    pub breaks: Vec<String>,
    /// The figures.
    pub figures: Vec<ComparedFigure<'a>>,
}

/// The check of the advised choice on further seeds.
#[derive(Debug, Serialize)]
pub struct ValidationReport<'a> {
    /// The choice in one line.
    pub choice: String,
    /// The seeds.
    pub seeds: &'a [u64],
    /// True if the gain holds on these seeds.
    pub holds: bool,
    /// The figures.
    pub figures: Vec<ComparedFigure<'a>>,
}

/// The comparison with one request at a time in the drive.
#[derive(Debug, Serialize)]
pub struct DepthReport {
    /// The current depth.
    pub depth: u32,
    /// How far schedulers differ at the current depth.
    pub apart_at_depth: f64,
    /// How far schedulers differ at depth 1.
    pub apart_at_one: f64,
    /// The verdict at depth 1.
    pub verdict_at_one: Verdict,
    /// The best choice at depth 1.
    pub best_at_one: String,
}

/// The commands that carry the advice out.
#[derive(Debug, Serialize)]
pub struct CommandsReport<'a> {
    /// Shell commands until the next start.
    pub set: Vec<String>,
    /// Commands and udev rules that persist.
    pub for_good: Vec<String>,
    /// Shell commands that restore the current settings.
    pub back: Vec<String>,
    /// The assignments.
    pub assignments: &'a [Assignment],
    /// The udev rule of each device.
    pub rules: &'a [PlannedRule],
}

/// The answer for a workload.
#[derive(Debug, Serialize)]
pub struct AdviceReport<'a> {
    /// The request.
    #[serde(flatten)]
    pub case: CaseReport<'a>,
    /// Whether to change anything.
    pub verdict: Verdict,
    /// The advised choice.
    pub advice: ChoiceReport<'a>,
    /// The figure that decided, in a sentence.
    pub because: &'a str,
    /// The jobs that gain and lose, in a sentence or two.
    pub why: &'a str,
    /// The jobs that gain and lose.
    pub changes: &'a [JobChange],
    /// The seeds.
    pub seeds: &'a [u64],
    /// The check on further seeds; `None` if no other choice was better.
    pub checked: Option<ValidationReport<'a>>,
    /// The comparison with depth 1; `None` if the drive's queue hides nothing.
    pub depth: Option<DepthReport>,
    /// All evaluated choices.
    pub choices: Vec<EvaluatedReport<'a>>,
    /// The commands that carry the advice out.
    pub commands: CommandsReport<'a>,
    /// Facts to know about the device and the request.
    pub warnings: Vec<String>,
}

/// One trial of a search.
#[derive(Debug, Serialize)]
pub struct TrialReport<'a> {
    /// The choice.
    #[serde(flatten)]
    pub choice: ChoiceReport<'a>,
    /// The figures on the seeds of the search.
    pub figures: Vec<FigureReport<'a>>,
    /// By how much constraints are broken; 0 if none is.
    pub violation: f64,
}

/// The answer of a search over tunables.
#[derive(Debug, Serialize)]
pub struct TuneReport<'a> {
    /// The request.
    #[serde(flatten)]
    pub case: CaseReport<'a>,
    /// Whether to change anything.
    pub verdict: Verdict,
    /// The best choice.
    pub advice: ChoiceReport<'a>,
    /// The number of trials.
    pub evaluations: usize,
    /// The number of restarts of the search.
    pub restarts: usize,
    /// True if the best choice keeps to the constraints.
    pub keeps_constraints: bool,
    /// The gain on the seeds of the search.
    pub found: &'a Difference,
    /// The gain on further seeds.
    pub holds: &'a Difference,
    /// The gain over the scheduler's defaults on further seeds.
    pub against_defaults: &'a Difference,
    /// The figures of the best choice on further seeds.
    pub winner: Vec<FigureReport<'a>>,
    /// The figures of the current settings on further seeds.
    pub now_figures: Vec<FigureReport<'a>>,
    /// The figures of the scheduler's defaults on further seeds.
    pub defaults: Vec<FigureReport<'a>>,
    /// The trials that no other trial beats in both figures.
    pub front: Vec<TrialReport<'a>>,
    /// All trials.
    pub tried: Vec<TrialReport<'a>>,
    /// The commands that carry the advice out.
    pub commands: CommandsReport<'a>,
}

fn unit_name(figure: &Figure) -> &'static str {
    match figure.metric.unit() {
        Unit::Time => "ns",
        Unit::Rate => "bytes/s",
        Unit::Number => "",
    }
}

impl<'a> ChoiceReport<'a> {
    fn new(choice: &'a Choice) -> ChoiceReport<'a> {
        ChoiceReport {
            name: choice.name(),
            scheduler: scheduler_name(choice.kind),
            tunables: choice.tunables.iter().map(|(name, value)| (*name, *value)).collect(),
            read_ahead_kb: choice.read_ahead_kib,
            nr_requests: choice.nr_requests,
            queue_depth: choice.queue_depth,
        }
    }
}

impl<'a> CaseReport<'a> {
    /// The report of a request.
    pub fn new(case: &'a Case) -> CaseReport<'a> {
        let device = case.subject.as_ref().map(|subject| SubjectReport {
            name: &subject.device.name,
            line: subject.line(),
            named: subject.named.as_ref().map(|named| named.name.as_str()),
            alike: subject.alike.iter().map(|device| device.name.as_str()).collect(),
        });
        let recorded = case.recorded.as_ref().map(|recorded| RecordedReport {
            under: scheduler_name(recorded.under),
            miss: recorded.fidelity.miss(),
            confidence: &recorded.confidence,
        });
        let host = &case.bench.host;
        CaseReport {
            schema: SCHEMA,
            device,
            workload: WorkloadReport { what: &case.workload, kind: case.kind, recorded },
            objective: ObjectiveReport {
                text: &case.objective.text,
                merit: case.merit,
                goals: &case.objective.goals,
                constraints: &case.objective.constraints,
            },
            drive: DriveReport {
                profile: case.bench.profile.name(),
                why: &case.drive.why,
                standing: case.drive.quality,
            },
            host: HostReport {
                kernel: case.bench.kernel().map(|kernel| kernel.name()),
                cpus: host.cpus,
                page_cache_mib: host.page_cache_mib,
                read_ahead_kib: host.read_ahead_kib,
                depth_max: host.depth_max,
            },
            now: ChoiceReport::new(&case.now),
            now_is_set: case.now_is_set,
            not_offered: &case.missing,
            confidence: case.confidence(),
            notes: &case.notes,
        }
    }
}

impl<'a> CommandsReport<'a> {
    fn new(plan: &'a ChangePlan) -> CommandsReport<'a> {
        CommandsReport {
            set: plan.commands(),
            for_good: plan.persistent_commands(),
            back: plan.way_back(),
            assignments: &plan.assignments,
            rules: &plan.rules,
        }
    }
}

impl<'a> AdviceReport<'a> {
    /// The report of an answer.
    pub fn new(case: &'a Case, answer: &'a Answer, plan: &'a ChangePlan) -> AdviceReport<'a> {
        let advice = &answer.advice;
        let figures =
            |spreads: &'a [Spread], against_now: &'a [Difference]| -> Vec<ComparedFigure<'a>> {
                let rows = advice.figures.iter().zip(spreads).zip(against_now);
                let report = |((figure, spread), against_now): ((&Figure, &'a Spread), &'a Difference)| {
                    ComparedFigure { figure: figure.to_string(), unit: unit_name(figure), spread, against_now }
                };
                rows.map(report).collect()
            };
        let checked = advice.checked.as_ref().map(|checked: &Validation| ValidationReport {
            choice: advice.judged[checked.choice].choice.name(),
            seeds: &checked.seeds,
            holds: checked.holds,
            figures: figures(&checked.spreads, &checked.against_now),
        });
        let evaluated = |judged: &'a EvaluatedChoice| EvaluatedReport {
            choice: ChoiceReport::new(&judged.choice),
            can_be_set: judged.can_be_set,
            breaks: judged.broken.iter().map(ToString::to_string).collect(),
            figures: figures(&judged.spreads, &judged.against_now),
        };
        AdviceReport {
            case: CaseReport::new(case),
            verdict: advice.verdict,
            advice: ChoiceReport::new(answer.chosen()),
            because: &advice.because,
            why: &advice.why,
            changes: &advice.changes,
            seeds: &advice.seeds,
            checked,
            depth: answer.depth.as_ref().map(DepthReport::new),
            choices: advice.judged.iter().map(evaluated).collect(),
            commands: CommandsReport::new(plan),
            warnings: answer.warnings(case),
        }
    }
}

impl DepthReport {
    fn new(comparison: &DepthComparison) -> DepthReport {
        let best = &comparison.advice.judged[comparison.advice.chosen].choice;
        DepthReport {
            depth: comparison.depth,
            apart_at_depth: comparison.apart[0],
            apart_at_one: comparison.apart[1],
            verdict_at_one: comparison.advice.verdict,
            best_at_one: best.name(),
        }
    }
}

impl<'a> TuneReport<'a> {
    /// The report of a search.
    pub fn new(case: &'a Case, result: &'a TuneResult, plan: &'a ChangePlan) -> TuneReport<'a> {
        let figures = |spreads: &'a [Spread]| -> Vec<FigureReport<'a>> {
            let report = |(figure, spread): (&Figure, &'a Spread)| FigureReport {
                figure: figure.to_string(),
                unit: unit_name(figure),
                spread,
            };
            result.figures.iter().zip(spreads).map(report).collect()
        };
        let trial = |trial: &'a Trial| TrialReport {
            choice: ChoiceReport::new(&trial.choice),
            figures: figures(&trial.spreads),
            violation: trial.score.violation,
        };
        TuneReport {
            case: CaseReport::new(case),
            verdict: result.verdict,
            advice: ChoiceReport::new(&result.winner),
            evaluations: result.tried.len(),
            restarts: result.restarts,
            keeps_constraints: result.keeps,
            found: &result.found,
            holds: &result.holds,
            against_defaults: &result.against_defaults,
            winner: figures(&result.spreads[0]),
            now_figures: figures(&result.spreads[1]),
            defaults: figures(&result.spreads[2]),
            front: result.front.iter().map(|index| trial(&result.tried[*index])).collect(),
            tried: result.tried.iter().map(trial).collect(),
            commands: CommandsReport::new(plan),
        }
    }
}
