//! The language of the scenario files.
//!
//! ```text
//! scenario NAME: purpose               begins a scenario; it ends before the next `scenario`
//!   # a comment: the computation
//!   elevator deadline                  the elevator, by name
//!   reserving                          adds the layer of bandwidth reservations over it
//!   set fifo_batch=4                   sets a tunable
//!   service 5, depth 2                 ms per request (5), and requests that the device takes at
//!                                      once (1)
//!   service-of-writes 20               ms per write, if it differs
//!   device 40MiB/s                     a request takes the time of its transfer, in whole ms
//!   plugging, merging                  turns them on; both are off by default
//!   flash                              the device is not rotational
//!   ahead                              the driver chooses a request while the device is full
//!   layer 2.6.24, pool 128, uptime 10000
//!                                      the block layer (2.6.18), requests per direction (no
//!                                      limit), ms since boot (0)
//!   max-sectors 16                     the size limit of merged requests (1024)
//!   ordered drain-flush                how barriers are kept: drain, drain-flush, drain-fua, tag
//!   group G in root weight 500 leaf 250
//!                                      a group below the root or another group: its weight, and
//!                                      the weight of its own processes against its child groups
//!                                      (100)
//!   process A be0 in G                 a process with a priority (be0 to be7, rt0 to rt7, idle,
//!                                      nice-20 to nice19) in a group (the root)
//!   thread B of A                      B has A's process id, and is called A in expectations
//!   hw-queues 4                        the driver takes one request of each hardware queue in turn
//!   cpu A 2 @0                         the CPU on which A runs from that time on (0)
//!   cpu-policy A idle @0               A's CPU scheduling policy: normal, realtime, idle (normal)
//!   A: r1000 w50+16 d900 @5            bios that A submits together at 5 ms: reads, writes and
//!                                      discards of 8 sectors or of the given length; flags follow
//!                                      an exclamation mark: w50!sync, w50!barrier, w50!unplug
//!   A: 40 w0 @0                        40 consecutive bios: 0, 8, 16 ...
//!   A: 8 w0 step 100; r7 @0            8 bios in steps of 100 sectors, then one more
//!   A: r1000 @0 &                      the device gets no request before the next line's bios have
//!                                      been submitted, too
//!   A: stream r0 think 1 x100 @0       100 consecutive reads, each 1 ms after the completion of
//!                                      the previous one; `outstanding 3` keeps three in flight
//!   exit A @8                          A exits
//!   priority A idle @8                 A's priority changes
//!   move A G @5, weigh G 300 leaf 9 @6 A moves to a group; a group's weights change (one per line)
//!   reserve A 10MiB/s @0               A reserves bandwidth, with `depth 4MiB` and
//!                                      `request 512KiB` if they are not the defaults;
//!                                      `refused 730` expects a refusal with a headroom of 730
//!                                      bytes a second
//!   release A @8                       A's reservation ends
//!   reserve group G 10MiB/s @0         group G reserves for its processes together; it ends with
//!                                      `release group G @8`
//!   requeue @2                         the device returns the request that it took last
//!   switch deadline @2                 switches the elevator; `switch deadline reserving` adds the
//!                                      layer
//!   set quantum=1 @2                   sets a tunable at that time
//!   expect A1000@0 A[5..20]x4 w50+16   the first requests of the device, in order
//!   expect form=1,2: A50 A100          the same, with that tunable set to one of these values
//!   among W9000@180                    requests of the device, with any others between them
//!   count A 204 @20000                 the number of A's requests that the device gets before then
//!   total 3                            the number of all requests
//!   asleep A @0                        A sleeps for a request at the end of that ms; or
//!                                      `awake A @5`
//! ```
//!
//! In an expectation `A` is a process, `r`, `w`, `d` and `flush` are operations, a number is the
//! first sector, `+` precedes a length in sectors and `@` a time in ms; each part may be left out.
//! `A[5..20]x4` are four consecutive requests of A, the first at 5 ms, the last at 20 ms.

use hoistway_core::{BlockLayer, Class, CpuPolicy, Flags, GroupWeights, Kind, Op, OrderedMode, Priority, Reservation};

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub kind: Kind,
    /// Whether the reservation layer is over the elevator.
    pub reserving: bool,
    pub settings: Vec<(String, i64)>,
    pub service_ms: u64,
    pub write_service_ms: Option<u64>,
    /// The rate in bytes a second, if the service time is the transfer time.
    pub bandwidth: Option<u64>,
    pub depth: usize,
    pub plugging: bool,
    pub merging: bool,
    pub layer: BlockLayer,
    pub pool: Option<u32>,
    pub max_sectors: u32,
    pub uptime_ms: u64,
    pub ordered: OrderedMode,
    pub hw_queues: u16,
    pub rotational: bool,
    pub ahead: bool,
    /// Groups, the root first, parents before children.
    pub groups: Vec<Group>,
    pub processes: Vec<Process>,
    pub actions: Vec<TimedAction>,
    pub expectations: Vec<Expectation>,
}

#[derive(Clone, Debug)]
pub struct Process {
    pub name: String,
    pub priority: Priority,
    pub nice: i8,
    /// The process whose process id it has: usually itself.
    pub thread_of: usize,
    pub group: usize,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub parent: usize,
    pub weights: GroupWeights,
}

#[derive(Clone, Debug)]
pub struct TimedAction {
    pub at_ms: u64,
    /// Whether the queue is not run between this action and the next one.
    pub is_joined_to_next: bool,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub enum Action {
    Submit { process: usize, bios: Vec<BioSpec> },
    Stream { process: usize, first: BioSpec, think_ms: u64, count: u64, outstanding: u64, step: u64 },
    Exit { process: usize },
    SetPriority { process: usize, priority: Priority },
    SetCpu { process: usize, cpu: u16 },
    SetPolicy { process: usize, policy: CpuPolicy },
    Move { process: usize, group: usize },
    Weigh { group: usize, weights: GroupWeights },
    Reserve { holder: Holder, reservation: Reservation, refused: Option<u64> },
    Release { holder: Holder },
    Requeue,
    Switch { kind: Kind, reserving: bool },
    Set { name: String, value: i64 },
}

/// The holder of a reservation.
#[derive(Clone, Copy, Debug)]
pub enum Holder {
    Process(usize),
    Group(usize),
}

#[derive(Clone, Copy, Debug)]
pub struct BioSpec {
    pub op: Op,
    pub sector: u64,
    pub sectors: u32,
    pub flags: Flags,
}

/// An expected result of a scenario.
#[derive(Clone, Debug)]
pub struct Expectation {
    pub line: usize,
    /// The tunable, with its value, with which the scenario is played for this expectation.
    pub with: Option<(String, i64)>,
    pub action: Check,
}

#[derive(Clone, Debug)]
pub enum Check {
    Order(Vec<RequestPattern>),
    Among(Vec<RequestPattern>),
    Total(usize),
    Count { process: usize, count: usize, before_ms: u64 },
    Asleep { process: usize, at_ms: u64, asleep: bool },
}

/// A pattern of consecutive requests with the same properties; `count` is usually 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestPattern {
    pub process: Option<usize>,
    pub op: Option<Op>,
    pub sector: Option<u64>,
    pub sectors: Option<u32>,
    pub first_ms: Option<u64>,
    pub last_ms: Option<u64>,
    pub count: usize,
}

impl RequestPattern {
    /// Returns true if `issues`, of which there are `count`, match the pattern.
    pub fn matches(&self, issues: &[super::Issue]) -> bool {
        let is = |issue: &super::Issue| {
            self.process.is_none_or(|process| process == issue.process)
                && self.op.is_none_or(|op| op == issue.op)
                && self.sector.is_none_or(|sector| sector == issue.sector)
                && self.sectors.is_none_or(|sectors| sectors == issue.sectors)
        };
        let at = |issue: Option<&super::Issue>, ms: Option<u64>| {
            ms.is_none_or(|ms| issue.is_some_and(|issue| issue.at_ms == ms))
        };
        issues.iter().all(is) && at(issues.first(), self.first_ms) && at(issues.last(), self.last_ms)
    }
}

/// Reads a file of scenarios. An error names the line.
pub fn read(text: &str) -> Result<Vec<Scenario>, String> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let line = line.split('#').next().unwrap_or_default().trim();
        let error_at = |action: String| format!("line {line_number}: {action}: {line:?}");
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix("scenario ") {
            scenarios.push(Scenario::named(name));
            continue;
        }
        let scenario = scenarios.last_mut().ok_or_else(|| error_at("no scenario has begun".to_owned()))?;
        scenario.read_line(line, line_number).map_err(error_at)?;
    }
    Ok(scenarios)
}

impl Scenario {
    fn named(name: &str) -> Scenario {
        Scenario {
            name: name.to_owned(),
            kind: Kind::Noop,
            reserving: false,
            settings: Vec::new(),
            service_ms: 5,
            write_service_ms: None,
            bandwidth: None,
            depth: 1,
            plugging: false,
            merging: false,
            layer: BlockLayer::V2_6_18,
            pool: None,
            max_sectors: 1024,
            uptime_ms: 0,
            ordered: OrderedMode::Drain { flush: false, fua: false },
            hw_queues: 1,
            rotational: true,
            ahead: false,
            groups: vec![Group { name: "root".to_owned(), parent: 0, weights: GroupWeights::default() }],
            processes: Vec::new(),
            actions: Vec::new(),
            expectations: Vec::new(),
        }
    }

    fn read_line(&mut self, line: &str, line_number: usize) -> Result<(), String> {
        if let Some((name, rest)) = line.split_once(':')
            && !name.contains(' ')
        {
            let process = self.process(name);
            return self.read_arrival(process, rest.trim());
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let action = match word {
            "expect" | "among" => return self.read_order(word == "among", rest, line_number),
            "total" => Check::Total(number(rest)? as usize),
            "count" => {
                let (action, before_ms) = split_time(rest)?;
                let (name, count) = action.split_once(' ').ok_or("expected a name and a number")?;
                Check::Count { process: self.process(name), count: number(count)? as usize, before_ms }
            }
            "asleep" | "awake" => {
                let (name, at_ms) = split_time(rest)?;
                Check::Asleep { process: self.process(name), at_ms, asleep: word == "asleep" }
            }
            "reserve" => return self.read_reservation(rest),
            "release" => {
                let (name, at_ms) = split_time(rest)?;
                let holder = self.holder(name)?;
                self.actions.push(TimedAction { at_ms, is_joined_to_next: false, action: Action::Release { holder } });
                return Ok(());
            }
            "exit" | "priority" | "cpu" | "cpu-policy" | "move" | "weigh" | "requeue" | "switch" => {
                let (action, at_ms) = split_time(rest)?;
                let action = self.read_action(word, action)?;
                self.actions.push(TimedAction { at_ms, is_joined_to_next: false, action });
                return Ok(());
            }
            "set" if rest.contains('@') => {
                let (action, at_ms) = split_time(rest)?;
                let (name, value) = action.split_once('=').ok_or("expected name=value")?;
                let (name, value) = (name.to_owned(), value.parse().map_err(|_| "not a number")?);
                self.actions.push(TimedAction { at_ms, is_joined_to_next: false, action: Action::Set { name, value } });
                return Ok(());
            }
            _ => return line.split(',').try_for_each(|part| self.read_setting(part.trim())),
        };
        self.expectations.push(Expectation { line: line_number, with: None, action });
        Ok(())
    }

    /// Reads an action on a process, a group or the queue.
    fn read_action(&mut self, word: &str, rest: &str) -> Result<Action, String> {
        let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
        Ok(match word {
            "exit" => Action::Exit { process: self.process(rest) },
            "priority" => Action::SetPriority { process: self.process(name), priority: parse_priority(value)?.0 },
            "cpu-policy" => Action::SetPolicy { process: self.process(name), policy: policy(value)? },
            "cpu" => Action::SetCpu { process: self.process(name), cpu: number(value)? as u16 },
            "move" => Action::Move { process: self.process(name), group: self.group(value)? },
            "weigh" => Action::Weigh { group: self.group(name)?, weights: weights(&format!("weight {value}"))? },
            "switch" => Action::Switch { kind: kind(name)?, reserving: value == "reserving" },
            _ => Action::Requeue,
        })
    }

    fn read_setting(&mut self, part: &str) -> Result<(), String> {
        let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
        match word {
            "elevator" => self.kind = kind(rest)?,
            "reserving" => self.reserving = true,
            "set" => {
                let (name, value) = rest.split_once('=').ok_or("expected name=value")?;
                self.settings.push((name.to_owned(), value.parse().map_err(|_| "not a number")?));
            }
            "service" => self.service_ms = number(rest)?,
            "service-of-writes" => self.write_service_ms = Some(number(rest)?),
            "device" => self.bandwidth = Some(bytes(rest.strip_suffix("/s").ok_or("expected a rate")?)?),
            "depth" => self.depth = number(rest)? as usize,
            "plugging" => self.plugging = true,
            "flash" => self.rotational = false,
            "ahead" => self.ahead = true,
            "merging" => self.merging = true,
            "max-sectors" => self.max_sectors = number(rest)? as u32,
            "pool" => self.pool = Some(number(rest)? as u32),
            "uptime" => self.uptime_ms = number(rest)?,
            "layer" => self.layer = layer(rest)?,
            "ordered" => self.ordered = ordered(rest)?,
            "hw-queues" => self.hw_queues = number(rest)? as u16,
            "group" => {
                let (name, rest) = rest.split_once(" in ").ok_or("expected a name and `in` another group")?;
                let (parent, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                if self.group(name).is_ok() {
                    return Err(format!("duplicate group {name}"));
                }
                let parent = self.group(parent)?;
                self.groups.push(Group { name: name.to_owned(), parent, weights: weights(rest)? });
            }
            "process" => {
                let (name, rest) = rest.split_once(' ').ok_or("expected a name and a priority")?;
                let (priority, group) = rest.split_once(" in ").unwrap_or((rest, "root"));
                let ((priority, nice), group) = (parse_priority(priority)?, self.group(group)?);
                let process = self.process(name);
                let entry = &mut self.processes[process];
                (entry.priority, entry.nice, entry.group) = (priority, nice, group);
            }
            "thread" => {
                let (name, other) = rest.split_once(" of ").ok_or("expected `thread B of A`")?;
                let (process, other) = (self.process(name), self.process(other));
                self.processes[process].thread_of = other;
            }
            _ => return Err("unknown keyword".to_owned()),
        }
        Ok(())
    }

    fn read_reservation(&mut self, rest: &str) -> Result<(), String> {
        let (action, at_ms) = split_time(rest)?;
        let (name, figures) = match action.strip_prefix("group ") {
            Some(rest) => action.split_at(action.len() - rest.trim_start_matches(|letter| letter != ' ').len()),
            None => action.split_once(' ').unwrap_or((action, "")),
        };
        let words: Vec<&str> = figures.split_whitespace().collect();
        let [rate, ..] = words.as_slice() else { return Err("expected a name and a rate".to_owned()) };
        let mut reservation = Reservation::of(bytes(rate.strip_suffix("/s").ok_or("expected a rate")?)?);
        let after = |name| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
        if let Some(depth) = after("depth") {
            reservation.depth_bytes = Some(bytes(depth)?);
        }
        if let Some(request) = after("request") {
            reservation.request_bytes = bytes(request)?;
        }
        let (holder, refused) = (self.holder(name)?, number_after(&words, "refused")?);
        self.actions.push(TimedAction {
            at_ms,
            is_joined_to_next: false,
            action: Action::Reserve { holder, reservation, refused },
        });
        Ok(())
    }

    fn holder(&mut self, name: &str) -> Result<Holder, String> {
        match name.strip_prefix("group ") {
            Some(group) => Ok(Holder::Group(self.group(group)?)),
            None => Ok(Holder::Process(self.process(name))),
        }
    }

    fn read_arrival(&mut self, process: usize, rest: &str) -> Result<(), String> {
        let (rest, is_joined_to_next) = rest.strip_suffix('&').map_or((rest, false), |rest| (rest.trim(), true));
        let (action, at_ms) = split_time(rest)?;
        let words: Vec<&str> = action.split_whitespace().collect();
        if let ["stream", first, ..] = words.as_slice() {
            let first = bio_spec(first)?;
            let after = |name| number_after(&words, name);
            let count = words.iter().find_map(|word| word.strip_prefix('x')).map_or(Ok(u64::MAX), number)?;
            let (think_ms, outstanding) = (after("think")?.unwrap_or(0), after("outstanding")?.unwrap_or(1));
            let step = after("step")?.unwrap_or(first.sectors.into());
            self.actions.push(TimedAction {
                at_ms,
                is_joined_to_next: false,
                action: Action::Stream { process, first, think_ms, count, outstanding, step },
            });
            return Ok(());
        }
        let mut bios = Vec::new();
        for group in action.split(';') {
            let words: Vec<&str> = group.split_whitespace().collect();
            match words.as_slice() {
                [count, first, ..] if count.parse::<u64>().is_ok() => {
                    let first = bio_spec(first)?;
                    let step = number_after(&words, "step")?.unwrap_or(first.sectors.into());
                    bios.extend(
                        (0..number(count)?).map(|index| BioSpec { sector: first.sector + index * step, ..first }),
                    );
                }
                words => {
                    for word in words {
                        bios.push(bio_spec(word)?);
                    }
                }
            }
        }
        self.actions.push(TimedAction { at_ms, is_joined_to_next, action: Action::Submit { process, bios } });
        Ok(())
    }

    fn read_order(&mut self, among: bool, rest: &str, line: usize) -> Result<(), String> {
        let (with, runs) = rest.split_once(": ").map_or((None, rest), |(with, runs)| (Some(with), runs));
        let runs: Vec<RequestPattern> = runs.split_whitespace().map(|word| self.run(word)).collect::<Result<_, _>>()?;
        let action = if among { Check::Among(runs) } else { Check::Order(runs) };
        let Some(with) = with else {
            self.expectations.push(Expectation { line, with: None, action });
            return Ok(());
        };
        let (name, values) = with.split_once('=').ok_or("expected name=values")?;
        for value in values.split(',') {
            let with = Some((name.to_owned(), value.parse().map_err(|_| "not a number")?));
            self.expectations.push(Expectation { line, with, action: action.clone() });
        }
        Ok(())
    }

    fn run(&self, word: &str) -> Result<RequestPattern, String> {
        let bad = || format!("{word} is not a request");
        let mut run = RequestPattern { count: 1, ..RequestPattern::default() };
        let mut rest = word;
        for (name, op) in [("flush", Op::Flush), ("r", Op::Read), ("w", Op::Write), ("d", Op::Discard)] {
            if run.op.is_none()
                && let Some(after) = rest.strip_prefix(name)
            {
                (run.op, rest) = (Some(op), after);
            }
        }
        let named = self.processes.iter().enumerate().filter(|(_, process)| rest.starts_with(&process.name));
        if let Some((index, process)) = named.max_by_key(|(_, process)| process.name.len()) {
            (run.process, rest) = (Some(index), &rest[process.name.len()..]);
        }
        let mut count = None;
        if let Some((before, after)) = rest.split_once('x') {
            (rest, count) = (before, Some(number(after)?));
        }
        if let Some((before, after)) = rest.split_once('@') {
            (rest, run.first_ms) = (before, Some(number(after)?));
        } else if let Some((before, times)) = rest.split_once('[') {
            let (first, last) = times.strip_suffix(']').and_then(|times| times.split_once("..")).ok_or_else(bad)?;
            (rest, run.first_ms, run.last_ms) = (before, Some(number(first)?), Some(number(last)?));
        }
        if let Some((before, length)) = rest.split_once('+') {
            (rest, run.sectors) = (before, Some(number(length)? as u32));
        }
        if !rest.is_empty() {
            run.sector = Some(number(rest).map_err(|_| bad())?);
        }
        run.count = count.unwrap_or(1) as usize;
        if run == (RequestPattern { count: run.count, ..RequestPattern::default() }) { Err(bad()) } else { Ok(run) }
    }

    /// The index of the process with this name, created with default attributes if necessary.
    fn process(&mut self, name: &str) -> usize {
        self.processes.iter().position(|process| process.name == name).unwrap_or_else(|| {
            let thread_of = self.processes.len();
            let (priority, name) = (Priority::UNSET, name.to_owned());
            self.processes.push(Process { name, priority, nice: 0, group: 0, thread_of });
            thread_of
        })
    }

    fn group(&self, name: &str) -> Result<usize, String> {
        let at = self.groups.iter().position(|group| group.name == name);
        at.ok_or_else(|| format!("unknown group {name}"))
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{text} is not a number"))
}

/// A number of bytes: 10MB, 512KiB, 1000.
fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("KB", 1000), ("MB", 1_000_000)];
    let unit = units.into_iter().find_map(|(unit, factor)| text.strip_suffix(unit).map(|rest| (rest, factor)));
    let (digits, factor) = unit.unwrap_or((text, 1));
    Ok(number(digits)? * factor)
}

/// The number after a word, such as 100 in `step 100`.
fn number_after(words: &[&str], name: &str) -> Result<Option<u64>, String> {
    let at = words.iter().position(|word| *word == name);
    at.and_then(|at| words.get(at + 1)).map(|value| number(value)).transpose()
}

/// `weight 500 leaf 250`: either may be left out.
fn weights(text: &str) -> Result<GroupWeights, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let of = |name| Ok::<_, String>(number_after(&words, name)?.unwrap_or(GroupWeights::DEFAULT.into()) as u16);
    let weights = GroupWeights { weight: of("weight")?, leaf_weight: of("leaf")? };
    let labels = words.iter().filter(|word| ["weight", "leaf"].contains(word)).count();
    let understood = words.len() == 2 * labels;
    if understood && weights.are_valid() { Ok(weights) } else { Err(format!("invalid weights: {text}")) }
}

fn split_time(text: &str) -> Result<(&str, u64), String> {
    let (action, at) = text.rsplit_once('@').ok_or("expected a time such as @5")?;
    Ok((action.trim(), number(at)?))
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::from_name(name).ok_or_else(|| format!("unknown elevator {name}"))
}

fn layer(name: &str) -> Result<BlockLayer, String> {
    match name {
        "2.6.18" => Ok(BlockLayer::V2_6_18),
        "2.6.24" => Ok(BlockLayer::V2_6_24),
        "2.6.29" => Ok(BlockLayer::V2_6_29),
        "3.4" => Ok(BlockLayer::V3_4),
        "4.19" => Ok(BlockLayer::V4_19),
        "6.1" => Ok(BlockLayer::V6_1),
        _ => Err(format!("unknown block layer {name}")),
    }
}

fn ordered(name: &str) -> Result<OrderedMode, String> {
    match name {
        "drain" => Ok(OrderedMode::Drain { flush: false, fua: false }),
        "drain-flush" => Ok(OrderedMode::Drain { flush: true, fua: false }),
        "drain-fua" => Ok(OrderedMode::Drain { flush: true, fua: true }),
        "tag" => Ok(OrderedMode::Tag { flush: false, fua: false }),
        _ => Err(format!("unknown mode of ordering {name}")),
    }
}

fn parse_priority(text: &str) -> Result<(Priority, i8), String> {
    let bad = || format!("{text} is not a priority");
    if let Some(nice) = text.strip_prefix("nice") {
        return Ok((Priority::UNSET, nice.parse().map_err(|_| bad())?));
    }
    let (class, level) = match text {
        "idle" => (Class::Idle, "7"),
        _ if text.starts_with("be") => (Class::BestEffort, &text[2..]),
        _ if text.starts_with("rt") => (Class::RealTime, &text[2..]),
        _ => return Err(bad()),
    };
    let level = level.parse().map_err(|_| bad())?;
    Ok((Priority::new(class, level).ok_or_else(bad)?, 0))
}

fn policy(text: &str) -> Result<CpuPolicy, String> {
    Ok(match text {
        "normal" => CpuPolicy::Normal,
        "realtime" => CpuPolicy::RealTime,
        "idle" => CpuPolicy::Idle,
        _ => return Err(format!("unknown policy {text}: expected normal, realtime or idle")),
    })
}

fn bio_spec(word: &str) -> Result<BioSpec, String> {
    let mut parts = word.split('!');
    let extent = parts.next().unwrap_or_default();
    let mut flags = Flags::NONE;
    for flag in parts {
        flags = flags.and(match flag {
            "sync" => Flags::SYNC,
            "meta" => Flags::META,
            "unplug" => Flags::UNPLUG,
            "fua" => Flags::FUA,
            "barrier" => Flags::BARRIER,
            _ => return Err(format!("unknown flag {flag}")),
        });
    }
    let (op, extent) = match extent.split_at_checked(1) {
        Some(("r", extent)) => (Op::Read, extent),
        Some(("w", extent)) => (Op::Write, extent),
        Some(("d", extent)) => (Op::Discard, extent),
        _ => return Err(format!("{word} is not a bio: expected r, w or d and a sector")),
    };
    let (sector, sectors) = extent.split_once('+').map_or((extent, Ok(8)), |(sector, length)| (sector, number(length)));
    Ok(BioSpec { op, sector: number(sector)?, sectors: sectors? as u32, flags })
}
