//! The tunables of the second CFQ.

use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::slice_tunables::{BACK_SEEK_MAX, BACK_SEEK_PENALTY};
use crate::layer::BlockLayer;

/// The size of the pool of requests a direction that it sets when it is attached.
pub(super) const NR_REQUESTS: u32 = 1024;

const fn row(
    name: &'static str,
    unit: Unit,
    default: i64,
    min: i64,
    max: i64,
    meaning: &'static str,
    trade_off: &'static str,
) -> Tunable {
    Tunable { name, unit, default, min, max, meaning, trade_off }
}

const MAX: i64 = u32::MAX as i64;

/// What the registry tells of the elevator.
pub(crate) const INFO: Info = Info {
    name: "cfq-v2",
    aliases: &[],
    kernel: "2.6.10 to 2.6.12, by specification only: nothing was recorded",
    in_linux: "2.6.10-2.6.12",
    headline: "cfq-v1 that visits the least served first",
    idea: "The driver gets one request of every queue a pass, first of those that have had least of the disk's time lately. A queue lives as \
           long as its process; requests that have waited too long go first; short ways back are taken.",
    suits: "Many processes or users on one disk that shall have equal numbers of requests. It keeps no disk idle, so that \
            processes that read one block after the other seek at every request.",
    layer: BlockLayer::V2_6_18,
    groups: true,
    reservations: false,
    nr_requests: Some(NR_REQUESTS),
    hashes_back_merges: true,
    tunables: &[
        row(
            "quantum",
            Unit::Requests,
            4,
            1,
            MAX,
            "Passes over the queues are made until at least this many requests were moved to the driver's list.",
            "Higher sorts more requests at a time; those that come meanwhile wait longer.",
        ),
        row(
            "queued",
            Unit::Requests,
            8,
            1,
            MAX,
            "A queue may always have so many requests allocated in one direction.",
            "Higher lets more of a burst be sorted and lets one queue take more of the pool.",
        ),
        row(
            "fifo_expire_sync",
            Unit::Milliseconds,
            500,
            1,
            MAX,
            "The age from which a sync request goes first; as shipped (swapped_fifo), that of async ones.",
            "Shorter bounds latency and costs seeks.",
        ),
        row("fifo_expire_async", Unit::Milliseconds, 5000, 1, MAX, "The same the other way round.", "As above."),
        row(
            "fifo_batch_expire",
            Unit::Milliseconds,
            125,
            0,
            MAX,
            "In each queue, at most one request goes first for its age in this time.",
            "Shorter rescues more of the overdue and costs seeks.",
        ),
        row(
            "key_type",
            Unit::Form,
            0,
            0,
            1,
            "Who shares a queue: 0 the contexts of one process (the kernel's tgid), 1 those of one group. A context tells no user or process \
             group: make a group for each, and 1 is the kernel's uid, gid or pgid. A change counts for a context from its next \
             request on; contexts whose queues were one stay together.",
            "By group, a user does not get more for running more processes.",
        ),
        row(
            "find_best_crq",
            Unit::Switch,
            1,
            0,
            1,
            "1 serves the request that is nearest to the head next, 0 the lowest sector.",
            "0 seeks back to the beginning again and again.",
        ),
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        row(
            "swapped_fifo",
            Unit::Switch,
            1,
            0,
            1,
            "1 is as shipped: fifo_expire_sync and fifo_expire_async count for the other kind each. 0 is as meant. Not a tunable of the \
             kernel's.",
            "0 bounds reads' latency instead of writes'.",
        ),
    ],
};
