//! A party: one process, the unit among which the device is shared.

use crate::collections::{Link, LinkOf, NIL, Slot, mean_with};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::sorted_fifo::SortedFifo;

use super::cost::Step;
use super::order::Kind;

/// The score of a party all of whose requests are near the one before.
const SCORE_MAX: u16 = 256;
/// The score from which a party is a stream.
const STREAM_SCORE: u16 = 128;
/// The score at the beginning: the first request, which is far from no other, does not count.
const FIRST_SCORE: u16 = 192;
/// Think times above this count as this, in ns.
const THINK_MAX_NS: u64 = 1_000_000_000;

/// The place of a party in the order of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// It has no requests.
    #[default]
    Out,
    /// It has had more than its share: it waits until the virtual time has reached its position.
    Waiting,
    /// It is eligible.
    Eligible(Kind),
    /// It is the stream whose turn it is.
    InTurn,
}

/// The state of a party, at the slot of its context.
#[derive(Clone, Copy, Debug, Default)]
pub struct Party {
    /// Its position in virtual time: the service that it has had, divided by its share.
    pub position: u64,
    /// The position at which its present turn began.
    pub began: u64,
    /// The position at which its present turn or window ends.
    pub until: u64,
    /// The requests that a process waits for, and the others.
    sync: SortedFifo,
    background: SortedFifo,
    pub queued: u32,
    pub in_flight: u32,
    /// The cost of its last request, in ns.
    pub cost_ns: u64,
    pub place: Place,
    /// Whether its weight counts in its group.
    pub is_present: bool,
    /// Whether it had less than its share when it came back last, with nothing in the device, and
    /// has not had it since.
    pub is_light: bool,
    /// Whether it lost a part of its share when it came back last.
    pub is_deprived: bool,
    /// Whether it is counted as no stream.
    pub is_scattered: bool,
    pub weight: u32,
    pub group: Slot,
    /// The sector after the end of the request that arrived last.
    arrived_end: u64,
    /// The sector after the end of the request that was served last.
    pub served_end: u64,
    /// How often its requests are near the one before, up to [`SCORE_MAX`].
    score: u16,
    /// Its requests so far, up to 255.
    seen: u8,
    /// How often it came back within the wait, up to [`SCORE_MAX`].
    returns: u16,
    /// The mean time from its last completion to its next request, in ns.
    pub think_ns: u64,
    /// The time at which its last request completed, in ns.
    pub left_ns: u64,
    /// The link in the list of parties that are present without requests.
    pub absent: Link,
}

/// The list of parties that are present without requests, those that left first in front.
#[derive(Debug)]
pub(crate) struct Absent;

impl LinkOf<Party> for Absent {
    fn link(party: &Party) -> &Link {
        &party.absent
    }
    fn link_mut(party: &mut Party) -> &mut Link {
        &mut party.absent
    }
}

impl Party {
    /// A party at this position.
    pub fn at(position: u64) -> Party {
        Party { position, score: FIRST_SCORE, returns: SCORE_MAX / 2, ..Party::default() }
    }

    /// Returns true if its requests are mostly near each other.
    pub fn is_stream(&self) -> bool {
        self.seen > 1 && self.score >= STREAM_SCORE
    }

    /// Returns true if its requests are mostly far from each other.
    pub fn has_scattered_requests(&self) -> bool {
        self.seen > 1 && self.score < STREAM_SCORE
    }

    /// Updates the statistics for a request that arrives. Returns the time for which the party had
    /// no requests, in ns, if it had none.
    pub fn arrive<H: HostTypes>(&mut self, core: &QueueCore<H>, request: Slot, now_ns: u64) -> u64 {
        let entry = &core.tables.requests[request];
        let step = Step::between(self.arrived_end, entry.sector);
        self.arrived_end = entry.end();
        self.score = approach(self.score, !step.is_far());
        self.seen = self.seen.saturating_add(1);
        if self.queued > 0 || self.in_flight > 0 || self.left_ns == 0 {
            return 0;
        }
        let think = now_ns.saturating_sub(self.left_ns).min(THINK_MAX_NS);
        self.think_ns = mean_with(self.think_ns, think, 8);
        think
    }

    /// A bio was merged to the end of a request.
    pub fn extended(&mut self, end: u64) {
        self.arrived_end = end;
        self.score = approach(self.score, true);
        self.seen = self.seen.saturating_add(1);
    }

    /// Records whether it came back within the wait.
    pub fn returned(&mut self, within_wait: bool) {
        self.returns = approach(self.returns, within_wait);
    }

    /// The probability that it comes back within the wait, in 1/256.
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

    pub fn insert<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot, order: u64) {
        self.queue_mut(core, request).insert(core, request, order);
        self.queued = self.queued.saturating_add(1);
    }

    pub fn remove<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.queue_mut(core, request).remove(core, request);
        self.queued = self.queued.saturating_sub(1);
    }

    pub fn resort<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.queue_mut(core, request).resort(core, request);
    }

    /// A request that begins at `sector`, or [`NIL`].
    pub fn at_sector<H: HostTypes>(&self, core: &QueueCore<H>, sector: u64, sync: bool) -> Slot {
        if sync { self.sync.at_sector(core, sector) } else { self.background.at_sector(core, sector) }
    }

    /// Its first request at or after `sector`; the lowest one if there is none.
    pub fn next_from<H: HostTypes>(&self, core: &QueueCore<H>, sector: u64) -> Slot {
        let queue = self.next_queue();
        let ahead = queue.tree().first_not_below(&core.tables.nodes, sector);
        if ahead == NIL { queue.lowest() } else { ahead }
    }

    /// Its oldest request.
    pub fn oldest(&self) -> Slot {
        self.next_queue().oldest()
    }
}

/// Moves a score by 1/8 of the way to its maximum or to 0.
fn approach(score: u16, up: bool) -> u16 {
    let kept = score.saturating_sub(score.div_ceil(8));
    if up { kept.saturating_add(SCORE_MAX / 8).min(SCORE_MAX) } else { kept }
}
