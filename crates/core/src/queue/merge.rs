//! Merging: bios into queued requests, and adjacent requests into one.

use super::RequestQueue;
use crate::bio::{Bio, Flags};
use crate::collections::{NIL, Slot};
use crate::elevator::tables::HostTypes;
use crate::elevator::{Elevator, Merge, Search};
use crate::event::Event;
use crate::request::{Marks, MergedBio, RequestId, RequestLists};

impl<H: HostTypes> RequestQueue<H> {
    /// Tries to merge the bio into a queued request of a queue that merges. Only the first
    /// candidate is considered: if it is too large, the search ends.
    #[inline(never)]
    pub(super) fn try_merge(&mut self, bio: &Bio) -> Option<RequestId> {
        let alone = bio.flags.has(Flags::BARRIER) || bio.flags.has(Flags::FUA);
        // FUA writes and barriers are not merged with other requests.
        if alone || self.is_empty() || self.free_merged == NIL {
            return None;
        }
        let (slot, merge) = self.find_merge(bio)?;
        if self.rules.multi_queue && !self.elevator.allow_merge(&mut self.core, slot, bio) {
            return None;
        }
        let request = &self.core.tables.requests[slot];
        if self.is_too_large(request.sectors, bio.sectors) {
            self.note_refused_merge(slot);
            return None;
        }
        let id = match merge {
            Merge::Back => self.merge_back(slot, bio),
            Merge::Front => self.merge_front(slot, bio),
        };
        self.core.last_merge = id;
        Some(self.id_of(id))
    }

    /// Adds a request to the merge hash under its end sector.
    pub(super) fn hash_insert(&mut self, slot: Slot) {
        let end = self.core.tables.requests[slot].end();
        self.core.tables.requests[slot].marks.set(Marks::HASHED);
        self.core.hash.insert::<RequestLists, _, _>(&mut self.core.tables.requests, end, slot);
    }

    /// Merges a request that is being inserted into one that ends where it begins, repeatedly.
    /// Multi-queue layers search again at this point, as a list of requests may have been plugged
    /// since their bios were submitted.
    #[inline(never)]
    pub(super) fn join_at_insert(&mut self, slot: Slot) -> Option<RequestId> {
        if self.elevator.searches_merges() {
            return None;
        }
        let last = self.core.last_merge;
        if self.can_join(last, slot) {
            self.join(last, slot);
            self.core.last_merge = last;
            return Some(self.id_of(last));
        }
        let (mut joined, mut at) = (None, slot);
        loop {
            let below = self.find_by_end(self.core.tables.requests[at].sector);
            if !self.can_join(below, at) {
                return joined;
            }
            self.join(below, at);
            self.core.last_merge = below;
            joined = Some(self.id_of(below));
            if !self.elevator.joins_queued() {
                return joined;
            }
            at = below;
        }
    }

    fn id_of(&self, slot: Slot) -> RequestId {
        RequestId { slot, generation: self.core.tables.requests[slot].generation }
    }

    fn find_merge(&mut self, bio: &Bio) -> Option<(Slot, Merge)> {
        match self.elevator.find_merge(&mut self.core, bio) {
            Search::Usual => {}
            Search::Nothing => return None,
            Search::Found(slot, merge) => return self.can_merge(slot, bio).then_some((slot, merge)),
        }
        let last = self.core.last_merge;
        if last != NIL && self.can_merge(last, bio) {
            let request = &self.core.tables.requests[last];
            if request.end() == bio.sector {
                return Some((last, Merge::Back));
            }
            if bio.end() == request.sector {
                return Some((last, Merge::Front));
            }
        }
        if self.hashing {
            let found = self.find_by_end(bio.sector);
            if found != NIL && self.can_merge(found, bio) {
                return Some((found, Merge::Back));
            }
        }
        let found = self.elevator.find_front_merge(&mut self.core, bio);
        (found != NIL && self.can_merge(found, bio)).then_some((found, Merge::Front))
    }

    /// The newest mergeable request that ends at `sector`. Unmergeable ones are removed from the
    /// hash on the way.
    fn find_by_end(&mut self, sector: u64) -> Slot {
        let mut at = self.core.hash.first(sector);
        while at != NIL {
            let request = &self.core.tables.requests[at];
            let next = request.list.next;
            if !self.core.is_mergeable(at) {
                self.core.unhash(at);
            } else if request.end() == sector {
                return at;
            }
            at = next;
        }
        NIL
    }

    /// Returns true if the bio may be merged into this request, provided that they are adjacent.
    fn can_merge(&mut self, slot: Slot, bio: &Bio) -> bool {
        let request = &self.core.tables.requests[slot];
        if !self.core.is_mergeable(slot) || request.op != bio.op {
            return false;
        }
        let priority = self.core.tables.contexts[bio.context.slot].effective_priority();
        if self.rules.multi_queue && request.priority != priority {
            return false;
        }
        !self.rules.elevator_can_veto || self.elevator.allow_merge(&mut self.core, slot, bio)
    }

    fn is_too_large(&self, one: u32, other: u32) -> bool {
        one.checked_add(other).is_none_or(|sectors| sectors > self.config.max_sectors)
    }

    fn note_refused_merge(&mut self, slot: Slot) {
        if self.config.refusal_ends_merging {
            self.core.tables.requests[slot].marks.set(Marks::NO_MERGE);
            if self.core.last_merge == slot {
                self.core.last_merge = NIL;
            }
        }
    }

    fn merge_back(&mut self, slot: Slot, bio: &Bio) -> Slot {
        let into = self.core.tables.requests[slot].token;
        self.core.emit(|core| Event::BackMerge { bio: super::io_of(core, bio), into });
        self.add_bio(slot, bio.token);
        let request = &mut self.core.tables.requests[slot];
        let end = request.end();
        request.sectors = request.sectors.saturating_add(bio.sectors);
        self.rehash(slot, end);
        let latter = self.elevator.latter(&self.core, slot);
        if self.can_join(slot, latter) {
            return self.join(slot, latter);
        }
        self.elevator.merged(&mut self.core, slot, Merge::Back);
        slot
    }

    fn merge_front(&mut self, slot: Slot, bio: &Bio) -> Slot {
        let into = self.core.tables.requests[slot].token;
        self.core.emit(|core| Event::FrontMerge { bio: super::io_of(core, bio), into });
        self.add_bio(slot, bio.token);
        // The neighbour is found by the request's previous position.
        let former = self.elevator.former(&self.core, slot);
        let request = &mut self.core.tables.requests[slot];
        request.sector = bio.sector;
        request.sectors = request.sectors.saturating_add(bio.sectors);
        if self.can_join(former, slot) {
            return self.join(former, slot);
        }
        self.elevator.merged(&mut self.core, slot, Merge::Front);
        slot
    }

    fn can_join(&self, lower: Slot, upper: Slot) -> bool {
        // The token of the absorbed request needs an entry of the table of merged bios.
        let room = self.free_merged != NIL;
        if lower == NIL || upper == NIL || !room || !self.core.is_mergeable(lower) || !self.core.is_mergeable(upper) {
            return false;
        }
        let (a, b) = (&self.core.tables.requests[lower], &self.core.tables.requests[upper]);
        let apart = self.rules.multi_queue && a.priority != b.priority;
        a.op == b.op && !apart && a.end() == b.sector && !self.is_too_large(a.sectors, b.sectors)
    }

    /// Merges `absorbed` into `request`, its lower neighbour.
    fn join(&mut self, request: Slot, absorbed: Slot) -> Slot {
        let into = self.core.tables.requests[request].token;
        self.core.emit(|core| Event::Join { request: core.io(absorbed), into });
        let absorbed_request = self.core.tables.requests[absorbed];
        self.add_bio(request, absorbed_request.token);
        self.append_chain(request, absorbed_request.merged);
        let survivor = &mut self.core.tables.requests[request];
        let end = survivor.end();
        survivor.sectors = survivor.sectors.saturating_add(absorbed_request.sectors);
        survivor.submitted_ns = survivor.submitted_ns.min(absorbed_request.submitted_ns);
        self.core.unhash(absorbed);
        self.rehash(request, end);
        // A request that is merged at insertion is not in the elevator yet.
        if self.core.tables.requests[absorbed].marks.has(Marks::SORTED) {
            self.elevator.join(&mut self.core, request, absorbed);
        } else {
            self.elevator.joined_at_insert(&mut self.core, request);
        }
        self.free_request(absorbed);
        request
    }

    fn rehash(&mut self, slot: Slot, old_end: u64) {
        if self.core.tables.requests[slot].marks.has(Marks::HASHED) {
            self.core.hash.remove::<RequestLists, _, _>(&mut self.core.tables.requests, old_end, slot);
            self.hash_insert(slot);
        }
    }

    fn add_bio(&mut self, slot: Slot, token: u64) {
        let entry = self.free_merged;
        if entry == NIL {
            debug_assert!(false, "a bio is merged only if a free entry exists");
            return;
        }
        self.free_merged = self.core.tables.merged[entry].next;
        self.core.tables.merged[entry] = MergedBio { token, next: NIL };
        self.append_chain(slot, [entry, entry]);
    }

    fn append_chain(&mut self, slot: Slot, chain: [Slot; 2]) {
        let [first, last] = chain;
        if first == NIL {
            return;
        }
        let request = &mut self.core.tables.requests[slot];
        let [head, tail] = request.merged;
        request.merged = [if head == NIL { first } else { head }, last];
        if tail != NIL {
            self.core.tables.merged[tail].next = first;
        }
    }
}
