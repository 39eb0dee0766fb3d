//! The tunables of CFQ scheduled by WF2Q+.

use crate::clock::Clock;
use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::slice_tunables::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, QUANTUM, SLICE_ASYNC, SLICE_IDLE,
    SLICE_SYNC, SliceTunables,
};
use crate::layer::BlockLayer;

/// The place of `slice_scaling` in the list.
pub(super) const SLICE_SCALING: usize = 8;

/// What the registry tells of the elevator.
pub(crate) const INFO: Info = Info {
    name: "cfq-wf2q",
    aliases: &[],
    kernel: "none: an idea of 2008, in the block layer of 2.6.24",
    in_linux: "never",
    headline: "A slice of time a process, exact shares",
    idea: "Each process has the disk to itself for a slice of time. WF2Q+ decides who is next, by the time that each has really had: \
           a better priority gets slices more often, an unused rest is not lost and an overrun is paid back.",
    suits: "One disk and processes or groups that are to share its time exactly. Costs throughput where idling is in vain (many random \
            readers, arrays, flash).",
    layer: BlockLayer::V2_6_24,
    groups: true,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        QUANTUM,
        Tunable {
            meaning: "The age from which a queue's oldest sync request goes first, if it has it when the queue's slice begins.",
            ..FIFO_EXPIRE_SYNC
        },
        FIFO_EXPIRE_ASYNC,
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        Tunable { meaning: "The slice of a sync queue (at level 4, if `slice_scaling` is 1).", ..SLICE_SYNC },
        SLICE_ASYNC,
        SLICE_IDLE,
        Tunable {
            name: "slice_scaling",
            unit: Unit::Form,
            default: 0,
            min: 0,
            max: 1,
            meaning: "What a better priority gets: 0 slices of the same length more often, 8 at level 0 for one at level 7; 1 longer \
                      ones as often, by a fifth of the base for each level, as with CFQ.",
            trade_off: "Longer slices seek less; more frequent ones make a better priority wait less.",
        },
    ],
};

/// Their values, as stored and as they count.
#[derive(Debug)]
pub(super) struct Tunables {
    pub shared: SliceTunables,
    /// Priorities scale the length of slices and not how often they come.
    pub scales_length: bool,
}

impl Tunables {
    pub fn defaults(clock: &Clock) -> Tunables {
        Tunables { shared: SliceTunables::defaults(INFO.tunables, clock), scales_length: false }
    }

    pub fn set(&mut self, clock: &Clock, index: usize, value: i64) {
        self.shared.set(INFO.tunables, clock, index, value);
        if index == SLICE_SCALING {
            self.scales_length = value != 0;
        }
    }
}
