//! Work as it lies in the device: one entry a request, and one a piece of a request that was split.

use slab::Slab;

use super::{Answer, Hints, Work, WorkOp};
use crate::buffer::Buffer;
use hoistway_nbd::wire::Errno;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// A request, or a piece of one.
#[derive(Debug)]
pub(super) struct Entry {
    pub ticket: u64,
    /// The place of who asked.
    pub member: u32,
    pub tenant: u32,
    pub op: WorkOp,
    pub durable: bool,
    pub hints: Hints,
    pub stage: Stage,
    /// Whoever asked has left: nothing more is to be done, and nobody is to be told.
    pub dead: bool,
    pub offset: u64,
    pub length: u64,
    /// Of writes: the data.
    pub data: Option<Buffer>,
    pub result: Option<Result<Answer, Errno>>,
    pub came_ns: u64,
    /// When its first piece went to the device.
    pub begun_ns: u64,
    pub part: Part,
    /// The command to the drive or backend that it is in.
    pub flight: u32,
    /// Its neighbours among the entries of who asked; pieces are not in that list.
    pub before: u32,
    pub after: u32,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Held back by limits.
    Held,
    /// In the queue, in front of it as it is full, or among flushes and questions that wait.
    Queued,
    /// In the device.
    Begun,
    /// Its pieces are where they are.
    Split,
}

/// Whether an entry is a whole request.
#[derive(Debug)]
pub(super) enum Part {
    Whole,
    /// It is done piece by piece.
    Split(Box<Split>),
    /// Number `index` of the pieces of another entry.
    Piece {
        of: u32,
        index: u32,
    },
}

/// How far a request has come that is done in pieces.
#[derive(Debug)]
pub(super) struct Split {
    /// The first byte of the next piece.
    pub next: u64,
    pub pieces: u32,
    /// Pieces that are under way.
    pub under_way: u32,
    pub error: Option<Errno>,
    /// What pieces of a read brought: length and data, in order.
    pub parts: Vec<(u64, Answer)>,
}

/// All entries of a device.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub slab: Slab<Entry>,
}

impl Entry {
    pub fn new(work: Work, member: u32, tenant: u32, now_ns: u64) -> Entry {
        Entry {
            ticket: work.ticket,
            member,
            tenant,
            op: work.op,
            durable: work.durable,
            hints: work.hints,
            stage: Stage::Queued,
            dead: false,
            offset: work.offset,
            length: work.length,
            data: work.data,
            result: None,
            came_ns: now_ns,
            begun_ns: now_ns,
            part: Part::Whole,
            flight: NONE,
            before: NONE,
            after: NONE,
        }
    }

    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

impl Entries {
    pub fn insert(&mut self, entry: Entry) -> u32 {
        self.slab.insert(entry) as u32
    }

    pub fn get(&self, slot: u32) -> Option<&Entry> {
        self.slab.get(slot as usize)
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        self.slab.get_mut(slot as usize)
    }

    /// Whether whoever asked for it, or for what it is a piece of, has left.
    pub fn is_dead(&self, slot: u32) -> bool {
        let Some(entry) = self.get(slot) else { return true };
        match entry.part {
            Part::Piece { of, .. } => self.get(of).is_none_or(|whole| whole.dead),
            _ => entry.dead,
        }
    }

    /// Puts an entry at the head of its owner's list.
    pub fn link(&mut self, slot: u32, first: &mut u32) {
        if let Some(next) = self.get_mut(*first) {
            next.before = slot;
        }
        if let Some(entry) = self.get_mut(slot) {
            entry.after = *first;
        }
        *first = slot;
    }

    /// Takes it out again.
    pub fn unlink(&mut self, slot: u32, first: &mut u32) {
        let Some(entry) = self.get_mut(slot) else { return };
        let (before, after) = (entry.before, entry.after);
        (entry.before, entry.after) = (NONE, NONE);
        match self.get_mut(before) {
            Some(entry) => entry.after = after,
            None if *first == slot => *first = after,
            None => {}
        }
        if let Some(entry) = self.get_mut(after) {
            entry.before = before;
        }
    }
}

/// Boundaries of pieces lie on multiples of this where they can, so that direct I/O stays possible: 4 KiB.
const PIECE_ALIGNMENT: u64 = 4096;

/// The end of the piece that begins at `from`, of a request that ends at `end`, with pieces of at most `max` bytes.
pub(super) fn piece_end(from: u64, end: u64, max: u64) -> u64 {
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
        assert_eq!(piece_end(100, 900, 512), 612, "pieces shorter than a page end where they can");
        assert_eq!(piece_end(u64::MAX - 10, u64::MAX, 1 << 20), u64::MAX);
    }
}
