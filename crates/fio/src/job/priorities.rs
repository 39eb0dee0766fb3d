//! Options on priorities and control groups.

use std::ops::RangeInclusive;

use super::option::{Subject, option};
use crate::{
    direction::{Direction, Directions},
    values::{Fault, Value, put},
};

/// I/O priority classes: 1 real time, 2 best effort, 3 idle.
const CLASSES: RangeInclusive<u8> = 1..=3;
/// Levels of a class.
const LEVELS: RangeInclusive<u8> = 0..=7;
/// Greatest depth of nested control groups.
const CGROUPS_MAX: usize = 32;
/// fio's manual has 100 to 1000; the kernel's schedulers take 1 (BFQ) or 10 (CFQ) to 1000.
const CGROUP_WEIGHTS: RangeInclusive<u64> = 1..=1000;

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Priorities and control groups",
    options: &[
        option("prio", &[], |job, v| put(&mut job.priority.prio, v.count_u8(LEVELS).map(Some)), "0 to 7", "that of the process", "The level of the I/O priority; 0 is the highest."),
        option("prioclass", &[], |job, v| put(&mut job.priority.prioclass, class(v)), "0 to 3", "that of the process", "The class: 0 none, 1 real time, 2 best effort, 3 idle."),
        option("nice", &[], |job, v| put(&mut job.priority.nice, nice(v).map(Some)), "-20 to 19", "that of the process", "The nice value."),
        option("cmdprio_percentage", &[], |job, v| of_each(&mut job.priority.cmdprio, v, |part| part.percent(), |own, percent| own.percent = percent), "a percentage, for reads and writes", "`0`", "The part of the requests that has a priority of its own (libaio, io_uring)."),
        option("cmdprio_class", &[], |job, v| of_each(&mut job.priority.cmdprio, v, |part| part.count_u8(CLASSES), |own, class| own.class = class), "1 to 3, for reads and writes", "1", "The class of these requests."),
        option("cmdprio", &[], |job, v| of_each(&mut job.priority.cmdprio, v, |part| part.count_u8(LEVELS), |own, level| own.level = level), "0 to 7, for reads and writes", "0", "The level of these requests."),
        option("cmdprio_bssplit", &[], |job, v| of_each(&mut job.priority.cmdprio, v, size_priorities, |own, split| own.by_size = split), "`SIZE/PERCENT`, `SIZE/PERCENT/CLASS/LEVEL`, ... separated by colons", "none", "The part with a priority of its own for each size of requests."),
        option("cgroup", &[], |job, v| put(&mut job.cgroup.path, cgroup(v).map(Some)), "a path from the root", "the root", "The control group of the job."),
        option("cgroup_weight", &[], |job, v| put(&mut job.cgroup.weights, cgroup_weights(v)), "1 to 1000, or one for each name of the path: `200/300`", "100", "The weight of the group, or of the groups on its path."),
    ],
};

/// The priorities of a job and of its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priorities {
    /// The I/O priority, 0 (highest) to 7.
    pub prio: Option<u8>,
    /// The I/O priority class: 1 real time, 2 best effort, 3 idle.
    pub prioclass: Option<u8>,
    /// The nice value, -20 to 19.
    pub nice: Option<i8>,
    /// Priorities of single requests.
    pub cmdprio: Directions<CommandPriority>,
}

/// The control group of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupPath {
    /// Path of the job's control group from the root, which has no name, with slashes between the
    /// names. No name is empty.
    pub path: Option<String>,
    /// Weights of the groups on that path, 1 to 1000: that of the last group alone, or one for each
    /// name of `cgroup`. Empty if none was given.
    pub weights: Vec<u32>,
}

impl CgroupPath {
    /// The groups on the path to the job's own, from the top: the path of each, and the weight that
    /// the job gives it.
    pub fn way(&self) -> Vec<(&str, Option<u32>)> {
        let Some(path) = &self.path else { return Vec::new() };
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let paths: Vec<&str> = ends.map(|end| &path[..end]).collect();
        // A single weight belongs to the last group.
        let unweighted = paths.len().saturating_sub(self.weights.len());
        let weights = std::iter::repeat_n(None, unweighted).chain(self.weights.iter().copied().map(Some));
        paths.into_iter().zip(weights).collect()
    }
}

/// The priority of some requests of a direction; the others have that of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandPriority {
    /// Percentage of the requests with the priority of `class` and `level`.
    pub percent: u8,
    /// The class: 1 real time, 2 best effort, 3 idle. Default 1.
    pub class: u8,
    /// The level in the class, 0 to 7.
    pub level: u8,
    /// The requests with a priority by their size, instead of `percent`.
    pub by_size: Vec<SizePriority>,
}

/// The priority of some requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizePriority {
    /// The size of the requests, in bytes.
    pub bytes: u64,
    /// Percentage of the requests of this size.
    pub percent: u8,
    /// Class and level, if they are not those of `cmdprio_class` and `cmdprio`.
    pub priority: Option<(u8, u8)>,
}

impl CommandPriority {
    /// The class and level of a request of this size, for a ticket from 0 to 99; `None` for the
    /// priority of the process.
    pub fn of(&self, bytes: u64, ticket: u8) -> Option<(u8, u8)> {
        let own = (self.class.max(1), self.level);
        if self.by_size.is_empty() {
            return (ticket < self.percent).then_some(own);
        }
        let mut bound = 0u16;
        for entry in self.by_size.iter().filter(|entry| entry.bytes == bytes) {
            bound += u16::from(entry.percent);
            if u16::from(ticket) < bound {
                return Some(entry.priority.unwrap_or(own));
            }
        }
        None
    }

    /// All classes and levels that requests may have.
    pub fn all(&self) -> Vec<(u8, u8)> {
        let own = (self.class.max(1), self.level);
        if self.by_size.is_empty() {
            return if self.percent > 0 { vec![own] } else { Vec::new() };
        }
        self.by_size.iter().filter(|entry| entry.percent > 0).map(|entry| entry.priority.unwrap_or(own)).collect()
    }
}

/// Sets a part of the priorities of reads and of writes.
fn of_each<T: Clone>(
    onto: &mut Directions<CommandPriority>,
    v: Value,
    parse: impl Fn(Value) -> Result<T, Fault>,
    set: impl Fn(&mut CommandPriority, T),
) -> Result<(), Fault> {
    let given = v.directions(parse)?;
    for direction in [Direction::Read, Direction::Write] {
        if let Some(part) = given.get(direction).clone() {
            set(onto.get_mut(direction), part);
        }
    }
    Ok(())
}

/// Parses `size/percent` or `size/percent/class/level` parts, separated by colons.
fn size_priorities(v: Value) -> Result<Vec<SizePriority>, Fault> {
    let part = |part: &str| {
        let fields: Vec<&str> = part.split('/').map(str::trim).collect();
        let priority = match fields[..] {
            [_, _] => None,
            [_, _, class, level] => Some((v.part(class).count_u8(CLASSES)?, v.part(level).count_u8(LEVELS)?)),
            _ => {
                let help = "write size/percent, or size/percent/class/level, as in 64k/25/1/1:1024k/0";
                return Err(Fault::with_help(format!("`{part}` is not a size with its percentage"), help));
            }
        };
        Ok(SizePriority { bytes: v.part(fields[0]).count(1)?, percent: v.part(fields[1]).percent()?, priority })
    };
    v.text.split(':').map(part).collect()
}

fn nice(v: Value) -> Result<i8, Fault> {
    match v.text.parse::<i8>() {
        Ok(nice) if (-20..=19).contains(&nice) => Ok(nice),
        _ => Err(Fault::with_help(format!("`{}` is not a nice value", v.text), "from -20 to 19")),
    }
}

/// Parses the path of a control group.
fn cgroup(v: Value) -> Result<String, Fault> {
    let value = v.text;
    let help = "names with one slash between them, the root's being left out: cgroup=users/alice";
    if let Some(odd) = value.split('/').find(|name| name.is_empty() || *name == "." || *name == "..") {
        let what = if odd.is_empty() { "an empty name".to_owned() } else { format!("the name `{odd}`") };
        return Err(Fault::with_help(format!("`{value}` has {what}"), help));
    }
    let depth = value.split('/').count();
    if depth > CGROUPS_MAX {
        return Err(Fault::with_help(format!("{depth} groups in one another"), format!("{CGROUPS_MAX} at the most")));
    }
    Ok(value.into())
}

/// Parses the weight of a group, or one weight for each group on its path, separated by slashes.
fn cgroup_weights(v: Value) -> Result<Vec<u32>, Fault> {
    let weight = |text| Ok(v.part(text).count_within(CGROUP_WEIGHTS)? as u32);
    v.text.split('/').map(weight).collect()
}

/// Parses an I/O priority class, 0 for none.
fn class(v: Value) -> Result<Option<u8>, Fault> {
    let class = v.count_u8(0..=3).map_err(|fault| Fault {
        help: Some("0 for none, 1 for real time, 2 for best effort, 3 for idle".into()),
        ..fault
    })?;
    Ok((class > 0).then_some(class))
}
