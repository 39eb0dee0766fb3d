//! The tunables of the second CFQ.

use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::slice_tunables::{BACK_SEEK_MAX, BACK_SEEK_PENALTY};
use crate::layer::BlockLayer;

/// The pool size per direction that the elevator sets when it is attached.
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

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "cfq-v2",
    aliases: &[],
    kernel: "2.6.10 to 2.6.12, by specification only (no recorded decisions)",
    in_linux: "2.6.10-2.6.12",
    headline: "cfq-v1 that visits the least served first",
    idea: "The driver gets one request of every queue in each pass, first of those with the least \
           disk time recently. A queue exists as long as its process. Requests that have waited \
           too long go first; short backward seeks are allowed.",
    suits: "Many processes or users on one disk that should get equal numbers of requests. It does \
            not idle, so sequential readers seek at every request.",
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
            "Passes over the queues continue until at least this many requests have moved to the \
             driver's list.",
            "Higher sorts more requests at a time, but requests that arrive meanwhile wait longer.",
        ),
        row(
            "queued",
            Unit::Requests,
            8,
            1,
            MAX,
            "The number of requests that a queue may always have allocated in one direction.",
            "Higher sorts more of a burst, and lets one queue take more of the pool.",
        ),
        row(
            "fifo_expire_sync",
            Unit::Milliseconds,
            500,
            1,
            MAX,
            "The age from which a sync request goes first; as shipped (swapped_fifo), that of \
             async requests.",
            "Shorter bounds latency and costs seeks.",
        ),
        row(
            "fifo_expire_async",
            Unit::Milliseconds,
            5000,
            1,
            MAX,
            "The age of async requests; as shipped, of sync \
                                                                    requests.",
            "As above.",
        ),
        row(
            "fifo_batch_expire",
            Unit::Milliseconds,
            125,
            0,
            MAX,
            "In each queue, at most one request per this time goes first because of its age.",
            "Shorter serves more overdue requests early and costs seeks.",
        ),
        row(
            "key_type",
            Unit::Form,
            0,
            0,
            1,
            "The contexts that share a queue: 0 those of one process (the kernel's tgid), 1 those \
             of one group. A context has no user or process group: create a group for each, and 1 \
             is the kernel's uid, gid or pgid. A change applies to a context from its next request \
             on; contexts that shared a queue stay together.",
            "By group, a user does not get more by running more processes.",
        ),
        row(
            "find_best_crq",
            Unit::Switch,
            1,
            0,
            1,
            "1 serves the request nearest to the head next, 0 the lowest sector.",
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
            "1 is as shipped: fifo_expire_sync and fifo_expire_async each apply to the other kind. \
             0 is as intended. Not a tunable of the kernel.",
            "0 bounds the latency of reads instead of writes.",
        ),
    ],
};
