//! A validated scenario: bios, service times and recorded decisions.

use std::collections::HashMap;

use hoistway_core::{Class, Flags, Kind, Op, Priority};

use super::decision::{Decision, List};
use super::error::ScenarioError;
use super::format::{RawClass, RawOp, RawRequest, RawScenario};
use super::groups::{Group, GroupIndex, ROOT_ID, groups};
use super::targets::Target;

/// Size of the request pool if a scenario with plugging does not set it (Linux's default).
const NR_REQUESTS: u32 = 128;

/// A scenario of a decision file.
#[derive(Debug)]
pub struct Scenario {
    pub(super) name: String,
    pub(super) target: &'static Target,
    pub(super) kind: Kind,
    pub(super) hz: u32,
    pub(super) depth: u32,
    pub(super) rotational: bool,
    pub(super) merging: bool,
    /// Size of the request pool in scenarios with plugging; other scenarios have neither.
    pub(super) pool: Option<u32>,
    pub(super) tunables: Tunables,
    pub(super) processes: Vec<Process>,
    pub(super) requests: Vec<ScenarioBio>,
    pub(super) exits: Vec<Exit>,
    pub(super) priority_changes: Vec<PriorityChange>,
    /// Groups below the root, parents before their children.
    pub(super) groups: Vec<Group>,
    pub(super) moves: Vec<GroupMove>,
    expected: [Option<Vec<Decision>>; List::ALL.len()],
}

#[derive(Debug)]
pub(super) struct Process {
    pub pid: u32,
    pub priority: Priority,
    pub group: GroupIndex,
}

/// A bio that a process submits.
#[derive(Debug)]
pub(super) struct ScenarioBio {
    /// Index of the submitting process.
    pub process: usize,
    pub op: Op,
    pub flags: Flags,
    pub sector: u64,
    pub sectors: u32,
    pub start: Start,
    /// Service time of the request made for the bio, in ns; `None` if the bio was merged.
    pub service_ns: Option<u64>,
}

/// The time of an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    At { ns: u64 },
    After { request: usize, think_ns: u64 },
}

#[derive(Debug)]
pub(super) struct Exit {
    pub process: usize,
    pub after: usize,
    pub think_ns: u64,
}

#[derive(Debug)]
pub(super) struct PriorityChange {
    pub process: usize,
    pub priority: Priority,
    pub at_ns: u64,
}

/// A process moves to another group.
#[derive(Debug)]
pub(super) struct GroupMove {
    pub process: usize,
    pub group: GroupIndex,
    pub at_ns: u64,
}

impl Scenario {
    /// Parses a scenario from its line of JSON.
    ///
    /// # Errors
    /// [`ScenarioError`] if the line is not JSON, has missing or unknown fields, names an unknown
    /// source, or contradicts itself.
    pub fn from_json(line: &[u8]) -> Result<Scenario, ScenarioError> {
        let raw: RawScenario = serde_json::from_slice(line).map_err(json_error)?;
        let target = Target::of_source(&raw.source)?;
        let kind = target.elevator;
        check_sizes(&raw)?;
        let pids = pids(&raw)?;
        let (pool, tunables) = tunables(&raw, target, kind)?;
        let process = |field: String, pid: u32| {
            pids.get(&pid).copied().ok_or_else(|| ScenarioError::value(field, pid, "no process has this pid"))
        };
        let mut requests = Vec::with_capacity(raw.requests.len());
        for (index, request) in raw.requests.iter().enumerate() {
            let process = process(format!("requests[{index}].pid"), request.pid)?;
            requests.push(scenario_bio(index, request, process, raw.requests.len())?);
        }
        let mut exits = Vec::with_capacity(raw.exits.len());
        for (index, exit) in raw.exits.iter().enumerate() {
            let process = process(format!("exits[{index}].pid"), exit.pid)?;
            let after = request_index(|| format!("exits[{index}].after"), exit.after, requests.len())?;
            exits.push(Exit { process, after, think_ns: exit.think_ns });
        }
        let mut priority_changes = Vec::with_capacity(raw.ioprio_changes.len());
        for (index, change) in raw.ioprio_changes.iter().enumerate() {
            let process = process(format!("ioprio_changes[{index}].pid"), change.pid)?;
            let field = || format!("ioprio_changes[{index}].level");
            let priority = priority(field, change.class, change.level)?;
            priority_changes.push(PriorityChange { process, priority, at_ns: change.at_ns });
        }
        let (groups, table) = groups(&raw.groups)?;
        let mut moves = Vec::with_capacity(raw.group_changes.len());
        for (index, change) in raw.group_changes.iter().enumerate() {
            let process = process(format!("group_changes[{index}].pid"), change.pid)?;
            let group = table.find(&format!("group_changes[{index}].group"), change.group)?;
            moves.push(GroupMove { process, group, at_ns: change.at_ns });
        }
        let mut processes = Vec::with_capacity(raw.processes.len());
        for (index, process) in raw.processes.iter().enumerate() {
            let priority = priority(|| format!("processes[{index}].level"), process.class, process.level)?;
            let group = table.find(&format!("processes[{index}].group"), process.group)?;
            processes.push(Process { pid: process.pid, priority, group });
        }
        Ok(Scenario {
            target,
            kind,
            hz: raw.hz,
            depth: raw.depth,
            rotational: raw.rotational,
            merging: !raw.nomerge,
            pool,
            tunables,
            processes,
            exits,
            priority_changes,
            groups,
            moves,
            expected: expected(&raw, &requests)?,
            requests,
            name: raw.name,
        })
    }

    /// The name of the scenario.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel and scheduler that made the recorded decisions, with hoistway's elevator for
    /// them.
    pub fn target(&self) -> &'static Target {
        self.target
    }

    /// The id of a group in the file.
    pub(super) fn group_id(&self, index: GroupIndex) -> u32 {
        let entry = index.0.checked_sub(1).and_then(|at| self.groups.get(at));
        entry.map_or(ROOT_ID, |group| group.id)
    }

    /// The recorded decisions of a list, if the file has the list.
    pub fn expected(&self, list: List) -> Option<&[Decision]> {
        self.expected[list as usize].as_deref()
    }
}

fn json_error(error: serde_json::Error) -> ScenarioError {
    let whole = error.to_string();
    // The parser numbers lines within its one line of input; only the column is useful.
    let message = whole.split(" at line ").next().unwrap_or(&whole).to_owned();
    ScenarioError::Json { message, column: error.column(), ends_early: error.is_eof() }
}

fn check_sizes(raw: &RawScenario) -> Result<(), ScenarioError> {
    if raw.depth == 0 {
        return Err(ScenarioError::value("depth", 0, "a device takes 1 request or more"));
    }
    if !(1..=1000).contains(&raw.hz) {
        return Err(ScenarioError::value("hz", raw.hz, "1 to 1000 would be right"));
    }
    Ok(())
}

/// The index of each process by its pid.
fn pids(raw: &RawScenario) -> Result<HashMap<u32, usize>, ScenarioError> {
    let mut pids = HashMap::with_capacity(raw.processes.len());
    for (index, process) in raw.processes.iter().enumerate() {
        if pids.insert(process.pid, index).is_some() {
            let field = format!("processes[{index}].pid");
            return Err(ScenarioError::value(field, process.pid, "an earlier process has this pid"));
        }
    }
    Ok(pids)
}

/// Names and values, in the order in which they are set.
type Tunables = Vec<(String, i64)>;

/// Reads the size of the request pool and validates the elevator's tunables.
fn tunables(raw: &RawScenario, target: &Target, kind: Kind) -> Result<(Option<u32>, Tunables), ScenarioError> {
    let mut pool = raw.plug.is_some().then_some(NR_REQUESTS);
    let mut tunables: Tunables = target.tunables.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    for (name, value) in &raw.tunables.0 {
        let field = || format!("tunables.{name}");
        if name == "nr_requests" && pool.is_some() {
            let size = u32::try_from(*value).ok().filter(|size| *size >= 4);
            pool = Some(size.ok_or_else(|| ScenarioError::value(field(), value, "4 or more would be right"))?);
            continue;
        }
        let Some(tunable) = kind.info().tunables.iter().find(|tunable| tunable.name == name) else {
            return Err(ScenarioError::value(
                field(),
                value,
                format!("{} has no tunable of this name", target.elevator.info().name),
            ));
        };
        if !(tunable.min..=tunable.max).contains(value) {
            let right = format!("{} to {} would be right", tunable.min, tunable.max);
            return Err(ScenarioError::value(field(), value, right));
        }
        tunables.push((name.clone(), *value));
    }
    Ok((pool, tunables))
}

fn priority(field: impl Fn() -> String, class: RawClass, level: u8) -> Result<Priority, ScenarioError> {
    let class = match class {
        RawClass::Rt => Class::RealTime,
        RawClass::Be => Class::BestEffort,
        RawClass::Idle => Class::Idle,
    };
    Priority::new(class, level).ok_or_else(|| ScenarioError::value(field(), level, "0 to 7 would be right"))
}

fn scenario_bio(index: usize, raw: &RawRequest, process: usize, requests: usize) -> Result<ScenarioBio, ScenarioError> {
    let field = |name: &str| format!("requests[{index}].{name}");
    if raw.id as usize != index {
        return Err(ScenarioError::value(field("id"), raw.id, format!("its position, {index}, would be right")));
    }
    if raw.sectors == 0 {
        return Err(ScenarioError::value(field("sectors"), 0, "1 or more would be right"));
    }
    if raw.sector.checked_add(u64::from(raw.sectors)).is_none() {
        return Err(ScenarioError::value(field("sector"), raw.sector, "the request would end beyond sector 2^64"));
    }
    let start = match (raw.at_ns, raw.after, raw.think_ns) {
        (Some(ns), None, None) => Start::At { ns },
        (None, Some(after), Some(think_ns)) => {
            let request = request_index(|| field("after"), after, requests)?;
            if request == index {
                return Err(ScenarioError::value(field("after"), after, "a request cannot follow itself"));
            }
            Start::After { request, think_ns }
        }
        _ => {
            let right = "either at_ns, or after and think_ns, would be right";
            return Err(ScenarioError::value(format!("requests[{index}]"), "without a time", right));
        }
    };
    let marks = [
        (raw.sync && matches!(raw.op, RawOp::Write), Flags::SYNC),
        (raw.idle, Flags::IDLE),
        (raw.prio, Flags::META),
        (raw.unplug, Flags::UNPLUG),
    ];
    Ok(ScenarioBio {
        process,
        op: match raw.op {
            RawOp::Read => Op::Read,
            RawOp::Write => Op::Write,
        },
        flags: marks.iter().filter(|mark| mark.0).fold(Flags::NONE, |flags, mark| flags.and(mark.1)),
        sector: raw.sector,
        sectors: raw.sectors,
        start,
        service_ns: raw.service_ns,
    })
}

fn request_index(field: impl Fn() -> String, id: u32, requests: usize) -> Result<usize, ScenarioError> {
    let index = id as usize;
    if index < requests {
        return Ok(index);
    }
    Err(ScenarioError::value(field(), id, format!("there are {requests} requests, and their ids count from 0")))
}

type Expected = [Option<Vec<Decision>>; List::ALL.len()];

/// Reads the recorded lists and validates all ids.
fn expected(raw: &RawScenario, requests: &[ScenarioBio]) -> Result<Expected, ScenarioError> {
    let check =
        |list: List, index: usize, id: u32| request_index(|| format!("{}[{index}]", list.name()), id, requests.len());
    for (index, &(id, _)) in raw.dispatch.iter().enumerate() {
        let request = check(List::Dispatch, index, id)?;
        if requests[request].service_ns.is_none() {
            let right = "it is in the list dispatch, so it needs a service_ns";
            return Err(ScenarioError::value(format!("requests[{id}].service_ns"), "missing", right));
        }
    }
    for (index, &(id, into, ..)) in raw.merge.iter().flatten().enumerate() {
        check(List::Merge, index, id)?;
        check(List::Merge, index, into)?;
    }
    for (list, entries) in [(List::Sleeps, &raw.sleeps), (List::Complete, &raw.complete)] {
        for (index, &(id, _)) in entries.iter().flatten().enumerate() {
            check(list, index, id)?;
        }
    }
    for (index, &(id, ..)) in raw.late.iter().flatten().enumerate() {
        check(List::Late, index, id)?;
    }
    Ok(List::ALL.map(|list| recorded(raw, list)))
}

fn recorded(raw: &RawScenario, list: List) -> Option<Vec<Decision>> {
    Some(match list {
        List::Merge => {
            raw.merge.as_ref()?.iter().map(|&(id, into, how, at_ns)| Decision::Merge { id, into, how, at_ns }).collect()
        }
        List::Plug => raw.plug.as_ref()?.iter().map(|&(what, at_ns)| Decision::Plug { what, at_ns }).collect(),
        List::Sleeps => raw.sleeps.as_ref()?.iter().map(|&(id, at_ns)| Decision::Sleep { id, at_ns }).collect(),
        List::Late => {
            raw.late.as_ref()?.iter().map(|&(id, began_ns, done_ns)| Decision::Late { id, began_ns, done_ns }).collect()
        }
        List::TokenDepth => {
            let changes = raw.token_depth.as_ref()?.iter();
            changes.map(|&(domain, depth, at_ns)| Decision::TokenDepth { domain, depth, at_ns }).collect()
        }
        List::Dispatch => raw.dispatch.iter().map(|&(id, at_ns)| Decision::Dispatch { id, at_ns }).collect(),
        List::Complete if raw.complete.is_none() => return None,
        List::Complete => by_request(raw).into_iter().map(|(id, at_ns)| Decision::Complete { id, at_ns }).collect(),
    })
}

/// The recorded completions; bios of one request in the order of their ids, because their order is
/// not a decision.
fn by_request(raw: &RawScenario) -> Vec<(u32, u64)> {
    let mut complete = raw.complete.clone().unwrap_or_default();
    let mut merged = vec![false; raw.requests.len()];
    for &(id, ..) in raw.merge.iter().flatten() {
        merged[id as usize] = true;
    }
    complete.chunk_by_mut(|_, next| merged[next.0 as usize]).for_each(|request| {
        if let Some((_, rest)) = request.split_first_mut() {
            rest.sort_unstable();
        }
    });
    complete
}
