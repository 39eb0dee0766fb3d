//! The table of requests in progress: one entry for each request, and one for each piece of a split
//! request.

use slab::Slab;

use crate::request::{Hints, IoError, IoRequest, RequestOp};

/// The index of no entry.
pub(crate) const NONE: u32 = u32::MAX;

/// A request, or a piece of one.
#[derive(Debug)]
pub(crate) struct Entry<D, O> {
    pub ticket: u64,
    /// The slot of the client.
    pub member: u32,
    pub tenant: u32,
    pub op: RequestOp,
    pub durable: bool,
    pub hints: Hints,
    pub stage: Stage,
    /// The client has left: the request is not started any more, and its completion is
    /// discarded.
    pub dead: bool,
    pub offset: u64,
    pub length: u64,
    /// The data of a write.
    pub data: Option<D>,
    pub result: Option<Result<O, IoError>>,
    pub arrival_ns: u64,
    /// The time at which the first piece was dispatched.
    pub dispatch_ns: u64,
    pub part: Part<O>,
    /// The index of the request of the request queue that contains the entry.
    pub in_flight: u32,
    /// The neighbours in the list of the client's entries. Pieces are not in that list.
    pub prev: u32,
    pub next: u32,
}

/// The progress of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Held back by limits.
    Held,
    /// In the request queue, in front of it while it is full, or among waiting flushes and status
    /// queries.
    Queued,
    /// In the device.
    Dispatched,
    /// Split: each piece has an entry of its own.
    Split,
}

/// The relation of an entry to the request that a client submitted.
#[derive(Debug)]
pub(crate) enum Part<O> {
    /// The entry is the whole request.
    Whole,
    /// The entry is a request that is executed in pieces.
    Split(Box<Split<O>>),
    /// The entry is piece number `index` of entry `of`.
    Piece { of: u32, index: u32 },
}

/// The progress of a split request.
#[derive(Debug)]
pub(crate) struct Split<O> {
    /// The first byte of the next piece.
    pub next: u64,
    pub pieces: u32,
    /// The number of pieces in progress.
    pub in_progress: u32,
    pub error: Option<IoError>,
    /// The length in bytes and the output of each piece of a read, in order of offset.
    pub outputs: Vec<(u64, O)>,
}

/// All entries of a queue.
#[derive(Debug)]
pub(crate) struct Entries<D, O> {
    pub slab: Slab<Entry<D, O>>,
}

impl<D, O> Entry<D, O> {
    pub fn new(request: IoRequest<D>, member: u32, tenant: u32, now_ns: u64) -> Entry<D, O> {
        Entry {
            ticket: request.ticket,
            member,
            tenant,
            op: request.op,
            durable: request.durable,
            hints: request.hints,
            stage: Stage::Queued,
            dead: false,
            offset: request.offset,
            length: request.length,
            data: request.data,
            result: None,
            arrival_ns: now_ns,
            dispatch_ns: now_ns,
            part: Part::Whole,
            in_flight: NONE,
            prev: NONE,
            next: NONE,
        }
    }

    /// Returns true if the request was not dispatched and its client is present.
    pub fn is_waiting(&self) -> bool {
        !self.dead && matches!(self.stage, Stage::Held | Stage::Queued)
    }

    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

impl<D, O> Default for Entries<D, O> {
    fn default() -> Self {
        Entries { slab: Slab::new() }
    }
}

impl<D, O> Entries<D, O> {
    pub fn insert(&mut self, entry: Entry<D, O>) -> u32 {
        self.slab.insert(entry) as u32
    }

    pub fn get(&self, slot: u32) -> Option<&Entry<D, O>> {
        self.slab.get(slot as usize)
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Entry<D, O>> {
        self.slab.get_mut(slot as usize)
    }

    /// Returns true if the client of the request has left.
    pub fn is_dead(&self, slot: u32) -> bool {
        let Some(entry) = self.get(slot) else { return true };
        match entry.part {
            Part::Piece { of, .. } => self.get(of).is_none_or(|whole| whole.dead),
            _ => entry.dead,
        }
    }

    /// Inserts an entry at the head of its client's list.
    pub fn link(&mut self, slot: u32, first: &mut u32) {
        if let Some(next) = self.get_mut(*first) {
            next.prev = slot;
        }
        if let Some(entry) = self.get_mut(slot) {
            entry.next = *first;
        }
        *first = slot;
    }

    /// Removes an entry from its client's list.
    pub fn unlink(&mut self, slot: u32, first: &mut u32) {
        let Some(entry) = self.get_mut(slot) else { return };
        let (prev, next) = (entry.prev, entry.next);
        (entry.prev, entry.next) = (NONE, NONE);
        match self.get_mut(prev) {
            Some(entry) => entry.next = next,
            None if *first == slot => *first = next,
            None => {}
        }
        if let Some(entry) = self.get_mut(next) {
            entry.prev = prev;
        }
    }
}

/// The alignment of piece boundaries in bytes, where the request allows it: 4 KiB keeps direct I/O
/// possible.
const PIECE_ALIGNMENT: u64 = 4096;

/// Returns the end of the piece that starts at `from`, for a request that ends at `end` and pieces
/// of at most `max` bytes.
pub(crate) fn piece_end(from: u64, end: u64, max: u64) -> u64 {
    let most = from.saturating_add(max.max(1));
    if most >= end {
        return end;
    }
    let aligned = most - most % PIECE_ALIGNMENT;
    if aligned > from { aligned } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_on_whole_pages() {
        assert_eq!(piece_end(0, 4096, 1 << 20), 4096);
        assert_eq!(piece_end(100, 3 << 20, 1 << 20), 1 << 20);
        assert_eq!(piece_end(1 << 20, 3 << 20, 1 << 20), 2 << 20);
        assert_eq!(piece_end(100, 900, 512), 612, "pieces shorter than a page are not aligned");
        assert_eq!(piece_end(u64::MAX - 10, u64::MAX, 1 << 20), u64::MAX);
    }
}
