//! The tunables of CFQ with one sorted tree.

use crate::elevator::info::Info;
use crate::elevator::tunable::Tunable;
use crate::elevators::shared::slice_tunables::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, QUANTUM, SLICE_ASYNC, SLICE_ASYNC_RQ,
    SLICE_IDLE, SLICE_SYNC,
};
use crate::layer::BlockLayer;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "cfq-tree",
    aliases: &[],
    kernel: "2.6.24 (this form from 2.6.22 to 2.6.32)",
    in_linux: "2.6.22-2.6.32",
    headline: "A slice of time per process, in a tree's order",
    idea: "Each process has the disk for a slice of time, scaled by its priority. All queues with \
           requests are in one tree, by class and by a time that is later for shorter slices and \
           more waiting queues. At the end of a burst the disk is kept idle for a few ms; sync \
           requests preempt async queues at once.",
    suits: "Desktops and servers with one disk and several processes; sync writes count as sync. \
            Costs throughput where idling is useless (many random readers, arrays, flash).",
    layer: BlockLayer::V2_6_24,
    groups: false,
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
        SLICE_SYNC,
        SLICE_ASYNC,
        Tunable {
            meaning: "The base b of the number of async requests that end a slice when they are \
                      moved at once: 2 * (b + b * (7 - level)). At the default quantum of 4 only \
                      level 7 ever reaches it.",
            ..SLICE_ASYNC_RQ
        },
        SLICE_IDLE,
    ],
};
