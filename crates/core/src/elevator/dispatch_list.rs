//! The dispatch list: what the elevator has decided, in the order in which the driver gets it.
//!
//! Sorting into it is defined by a walk from the tail: a one-way sweep of the head of the disk, from the *boundary* up and
//! then from the bottom to the boundary, behind everything that may not be passed (classic elevator core, 2.6.14 to
//! 2.6.38). The walk is linear. Here the part of the list that is one clean sweep is a heap, which costs O(log N); what does not fit
//! a clean sweep stands before it, in a plain list that is walked as ever.
//!
//! A clean sweep is a sequence whose distances above the boundary ascend (wrapping round at 2^64). The walk stops
//! in it at the last entry that is not farther above the boundary than the new one: exactly where a stable order
//! by that distance puts it. Only if there is none does the walk go on into the plain part. When the boundary
//! moves, entries that it passes over are moved to the plain part, each at most once.

use super::tables::QueueTables;
use crate::collections::{Heap, HeapEntry, List, NIL, Slot};
use crate::elevator::tables::HostTypes;
use crate::request::{Marks, Plain, Request};

/// The dispatch list. The requests lie in the queue's table.
pub(crate) struct DispatchList<H: HostTypes> {
    /// The only request, kept out of both parts for as long as it is alone; or [`NIL`].
    lone: Slot,
    /// What stands before the sweep, in order.
    plain: List<Plain>,
    /// The sweep.
    sweep: Heap<H::Slots<HeapEntry>>,
    /// Where the sweep begins: the end of what the driver took last, or of what was appended last.
    pub end_sector: u64,
    /// The request that set the boundary and is still on the list.
    boundary: Slot,
    /// Sorting does not pass requests of the other direction: then all of a sweep are of one.
    stops_at_direction: bool,
    /// The direction of the requests in the sweep, where that counts.
    sweep_direction: usize,
}

impl<H: HostTypes> DispatchList<H> {
    pub fn new(stops_at_direction: bool, heap: H::Slots<HeapEntry>) -> Self {
        DispatchList {
            lone: NIL,
            plain: List::default(),
            sweep: Heap::new(heap),
            end_sector: 0,
            boundary: NIL,
            stops_at_direction,
            sweep_direction: 0,
        }
    }

    /// How many requests the sweep has room for.
    pub fn capacity(&self) -> u32 {
        self.sweep.capacity()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lone == NIL && self.plain.is_empty() && self.sweep.is_empty()
    }

    /// The request that the driver gets next, or [`NIL`].
    #[inline]
    pub fn head(&self) -> Slot {
        if self.lone != NIL {
            self.lone
        } else if self.plain.is_empty() {
            self.sweep.first()
        } else {
            self.plain.head()
        }
    }

    /// Makes the whole list one that can be walked from [`head`](Self::head) by [`next`](Self::next).
    pub fn make_plain(&mut self, tables: &mut QueueTables<H>) {
        self.settle(tables);
        self.sweep_to_plain(tables);
    }

    /// The request that comes after `slot` in a list that was made plain, or [`NIL`].
    pub fn next(&self, tables: &QueueTables<H>, slot: Slot) -> Slot {
        self.plain.next(&tables.requests, slot)
    }

    /// The last request, or [`NIL`].
    pub fn tail(&self) -> Slot {
        if self.lone != NIL {
            self.lone
        } else if self.sweep.is_empty() {
            self.plain.tail()
        } else {
            self.sweep.last()
        }
    }

    /// Sorts a request in: behind the last one that it may not pass, else at the head.
    #[inline]
    pub fn sort(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        if self.is_empty() {
            self.lone = slot;
        } else {
            self.sort_among(tables, slot);
        }
    }

    #[inline(never)]
    fn sort_among(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        self.settle(tables);
        let sector = tables.requests[slot].sector;
        let direction = tables.requests[slot].op.direction();
        if self.stops_at_direction && !self.sweep.is_empty() && direction != self.sweep_direction {
            // The walk ends where it begins: a sweep of the other direction stands as it is, and a new one starts behind it.
            self.sweep_to_plain(tables);
        }
        let above = |at: u64| at.wrapping_sub(self.end_sector);
        let leads = self.sweep.is_empty() || above(sector) < above(self.sweep.key_range().0);
        if leads && !self.plain.is_empty() {
            let before = self.walk(tables, slot);
            if before != self.plain.tail() {
                self.insert_plain(tables, before, slot);
                return;
            }
        }
        tables.requests[slot].marks.clear(Marks::PLAIN);
        self.sweep_direction = direction;
        self.sweep.push(sector, slot, self.end_sector);
    }

    /// Appends a request: the sweep begins anew behind it.
    #[inline]
    pub fn append(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        if self.is_empty() {
            self.boundary = slot;
            self.end_sector = tables.requests[slot].end();
            self.lone = slot;
        } else {
            self.set_boundary(tables, slot);
            self.push_back(tables, slot);
        }
    }

    /// Appends a request without moving the boundary.
    pub fn push_back(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        self.make_plain(tables);
        let tail = self.plain.tail();
        self.insert_plain(tables, tail, slot);
    }

    /// Makes `slot` the request behind which the sweep begins.
    pub fn set_boundary(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        self.settle(tables);
        self.boundary = slot;
        let end = tables.requests[slot].end();
        self.move_boundary(tables, end);
    }

    /// Another request stands in for the one that holds the boundary (with [`NIL`] nobody does).
    pub fn hand_boundary_over(&mut self, from: Slot, to: Slot) {
        if self.boundary == from {
            self.boundary = to;
        }
    }

    /// Puts a request before all others.
    pub fn push_front(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        self.settle(tables);
        self.insert_plain(tables, NIL, slot);
    }

    /// Puts a request right before `after`, or last.
    pub fn insert_before(&mut self, tables: &mut QueueTables<H>, after: Slot, slot: Slot) {
        self.make_plain(tables);
        tables.requests[slot].marks.set(Marks::PLAIN);
        self.plain.insert_before(&mut tables.requests, after, slot);
    }

    /// Takes the head off the list.
    #[inline]
    pub fn remove(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        if self.lone == slot {
            self.lone = NIL;
        } else if tables.requests[slot].marks.has(Marks::PLAIN) {
            self.plain.remove(&mut tables.requests, slot);
        } else {
            let first = self.sweep.pop(self.end_sector);
            debug_assert_eq!(first, slot, "only the head is ever taken off");
        }
    }

    /// The driver has seen the head, which ends at `end_sector`: unless an appended request still holds the boundary, the sweep goes on from here.
    #[inline]
    pub fn passed(&mut self, tables: &mut QueueTables<H>, slot: Slot, end_sector: u64) {
        if self.boundary == NIL || self.boundary == slot {
            self.boundary = NIL;
            self.move_boundary(tables, end_sector);
        }
    }

    /// A request that is no longer alone joins the part where a later one finds it: a list of one is a clean sweep.
    fn settle(&mut self, tables: &mut QueueTables<H>) {
        let lone = core::mem::replace(&mut self.lone, NIL);
        if lone == NIL {
            return;
        }
        let request = &mut tables.requests[lone];
        request.marks.clear(Marks::PLAIN);
        self.sweep_direction = request.op.direction();
        let sector = request.sector;
        self.sweep.push(sector, lone, self.end_sector);
    }

    /// The walk of the definition, over the plain part: the entry to go behind, or [`NIL`] for the head.
    fn walk(&self, tables: &QueueTables<H>, slot: Slot) -> Slot {
        let request = &tables.requests[slot];
        let mut at = self.plain.tail();
        while at != NIL && !self.stops(request, &tables.requests[at]) {
            at = self.plain.prev(&tables.requests, at);
        }
        at
    }

    fn stops(&self, request: &Request, entry: &Request) -> bool {
        if entry.marks.has(Marks::SOFT_BARRIER) || entry.marks.has(Marks::HARD_BARRIER) {
            return true;
        }
        if self.stops_at_direction && entry.op.direction() != request.op.direction() {
            return true;
        }
        if request.sector >= self.end_sector {
            entry.sector >= self.end_sector && request.sector >= entry.sector
        } else {
            entry.sector >= self.end_sector || request.sector >= entry.sector
        }
    }

    #[inline]
    fn insert_plain(&mut self, tables: &mut QueueTables<H>, before: Slot, slot: Slot) {
        tables.requests[slot].marks.set(Marks::PLAIN);
        self.plain.insert_after(&mut tables.requests, before, slot);
    }

    fn sweep_to_plain(&mut self, tables: &mut QueueTables<H>) {
        while !self.sweep.is_empty() {
            self.first_to_plain(tables);
        }
    }

    fn first_to_plain(&mut self, tables: &mut QueueTables<H>) {
        let first = self.sweep.pop(self.end_sector);
        let tail = self.plain.tail();
        self.insert_plain(tables, tail, first);
    }

    #[inline]
    fn move_boundary(&mut self, tables: &mut QueueTables<H>, end_sector: u64) {
        while !self.sweep.is_empty() {
            let (first, last) = self.sweep.key_range();
            if first.wrapping_sub(end_sector) <= last.wrapping_sub(end_sector) {
                break;
            }
            self.first_to_plain(tables);
        }
        self.end_sector = end_sector;
    }
}
