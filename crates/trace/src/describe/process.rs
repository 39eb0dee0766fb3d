//! Statistics of each process, and the rule by which it submits requests.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::distribution::{Distribution, Figures};
use super::requests::{RequestFigures, RequestStats};
pub use crate::dependencies::REQUESTS_MIN as REQUESTS_OF_RULE_MIN;
use crate::dependencies::{self, Pattern, ProcessRequests, SubmittedRequest};
use crate::event::{DeviceId, Event};
use crate::request::RequestRecord;

/// Maximum number of processes with separate statistics; later processes are combined.
pub const PROCESSES_MAX: usize = 512;
/// Maximum number of requests of a process from which its rule is determined: the first ones.
pub const REQUESTS_OF_RULE_MAX: usize = 16_384;
/// Maximum number of requests kept for rules over all processes, 40 bytes each.
const KEPT_MAX: usize = 1 << 20;
/// Maximum number of remembered process names.
const NAMES_MAX: usize = 1 << 16;
/// Maximum length of a process name in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Statistics of all processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    indices: FxHashMap<u32, u32>,
    known: Vec<Process>,
    others: Option<Box<Process>>,
    left_out: FxHashMap<u32, ()>,
    names: FxHashMap<u32, String>,
    kept: ProcessRequests,
    kept_count: usize,
}

#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    part: RequestStats,
    last_queued_ns: Option<u64>,
    last_completed_ns: Option<u64>,
    /// True if one of its requests completed since its last submission.
    released: bool,
    /// Number of its requests kept for its rule.
    kept: usize,
}

/// Statistics of a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessFigures {
    /// Process id; 0 if unknown.
    pub pid: u32,
    /// Last name of the process; empty if unknown.
    pub name: String,
    /// Statistics of its requests.
    #[serde(flatten)]
    pub part: RequestFigures,
    /// Rule of its requests on the device where it has the most requests.
    pub rule: Option<Rule>,
}

/// The rule by which a process submits requests; see [`dependencies::find_pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// Kind of the rule.
    pub kind: RuleKind,
    /// Largest number of outstanding requests.
    pub depth: u32,
    /// Interval of a timer in ns.
    pub period_ns: Option<u64>,
    /// Fraction of requests that follow the rule, 0 to 1: requests in time for a timer, requests
    /// after a completion for closed processes.
    pub explained_share: f64,
    /// Fraction of requests within a tenth of the median latency after a completion of the same
    /// process, 0 to 1.
    pub right_after_share: f64,
    /// Number of requests from which the rule was determined.
    pub requests: u64,
    /// Evidence for the rule.
    pub evidence: Evidence,
}

/// Kinds of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// Waits for a completion before it submits again.
    Closed,
    /// Submits several requests at once and waits for all of them.
    Batches,
    /// Submits at a constant interval.
    Timer,
    /// Submits at times without a recognisable rule.
    Open,
    /// Made fewer requests than a rule needs: see [`REQUESTS_OF_RULE_MIN`].
    Undetermined,
}

/// The evidence for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The pauses of the process, or its intervals, show the rule.
    Observed,
    /// The latencies are too similar to show whether the process waits for completions; the rule is
    /// an assumption.
    SimilarLatencies,
    /// The process made fewer requests than a rule needs.
    TooFewRequests,
}

impl ProcessFigures {
    /// Returns the name and process id, as far as they are known: `fio (4711)`.
    pub fn title(&self) -> String {
        match (self.name.as_str(), self.pid) {
            ("", 0) => "(unknown)".to_owned(),
            ("", pid) => pid.to_string(),
            (name, pid) => format!("{name} ({pid})"),
        }
    }
}

impl Processes {
    /// Sets the current name of a process.
    pub fn name(&mut self, pid: u32, name: &[u8]) {
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(&pid) {
            return;
        }
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]);
        self.names.insert(pid, name.into_owned());
    }

    /// Returns the statistics of a process.
    pub fn of(&mut self, pid: u32) -> &mut Process {
        let index = match self.indices.get(&pid) {
            Some(index) => Some(*index as usize),
            None if self.known.len() < PROCESSES_MAX => {
                self.indices.insert(pid, self.known.len() as u32);
                self.known.push(Process::new(pid));
                Some(self.known.len() - 1)
            }
            None => {
                if self.left_out.len() < NAMES_MAX {
                    self.left_out.insert(pid, ());
                }
                None
            }
        };
        match index {
            Some(index) => &mut self.known[index],
            None => self.others.get_or_insert_with(|| Box::new(Process::new(0))),
        }
    }

    pub fn record(&mut self, record: &RequestRecord) {
        let process = self.of(record.pid);
        process.part.request(record);
        process.completed(record);
        let keep = record.completed_ns.is_some() && process.kept < REQUESTS_OF_RULE_MAX;
        process.kept += usize::from(keep);
        if keep && self.kept_count < KEPT_MAX {
            self.kept_count += record.bios();
            self.kept.take(record);
        }
        for (index, bio) in record.merged.iter().enumerate() {
            let process = self.of(bio.pid);
            process.part.merged(record, index);
            process.completed(record);
        }
    }

    /// Returns the statistics of the think times of all processes.
    pub fn think(&self) -> Figures {
        let mut all = Distribution::new(3);
        self.known.iter().chain(self.others.as_deref()).for_each(|process| all.add(&process.part.think));
        all.figures()
    }

    /// Returns the processes with separate statistics, the number of further processes, and the
    /// combined statistics of those.
    pub fn finish(self) -> (Vec<ProcessFigures>, u64, Option<RequestFigures>) {
        let rules = rules(self.kept);
        let figures = |process: &Process| ProcessFigures {
            pid: process.pid,
            name: self.names.get(&process.pid).cloned().unwrap_or_default(),
            part: process.part.figures(),
            rule: rules.get(&process.pid).copied(),
        };
        let submitted = |process: &&Process| process.part.bios() > 0;
        let mut processes: Vec<ProcessFigures> = self.known.iter().filter(submitted).map(figures).collect();
        processes.sort_by_key(|process| {
            let mix = &process.part.mix;
            (std::cmp::Reverse((mix.bytes(), process.part.bios)), process.pid)
        });
        (processes, self.left_out.len() as u64, self.others.map(|others| others.part.figures()))
    }
}

impl Process {
    fn new(pid: u32) -> Process {
        Process {
            pid,
            part: RequestStats::new(2),
            last_queued_ns: None,
            last_completed_ns: None,
            released: false,
            kept: 0,
        }
    }

    /// Records the submission of a bio.
    pub fn queued(&mut self, event: &Event) {
        if let Some(last_ns) = self.last_queued_ns.replace(event.time_ns) {
            self.part.q2q.record(event.time_ns.saturating_sub(last_ns));
        }
        if self.released
            && let Some(completed_ns) = self.last_completed_ns
        {
            self.part.think.record(event.time_ns.saturating_sub(completed_ns));
        }
        self.released = false;
        if event.bytes > 0 {
            self.part.seeks.next(event.device, event.sector, event.end_sector());
        }
    }

    /// Records the completion of a bio of the process.
    fn completed(&mut self, record: &RequestRecord) {
        if let Some(completed_ns) = record.completed_ns {
            self.last_completed_ns = Some(completed_ns);
            self.released = true;
        }
    }
}

/// Determines the rule of each process on the device where it has the most requests.
fn rules(kept: ProcessRequests) -> FxHashMap<u32, Rule> {
    let mut most: FxHashMap<u32, (DeviceId, Vec<SubmittedRequest>)> = FxHashMap::default();
    for ((device, pid), requests) in kept.finish() {
        let entry = most.entry(pid).or_default();
        if entry.1.len() < requests.len() {
            *entry = (device, requests);
        }
    }
    most.into_iter().map(|(pid, (_, requests))| (pid, rule(&requests))).collect()
}

fn rule(requests: &[SubmittedRequest]) -> Rule {
    let finding = dependencies::find_pattern(requests);
    let is_waiting = matches!(finding.pattern, Pattern::Closed { .. } | Pattern::Batches { .. });
    let evidence = match finding.slope {
        _ if requests.len() < REQUESTS_OF_RULE_MIN => Evidence::TooFewRequests,
        None if is_waiting => Evidence::SimilarLatencies,
        _ => Evidence::Observed,
    };
    let (kind, period_ns) = match finding.pattern {
        _ if evidence == Evidence::TooFewRequests => (RuleKind::Undetermined, None),
        Pattern::Closed { .. } => (RuleKind::Closed, None),
        Pattern::Batches { .. } => (RuleKind::Batches, None),
        Pattern::Timer { period_ns, .. } => (RuleKind::Timer, Some(period_ns)),
        Pattern::Open => (RuleKind::Open, None),
    };
    Rule {
        kind,
        depth: finding.depth,
        period_ns,
        explained_share: finding.explained,
        right_after_share: right_after(requests),
        requests: requests.len() as u64,
        evidence,
    }
}

/// Returns the fraction of requests within a tenth of the median latency after a completion.
fn right_after(requests: &[SubmittedRequest]) -> f64 {
    let completed = || requests.iter().filter(|request| request.is_completed());
    let mut latencies: Vec<u64> =
        completed().map(|request| request.completed_ns.saturating_sub(request.queued_ns)).collect();
    if latencies.is_empty() {
        return 0.0;
    }
    let middle = latencies.len() / 2;
    let near_ns = *latencies.select_nth_unstable(middle).1 / 10;
    let mut completions: Vec<u64> = completed().map(|request| request.completed_ns).collect();
    completions.sort_unstable();
    let mut before = 0;
    let near = requests.iter().filter(|request| {
        while completions.get(before).is_some_and(|completed_ns| *completed_ns <= request.queued_ns) {
            before += 1;
        }
        before.checked_sub(1).is_some_and(|last| request.queued_ns - completions[last] <= near_ns)
    });
    near.count() as f64 / requests.len() as f64
}
