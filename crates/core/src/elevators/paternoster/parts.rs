//! The parts of the elevator that a build with the feature `ablation` can switch off, to measure
//! what each is worth. Otherwise all are on, and their switches do not exist.

use crate::elevator::tunable::{Tunable, Unit};

/// A part of the elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A light party that is eligible shortens a turn.
    GiveWay,
    /// Scattered requests are served by sector and not by finish.
    Sweep,
    /// The device gets fewer requests while a party is deprived.
    HoldBack,
    /// A part of the pool of requests is left to parties with less than their share.
    Pool,
    /// A party is charged for its think time.
    ThinkCharge,
    /// What a party does not use of its share is lost, but for some requests.
    CreditBound,
    /// Turns are tried where moves seem to cost nothing.
    Trials,
    /// Writes are charged for what a write cache hides.
    WriteFactor,
}

/// Which parts are on: a bit for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts(u32);

impl Parts {
    /// All parts.
    pub const ALL: Parts = Parts(u32::MAX);

    /// Returns true if a part is on.
    #[inline]
    pub fn has(self, part: Part) -> bool {
        !cfg!(feature = "ablation") || self.is_on(part as usize)
    }

    /// Returns true if the part with this index in [`SWITCHES`] is on.
    pub fn is_on(self, switch: usize) -> bool {
        self.0 & bit(switch) != 0
    }

    /// Switches the part with this index in [`SWITCHES`] on or off.
    pub fn set(&mut self, switch: usize, is_on: bool) {
        self.0 = if is_on { self.0 | bit(switch) } else { self.0 & !bit(switch) };
    }
}

fn bit(switch: usize) -> u32 {
    1u32.checked_shl(u32::try_from(switch).unwrap_or(u32::MAX)).unwrap_or(0)
}

/// The switches, in the order of [`Part`].
pub(super) const SWITCHES: [Tunable; 8] = [
    switch("give_way", "Whether a light party that is eligible shortens a turn."),
    switch("sweep", "Whether scattered requests are served by sector and not by finish."),
    switch("hold_back", "Whether the device gets fewer requests while a party is deprived."),
    switch("pool_part", "Whether a part of the pool is left to parties with less than their share."),
    switch("think_charge", "Whether a party is charged for its think time."),
    switch("credit_bound", "Whether the share that a party does not use is lost, but for some requests."),
    switch("trials", "Whether turns are tried where moves seem to cost nothing."),
    switch("write_factor", "Whether writes are charged for what a write cache hides."),
];

const fn switch(name: &'static str, meaning: &'static str) -> Tunable {
    Tunable {
        name,
        unit: Unit::Switch,
        default: 1,
        min: 0,
        max: 1,
        meaning,
        trade_off: "To measure what the part is worth.",
    }
}
