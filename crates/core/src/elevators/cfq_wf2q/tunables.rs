//! The tunables of CFQ scheduled by WF2Q+.

use crate::clock::Clock;
use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::slice_tunables::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, QUANTUM, SLICE_ASYNC, SLICE_IDLE,
    SLICE_SYNC, SliceTunables,
};
use crate::layer::BlockLayer;

/// The index of `slice_scaling` in the list.
pub(super) const SLICE_SCALING: usize = 8;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "cfq-wf2q",
    aliases: &[],
    kernel: "none: an idea of 2008, in the block layer of 2.6.24",
    in_linux: "never",
    headline: "A slice of time per process, exact shares",
    idea: "Each process has the disk for a slice of time. WF2Q+ selects the next process by the \
           time actually received: a higher priority gets slices more often, an unused rest is not \
           lost, and an overrun is paid back.",
    suits: "One disk whose time processes or groups share exactly. Costs throughput where idling \
            is useless (many random readers, arrays, flash).",
    layer: BlockLayer::V2_6_24,
    groups: true,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        QUANTUM,
        Tunable {
            meaning: "The age from which a queue's oldest sync request goes first, checked when \
                      the queue's slice begins.",
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
            meaning: "The effect of a higher priority. 0: slices of the same length more often, 8 \
                      at level 0 for one at level 7. 1: longer slices as often, by a fifth of the \
                      base for each level, as with CFQ.",
            trade_off: "Longer slices seek less; more frequent ones shorten the wait of higher \
                        priorities.",
        },
    ],
};

/// The values as stored and as used.
#[derive(Debug)]
pub(super) struct Tunables {
    pub shared: SliceTunables,
    /// Priorities scale the length of slices, not their frequency.
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
