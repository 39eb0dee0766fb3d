//! The table of requests in progress: one entry for each request, and one for each piece of a split
//! request.

use slab::Slab;

use crate::ids::{CommandId, IoId};
use crate::medium::MediumRequest;
use crate::request::{IoError, IoRequest};

/// A request, or a piece of one.
#[derive(Debug)]
pub(crate) struct Entry<D, O> {
    /// The request. Its data are taken at dispatch.
    pub request: IoRequest<D>,
    /// The slot of the client.
    pub member: u32,
    pub tenant: u32,
    pub stage: Stage,
    /// The client has left: the request is not started any more, and its completion is
    /// discarded.
    pub dead: bool,
    pub result: Option<Result<O, IoError>>,
    pub arrival_ns: u64,
    /// The time at which the first piece was dispatched.
    pub dispatch_ns: u64,
    pub part: Part<O>,
    /// The request in the device that contains the entry.
    pub command: Option<CommandId>,
    /// The neighbours in the list of the client's entries. Pieces are not in that list.
    pub prev: Option<IoId>,
    pub next: Option<IoId>,
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
    Piece { of: IoId, index: u32 },
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
            request,
            member,
            tenant,
            stage: Stage::Queued,
            dead: false,
            result: None,
            arrival_ns: now_ns,
            dispatch_ns: now_ns,
            part: Part::Whole,
            command: None,
            prev: None,
            next: None,
        }
    }

    /// Returns true if the request was not dispatched and its client is present.
    pub fn is_waiting(&self) -> bool {
        !self.dead && matches!(self.stage, Stage::Held | Stage::Queued)
    }

    /// Returns the I/O for the medium.
    pub fn medium_request<T>(&self, io: IoId, data: Option<T>) -> MediumRequest<T> {
        let IoRequest { ticket, op, offset, length, durable, .. } = self.request;
        MediumRequest { io, ticket, op, offset, length, durable, data }
    }

    pub fn end(&self) -> u64 {
        self.request.offset.saturating_add(self.request.length)
    }
}

impl<D, O> Default for Entries<D, O> {
    fn default() -> Self {
        Entries { slab: Slab::new() }
    }
}

impl<D, O> Entries<D, O> {
    pub fn insert(&mut self, entry: Entry<D, O>) -> IoId {
        IoId::of_index(self.slab.insert(entry))
    }

    pub fn get(&self, io: IoId) -> Option<&Entry<D, O>> {
        self.slab.get(io.index())
    }

    pub fn get_mut(&mut self, io: IoId) -> Option<&mut Entry<D, O>> {
        self.slab.get_mut(io.index())
    }

    /// Returns true if the client of the request has left.
    pub fn is_dead(&self, io: IoId) -> bool {
        let Some(entry) = self.get(io) else { return true };
        match entry.part {
            Part::Piece { of, .. } => self.get(of).is_none_or(|whole| whole.dead),
            _ => entry.dead,
        }
    }

    /// Inserts an entry at the head of its client's list.
    pub fn link(&mut self, io: IoId, first: &mut Option<IoId>) {
        let next = first.replace(io);
        if let Some(next) = next.and_then(|next| self.get_mut(next)) {
            next.prev = Some(io);
        }
        if let Some(entry) = self.get_mut(io) {
            entry.next = next;
        }
    }

    /// Removes an entry from its client's list.
    pub fn unlink(&mut self, io: IoId, first: &mut Option<IoId>) {
        let Some(entry) = self.get_mut(io) else { return };
        let (prev, next) = (entry.prev.take(), entry.next.take());
        match prev.and_then(|prev| self.get_mut(prev)) {
            Some(entry) => entry.next = next,
            None if *first == Some(io) => *first = next,
            None => {}
        }
        if let Some(entry) = next.and_then(|next| self.get_mut(next)) {
            entry.prev = prev;
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, io: IoId) -> Entry<D, O> {
        self.slab.remove(io.index())
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
