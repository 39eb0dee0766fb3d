//! The language of the scenario files.
//!
//! ```text
//! scenario NAME: what it shows           everything up to the next `scenario` belongs to it
//!   # a comment: the sum
//!   elevator deadline                    by name
//!   reserving                            with the layer of reserved bandwidth over it
//!   set fifo_batch=4                     a tunable
//!   service 5, depth 2                   ms a request; how many the device takes at once (5 and 1 if not said)
//!   service-of-writes 20                 if it is another
//!   device 40MiB/s                       a request takes as long as its bytes do, in whole ms
//!   plugging, merging                    both are off if not said
//!   flash                                the device has no arm that moves
//!   layer 2.6.24, pool 128, uptime 10000 the block layer, requests a direction, ms since boot (2.6.18, no limit, 0)
//!   max-sectors 16                       the largest request that merging makes (1024)
//!   ordered drain-flush                  how barriers are kept: drain, drain-flush, drain-fua, tag
//!   group G in root weight 500 leaf 250  a group below the root (or `in` another): its weight, its processes' against its groups' (100)
//!   process A be0 in G                   a priority: be0 to be7, rt0 to rt7, idle, nice-20 to nice19; and a group, the root if not said
//!   thread B of A                        B has A's process id, and is called A in expectations
//!   hw-queues 4                          the driver takes one request of each hardware queue in turn (1)
//!   cpu A 2 @0                           on which CPU A runs from then on (0)
//!   cpu-policy A idle @0                 by which policy it is given the CPU: normal, realtime, idle (normal)
//!   A: r1000 w50+16 d900 @5              bios that A submits together at 5 ms: reads, writes, discards; 8 sectors if not said;
//!                                        flags after an exclamation mark: w50!sync, w50!barrier, w50!unplug
//!   A: 40 w0 @0                          40 of them, one after the other: 0, 8, 16 ...
//!   A: 8 w0 step 100; r7 @0              or with steps of 100 sectors; and then one more
//!   A: r1000 @0 &                        the device is offered nothing before the next line's bios are there too
//!   A: stream r0 think 1 x100 @0         100 reads in order, each 1 ms after the one before completes; `outstanding 3` keeps three
//!   exit A @8                            A exits
//!   priority A idle @8                   A's priority changes
//!   move A G @5, weigh G 300 leaf 9 @6   A moves to a group; a group's weights change (each on a line of its own)
//!   reserve A 10MiB/s @0                 A reserves bandwidth; `depth 4MiB` and `request 512KiB` if not what they are by default;
//!                                        `refused 730` if only so many bytes a second are left
//!   release A @8                         A gives it back
//!   reserve group G 10MiB/s @0           the group G reserves for its processes together; `release group G @8`
//!   requeue @2                           the device gives back what it took last
//!   switch deadline @2                   another elevator; `switch deadline reserving` with the layer over it
//!   set quantum=1 @2                     a tunable is set then
//!   expect A1000@0 A[5..20]x4 w50+16     what the device gets, in order, and perhaps more after it
//!   expect form=1,2: A50 A100            the same, if that tunable has one of these values
//!   among W9000@180                      requests that it gets, whatever comes between
//!   count A 204 @20000                   how many of A it gets before that time
//!   total 3                              how many it gets
//!   asleep A @0                          a process sleeps for a request at the end of that ms; `awake A @5`
//! ```
//!
//! In an expectation `A` is a process, `r`, `w`, `d` and `flush` are operations, a number is the
//! first sector, `+` a length, `@` a time in ms; each part may be left out. `A[5..20]x4` are four
//! of A in a row, the first at 5, the last at 20 ms.

use hoistway_core::{BlockLayer, Class, CpuPolicy, Flags, GroupWeights, Kind, Op, OrderedMode, Priority, Reservation};

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub kind: Kind,
    /// The layer of reserved bandwidth is over it.
    pub reserving: bool,
    pub settings: Vec<(String, i64)>,
    pub service_ms: u64,
    pub write_service_ms: Option<u64>,
    /// Bytes a second, if the service takes as long as the transfer.
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
    /// Groups, the root first, parents before children.
    pub groups: Vec<Group>,
    pub processes: Vec<Process>,
    pub acts: Vec<Act>,
    pub wants: Vec<Want>,
}

#[derive(Clone, Debug)]
pub struct Process {
    pub name: String,
    pub priority: Priority,
    pub nice: i8,
    /// The process whose id it has; its own, mostly.
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
pub struct Act {
    pub at_ms: u64,
    /// The next act belongs to it: the queue is not run in between.
    pub goes_on: bool,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Submit { process: usize, bios: Vec<Piece> },
    Stream { process: usize, first: Piece, think_ms: u64, count: u64, outstanding: u64, step: u64 },
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

/// Whose a reservation is.
#[derive(Clone, Copy, Debug)]
pub enum Holder {
    Process(usize),
    Group(usize),
}

#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub op: Op,
    pub sector: u64,
    pub sectors: u32,
    pub flags: Flags,
}

/// What must come out.
#[derive(Clone, Debug)]
pub struct Want {
    pub line: usize,
    /// A tunable and the value that this is for.
    pub with: Option<(String, i64)>,
    pub what: Wanted,
}

#[derive(Clone, Debug)]
pub enum Wanted {
    Order(Vec<Run>),
    Among(Vec<Run>),
    Total(usize),
    Count { process: usize, count: usize, before_ms: u64 },
    Asleep { process: usize, at_ms: u64, asleep: bool },
}

/// Requests in a row that look alike; one, mostly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    pub process: Option<usize>,
    pub op: Option<Op>,
    pub sector: Option<u64>,
    pub sectors: Option<u32>,
    pub first_ms: Option<u64>,
    pub last_ms: Option<u64>,
    pub count: usize,
}

impl Run {
    /// Whether these requests, as many as it says, are what it says.
    pub fn fits(&self, issues: &[super::Issue]) -> bool {
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

/// Reads a file of scenarios; an error names the line.
pub fn read(text: &str) -> Result<Vec<Scenario>, String> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let line = line.split('#').next().unwrap_or_default().trim();
        let fault = |what: String| format!("line {line_number}: {what}: {line:?}");
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix("scenario ") {
            scenarios.push(Scenario::named(name));
            continue;
        }
        let scenario = scenarios.last_mut().ok_or_else(|| fault("this belongs to no scenario".to_owned()))?;
        scenario.take(line, line_number).map_err(fault)?;
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
            groups: vec![Group { name: "root".to_owned(), parent: 0, weights: GroupWeights::default() }],
            processes: Vec::new(),
            acts: Vec::new(),
            wants: Vec::new(),
        }
    }

    fn take(&mut self, line: &str, line_number: usize) -> Result<(), String> {
        if let Some((name, rest)) = line.split_once(':')
            && !name.contains(' ')
        {
            let process = self.process(name);
            return self.take_arrival(process, rest.trim());
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let what = match word {
            "expect" | "among" => return self.take_order(word == "among", rest, line_number),
            "total" => Wanted::Total(number(rest)? as usize),
            "count" => {
                let (what, before_ms) = timed(rest)?;
                let (name, count) = what.split_once(' ').ok_or("a name and a number are wanted")?;
                Wanted::Count { process: self.process(name), count: number(count)? as usize, before_ms }
            }
            "asleep" | "awake" => {
                let (name, at_ms) = timed(rest)?;
                Wanted::Asleep { process: self.process(name), at_ms, asleep: word == "asleep" }
            }
            "reserve" => return self.take_reservation(rest),
            "release" => {
                let (name, at_ms) = timed(rest)?;
                let holder = self.holder(name)?;
                self.acts.push(Act { at_ms, goes_on: false, what: What::Release { holder } });
                return Ok(());
            }
            "exit" | "priority" | "cpu" | "cpu-policy" | "move" | "weigh" | "requeue" | "switch" => {
                let (what, at_ms) = timed(rest)?;
                let what = self.change(word, what)?;
                self.acts.push(Act { at_ms, goes_on: false, what });
                return Ok(());
            }
            "set" if rest.contains('@') => {
                let (what, at_ms) = timed(rest)?;
                let (name, value) = what.split_once('=').ok_or("name=value is wanted")?;
                let (name, value) = (name.to_owned(), value.parse().map_err(|_| "no number")?);
                self.acts.push(Act { at_ms, goes_on: false, what: What::Set { name, value } });
                return Ok(());
            }
            _ => return line.split(',').try_for_each(|part| self.take_setting(part.trim())),
        };
        self.wants.push(Want { line: line_number, with: None, what });
        Ok(())
    }

    /// What is done to a process, a group or the queue.
    fn change(&mut self, word: &str, rest: &str) -> Result<What, String> {
        let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
        Ok(match word {
            "exit" => What::Exit { process: self.process(rest) },
            "priority" => What::SetPriority { process: self.process(name), priority: priority_of(value)?.0 },
            "cpu-policy" => What::SetPolicy { process: self.process(name), policy: policy(value)? },
            "cpu" => What::SetCpu { process: self.process(name), cpu: number(value)? as u16 },
            "move" => What::Move { process: self.process(name), group: self.group(value)? },
            "weigh" => What::Weigh { group: self.group(name)?, weights: weights(&format!("weight {value}"))? },
            "switch" => What::Switch { kind: kind(name)?, reserving: value == "reserving" },
            _ => What::Requeue,
        })
    }

    fn take_setting(&mut self, part: &str) -> Result<(), String> {
        let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
        match word {
            "elevator" => self.kind = kind(rest)?,
            "reserving" => self.reserving = true,
            "set" => {
                let (name, value) = rest.split_once('=').ok_or("name=value is wanted")?;
                self.settings.push((name.to_owned(), value.parse().map_err(|_| "no number")?));
            }
            "service" => self.service_ms = number(rest)?,
            "service-of-writes" => self.write_service_ms = Some(number(rest)?),
            "device" => self.bandwidth = Some(bytes(rest.strip_suffix("/s").ok_or("a rate is wanted")?)?),
            "depth" => self.depth = number(rest)? as usize,
            "plugging" => self.plugging = true,
            "flash" => self.rotational = false,
            "merging" => self.merging = true,
            "max-sectors" => self.max_sectors = number(rest)? as u32,
            "pool" => self.pool = Some(number(rest)? as u32),
            "uptime" => self.uptime_ms = number(rest)?,
            "layer" => self.layer = layer(rest)?,
            "ordered" => self.ordered = ordered(rest)?,
            "hw-queues" => self.hw_queues = number(rest)? as u16,
            "group" => {
                let (name, rest) = rest.split_once(" in ").ok_or("a name and `in` another group are wanted")?;
                let (parent, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                if self.group(name).is_ok() {
                    return Err(format!("there is a group {name} already"));
                }
                let parent = self.group(parent)?;
                self.groups.push(Group { name: name.to_owned(), parent, weights: weights(rest)? });
            }
            "process" => {
                let (name, rest) = rest.split_once(' ').ok_or("a name and a priority are wanted")?;
                let (priority, group) = rest.split_once(" in ").unwrap_or((rest, "root"));
                let ((priority, nice), group) = (priority_of(priority)?, self.group(group)?);
                let process = self.process(name);
                let entry = &mut self.processes[process];
                (entry.priority, entry.nice, entry.group) = (priority, nice, group);
            }
            "thread" => {
                let (name, other) = rest.split_once(" of ").ok_or("`thread B of A` is wanted")?;
                let (process, other) = (self.process(name), self.process(other));
                self.processes[process].thread_of = other;
            }
            _ => return Err("not understood".to_owned()),
        }
        Ok(())
    }

    fn take_reservation(&mut self, rest: &str) -> Result<(), String> {
        let (what, at_ms) = timed(rest)?;
        let (name, figures) = match what.strip_prefix("group ") {
            Some(rest) => what.split_at(what.len() - rest.trim_start_matches(|letter| letter != ' ').len()),
            None => what.split_once(' ').unwrap_or((what, "")),
        };
        let words: Vec<&str> = figures.split_whitespace().collect();
        let [rate, ..] = words.as_slice() else { return Err("a name and a rate are wanted".to_owned()) };
        let mut reservation = Reservation::of(bytes(rate.strip_suffix("/s").ok_or("a rate is wanted")?)?);
        let after = |name| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
        if let Some(depth) = after("depth") {
            reservation.depth_bytes = Some(bytes(depth)?);
        }
        if let Some(request) = after("request") {
            reservation.request_bytes = bytes(request)?;
        }
        let (holder, refused) = (self.holder(name)?, number_after(&words, "refused")?);
        self.acts.push(Act { at_ms, goes_on: false, what: What::Reserve { holder, reservation, refused } });
        Ok(())
    }

    fn holder(&mut self, name: &str) -> Result<Holder, String> {
        match name.strip_prefix("group ") {
            Some(group) => Ok(Holder::Group(self.group(group)?)),
            None => Ok(Holder::Process(self.process(name))),
        }
    }

    fn take_arrival(&mut self, process: usize, rest: &str) -> Result<(), String> {
        let (rest, goes_on) = rest.strip_suffix('&').map_or((rest, false), |rest| (rest.trim(), true));
        let (what, at_ms) = timed(rest)?;
        let words: Vec<&str> = what.split_whitespace().collect();
        if let ["stream", first, ..] = words.as_slice() {
            let first = piece(first)?;
            let after = |name| number_after(&words, name);
            let count = words.iter().find_map(|word| word.strip_prefix('x')).map_or(Ok(u64::MAX), number)?;
            let (think_ms, outstanding) = (after("think")?.unwrap_or(0), after("outstanding")?.unwrap_or(1));
            let step = after("step")?.unwrap_or(first.sectors.into());
            self.acts.push(Act {
                at_ms,
                goes_on: false,
                what: What::Stream { process, first, think_ms, count, outstanding, step },
            });
            return Ok(());
        }
        let mut bios = Vec::new();
        for group in what.split(';') {
            let words: Vec<&str> = group.split_whitespace().collect();
            match words.as_slice() {
                [count, first, ..] if count.parse::<u64>().is_ok() => {
                    let first = piece(first)?;
                    let step = number_after(&words, "step")?.unwrap_or(first.sectors.into());
                    bios.extend(
                        (0..number(count)?).map(|index| Piece { sector: first.sector + index * step, ..first }),
                    );
                }
                words => {
                    for word in words {
                        bios.push(piece(word)?);
                    }
                }
            }
        }
        self.acts.push(Act { at_ms, goes_on, what: What::Submit { process, bios } });
        Ok(())
    }

    fn take_order(&mut self, among: bool, rest: &str, line: usize) -> Result<(), String> {
        let (with, runs) = rest.split_once(": ").map_or((None, rest), |(with, runs)| (Some(with), runs));
        let runs: Vec<Run> = runs.split_whitespace().map(|word| self.run(word)).collect::<Result<_, _>>()?;
        let what = if among { Wanted::Among(runs) } else { Wanted::Order(runs) };
        let Some(with) = with else {
            self.wants.push(Want { line, with: None, what });
            return Ok(());
        };
        let (name, values) = with.split_once('=').ok_or("name=values is wanted")?;
        for value in values.split(',') {
            let with = Some((name.to_owned(), value.parse().map_err(|_| "no number")?));
            self.wants.push(Want { line, with, what: what.clone() });
        }
        Ok(())
    }

    fn run(&self, word: &str) -> Result<Run, String> {
        let bad = || format!("{word} is no request");
        let mut run = Run { count: 1, ..Run::default() };
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
        if run == (Run { count: run.count, ..Run::default() }) { Err(bad()) } else { Ok(run) }
    }

    /// The process of a name; one that is new gets what everybody has.
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
        at.ok_or_else(|| format!("there is no group {name} so far"))
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{text} is no number"))
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
    let said = words.iter().filter(|word| ["weight", "leaf"].contains(word)).count();
    let understood = words.len() == 2 * said;
    if understood && weights.are_valid() { Ok(weights) } else { Err(format!("{text} are no weights")) }
}

fn timed(text: &str) -> Result<(&str, u64), String> {
    let (what, at) = text.rsplit_once('@').ok_or("a time (@5) is wanted")?;
    Ok((what.trim(), number(at)?))
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::from_name(name).ok_or_else(|| format!("there is no elevator {name}"))
}

fn layer(name: &str) -> Result<BlockLayer, String> {
    match name {
        "2.6.18" => Ok(BlockLayer::V2_6_18),
        "2.6.24" => Ok(BlockLayer::V2_6_24),
        "2.6.29" => Ok(BlockLayer::V2_6_29),
        "3.4" => Ok(BlockLayer::V3_4),
        "4.19" => Ok(BlockLayer::V4_19),
        "6.1" => Ok(BlockLayer::V6_1),
        _ => Err(format!("there is no block layer {name}")),
    }
}

fn ordered(name: &str) -> Result<OrderedMode, String> {
    match name {
        "drain" => Ok(OrderedMode::Drain { flush: false, fua: false }),
        "drain-flush" => Ok(OrderedMode::Drain { flush: true, fua: false }),
        "drain-fua" => Ok(OrderedMode::Drain { flush: true, fua: true }),
        "tag" => Ok(OrderedMode::Tag { flush: false, fua: false }),
        _ => Err(format!("{name} is no way to order")),
    }
}

fn priority_of(text: &str) -> Result<(Priority, i8), String> {
    let bad = || format!("{text} is no priority");
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
        _ => return Err(format!("{text} is no policy: normal, realtime, idle")),
    })
}

fn piece(word: &str) -> Result<Piece, String> {
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
            _ => return Err(format!("{flag} is no flag")),
        });
    }
    let (op, place) = match extent.split_at_checked(1) {
        Some(("r", place)) => (Op::Read, place),
        Some(("w", place)) => (Op::Write, place),
        Some(("d", place)) => (Op::Discard, place),
        _ => return Err(format!("{word} is no bio: r, w or d and a sector are wanted")),
    };
    let (sector, sectors) = place.split_once('+').map_or((place, Ok(8)), |(sector, length)| (sector, number(length)));
    Ok(Piece { op, sector: number(sector)?, sectors: sectors? as u32, flags })
}
