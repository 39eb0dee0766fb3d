//! The answer of `hoistway elevators`: the registry of elevators, in types that can be serialised.

use hoistway_core::{Info, Kind, Tunable};
use serde::Serialize;

use crate::settings::group_switch;

/// The JSON document of `hoistway elevators --json`.
#[derive(Clone, Debug, Serialize)]
pub struct ElevatorList {
    /// Version of the document's format: 1.
    pub schema: u32,
    /// All elevators, or the named one.
    pub elevators: Vec<ElevatorDescription>,
}

/// The description of an elevator.
#[derive(Clone, Debug, Serialize)]
pub struct ElevatorDescription {
    /// The name of the elevator.
    pub name: &'static str,
    /// Aliases of the name.
    pub aliases: &'static [&'static str],
    /// The kernels whose decisions the elevator reproduces.
    pub kernel: &'static str,
    /// The kernels that contained the elevator.
    pub in_linux: &'static str,
    /// Summary of the algorithm in one line.
    pub headline: &'static str,
    /// Explanation of the algorithm.
    pub idea: &'static str,
    /// Workloads that the elevator suits, and those that it does not.
    pub suits: &'static str,
    /// True if the elevator can divide the disk among control groups.
    pub groups: bool,
    /// True if processes can reserve bandwidth from the elevator.
    pub reservations: bool,
    /// The elevator's tunables.
    pub tunables: Vec<TunableDescription>,
}

/// One tunable.
#[derive(Clone, Debug, Serialize)]
pub struct TunableDescription {
    /// The name of the tunable in the kernel.
    pub name: &'static str,
    /// The unit of `default`, `min` and `max`: ms, requests, KiB, times, factor, 0/1, form.
    pub unit: &'static str,
    /// The default value.
    pub default: i64,
    /// The smallest valid value.
    pub min: i64,
    /// The largest valid value.
    pub max: i64,
    /// The effect.
    pub meaning: &'static str,
    /// Advantages and disadvantages of a change.
    pub trade_off: &'static str,
}

impl ElevatorDescription {
    fn new(info: &'static Info) -> ElevatorDescription {
        let Info { name, aliases, kernel, in_linux, headline, idea, suits, groups, reservations, .. } = *info;
        let tunables = info.tunables.iter().map(TunableDescription::new).collect();
        ElevatorDescription { name, aliases, kernel, in_linux, headline, idea, suits, groups, reservations, tunables }
    }
}

impl TunableDescription {
    fn new(row: &'static Tunable) -> TunableDescription {
        let Tunable { name, unit, default, min, max, meaning, trade_off } = *row;
        TunableDescription { name, unit: unit.label(), default, min, max, meaning, trade_off }
    }
}

/// True if an elevator divides the disk among control groups.
#[derive(Clone, Copy, Debug)]
pub enum GroupSupport {
    /// The elevator treats all processes as members of one group.
    No,
    /// The elevator divides the disk when this tunable is 1; the default is 0.
    IfSet(&'static Tunable),
    /// The elevator divides the disk unless a tunable switches that off.
    Yes,
}

impl GroupSupport {
    /// The support of this elevator.
    pub fn of(kind: Kind) -> GroupSupport {
        match group_switch(kind) {
            _ if !kind.info().groups => GroupSupport::No,
            Some(switch) if switch.default == 0 => GroupSupport::IfSet(switch),
            _ => GroupSupport::Yes,
        }
    }
}

impl ElevatorList {
    /// Describes these elevators.
    pub fn new(kinds: &[Kind]) -> ElevatorList {
        ElevatorList { schema: 1, elevators: kinds.iter().map(|kind| ElevatorDescription::new(kind.info())).collect() }
    }
}
