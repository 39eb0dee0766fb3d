//! The tunables of paternoster. None needs to be set.

use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::layer::BlockLayer;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "paternoster",
    aliases: &[],
    kernel: "none: an elevator of this project",
    in_linux: "never",
    headline: "Shares of learned device time, one sweep",
    idea: "Each process has its share of the device's time, whose cost it learns from completions. \
           Of those that have had less than their share, scattered requests are served in one sweep \
           over the disk, and streams in turns that are long enough to be worth the seek.",
    suits: "Any drive: what a seek costs, and so how long turns are and whether to wait, is learned. \
            Loses a little where one pattern is known beforehand.",
    layer: BlockLayer::V6_1,
    groups: true,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        Tunable {
            name: "turn_moves",
            unit: Unit::Times,
            default: 24,
            min: 0,
            max: 1000,
            meaning: "The length of a stream's turn, as a multiple of the time that a seek costs.",
            trade_off: "Longer turns lose less time to seeks: one part in turn_moves + 1. Shorter \
                        ones let others wait less.",
        },
        Tunable {
            name: "turn_max",
            unit: Unit::Microseconds,
            default: 250_000,
            min: 0,
            max: 10_000_000,
            meaning: "The longest turn, whatever a seek costs.",
            trade_off: "The bound of what a process waits for one stream.",
        },
        Tunable {
            name: "wait",
            unit: Unit::Switch,
            default: 1,
            min: 0,
            max: 1,
            meaning: "Whether the device may be kept idle for the next request of the stream whose \
                      turn it is, where that is expected to cost less than a seek away and back.",
            trade_off: "Off, a stream with one request at a time loses its turn after each.",
        },
    ],
};

/// The index of `turn_moves`.
const TURN_MOVES: usize = 0;
/// The index of `turn_max`.
const TURN_MAX: usize = 1;

/// The values.
#[derive(Debug, Default)]
pub(super) struct Tunables {
    pub turn_moves: u64,
    pub turn_max_us: u64,
    pub waits: bool,
}

impl Tunables {
    pub fn defaults() -> Tunables {
        let mut new = Tunables::default();
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            new.set(index, tunable.default);
        }
        new
    }

    pub fn get(&self, index: usize) -> i64 {
        let value = match index {
            TURN_MOVES => self.turn_moves,
            TURN_MAX => self.turn_max_us,
            _ => u64::from(self.waits),
        };
        i64::try_from(value).unwrap_or(i64::MAX)
    }

    pub fn set(&mut self, index: usize, value: i64) {
        match index {
            TURN_MOVES => self.turn_moves = value.unsigned_abs(),
            TURN_MAX => self.turn_max_us = value.unsigned_abs(),
            _ => self.waits = value != 0,
        }
    }
}
