//! The tunables of CFQ with time slices and priority lists.

use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::slice_tunables::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, QUANTUM, SLICE_ASYNC, SLICE_ASYNC_RQ,
    SLICE_IDLE, SLICE_SYNC,
};
use crate::layer::BlockLayer;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "cfq-v3",
    aliases: &[],
    kernel: "2.6.18 (this form from 2.6.13 to 2.6.21)",
    in_linux: "2.6.13-2.6.21",
    headline: "A slice of time per process, rounds by priority",
    idea: "Each process has the disk for a slice of time, scaled by its priority. At the end of a \
           burst the disk is kept idle for a few ms for the process's next read. The processes of \
           one level share a queue of async writes, whose number is limited.",
    suits: "Desktops and servers with one disk and several processes: fair, with little seeking. \
            Costs throughput where idling is useless (many random readers, arrays, flash).",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: true,
    tunables: &[
        QUANTUM,
        Tunable {
            name: "queued",
            unit: Unit::Requests,
            default: 8,
            min: 1,
            max: u32::MAX as i64,
            meaning: "No effect; the kernel still had it.",
            trade_off: "None.",
        },
        FIFO_EXPIRE_SYNC,
        FIFO_EXPIRE_ASYNC,
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        SLICE_SYNC,
        SLICE_ASYNC,
        SLICE_ASYNC_RQ,
        SLICE_IDLE,
        Tunable {
            name: "v3_preempt_fixed",
            unit: Unit::Switch,
            default: 0,
            min: 0,
            max: 1,
            meaning: "1 lets a sync request preempt an async queue, as intended. As shipped, a \
                      condition that never holds restricts preemption to idle-class queues. Not a \
                      tunable of the kernel.",
            trade_off: "On, reads wait less behind writes.",
        },
    ],
};

/// The index of `v3_preempt_fixed` in the list.
pub(super) const PREEMPT_FIXED: usize = 10;
