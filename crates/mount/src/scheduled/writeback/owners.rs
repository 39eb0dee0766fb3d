//! The owners of dirty data: bytes, writes in the device queue, and the order of submission.
//!
//! Selecting the next write takes few steps however many files there are: each owner has its files
//! sorted by age, and the owners that may submit are sorted by the age of their oldest data.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::super::issuers::IssuerId;
use super::FileKey;
use crate::memory::shrink_map;

/// Maximum number of asynchronous writes in a device queue, which the owners of dirty data share.
const WRITES_MAX: usize = 128;
/// Minimum number of asynchronous writes that each owner may have, however many owners there are.
const WRITES_MIN: usize = 4;

/// All owners of data that are dirty or in the device queue.
#[derive(Default)]
pub(super) struct Owners {
    by_id: FxHashMap<IssuerId, Owner>,
    /// Owners that may submit a write, by the time at which their oldest data became dirty.
    ready: BTreeSet<(u64, IssuerId)>,
    /// Number of owners of dirty data.
    dirty_owners: usize,
}

/// An owner of dirty data.
#[derive(Default)]
struct Owner {
    /// Dirty bytes.
    dirty: u64,
    /// Asynchronous writes in the device queue, including cancelled ones.
    writes: usize,
    /// The owner has reached its maximum of queued writes and is skipped until one completes.
    is_full: bool,
    /// Files with unsubmitted data, by the time at which the oldest became dirty.
    files: BTreeSet<(u64, FileKey)>,
    /// The time under which the owner is in the ready list.
    queued_ns: Option<u64>,
}

impl Owners {
    /// Reduces the table to the size that the owners need.
    pub fn shrink(&mut self) {
        shrink_map(&mut self.by_id);
    }

    /// Returns the number of owners of dirty data.
    pub fn dirty_owners(&self) -> usize {
        self.dirty_owners
    }

    /// Returns the dirty bytes of an owner.
    pub fn dirty_of(&self, issuer_id: IssuerId) -> u64 {
        self.by_id.get(&issuer_id).map_or(0, |owner| owner.dirty)
    }

    /// Iterates over the owners of data that are dirty or in the device queue.
    pub fn ids(&self) -> impl Iterator<Item = IssuerId> + '_ {
        self.by_id.keys().copied()
    }

    /// Changes the dirty bytes of an owner by `now - before`.
    pub fn charge(&mut self, issuer_id: IssuerId, before: u64, now: u64) {
        if before == now {
            return;
        }
        let owner = self.by_id.entry(issuer_id).or_default();
        let had_dirty = owner.dirty > 0;
        owner.dirty = (owner.dirty + now).saturating_sub(before);
        let has_dirty = owner.dirty > 0;
        self.dirty_owners = (self.dirty_owners + usize::from(has_dirty && !had_dirty))
            .saturating_sub(usize::from(had_dirty && !has_dirty));
        self.remove_if_empty(issuer_id);
    }

    /// Changes the time under which a file of an owner is sorted from `before` to `now`; `None` if
    /// the file has no unsubmitted data.
    pub fn move_file(&mut self, issuer_id: IssuerId, file: FileKey, before: Option<u64>, now: Option<u64>) {
        if before == now {
            return;
        }
        let owner = self.by_id.entry(issuer_id).or_default();
        if let Some(since_ns) = before {
            owner.files.remove(&(since_ns, file));
        }
        if let Some(since_ns) = now {
            owner.files.insert((since_ns, file));
        }
        self.requeue(issuer_id);
        self.remove_if_empty(issuer_id);
    }

    /// Returns the next owner and the time at which its oldest data became dirty. Owners with too
    /// many queued writes are removed from the ready list until one completes.
    pub fn next_due(&mut self) -> Option<(u64, IssuerId)> {
        let allowance = (WRITES_MAX / self.dirty_owners.max(1)).max(WRITES_MIN);
        while let Some(&(since_ns, issuer_id)) = self.ready.first() {
            match self.by_id.get_mut(&issuer_id) {
                Some(owner) if owner.writes >= allowance => owner.is_full = true,
                Some(_) => return Some((since_ns, issuer_id)),
                None => {}
            }
            self.requeue(issuer_id);
        }
        None
    }

    /// Returns the file with the oldest data of an owner.
    pub fn oldest_file(&self, issuer_id: IssuerId) -> Option<FileKey> {
        self.by_id.get(&issuer_id)?.files.first().map(|(_, file)| *file)
    }

    /// Removes the oldest file of an owner, which no longer exists.
    pub fn remove_oldest_file(&mut self, issuer_id: IssuerId) {
        if let Some(owner) = self.by_id.get_mut(&issuer_id) {
            owner.files.pop_first();
        }
        self.requeue(issuer_id);
        self.remove_if_empty(issuer_id);
    }

    /// Records a submitted write.
    pub fn dispatch(&mut self, issuer_id: IssuerId) {
        self.by_id.entry(issuer_id).or_default().writes += 1;
    }

    /// Records a completed or cancelled write.
    pub fn finish(&mut self, issuer_id: IssuerId) {
        if let Some(owner) = self.by_id.get_mut(&issuer_id) {
            owner.writes = owner.writes.saturating_sub(1);
            owner.is_full = false;
            self.requeue(issuer_id);
            self.remove_if_empty(issuer_id);
        }
    }

    /// Updates the position of an owner in the ready list.
    fn requeue(&mut self, issuer_id: IssuerId) {
        let Some(owner) = self.by_id.get_mut(&issuer_id) else {
            self.ready.retain(|(_, key)| *key != issuer_id);
            return;
        };
        let queued_ns = if owner.is_full { None } else { owner.files.first().map(|(since_ns, _)| *since_ns) };
        if queued_ns == owner.queued_ns {
            return;
        }
        if let Some(since_ns) = std::mem::replace(&mut owner.queued_ns, queued_ns) {
            self.ready.remove(&(since_ns, issuer_id));
        }
        if let Some(since_ns) = queued_ns {
            self.ready.insert((since_ns, issuer_id));
        }
    }

    /// Removes an owner without data.
    fn remove_if_empty(&mut self, issuer_id: IssuerId) {
        if self
            .by_id
            .get(&issuer_id)
            .is_some_and(|owner| owner.dirty == 0 && owner.writes == 0 && owner.files.is_empty())
        {
            self.by_id.remove(&issuer_id);
        }
    }
}
