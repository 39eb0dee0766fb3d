//! Storage of outstanding requests, found by their first sector and, while bios may still be
//! merged, by their end sector.

use std::collections::hash_map::Entry;
use std::mem;

use rustc_hash::FxHashMap;

use super::RequestRecord;
use crate::event::{DeviceId, Event, Rwbs};

/// Marks the absence of a slot index.
const NONE: u32 = u32::MAX;

/// Operation class. Events of different classes never belong to the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Read,
    Write,
    Discard,
    /// Without data and without a sector.
    Flush,
    PassThrough,
}

/// The first or the end sector of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub sector: u64,
    pub device: DeviceId,
    pub class: Class,
}

/// Progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A bio that was submitted.
    Queued,
    /// A request in the plug.
    Got,
    /// In the elevator.
    Inserted,
    /// In the device.
    Issued,
    /// The data of a flush sequence has completed, and its end has not.
    DataCompleted,
}

/// An outstanding bio or request.
#[derive(Debug)]
pub(super) struct Slot {
    pub record: RequestRecord,
    pub class: Class,
    pub stage: Stage,
    /// First sector that has not completed.
    at: u64,
    /// Number of bytes that have not completed.
    pub left: u32,
    /// Time of the first event, in ns.
    pub first_ns: u64,
    /// Key of the bio on the upper device, for a remapped bio without a submission of its own.
    pub from: Option<Key>,
    /// True for a write that is a flush sequence, or may become one.
    pub may_be_sequence: bool,
    /// Index of the next slot with the same key.
    next: u32,
    older: u32,
    newer: u32,
}

/// All outstanding requests. Slots are reused; lists are in the order of the first events.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The first and the last slot of each key.
    starts: FxHashMap<Key, (u32, u32)>,
    ends: FxHashMap<Key, u32>,
    oldest: u32,
    newest: u32,
}

impl Class {
    pub fn of(event: &Event) -> Class {
        let op = event.op;
        if op.has(Rwbs::PASS_THROUGH) {
            Class::PassThrough
        } else if event.bytes == 0 && (op.has(Rwbs::FLUSH) || op.has(Rwbs::WRITE)) {
            Class::Flush
        } else if op.has(Rwbs::DISCARD) {
            Class::Discard
        } else if op.has(Rwbs::WRITE) {
            Class::Write
        } else {
            Class::Read
        }
    }
}

impl Key {
    /// The key of the first sector of an event.
    pub fn of(event: &Event) -> Key {
        let class = Class::of(event);
        Key { sector: if class == Class::Flush { 0 } else { event.sector }, device: event.device, class }
    }
}

impl Slot {
    fn start(&self) -> Key {
        Key { sector: self.at, device: self.record.device, class: self.class }
    }

    /// Returns the first sector after the incomplete part.
    pub fn end(&self) -> u64 {
        self.at.saturating_add(u64::from(self.left).div_ceil(512))
    }

    fn end_key(&self) -> Key {
        Key { sector: self.end(), device: self.record.device, class: self.class }
    }

    /// Returns true if bios can be merged to the request.
    fn may_grow(&self) -> bool {
        matches!(self.stage, Stage::Got | Stage::Inserted) && self.class != Class::Flush
    }
}

impl Default for Table {
    fn default() -> Table {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
            starts: FxHashMap::default(),
            ends: FxHashMap::default(),
            oldest: NONE,
            newest: NONE,
        }
    }
}

impl Table {
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the slot with the earliest first event.
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    pub fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    pub fn slot_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    /// Returns the oldest slot with this key that `wanted` accepts.
    pub fn first(&self, key: Key, wanted: impl Fn(&Slot) -> bool) -> Option<u32> {
        self.beginning_at(key).find(|slot| wanted(self.slot(*slot)))
    }

    /// Returns the oldest slot with this key of the lowest rank. Slots without a rank are ignored.
    pub fn least(&self, key: Key, rank: impl Fn(&Slot) -> Option<usize>) -> Option<u32> {
        let ranked = self.beginning_at(key).filter_map(|slot| Some((rank(self.slot(slot))?, slot)));
        // On equal ranks, the first one wins, which is the oldest.
        ranked.reduce(|best, other| if other.0 < best.0 { other } else { best }).map(|(_, slot)| slot)
    }

    /// Returns the request that ends at this key and can still grow.
    pub fn ending_at(&self, key: Key) -> Option<u32> {
        self.ends.get(&key).copied()
    }

    pub fn add(&mut self, class: Class, record: RequestRecord, first_ns: u64, stage: Stage) -> u32 {
        let slot = Slot {
            class,
            stage,
            at: record.sector,
            left: record.bytes,
            first_ns,
            from: None,
            may_be_sequence: false,
            next: NONE,
            older: self.newest,
            newer: NONE,
            record,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        match self.newest {
            NONE => self.oldest = index,
            newest => self.slots[newest as usize].newer = index,
        }
        self.newest = index;
        self.link(index);
        if self.slot(index).may_grow() {
            self.ends.insert(self.slot(index).end_key(), index);
        }
        index
    }

    pub fn remove(&mut self, slot: u32) -> RequestRecord {
        self.hide_end(slot);
        self.unlink(slot);
        let (older, newer) = (self.slot(slot).older, self.slot(slot).newer);
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        self.free.push(slot);
        mem::take(&mut self.slot_mut(slot).record)
    }

    pub fn set_stage(&mut self, slot: u32, stage: Stage) {
        let grew = self.slot(slot).may_grow();
        self.slot_mut(slot).stage = stage;
        match (grew, self.slot(slot).may_grow()) {
            (false, true) => self.show_end(slot),
            (true, false) => {
                self.slot_mut(slot).stage = Stage::Got;
                self.hide_end(slot);
                self.slot_mut(slot).stage = stage;
            }
            _ => {}
        }
    }

    /// Extends a request to its end or its front.
    pub fn lengthen(&mut self, slot: u32, bytes: u32, front: bool) {
        self.hide_end(slot);
        if front {
            self.unlink(slot);
        }
        let found = self.slot_mut(slot);
        found.left = found.left.saturating_add(bytes);
        found.record.bytes = found.record.bytes.saturating_add(bytes);
        if front {
            let sectors = u64::from(bytes).div_ceil(512);
            found.at = found.at.saturating_sub(sectors);
            found.record.sector = found.record.sector.saturating_sub(sectors);
            self.link(slot);
        }
        self.show_end(slot);
    }

    /// Reduces a request to this length.
    pub fn shorten(&mut self, slot: u32, bytes: u32) {
        self.hide_end(slot);
        let found = self.slot_mut(slot);
        let less = found.left.saturating_sub(bytes);
        found.left -= less;
        found.record.bytes = found.record.bytes.saturating_sub(less);
        self.show_end(slot);
    }

    /// Marks a number of bytes at the front as completed.
    pub fn advance(&mut self, slot: u32, bytes: u32) {
        self.hide_end(slot);
        self.unlink(slot);
        let found = self.slot_mut(slot);
        found.at = found.at.saturating_add(u64::from(bytes / 512));
        found.left = found.left.saturating_sub(bytes);
        self.link(slot);
        self.show_end(slot);
    }

    /// Marks the data of a flush sequence as completed. The request is found by its first sector
    /// again.
    pub fn set_data_completed(&mut self, slot: u32) {
        self.set_stage(slot, Stage::DataCompleted);
        self.unlink(slot);
        let found = self.slot_mut(slot);
        (found.at, found.left) = (found.record.sector, 0);
        self.link(slot);
    }

    /// Returns all outstanding requests, oldest first, without remapped bios that are outstanding
    /// on the upper device as well.
    pub fn into_records(mut self) -> Vec<RequestRecord> {
        let mut records = Vec::with_capacity(self.len());
        let mut slot = self.oldest;
        while slot != NONE {
            let found = self.slot_mut(slot);
            if found.from.is_none() || found.stage != Stage::Queued {
                records.push(mem::take(&mut found.record));
            }
            slot = found.newer;
        }
        records
    }

    fn beginning_at(&self, key: Key) -> impl Iterator<Item = u32> {
        let mut slot = self.starts.get(&key).map_or(NONE, |chain| chain.0);
        std::iter::from_fn(move || {
            let found = slot;
            (found != NONE).then(|| {
                slot = self.slot(found).next;
                found
            })
        })
    }

    fn link(&mut self, slot: u32) {
        self.slot_mut(slot).next = NONE;
        let key = self.slot(slot).start();
        let last = match self.starts.entry(key) {
            Entry::Vacant(place) => {
                place.insert((slot, slot));
                return;
            }
            Entry::Occupied(mut chain) => mem::replace(&mut chain.get_mut().1, slot),
        };
        self.slot_mut(last).next = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let (key, next) = (self.slot(slot).start(), self.slot(slot).next);
        let Some((first, last)) = self.starts.get(&key).copied() else { return };
        if first == slot {
            if next == NONE {
                self.starts.remove(&key);
            } else {
                self.starts.insert(key, (next, last));
            }
            return;
        }
        let mut before = first;
        while self.slot(before).next != slot {
            before = self.slot(before).next;
        }
        self.slot_mut(before).next = next;
        if last == slot {
            self.starts.insert(key, (first, before));
        }
    }

    fn show_end(&mut self, slot: u32) {
        if self.slot(slot).may_grow() {
            self.ends.insert(self.slot(slot).end_key(), slot);
        }
    }

    fn hide_end(&mut self, slot: u32) {
        if self.slot(slot).may_grow() {
            let key = self.slot(slot).end_key();
            // Another request that ends at this key may have replaced the entry.
            if self.ends.get(&key) == Some(&slot) {
                self.ends.remove(&key);
            }
        }
    }
}
