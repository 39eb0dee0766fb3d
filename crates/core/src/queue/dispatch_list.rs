//! The dispatch list: what the elevator has decided, in the order in which the driver gets it.
//!
//! Sorting into it is defined by a walk from the tail: a one-way sweep of the head of the disk, from the *boundary* up and
//! then from the bottom to the boundary, behind everything that may not be passed (classic elevator core, 2.6.14 to
//! 2.6.38). The walk is linear. Here the part of the list that is one clean sweep is a tree, in which the place
//! is found in O(log N); what does not fit a clean sweep stands before it, in a plain list that is walked as ever.
//!
//! A clean sweep is a sequence whose distances above the boundary ascend (wrapping round at 2^64). The walk stops
//! in it at the last entry that is not farther above the boundary than the new one: at exactly the place where a tree
//! ordered by that distance puts it. Only if there is none does the walk go on into the plain part. When the boundary
//! moves, entries that it passes over are moved to the plain part, each at most once.

use super::Table;
use crate::parts::{List, NIL, Slot, Tree};
use crate::request::{Marks, Plain, Request};
use crate::storage::Home;

/// The dispatch list. The requests and nodes lie in the queue's tables.
#[derive(Debug)]
pub(crate) struct DispatchList {
    /// The only request, kept out of both parts for as long as it is alone; or [`NIL`].
    lone: Slot,
    /// What stands before the sweep, in order.
    plain: List<Plain>,
    /// The sweep, threaded in order.
    sweep: Tree,
    /// Where the sweep begins: the end of what the driver took last, or of what was appended last.
    pub end_sector: u64,
    /// The request that set the boundary and is still on the list.
    boundary: Slot,
    /// Sorting does not pass requests of the other direction, nor use the tree.
    stops_at_direction: bool,
}

impl DispatchList {
    pub fn new(stops_at_direction: bool) -> Self {
        DispatchList {
            lone: NIL,
            plain: List::default(),
            sweep: Tree::default(),
            end_sector: 0,
            boundary: NIL,
            stops_at_direction,
        }
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

    /// The request that comes after `slot`, or [`NIL`].
    pub fn next<H: Home>(&self, table: &Table<H>, slot: Slot) -> Slot {
        if self.lone == slot {
            NIL
        } else if table.requests[slot].in_plain_part {
            let next = self.plain.next(&table.requests, slot);
            if next == NIL { self.sweep.first() } else { next }
        } else {
            table.nodes[slot].next()
        }
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
    pub fn sort<H: Home>(&mut self, table: &mut Table<H>, slot: Slot) {
        if self.is_empty() {
            self.lone = slot;
        } else {
            self.sort_among(table, slot);
        }
    }

    fn sort_among<H: Home>(&mut self, table: &mut Table<H>, slot: Slot) {
        self.settle(table);
        let sector = table.requests[slot].sector;
        if self.stops_at_direction {
            let before = self.walk(table, slot);
            self.insert_plain(table, before, slot);
            return;
        }
        let above = |at: u64| at.wrapping_sub(self.end_sector);
        let first = self.sweep.first();
        let leads = first == NIL || above(sector) < above(table.nodes[first].key());
        if leads && !self.plain.is_empty() {
            let before = self.walk(table, slot);
            if before != self.plain.tail() {
                self.insert_plain(table, before, slot);
                return;
            }
        }
        table.requests[slot].in_plain_part = false;
        self.sweep.insert_from(&mut table.nodes, slot, sector, self.end_sector);
    }

    /// Appends a request: the sweep begins anew behind it.
    #[inline]
    pub fn append<H: Home>(&mut self, table: &mut Table<H>, slot: Slot) {
        if self.is_empty() {
            self.boundary = slot;
            self.end_sector = table.requests[slot].end();
            self.lone = slot;
        } else {
            self.set_boundary(table, slot);
            self.push_back(table, slot);
        }
    }

    /// Appends a request without moving the boundary.
    pub fn push_back<H: Home>(&mut self, table: &mut Table<H>, slot: Slot) {
        self.settle(table);
        while !self.sweep.is_empty() {
            self.first_to_plain(table);
        }
        let tail = self.plain.tail();
        self.insert_plain(table, tail, slot);
    }

    /// Makes `slot` the request behind which the sweep begins.
    pub fn set_boundary<H: Home>(&mut self, table: &mut Table<H>, slot: Slot) {
        self.settle(table);
        self.boundary = slot;
        let end = table.requests[slot].end();
        self.move_boundary(table, end);
    }

    /// Puts a request before all others.
    pub fn push_front<H: Home>(&mut self, table: &mut Table<H>, slot: Slot) {
        self.settle(table);
        self.insert_plain(table, NIL, slot);
    }

    /// Puts a request right before `after`, or last.
    pub fn insert_before<H: Home>(&mut self, table: &mut Table<H>, after: Slot, slot: Slot) {
        self.settle(table);
        while !self.sweep.is_empty() && (after == NIL || !table.requests[after].in_plain_part) {
            self.first_to_plain(table);
        }
        table.requests[slot].in_plain_part = true;
        self.plain.insert_before(&mut table.requests, after, slot);
    }

    /// Takes a request off the list.
    #[inline]
    pub fn remove<H: Home>(&mut self, table: &mut Table<H>, slot: Slot) {
        if self.lone == slot {
            self.lone = NIL;
        } else if table.requests[slot].in_plain_part {
            self.plain.remove(&mut table.requests, slot);
        } else {
            self.sweep.remove(&mut table.nodes, slot);
        }
    }

    /// The driver has seen the head: unless an appended request still holds the boundary, the sweep goes on from here.
    #[inline]
    pub fn passed<H: Home>(&mut self, table: &mut Table<H>, slot: Slot) {
        if self.boundary == NIL || self.boundary == slot {
            self.boundary = NIL;
            let end = table.requests[slot].end();
            self.move_boundary(table, end);
        }
    }

    /// A request that is no longer alone joins the part where a later one finds it: a list of one is a clean sweep.
    fn settle<H: Home>(&mut self, table: &mut Table<H>) {
        let lone = core::mem::replace(&mut self.lone, NIL);
        if lone == NIL {
            return;
        }
        if self.stops_at_direction {
            self.insert_plain(table, NIL, lone);
        } else {
            let sector = table.requests[lone].sector;
            table.requests[lone].in_plain_part = false;
            self.sweep.insert_from(&mut table.nodes, lone, sector, self.end_sector);
        }
    }

    /// The walk of the definition, over the plain part: the entry to go behind, or [`NIL`] for the head.
    fn walk<H: Home>(&self, table: &Table<H>, slot: Slot) -> Slot {
        let request = &table.requests[slot];
        let mut at = self.plain.tail();
        while at != NIL && !self.stops(request, &table.requests[at]) {
            at = self.plain.prev(&table.requests, at);
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
    fn insert_plain<H: Home>(&mut self, table: &mut Table<H>, before: Slot, slot: Slot) {
        table.requests[slot].in_plain_part = true;
        self.plain.insert_after(&mut table.requests, before, slot);
    }

    fn first_to_plain<H: Home>(&mut self, table: &mut Table<H>) {
        let first = self.sweep.first();
        self.sweep.remove(&mut table.nodes, first);
        let tail = self.plain.tail();
        self.insert_plain(table, tail, first);
    }

    #[inline]
    fn move_boundary<H: Home>(&mut self, table: &mut Table<H>, end_sector: u64) {
        self.end_sector = end_sector;
        if self.sweep.is_empty() {
            return;
        }
        let above = |table: &Table<H>, slot: Slot| table.nodes[slot].key().wrapping_sub(end_sector);
        while !self.sweep.is_empty() && above(table, self.sweep.first()) > above(table, self.sweep.last()) {
            self.first_to_plain(table);
        }
    }
}
