//! What each process did, and what its requests waited for.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::part::{Part, PartFigures};
use super::spread::{Figures, Spread};
use crate::depends::{self, Asked, ByProcess, Pattern};
use crate::event::{DeviceId, Event};
use crate::life::Life;

/// So many processes are told apart; those that come later are one.
pub const PROCESSES_MAX: usize = 512;
/// The rule that a process follows is found from so many of its requests: the first ones.
pub const REQUESTS_OF_RULE_MAX: usize = 16_384;
/// So many requests in all are kept for finding rules, of 40 bytes each.
const KEPT_MAX: usize = 1 << 20;
/// So many names of processes are kept.
const NAMES_MAX: usize = 1 << 16;
/// So many bytes of a name are.
const NAME_BYTES_MAX: usize = 64;

/// Processes as they are counted.
#[derive(Debug, Default)]
pub(super) struct Processes {
    places: FxHashMap<u32, u32>,
    known: Vec<Process>,
    others: Option<Box<Process>>,
    left_out: FxHashMap<u32, ()>,
    names: FxHashMap<u32, String>,
    kept: ByProcess,
    kept_count: usize,
}

#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    part: Part,
    last_queued_ns: Option<u64>,
    last_completed_ns: Option<u64>,
    /// Whether one of its requests completed since it last submitted one.
    released: bool,
    /// How many of its requests are kept for finding its rule.
    kept: usize,
}

/// What a process did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessFigures {
    /// Its number; 0 where none is known.
    pub pid: u32,
    /// Its name, the last that it had; empty where none is known.
    pub name: String,
    /// What its requests amount to.
    #[serde(flatten)]
    pub part: PartFigures,
    /// What they waited for, on the device where it has the most.
    pub rule: Option<Rule>,
}

/// The rule that the requests of a process follow: [`depends::find`] says how it is found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// What it is.
    pub kind: RuleKind,
    /// The most requests under way.
    pub depth: u32,
    /// The interval of timers.
    pub period_ns: Option<u64>,
    /// The share of requests that follow it, 0 to 1: of timers those that came in time, of closed ones those that came behind a completion.
    pub explained_share: f64,
    /// The share of requests that came within a tenth of the median latency behind a completion of the same process, 0 to 1.
    pub right_after_share: f64,
    /// How many requests it was found from.
    pub requests: u64,
}

/// The kinds of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// It waits for a completion before it asks again.
    Closed,
    /// It asks several times at once, and waits for all.
    Batches,
    /// It asks when its clock says so.
    Timer,
    /// It asks at times that have no rule that would be seen.
    Open,
}

impl Processes {
    /// Takes in what a process is called from now on.
    pub fn name(&mut self, pid: u32, name: &[u8]) {
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(&pid) {
            return;
        }
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]);
        self.names.insert(pid, name.into_owned());
    }

    /// The process of a number.
    pub fn of(&mut self, pid: u32) -> &mut Process {
        let place = match self.places.get(&pid) {
            Some(place) => Some(*place as usize),
            None if self.known.len() < PROCESSES_MAX => {
                self.places.insert(pid, self.known.len() as u32);
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
        match place {
            Some(place) => &mut self.known[place],
            None => self.others.get_or_insert_with(|| Box::new(Process::new(0))),
        }
    }

    pub fn life(&mut self, life: &Life) {
        let process = self.of(life.pid);
        process.part.request(life);
        process.completed(life);
        let keep = life.completed_ns.is_some() && process.kept < REQUESTS_OF_RULE_MAX;
        process.kept += usize::from(keep);
        if keep && self.kept_count < KEPT_MAX {
            self.kept_count += life.bios();
            self.kept.take(life);
        }
        for (place, bio) in life.merged.iter().enumerate() {
            let process = self.of(bio.pid);
            process.part.merged(life, place);
            process.completed(life);
        }
    }

    /// The think times of all of them.
    pub fn think(&self) -> Figures {
        let mut all = Spread::new(3);
        self.known.iter().chain(self.others.as_deref()).for_each(|process| all.add(&process.part.think));
        all.figures()
    }

    /// Those that are told apart, how many more there are, and what those amount to.
    pub fn finish(self) -> (Vec<ProcessFigures>, u64, Option<PartFigures>) {
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
        Process { pid, part: Part::new(2), last_queued_ns: None, last_completed_ns: None, released: false, kept: 0 }
    }

    /// It submitted a bio.
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

    /// A bio of its own is over.
    fn completed(&mut self, life: &Life) {
        if let Some(completed_ns) = life.completed_ns {
            self.last_completed_ns = Some(completed_ns);
            self.released = true;
        }
    }
}

/// The rule of each process on the device where it has the most requests.
fn rules(kept: ByProcess) -> FxHashMap<u32, Rule> {
    let mut most: FxHashMap<u32, (DeviceId, Vec<Asked>)> = FxHashMap::default();
    for ((device, pid), asked) in kept.finish() {
        let entry = most.entry(pid).or_default();
        if entry.1.len() < asked.len() {
            *entry = (device, asked);
        }
    }
    most.into_iter().map(|(pid, (_, asked))| (pid, rule(&asked))).collect()
}

fn rule(asked: &[Asked]) -> Rule {
    let finding = depends::find(asked);
    let (kind, period_ns) = match finding.pattern {
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
        right_after_share: right_after(asked),
        requests: asked.len() as u64,
    }
}

/// The share of requests that came within a tenth of the median latency behind a completion.
fn right_after(asked: &[Asked]) -> f64 {
    let over = |asked: &&Asked| asked.completed_ns != u64::MAX;
    let mut latencies: Vec<u64> =
        asked.iter().filter(over).map(|asked| asked.completed_ns.saturating_sub(asked.queued_ns)).collect();
    if latencies.is_empty() {
        return 0.0;
    }
    let middle = latencies.len() / 2;
    let near_ns = *latencies.select_nth_unstable(middle).1 / 10;
    let mut completions: Vec<u64> = asked.iter().filter(over).map(|asked| asked.completed_ns).collect();
    completions.sort_unstable();
    let mut before = 0;
    let near = asked.iter().filter(|asked| {
        while completions.get(before).is_some_and(|completed_ns| *completed_ns <= asked.queued_ns) {
            before += 1;
        }
        before.checked_sub(1).is_some_and(|last| asked.queued_ns - completions[last] <= near_ns)
    });
    near.count() as f64 / asked.len() as f64
}
