//! Whose the data in memory are: how much each has, how many of his writes are in the queue, and who is next.
//!
//! A write is begun in a few steps however many files there are: each owner has his files by age, and those who may have a write begun stand by the age of their oldest.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::super::people::Key;
use super::File;

/// Writes of a disk that are in its queue, if one owner has them all ...
const WRITES_MAX: usize = 128;
/// ... and so many each may have, however many owners there are.
const WRITES_FLOOR: usize = 4;

/// Everybody whose data are in memory or in the queue.
#[derive(Default)]
pub(super) struct Owners {
    known: FxHashMap<Key, Owner>,
    /// Those who may have a write begun, by when their oldest data came.
    ready: BTreeSet<(u64, Key)>,
    /// How many have data in memory.
    owing: usize,
}

/// One of them.
#[derive(Default)]
struct Owner {
    /// Bytes in memory that are not on the disk.
    dirty: u64,
    /// Asynchronous writes in the queue, those included that have become of no use there.
    writes: usize,
    /// He has as many in the queue as he may: he is not looked at until one of them is over.
    is_full: bool,
    /// Files with data that are not begun, by when the oldest of them came.
    files: BTreeSet<(u64, File)>,
    /// Under which time he stands among those who are ready.
    seat: Option<u64>,
}

impl Owners {
    /// How many have data in memory.
    pub fn owing(&self) -> usize {
        self.owing
    }

    /// How many bytes somebody has in memory.
    pub fn dirty_of(&self, who: Key) -> u64 {
        self.known.get(&who).map_or(0, |owner| owner.dirty)
    }

    /// Everybody who has something in memory or in the queue.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.known.keys().copied()
    }

    /// Somebody has other bytes in memory than before: so many instead of so many.
    pub fn charge(&mut self, who: Key, before: u64, now: u64) {
        if before == now {
            return;
        }
        let owner = self.known.entry(who).or_default();
        let (was, is) = (owner.dirty, (owner.dirty + now).saturating_sub(before));
        owner.dirty = is;
        self.owing = (self.owing + usize::from(was == 0 && is > 0)).saturating_sub(usize::from(was > 0 && is == 0));
        self.leaves(who);
    }

    /// A file of his has data that wait to be begun since another time than before; `None`: it has none.
    pub fn seat(&mut self, who: Key, file: File, before: Option<u64>, now: Option<u64>) {
        if before == now {
            return;
        }
        let owner = self.known.entry(who).or_default();
        if let Some(since_ns) = before {
            owner.files.remove(&(since_ns, file));
        }
        if let Some(since_ns) = now {
            owner.files.insert((since_ns, file));
        }
        self.reseat(who);
        self.leaves(who);
    }

    /// Who is next, and since when his oldest data are in memory. Those who have enough in the queue are passed over, each once until a write of his is over.
    pub fn next(&mut self) -> Option<(u64, Key)> {
        let allowance = (WRITES_MAX / self.owing.max(1)).max(WRITES_FLOOR);
        while let Some(&(since_ns, who)) = self.ready.first() {
            match self.known.get_mut(&who) {
                Some(owner) if owner.writes >= allowance => owner.is_full = true,
                Some(_) => return Some((since_ns, who)),
                None => {}
            }
            self.reseat(who);
        }
        None
    }

    /// The file of his whose data came first.
    pub fn oldest(&self, who: Key) -> Option<File> {
        self.known.get(&who)?.files.first().map(|(_, file)| *file)
    }

    /// That file is not there.
    pub fn forget_oldest(&mut self, who: Key) {
        if let Some(owner) = self.known.get_mut(&who) {
            owner.files.pop_first();
        }
        self.reseat(who);
        self.leaves(who);
    }

    /// A write of his comes into the queue.
    pub fn begins(&mut self, who: Key) {
        self.known.entry(who).or_default().writes += 1;
    }

    /// A write of his has left the queue.
    pub fn ended(&mut self, who: Key) {
        if let Some(owner) = self.known.get_mut(&who) {
            owner.writes = owner.writes.saturating_sub(1);
            owner.is_full = false;
            self.reseat(who);
            self.leaves(who);
        }
    }

    /// Puts somebody where he belongs among those who are ready.
    fn reseat(&mut self, who: Key) {
        let Some(owner) = self.known.get_mut(&who) else {
            self.ready.retain(|(_, key)| *key != who);
            return;
        };
        let seat = if owner.is_full { None } else { owner.files.first().map(|(since_ns, _)| *since_ns) };
        if seat == owner.seat {
            return;
        }
        if let Some(since_ns) = std::mem::replace(&mut owner.seat, seat) {
            self.ready.remove(&(since_ns, who));
        }
        if let Some(since_ns) = seat {
            self.ready.insert((since_ns, who));
        }
    }

    /// Who has nothing any more is forgotten.
    fn leaves(&mut self, who: Key) {
        if self.known.get(&who).is_some_and(|owner| owner.dirty == 0 && owner.writes == 0 && owner.files.is_empty()) {
            self.known.remove(&who);
        }
    }
}
