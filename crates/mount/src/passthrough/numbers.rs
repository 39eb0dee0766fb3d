//! Node numbers: the kernel and this process identify an inode by one. Contains no I/O.
//!
//! Two rules keep the numbers unambiguous:
//! - While the kernel may hold a number, the number belongs to one inode. The kernel holds it until
//!   its FORGET requests have cancelled all lookups that this process has answered.
//! - An inode has one current number, which every lookup of it returns.
//!
//! An inode gets the number that the file system below gave it ([`Place`]), because programs
//! remember inode numbers longer than the kernel caches inodes. The file system below may give the
//! number of a deleted inode to a new one at once. If the kernel still holds the number for the
//! deleted inode, the new inode gets an assigned number, from [`FIRST_ASSIGNED`] on. An inode also
//! gets an assigned number if an inode on another mount has its number, and after
//! [`NumberTable::renew`].
//!
//! If the kernel received a number for a second inode, it would mark its first inode as bad. Open
//! files and lookups in progress of other processes would then fail with `EIO` or `ENOMEM`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use super::locks::lock;
use crate::memory::shrink_map;

/// Number of locks of the table, more than there are session threads.
const SHARDS: u64 = 64;

/// First assigned number, a multiple of [`SHARDS`]. No file system uses numbers this large.
pub(super) const FIRST_ASSIGNED: u64 = 1 << 62;

/// Where the file system below keeps an inode. Two inodes may have the same place one after the
/// other, but not at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Index of the mount.
    pub(super) mount: u32,
    /// Inode number on the file system.
    pub(super) inode: u64,
    /// The number that the inode gets if no other known inode has it.
    pub(super) own: Option<u64>,
}

/// The number of a new node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// The node number.
    pub(super) node: u64,
    /// The inode number that programs see (`st_ino`). It differs from the node number only while
    /// the kernel holds a deleted or renewed inode of the same place.
    pub(super) shown: u64,
}

/// A node in the table.
pub(super) trait Numbered {
    /// Returns the place of the inode.
    fn place(&self) -> Place;
    /// Returns the number with which the node was created.
    fn number(&self) -> Number;
}

/// The result of a lookup.
#[derive(Debug)]
pub(super) enum Found<N> {
    /// The kernel knew the inode.
    Known(Arc<N>),
    /// The inode is new to the kernel.
    New(Arc<N>),
}

impl<N> Found<N> {
    pub(super) fn into_node(self) -> Arc<N> {
        match self {
            Found::Known(node) | Found::New(node) => node,
        }
    }
}

/// The nodes of all inodes that the kernel knows.
#[derive(Debug)]
pub(super) struct NumberTable<N> {
    shards: Vec<Mutex<Shard<N>>>,
    /// Number of numbers assigned so far.
    assigned: AtomicU64,
    /// Number of places whose current number is an assigned one.
    moved: AtomicU64,
}

/// A part of the table. A place and all numbers of its inodes are in the same one.
#[derive(Debug)]
struct Shard<N> {
    known: FxHashMap<u64, Known<N>>,
    /// The current numbers of inodes that have an assigned one.
    moved: FxHashMap<Place, u64>,
}

#[derive(Debug)]
struct Known<N> {
    node: Arc<N>,
    /// The kernel's lookup count of the number.
    lookups: u64,
    /// The next lookup of the inode returns another number.
    is_renewed: bool,
}

impl<N: Numbered> NumberTable<N> {
    /// Creates an empty table.
    pub(super) fn new() -> NumberTable<N> {
        let shard = || Mutex::new(Shard { known: FxHashMap::default(), moved: FxHashMap::default() });
        NumberTable {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            assigned: AtomicU64::new(0),
            moved: AtomicU64::new(0),
        }
    }

    /// Adds a node under a number that no place has. The kernel holds it from the start.
    pub(super) fn insert_fixed(&self, number: u64, node: Arc<N>) {
        self.shard(number).known.insert(number, Known { node, lookups: 1, is_renewed: false });
    }

    /// Returns the node of a number that the kernel holds.
    pub(super) fn get(&self, number: u64) -> Option<Arc<N>> {
        self.shard(number).known.get(&number).map(|known| known.node.clone())
    }

    /// Returns the node of an inode and counts a lookup by the kernel. `is_same` returns true if a
    /// node at the place is that of the inode. A node for a new inode is created by `make`.
    pub(super) fn look_up(
        &self,
        place: Place,
        is_same: impl Fn(&N) -> bool,
        make: impl FnOnce(Number) -> Arc<N>,
    ) -> Found<N> {
        let home = place.own.unwrap_or(place.inode);
        let mut shard = self.shard(home);
        if let Some(number) = shard.current(&place)
            && let Some(known) = shard.known.get_mut(&number)
            && !known.is_renewed
            && is_same(&known.node)
        {
            known.lookups += 1;
            return Found::Known(known.node.clone());
        }
        let number = self.number_for(&mut shard, place, home);
        let node = make(number);
        shard.known.insert(number.node, Known { node: node.clone(), lookups: 1, is_renewed: false });
        Found::New(node)
    }

    /// Chooses the number of a new inode.
    fn number_for(&self, shard: &mut Shard<N>, place: Place, home: u64) -> Number {
        let holder = place.own.map(|own| (own, shard.known.get(&own)));
        if let Some((own, None)) = holder
            && !shard.is_shown_elsewhere(own, &place)
        {
            if shard.moved.remove(&place).is_some() {
                self.moved.fetch_sub(1, Ordering::Relaxed);
            }
            return Number { node: own, shown: own };
        }
        let serial = self.assigned.fetch_add(1, Ordering::Relaxed);
        let node = FIRST_ASSIGNED + serial * SHARDS + shard_of(home);
        // The inode keeps the number that programs see if only its predecessor at the place has it.
        let shown = match holder {
            Some((own, Some(known))) if known.node.place() == place => own,
            _ => node,
        };
        if shard.moved.insert(place, node).is_none() {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
        Number { node, shown }
    }

    /// Subtracts lookups of the kernel. Returns the node if the kernel no longer holds its number.
    pub(super) fn forget(&self, number: u64, count: u64) -> Option<Arc<N>> {
        let mut shard = self.shard(number);
        let known = shard.known.get_mut(&number)?;
        known.lookups = known.lookups.saturating_sub(count);
        if known.lookups > 0 {
            return None;
        }
        let node = shard.known.remove(&number)?.node;
        let place = node.place();
        if number >= FIRST_ASSIGNED && shard.moved.get(&place) == Some(&number) {
            shard.moved.remove(&place);
            self.moved.fetch_sub(1, Ordering::Relaxed);
        }
        Some(node)
    }

    /// Has the next lookup of the inode return another number, so that the kernel starts with a new
    /// inode without any cached state.
    pub(super) fn renew(&self, number: u64) {
        if let Some(known) = self.shard(number).known.get_mut(&number) {
            known.is_renewed = true;
        }
    }

    /// Returns true if the inode of a number was renewed: later lookups return another number.
    pub(super) fn is_renewed(&self, number: u64) -> bool {
        self.shard(number).known.get(&number).is_some_and(|known| known.is_renewed)
    }

    /// Returns the node that a lookup of a place would return if the inode is the same.
    pub(super) fn current(&self, place: Place) -> Option<Arc<N>> {
        let shard = self.shard(place.own.unwrap_or(place.inode));
        let number = shard.current(&place)?;
        shard.known.get(&number).map(|known| known.node.clone())
    }

    /// Returns the inode number that programs see at a place, for a directory listing. No number is
    /// assigned.
    pub(super) fn shown(&self, place: Place) -> u64 {
        let own = place.own.unwrap_or(place.inode);
        if self.moved.load(Ordering::Relaxed) == 0 {
            return own;
        }
        let shard = self.shard(own);
        let moved = shard.moved.get(&place).and_then(|number| shard.known.get(number));
        moved.map_or(own, |known| known.node.number().shown)
    }

    /// Returns the number of known inodes.
    pub(super) fn len(&self) -> u64 {
        self.shards.iter().map(|shard| lock(shard).known.len() as u64).sum()
    }

    /// Calls `act` with each node that nothing outside the table references.
    pub(super) fn for_each_unreferenced(&self, mut act: impl FnMut(&mut N)) {
        for shard in &self.shards {
            for known in lock(shard).known.values_mut() {
                if let Some(node) = Arc::get_mut(&mut known.node) {
                    act(node);
                }
            }
        }
    }

    /// Reduces the table to the size that the known inodes need.
    pub(super) fn shrink(&self) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            shrink_map(&mut shard.known);
            shrink_map(&mut shard.moved);
        }
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, Shard<N>> {
        lock(&self.shards[shard_of(number) as usize])
    }
}

impl<N: Numbered> Shard<N> {
    /// Returns true if programs see a number for the inode of another place, which has an assigned
    /// number.
    fn is_shown_elsewhere(&self, number: u64, place: &Place) -> bool {
        self.moved
            .iter()
            .filter(|(other, _)| other.own == Some(number) && *other != place)
            .any(|(_, moved)| self.known.get(moved).is_some_and(|known| known.node.number().shown == number))
    }

    /// Returns the current number of a place, if its inode is known.
    fn current(&self, place: &Place) -> Option<u64> {
        if let Some(number) = self.moved.get(place) {
            return Some(*number);
        }
        place.own.filter(|own| self.known.get(own).is_some_and(|known| known.node.place() == *place))
    }
}

/// Returns the shard of a number. Consecutive numbers go to different shards, and so do those of
/// one inode group.
fn shard_of(number: u64) -> u64 {
    if number >= FIRST_ASSIGNED { number % SHARDS } else { (number ^ number >> 6 ^ number >> 12) % SHARDS }
}

#[cfg(test)]
mod tests;
