//! The queue of a context: its requests, its position in virtual time, and the pattern of its
//! requests.
//!
//! A context is a *stream* if most of its requests begin near the end of the request before, and
//! *scattered* otherwise. A score of its last requests decides.

use crate::collections::{Count, Link, LinkOf, NIL, Slot, mean_with};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::sorted_fifo::SortedFifo;

use super::costs::Distance;
use super::selection::Kind;
use super::shares::Membership;

/// The score of a context all of whose requests are near the one before.
const SCORE_MAX: u16 = 256;
/// The score from which a context is a stream.
const STREAM_SCORE: u16 = 128;
/// The score at the beginning: the first request, which is far from no other, does not count.
const FIRST_SCORE: u16 = 192;
/// The upper bound of a think time, in ns.
const THINK_MAX_NS: u64 = 1_000_000_000;

/// The stage of a context in the order of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It has no queued requests.
    #[default]
    Empty,
    /// It waits until the virtual time reaches its start.
    Waiting,
    /// It is eligible.
    Eligible(Kind),
    /// It is the stream whose turn it is.
    InTurn,
}

/// The queue of a context, at its slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextQueue {
    /// The position in virtual time: the costs of its requests, each divided by its share.
    pub position: u64,
    /// The position at which its last turn began.
    pub turn_start: u64,
    /// The position at which its current turn or window ends.
    pub position_limit: u64,
    /// The requests for which a process waits, and the others.
    sync: SortedFifo,
    background: SortedFifo,
    pub queued: u32,
    pub in_flight: u32,
    /// The cost of the last request, in ns.
    pub cost_ns: u64,
    pub stage: Stage,
    /// Whether its weight counts in its group.
    pub is_present: bool,
    /// Whether it was behind the virtual time when it returned last, with no requests in the
    /// device, and has been behind it since.
    pub is_light: bool,
    /// Whether it lost a part of its share when it returned last.
    pub is_deprived: bool,
    /// Whether it is counted as scattered.
    pub is_scattered: bool,
    pub membership: Membership,
    /// The sector after the end of the request that arrived last.
    arrived_end: u64,
    /// The sector after the end of the request that was served last.
    pub served_end: u64,
    /// How often its requests are near the one before, up to [`SCORE_MAX`].
    score: u16,
    /// The number of its requests, up to 255.
    requests: u8,
    /// How often it returned within the idle wait, up to [`SCORE_MAX`].
    returns: u16,
    /// The mean time from its last completion to its next request, in ns.
    pub think_ns: u64,
    /// The time of the last completion, in ns.
    pub completed_ns: u64,
    /// The link in the list of idle contexts.
    idle: Link,
}

/// The list of present contexts without requests, in the order of their last completions.
#[derive(Debug)]
pub(crate) struct Idle;

impl LinkOf<ContextQueue> for Idle {
    fn link(context: &ContextQueue) -> &Link {
        &context.idle
    }
    fn link_mut(context: &mut ContextQueue) -> &mut Link {
        &mut context.idle
    }
}

impl ContextQueue {
    /// The queue of a new context at this position.
    pub fn at(position: u64) -> ContextQueue {
        ContextQueue { position, score: FIRST_SCORE, returns: SCORE_MAX / 2, ..ContextQueue::default() }
    }

    /// Returns true if most requests are near the one before.
    pub fn is_stream(&self) -> bool {
        self.requests > 1 && self.score >= STREAM_SCORE
    }

    /// Returns true if most requests are far from the one before.
    pub fn has_scattered_requests(&self) -> bool {
        self.requests > 1 && self.score < STREAM_SCORE
    }

    /// Returns true if no request is queued or in the device.
    pub fn is_idle(&self) -> bool {
        self.queued == 0 && self.in_flight == 0
    }

    /// Updates the statistics for a request that arrives. Returns the think time, in ns; 0 if the
    /// context had requests.
    pub fn arrive<H: HostTypes>(&mut self, core: &QueueCore<H>, request: Slot, now_ns: u64) -> u64 {
        let entry = &core.tables.requests[request];
        self.update_score(!Distance::between(self.arrived_end, entry.sector).is_far(), entry.end());
        if !self.is_idle() || self.completed_ns == 0 {
            return 0;
        }
        let think = now_ns.saturating_sub(self.completed_ns).min(THINK_MAX_NS);
        self.think_ns = mean_with(self.think_ns, think, 8);
        think
    }

    /// Updates the score for a request or a merged bio that ends at `end`.
    pub fn update_score(&mut self, is_near: bool, end: u64) {
        self.arrived_end = end;
        self.score = approach(self.score, is_near);
        self.requests = self.requests.saturating_add(1);
    }

    /// Records whether the context returned within the idle wait.
    pub fn record_return(&mut self, is_within_wait: bool) {
        self.returns = approach(self.returns, is_within_wait);
    }

    /// The probability that the context returns within the idle wait, in 1/256.
    pub fn return_chance(&self) -> u64 {
        u64::from(self.returns)
    }

    fn queue_mut<H: HostTypes>(&mut self, core: &QueueCore<H>, request: Slot) -> &mut SortedFifo {
        if core.tables.requests[request].is_sync() { &mut self.sync } else { &mut self.background }
    }

    /// The queue that is served first.
    fn next_queue(&self) -> &SortedFifo {
        if self.sync.is_empty() { &self.background } else { &self.sync }
    }

    pub fn insert<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.queue_mut(core, request).insert(core, request, 0);
        self.queued.increment();
    }

    pub fn remove<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.queue_mut(core, request).remove(core, request);
        self.queued.decrement();
    }

    pub fn resort<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.queue_mut(core, request).resort(core, request);
    }

    /// A request that begins at `sector`, or [`NIL`].
    pub fn at_sector<H: HostTypes>(&self, core: &QueueCore<H>, sector: u64, is_sync: bool) -> Slot {
        let queue = if is_sync { &self.sync } else { &self.background };
        queue.at_sector(core, sector)
    }

    /// The first request at or after `sector`; the lowest one if there is none.
    pub fn next_from<H: HostTypes>(&self, core: &QueueCore<H>, sector: u64) -> Slot {
        let queue = self.next_queue();
        let ahead = queue.tree().first_not_below(&core.tables.nodes, sector);
        if ahead == NIL { queue.lowest() } else { ahead }
    }

    /// The oldest request.
    pub fn oldest(&self) -> Slot {
        self.next_queue().oldest()
    }
}

/// Moves a score by 1/8 of the way to its maximum or to 0.
fn approach(score: u16, up: bool) -> u16 {
    let kept = score.saturating_sub(score.div_ceil(8));
    if up { kept.saturating_add(SCORE_MAX / 8).min(SCORE_MAX) } else { kept }
}
