//! Differences between the block layers of kernel versions, as parameters of the request queue.

/// The kernel version whose block layer the queue reproduces. Elevators never test it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockLayer {
    /// 2.6.18: each elevator searches for back merges; the queue has plugging and a request pool.
    #[default]
    V2_6_18,
    /// 2.6.24: the queue searches for back merges; dispatch sorting stops at the other direction.
    V2_6_24,
    /// 2.6.29: as 2.6.24, and the class of an unset priority follows the CPU policy.
    V2_6_29,
    /// 3.4: the same rules as 2.6.29.
    V3_4,
    /// 4.19: the single-queue path.
    V4_19,
    /// 6.1: multi-queue.
    V6_1,
}

/// The differences between block layers that affect decisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerRules {
    /// The queue searches for back merges for every elevator; before 2.6.19 each elevator decided.
    pub hashes_back_merges: bool,
    /// Sorting into the dispatch list stops at a request of the other direction.
    pub sorting_stops_at_direction: bool,
    /// The queue calls the elevator's `allow_merge` before a merge (after 2.6.18).
    pub elevator_can_veto: bool,
    /// The class of an unset priority follows the CPU policy (2.6.26 and later).
    pub cpu_policy_counts: bool,
    /// Multi-queue: one pool of tags for both directions without batching; requests of different
    /// priorities are not merged; a request may merge with a queued one at insertion; the elevator
    /// can veto a merge after the search.
    pub multi_queue: bool,
    /// Elevators that were converted to nanoseconds (CFQ in 4.8) still count in whole ticks.
    /// Elevators that always used the fine clock do so in every kernel.
    pub counts_in_ticks: bool,
}

impl BlockLayer {
    /// Returns true if direct writes may be idled for: from 2.6.30 on they are marked as such
    /// (`WRITE_ODIRECT`; since 4.10 `REQ_SYNC` and `REQ_IDLE`).
    pub const fn idles_for_direct_writes(self) -> bool {
        matches!(self, BlockLayer::V3_4 | BlockLayer::V4_19 | BlockLayer::V6_1)
    }

    pub(crate) const fn rules(self) -> LayerRules {
        let first = matches!(self, BlockLayer::V2_6_18);
        LayerRules {
            hashes_back_merges: !first,
            sorting_stops_at_direction: !first,
            elevator_can_veto: !first,
            cpu_policy_counts: !matches!(self, BlockLayer::V2_6_18 | BlockLayer::V2_6_24),
            multi_queue: matches!(self, BlockLayer::V6_1),
            counts_in_ticks: !matches!(self, BlockLayer::V4_19 | BlockLayer::V6_1),
        }
    }
}
