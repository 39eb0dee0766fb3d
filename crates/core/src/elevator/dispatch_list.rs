//! The dispatch list: requests that the elevator has dispatched, in the order in which the driver
//! takes them.
//!
//! Sorting is defined by a walk from the tail: a one-way sweep of the disk's head, from the
//! *boundary* upwards and then from sector 0 to the boundary, behind all requests that may not be
//! passed (classic elevator core, 2.6.14 to 2.6.38). The walk is linear. This implementation keeps
//! the part of the list that is one clean sweep in a heap, at a cost of O(log N). Requests that do
//! not fit a clean sweep precede it in a plain list, which is walked.
//!
//! A clean sweep is a sequence with ascending distances above the boundary (modulo 2^64). In it,
//! the walk stops at the last entry that is not farther above the boundary than the new request:
//! the position that a stable order by distance gives. Only without such an entry does the walk
//! continue into the plain part. When the boundary moves, the entries that it passes move to the
//! plain part, each at most once.

use super::tables::QueueTables;
use crate::collections::{Heap, List, NIL, Siblings, Slot};
use crate::elevator::tables::HostTypes;
use crate::request::{Marks, Request, RequestLists};

/// The dispatch list. Its requests are stored in the queue's table.
pub(crate) struct DispatchList<H: HostTypes> {
    /// A single request, in neither part while it is alone; or [`NIL`].
    lone: Slot,
    /// The requests before the sweep, in order.
    plain: List<RequestLists>,
    /// The requests of the sweep.
    sweep: Heap<H::Slots<Siblings>>,
    /// The start of the sweep: the end of the request that the driver took last or that was
    /// appended last.
    pub end_sector: u64,
    /// The request that set the boundary and is still on the list.
    boundary: Slot,
    /// Sorting does not pass requests of the other direction, so a sweep has one direction.
    stops_at_direction: bool,
    /// The direction of the requests in the sweep, if `stops_at_direction`.
    sweep_direction: usize,
}

impl<H: HostTypes> DispatchList<H> {
    pub fn new(stops_at_direction: bool, heap: H::Slots<Siblings>) -> Self {
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

    /// The capacity of the sweep, in requests.
    pub fn capacity(&self) -> u32 {
        self.sweep.capacity()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lone == NIL && self.plain.is_empty() && self.sweep.is_empty()
    }

    /// The next request for the driver, or [`NIL`].
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

    /// Moves all requests to the plain part, so that [`next`](Self::next) can walk from
    /// [`head`](Self::head).
    pub fn make_plain(&mut self, tables: &mut QueueTables<H>) {
        self.settle(tables);
        self.sweep_to_plain(tables);
    }

    /// The request after `slot` in the plain part, or [`NIL`].
    pub fn next(&self, tables: &QueueTables<H>, slot: Slot) -> Slot {
        self.plain.next(&tables.requests, slot)
    }

    /// All requests, in no order.
    pub fn slots<'a>(&'a self, tables: &'a QueueTables<H>) -> impl Iterator<Item = Slot> + 'a {
        let next = |slot: Slot| (slot != NIL).then_some(slot);
        let plain = core::iter::successors(next(self.plain.head()), move |&slot| next(self.next(tables, slot)));
        next(self.lone).into_iter().chain(plain).chain(self.sweep.slots())
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

    /// Sorts a request in: behind the last request that it may not pass, otherwise at the head.
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
            // The walk ends at its start: the old sweep stays as it is, and a new one starts behind
            // it.
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

    /// Appends a request. The sweep starts anew behind it.
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

    /// Starts the sweep behind `slot`.
    pub fn set_boundary(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        self.settle(tables);
        self.boundary = slot;
        let end = tables.requests[slot].end();
        self.move_boundary(tables, end);
    }

    /// Transfers the boundary from one request to another; [`NIL`] leaves it without a request.
    pub fn transfer_boundary(&mut self, from: Slot, to: Slot) {
        if self.boundary == from {
            self.boundary = to;
        }
    }

    /// Puts a request at the head.
    pub fn push_front(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        self.settle(tables);
        self.insert_plain(tables, NIL, slot);
    }

    /// Puts a request directly before `after`, or at the tail.
    pub fn insert_before(&mut self, tables: &mut QueueTables<H>, after: Slot, slot: Slot) {
        self.make_plain(tables);
        tables.requests[slot].marks.set(Marks::PLAIN);
        self.plain.insert_before(&mut tables.requests, after, slot);
    }

    /// Removes the head.
    #[inline]
    pub fn remove(&mut self, tables: &mut QueueTables<H>, slot: Slot) {
        if self.lone == slot {
            self.lone = NIL;
        } else if tables.requests[slot].marks.has(Marks::PLAIN) {
            self.plain.remove(&mut tables.requests, slot);
        } else {
            let first = self.sweep.pop(self.end_sector);
            debug_assert_eq!(first, slot, "only the head is ever removed");
        }
    }

    /// Continues the sweep at `end_sector`, the end of the head that the driver has seen, unless an
    /// appended request still holds the boundary.
    #[inline]
    pub fn passed(&mut self, tables: &mut QueueTables<H>, slot: Slot, end_sector: u64) {
        if self.boundary == NIL || self.boundary == slot {
            self.boundary = NIL;
            self.move_boundary(tables, end_sector);
        }
    }

    /// Moves a single request into the sweep before another request is added.
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

    /// Walks the plain part from the tail. Returns the entry behind which the request goes, or
    /// [`NIL`] for the head.
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
