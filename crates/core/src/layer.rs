//! The block layers of the kernels whose elevators are here, as parameters of the request queue.

/// Which kernel's block layer the queue behaves as. Elevators never ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockLayer {
    /// 2.6.18: elevators search back merges themselves, plugging and the request pool in the queue.
    #[default]
    V2_6_18,
    /// 2.6.24: back merges are the queue's, and sorting into the dispatch list stops at the other direction.
    V2_6_24,
    /// 2.6.29.
    V2_6_29,
    /// 3.4.
    V3_4,
    /// 4.19, its single-queue path.
    V4_19,
    /// 6.1, multi-queue.
    V6_1,
}

/// What differs between block layers, as far as decisions show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The queue looks for back merges for every elevator; before 2.6.19 each elevator did so or did not.
    pub hashes_back_merges: bool,
    /// Sorting into the dispatch list stops at a request of the other direction.
    pub sorting_stops_at_direction: bool,
    /// Before a bio joins a request, the elevator is asked whether it may; elevators of 2.6.18 and before did not have a say.
    pub asks_elevator: bool,
    /// The class of an unset priority follows the CPU policy (2.6.26 and later).
    pub cpu_policy_counts: bool,
    /// Multi-queue: one pool of tags for both directions without batching, requests of different priorities stay apart, a
    /// request may join a queued one as it is inserted, and the elevator is asked about a merge once more when it is done.
    pub multi_queue: bool,
    /// Elevators that came to count in nanoseconds (CFQ did in 4.8) still count in whole ticks. Those that measured with the fine
    /// clock from the start do so in every kernel.
    pub counts_in_ticks: bool,
}

impl BlockLayer {
    pub(crate) const fn rules(self) -> Rules {
        let first = matches!(self, BlockLayer::V2_6_18);
        Rules {
            hashes_back_merges: !first,
            sorting_stops_at_direction: !first,
            asks_elevator: !first,
            cpu_policy_counts: !matches!(self, BlockLayer::V2_6_18 | BlockLayer::V2_6_24),
            multi_queue: matches!(self, BlockLayer::V6_1),
            counts_in_ticks: !matches!(self, BlockLayer::V4_19 | BlockLayer::V6_1),
        }
    }
}
