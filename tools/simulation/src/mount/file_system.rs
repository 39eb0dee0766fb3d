//! A file system with one directory and a journal, as ext4 in its default mode: changes of names
//! and metadata become durable in their order, after the data of new blocks.

use std::collections::{BTreeMap, BTreeSet};

use hoistway_reactor::simulated::Prng;

use super::inode::{Inode, Pages};
use super::plan::FaultBelow;

/// Identifies a file of a file system. Unlike its inode number no other file gets it again.
pub(super) type Key = u64;
/// The names of a directory.
pub(super) type Names = BTreeMap<u64, Key>;

/// The inode number of the directory.
pub(super) const DIRECTORY: u64 = 1;

/// A file system.
#[derive(Debug)]
pub(super) struct FileSystem {
    pub inodes: BTreeMap<Key, Inode>,
    pub names: Names,
    durable_names: Names,
    /// The numbers of the running transaction and of the last one that is durable.
    running: u64,
    durable: u64,
    /// The running transaction: changed files, those whose data precede it, and whether it has any
    /// change.
    changed: BTreeSet<Key>,
    ordered: BTreeSet<Key>,
    has_changes: bool,
    committing: Option<Transaction>,
    /// A thread commits a transaction, or writes the data that precede it.
    pub is_committing: bool,
    /// Pages that the file system has room for, and those of the pool below.
    capacity: u64,
    pool: u64,
    next_key: Key,
    pub fault: Option<FaultBelow>,
}

/// A transaction on its way to the journal.
#[derive(Debug)]
struct Transaction {
    number: u64,
    names: Names,
    files: Vec<(Key, Pages)>,
}

/// The state that a power failure leaves.
pub(super) struct Image {
    pub names: Names,
    pub files: BTreeMap<Key, Pages>,
}

impl FileSystem {
    /// Creates a file system with empty files.
    pub fn new(names: u64, capacity: u64, pool: u64) -> FileSystem {
        let mut system = FileSystem {
            inodes: BTreeMap::new(),
            names: Names::new(),
            durable_names: Names::new(),
            running: 1,
            durable: 0,
            changed: BTreeSet::new(),
            ordered: BTreeSet::new(),
            has_changes: false,
            committing: None,
            is_committing: false,
            capacity,
            pool,
            next_key: 1,
            fault: None,
        };
        for name in 0..names {
            system.create(name, &BTreeSet::new());
        }
        system.begin_commit();
        system.finish_commit();
        system
    }

    /// Creates an empty file with the lowest free inode number.
    pub fn create(&mut self, name: u64, open: &BTreeSet<Key>) -> Key {
        let is_used = |number: u64| {
            self.inodes.iter().any(|(key, inode)| inode.number == number && (inode.links > 0 || open.contains(key)))
        };
        let number = (DIRECTORY + 1..).find(|number| !is_used(*number)).unwrap_or(u64::MAX);
        let key = self.next_key;
        self.next_key += 1;
        self.inodes.insert(key, Inode::new(number));
        self.names.insert(name, key);
        self.change(key, true);
        key
    }

    /// Removes a name. Returns its file.
    pub fn unlink(&mut self, name: u64) -> Option<Key> {
        let key = self.names.remove(&name)?;
        if let Some(inode) = self.inodes.get_mut(&key) {
            inode.links -= 1;
        }
        self.change(key, false);
        Some(key)
    }

    /// Renames a file over another. The data of the new file are written before the transaction.
    /// Returns the file, and the one that was replaced.
    pub fn rename(&mut self, from: u64, to: u64) -> Option<(Key, Option<Key>)> {
        if from == to || !self.names.contains_key(&from) {
            return None;
        }
        let replaced = self.unlink(to);
        let key = self.names.remove(&from)?;
        self.names.insert(to, key);
        self.change(key, false);
        if replaced.is_some() && self.fault != Some(FaultBelow::RenameBeforeData) {
            self.ordered.insert(key);
        }
        Some((key, replaced))
    }

    /// Adds a change of a file to the running transaction; `is_mapped`: of its size or blocks.
    pub fn change(&mut self, key: Key, is_mapped: bool) {
        self.has_changes = true;
        self.changed.insert(key);
        if let Some(inode) = self.inodes.get_mut(&key) {
            inode.changed_in = self.running;
            inode.mapped_in = if is_mapped { self.running } else { inode.mapped_in };
        }
    }

    /// Returns the number of the transaction that has all changes up to now.
    pub fn last_change(&self) -> u64 {
        if self.has_changes { self.running } else { self.running - 1 }
    }

    /// Returns true if a transaction is durable.
    pub fn is_durable(&self, transaction: u64) -> bool {
        self.durable >= transaction
    }

    /// Takes the files whose data precede the running transaction.
    pub fn take_ordered(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.ordered)
    }

    /// Ends the running transaction, which is on its way to the journal then.
    pub fn begin_commit(&mut self) {
        let mut names = self.names.clone();
        if self.fault == Some(FaultBelow::NamesOutOfOrder) {
            names.extend(self.durable_names.iter().filter(|(name, _)| !self.names.contains_key(name)));
        }
        let changed = std::mem::take(&mut self.changed);
        let files = changed.into_iter().filter_map(|key| Some((key, self.inodes.get(&key)?.mapped()))).collect();
        self.committing = Some(Transaction { number: self.running, names, files });
        self.running += 1;
        self.has_changes = false;
    }

    /// Makes the transaction durable that is on its way.
    pub fn finish_commit(&mut self) {
        let Some(Transaction { number, names, files }) = self.committing.take() else { return };
        (self.durable, self.durable_names) = (number, names);
        for (key, mapped) in files {
            if let Some(inode) = self.inodes.get_mut(&key) {
                inode.commit(mapped);
            }
        }
    }

    /// Drops files without a name that are not open, once no transaction needs them.
    pub fn drop_unlinked(&mut self, open: &BTreeSet<Key>) {
        let FileSystem { inodes, durable_names, committing, .. } = self;
        inodes.retain(|key, inode| {
            if inode.links > 0 || open.contains(key) || inode.is_busy(&(0..usize::MAX)) {
                return true;
            }
            inode.evict();
            let is_named = |names: &Names| names.values().any(|other| other == key);
            is_named(durable_names) || committing.as_ref().is_some_and(|transaction| is_named(&transaction.names))
        });
    }

    /// Returns the pages that can still be written.
    pub fn free_pages(&self, open: &BTreeSet<Key>) -> u64 {
        let in_use = self.inodes.iter().filter(|(key, inode)| inode.links > 0 || open.contains(*key));
        self.capacity.saturating_sub(in_use.map(|(_, inode)| inode.live().used() as u64).sum())
    }

    /// Returns the pages that the pool below can still allocate.
    pub fn free_blocks(&self) -> u64 {
        self.pool.saturating_sub(self.inodes.values().map(|inode| inode.blocks() as u64).sum())
    }

    /// Returns a state that a power failure now may leave.
    pub fn after_power_failure(&self, prng: &mut Prng) -> Image {
        let committing = self.committing.as_ref().filter(|_| prng.permille(500));
        let names = committing.map_or(&self.durable_names, |transaction| &transaction.names).clone();
        let mut files = BTreeMap::new();
        for key in names.values() {
            let Some(inode) = self.inodes.get(key) else { continue };
            let mapped = committing.and_then(|transaction| transaction.files.iter().find(|(other, _)| other == key));
            files.insert(*key, inode.after_power_failure(mapped.map(|(_, mapped)| mapped), prng));
        }
        Image { names, files }
    }

    /// Restarts the file system on the state that a power failure left.
    pub fn recover(&mut self, image: &Image) {
        let inodes = std::mem::take(&mut self.inodes);
        for (key, found) in &image.files {
            if let Some(inode) = inodes.get(key) {
                self.inodes.insert(*key, inode.recovered(found.clone()));
            }
        }
        (self.names, self.durable_names) = (image.names.clone(), image.names.clone());
        (self.changed, self.ordered, self.has_changes) = (BTreeSet::new(), BTreeSet::new(), false);
        (self.committing, self.is_committing, self.durable) = (None, false, self.running);
        self.running += 1;
    }
}
