//! Merges that the host makes, as in the kernel since 5.0: its block layer searches for a request
//! with which a bio or a new request can be merged, and informs the elevator of the result.
//!
//! A host that merges configures the queue without merging ([`QueueConfig::merging`]) and without a
//! pool. It calls [`RequestQueue::prepare_merge`] before it searches,
//! [`allows_merge`](RequestQueue::allows_merge) before each merge, and afterwards
//! [`record_growth`](RequestQueue::record_growth), [`record_join`](RequestQueue::record_join) or
//! [`record_join_at_insert`](RequestQueue::record_join_at_insert). The extents are those that the
//! host's requests have then. Only the token of the bio for which a request was made is kept.
//!
//! [`QueueConfig::merging`]: super::QueueConfig::merging

use super::{Kick, RequestQueue, SubmitError};
use crate::bio::Bio;
use crate::collections::{NIL, Slot};
use crate::elevator::tables::HostTypes;
use crate::elevator::{Elevator, Merge, Search};
use crate::event::{Event, Io};
use crate::request::{Marks, Request, RequestId, State};

/// The sectors of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The length in sectors, at least 1.
    pub sectors: u32,
}

impl Extent {
    fn is_valid(self) -> bool {
        self.sectors > 0 && self.sector.checked_add(u64::from(self.sectors)).is_some()
    }
}

/// How the host searches for a request into which it can merge a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSearch {
    /// The request that merged last, then one that ends at the bio's start, then
    /// [`RequestQueue::find_merge_for_host`].
    Usual,
    /// No request is suitable.
    Nothing,
    /// Only this one, which the elevator's own search found.
    Found(RequestId, Merge),
}

/// What a queue has to return beside requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Deferred work: [`RequestQueue::next_work`].
    pub work: bool,
    /// A timer: [`RequestQueue::next_timer`].
    pub timer: bool,
    /// Requests whose order is decided: [`RequestQueue::dispatched`].
    pub dispatched: bool,
}

/// Errors of a merge by the host. The queue is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// A request is not queued in the elevator, or it is excluded from merges.
    Stale,
    /// An extent without sectors or beyond sector 2^64.
    BadExtent,
    /// The request that was merged at insertion could not be accounted for.
    Submit(SubmitError),
}

impl core::fmt::Display for MergeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            MergeError::Stale => f.write_str("the request is not queued or excluded from merges"),
            MergeError::BadExtent => f.write_str("no sectors, or an end beyond sector 2^64"),
            MergeError::Submit(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for MergeError {}

impl<H: HostTypes> RequestQueue<H> {
    /// Begins the search for a request into which the host can merge the bio. Some elevators search
    /// themselves, and some prepare the process of the bio.
    pub fn prepare_merge(&mut self, bio: &Bio, now_ns: u64) -> HostSearch {
        self.begin(now_ns);
        if self.is_empty() || self.running_context(bio.context).is_none() {
            return HostSearch::Nothing;
        }
        match self.elevator.find_merge(&mut self.core, bio) {
            Search::Usual => HostSearch::Usual,
            Search::Nothing => HostSearch::Nothing,
            Search::Found(slot, merge) => HostSearch::Found(self.host_id(slot), merge),
        }
    }

    /// Returns true if the host may merge requests that are about to be inserted. Elevators that
    /// search themselves do without, and so do reservations: the host does not ask
    /// [`allows_merge`](Self::allows_merge) then, and one process would be served with the tokens
    /// of another.
    pub fn joins_at_insert(&self) -> bool {
        !self.elevator.reserves() && !self.elevator.searches_merges()
    }

    /// Returns true if the elevator allows the host to merge the bio into this queued request. The
    /// host has checked that they are adjacent and of one operation and priority.
    pub fn allows_merge(&mut self, id: RequestId, bio: &Bio, now_ns: u64) -> bool {
        self.begin(now_ns);
        let slot = self.queued(id);
        slot != NIL
            && self.running_context(bio.context).is_some()
            && self.elevator.allow_merge(&mut self.core, slot, bio)
    }

    /// Searches the elevator for a queued request into which the bio can be merged, after the
    /// host's own search. Most elevators find requests that begin at the end of the bio; the host
    /// searches for those that end at its start.
    pub fn find_merge_for_host(&mut self, bio: &Bio, now_ns: u64) -> Option<(RequestId, Merge)> {
        self.begin(now_ns);
        self.running_context(bio.context)?;
        let (slot, merge) = match self.elevator.find_merge(&mut self.core, bio) {
            Search::Nothing => return None,
            Search::Found(slot, merge) => (slot, merge),
            Search::Usual => (self.elevator.find_front_merge(&mut self.core, bio), Merge::Front),
        };
        (slot != NIL).then(|| (self.host_id(slot), merge))
    }

    /// Returns the queued request beside this one that the host may merge with it: the next higher
    /// one for [`Merge::Back`], the next lower one for [`Merge::Front`].
    pub fn neighbour(&self, id: RequestId, side: Merge) -> Option<RequestId> {
        let slot = self.queued(id);
        if slot == NIL {
            return None;
        }
        let other = match side {
            Merge::Back => self.elevator.latter(&self.core, slot),
            Merge::Front => self.elevator.former(&self.core, slot),
        };
        (other != NIL && self.core.is_mergeable(other)).then(|| self.host_id(other))
    }

    /// Excludes a queued request from further merges, as the host does when the result of a merge
    /// would be too large. Elevators that search themselves no longer find it.
    pub fn record_refusal(&mut self, id: RequestId) -> Result<(), MergeError> {
        let slot = self.queued(id);
        if slot == NIL {
            return Err(MergeError::Stale);
        }
        self.core.tables.requests[slot].marks.set(Marks::NO_MERGE);
        Ok(())
    }

    /// Records that the host merged a bio into a queued request, which now has this extent, and
    /// did not merge the result with a neighbour.
    pub fn record_growth(
        &mut self,
        id: RequestId,
        merge: Merge,
        extent: Extent,
        now_ns: u64,
    ) -> Result<Kick, MergeError> {
        self.begin(now_ns);
        let slot = self.queued(id);
        if slot == NIL {
            return Err(MergeError::Stale);
        }
        if !extent.is_valid() {
            return Err(MergeError::BadExtent);
        }
        self.core.emit(|core| {
            let (io, added) = (core.io(slot), extent.sectors.saturating_sub(core.tables.requests[slot].sectors));
            let sector =
                if merge == Merge::Back { io.sector.saturating_add(u64::from(io.sectors)) } else { extent.sector };
            let bio = Io { sector, sectors: added, ..io };
            if merge == Merge::Back {
                Event::BackMerge { bio, into: io.token }
            } else {
                Event::FrontMerge { bio, into: io.token }
            }
        });
        self.set_extent(slot, extent);
        self.elevator.merged(&mut self.core, slot, merge);
        Ok(self.end())
    }

    /// Records that the host merged the queued request `absorbed` into its lower neighbour. The
    /// extents are those of the result and of the absorbed request before it was absorbed.
    pub fn record_join(
        &mut self,
        (request, extent): (RequestId, Extent),
        (absorbed, absorbed_extent): (RequestId, Extent),
        now_ns: u64,
    ) -> Result<Kick, MergeError> {
        self.begin(now_ns);
        let (into, from) = (self.queued(request), self.queued(absorbed));
        if into == NIL || from == NIL || into == from {
            return Err(MergeError::Stale);
        }
        if !extent.is_valid() || !absorbed_extent.is_valid() {
            return Err(MergeError::BadExtent);
        }
        self.set_extent(from, absorbed_extent);
        let token = self.core.tables.requests[into].token;
        self.core.emit(|core| Event::Join { request: core.io(from), into: token });
        self.set_extent(into, extent);
        self.keep_first_arrival(into, from);
        self.elevator.join(&mut self.core, into, from);
        self.free_request(from);
        Ok(self.end())
    }

    /// Records that the host merged a request that was about to be inserted into the end of a
    /// queued one, whose extent is given. `bio` describes the merged request.
    pub fn record_join_at_insert(
        &mut self,
        request: RequestId,
        extent: Extent,
        bio: &Bio,
        now_ns: u64,
    ) -> Result<Kick, MergeError> {
        self.begin(now_ns);
        let into = self.queued(request);
        if into == NIL {
            return Err(MergeError::Stale);
        }
        if !extent.is_valid() {
            return Err(MergeError::BadExtent);
        }
        self.check(bio).map_err(MergeError::Submit)?;
        if !self.has_free_request() {
            return Err(MergeError::Submit(SubmitError::Full));
        }
        self.pool.count(bio.op);
        let slot = self.take_free_request();
        self.fill(slot, bio);
        let token = self.core.tables.requests[into].token;
        self.elevator.prepare_insert(&mut self.core, slot);
        self.core.emit(|core| Event::Join { request: core.io(slot), into: token });
        self.set_extent(into, extent);
        self.keep_first_arrival(into, slot);
        self.elevator.joined_at_insert(&mut self.core, into);
        self.free_request(slot);
        Ok(self.end())
    }

    /// Returns how many of `nr_requests` the host may allocate while it allocates one for this bio.
    /// A stale context counts as one without a reservation.
    pub fn depth_limit(&self, nr_requests: u32, bio: &Bio) -> u32 {
        self.elevator.depth_limit(&self.core, nr_requests, bio).clamp(1, nr_requests.max(1))
    }

    /// The requests on the dispatch list, and those that the elevator holds in the order in which
    /// it will move them there, in no order. The host must not merge with them any more.
    pub fn dispatched(&self) -> impl Iterator<Item = &Request> + '_ {
        let settled = |after| Some(self.elevator.settled_after(after)).filter(|&slot| slot != NIL);
        let settled = core::iter::successors(settled(NIL), move |&slot| settled(slot));
        let slots = self.core.dispatch.slots(&self.core.tables).chain(settled);
        slots.map(|slot| &self.core.tables.requests[slot])
    }

    /// Says which of [`next_work`](Self::next_work), [`next_timer`](Self::next_timer) and
    /// [`dispatched`](Self::dispatched) have something to return, at less cost than calls of them.
    #[inline]
    pub fn pending(&self) -> Pending {
        Pending {
            work: !self.core.work.is_empty(),
            timer: self.core.timers.is_any_armed(),
            dispatched: !self.core.dispatch.is_empty() || self.elevator.settled_after(NIL) != NIL,
        }
    }

    /// The slot of a request that is queued in the elevator and may be merged, or [`NIL`].
    fn queued(&self, id: RequestId) -> Slot {
        let request = &self.core.tables.requests[id.slot];
        let known = request.generation == id.generation && request.state == State::Sorted;
        let open = request.marks.has(Marks::SORTED) && !request.marks.has(Marks::NO_MERGE);
        if known && open { id.slot } else { NIL }
    }

    fn host_id(&self, slot: Slot) -> RequestId {
        RequestId { slot, generation: self.core.tables.requests[slot].generation }
    }

    fn set_extent(&mut self, slot: Slot, extent: Extent) {
        let request = &mut self.core.tables.requests[slot];
        request.sector = extent.sector;
        request.sectors = extent.sectors;
    }

    fn keep_first_arrival(&mut self, request: Slot, absorbed: Slot) {
        let absorbed_ns = self.core.tables.requests[absorbed].submitted_ns;
        let submitted_ns = &mut self.core.tables.requests[request].submitted_ns;
        *submitted_ns = absorbed_ns.min(*submitted_ns);
    }
}
