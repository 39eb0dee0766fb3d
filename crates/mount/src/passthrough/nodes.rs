//! The table of nodes: the inodes that the kernel has looked up, by the inode number presented to
//! it.
//!
//! A node keeps the inode's own number where possible, because programs remember numbers longer
//! than the kernel caches inodes. A [`Node`] is reached by file handle or by descriptor. Open
//! descriptors of directories are cached besides, since every lookup starts at one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::Errno;

use super::descriptors::Descriptors;
use super::fs_mounts::{FileId, FsMount, FsMounts};
use super::handle::Handle;
use crate::backing::{self, Backing};
use crate::memory::shrink_map;

/// The node number of the root in every FUSE mount.
pub(super) const ROOT: u64 = 1;

/// Number of locks of the table, more than there are session threads.
const SHARDS: usize = 64;

/// First number for inodes whose own number is taken. No file system uses numbers this large.
const FIRST_ASSIGNED: u64 = 1 << 62;

/// Maximum number of cached directory descriptors.
const DIRECTORIES_MAX: usize = 4096;

/// An inode known to the kernel.
#[derive(Debug)]
pub(super) struct Node {
    /// The inode number presented to the kernel.
    pub(super) number: u64,
    /// Distinguishes the inode from an earlier one with the same number.
    pub(super) generation: u64,
    pub(super) fs_mount: Arc<FsMount>,
    pub(super) inode: u64,
    is_directory: bool,
    inode_ref: InodeRef,
}

#[derive(Clone, Debug)]
enum InodeRef {
    Handle(Handle),
    Descriptor(Arc<Backing>),
}

#[derive(Debug)]
struct Known {
    node: Arc<Node>,
    /// The kernel's lookup count of the inode.
    lookups: u64,
    /// The node was renewed, and no lookup has found it since.
    is_renewed: bool,
}

/// The node table.
#[derive(Debug)]
pub(super) struct NodeTable {
    shards: Vec<Mutex<FxHashMap<u64, Known>>>,
    /// Assigned numbers of inodes whose own number was taken, by mount index and inode number.
    assigned: Mutex<FxHashMap<(u32, u64), u64>>,
    next_assigned: AtomicU64,
    directories: Mutex<DirectoryCache>,
    /// Number of nodes that hold a descriptor.
    held: AtomicU64,
    pub(super) fs_mounts: FsMounts,
    pub(super) descriptors: Arc<Descriptors>,
}

impl NodeTable {
    /// Creates a table with the root node: `source`, open as `O_PATH`.
    pub(super) fn new(source: OwnedFd, handles: bool) -> io::Result<NodeTable> {
        let descriptors = Arc::new(Descriptors::open()?);
        let nodes = NodeTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            assigned: Mutex::default(),
            next_assigned: AtomicU64::new(FIRST_ASSIGNED),
            directories: Mutex::default(),
            held: AtomicU64::new(0),
            fs_mounts: FsMounts::new(descriptors.clone(), handles),
            descriptors,
        };
        let file_id = FileId::of(&super::fs_mounts::stat_fd(&source)?);
        let fs_mount = nodes.fs_mounts.mount_of(&file_id, &source, None)?;
        let inode_ref = InodeRef::Descriptor(Arc::new(Backing::with_neighbour(
            &fs_mount.backing,
            source,
            file_id.device,
            file_id.inode,
        )));
        let node = Arc::new(Node {
            number: ROOT,
            generation: 0,
            fs_mount,
            inode: file_id.inode,
            is_directory: true,
            inode_ref,
        });
        nodes.shard(ROOT).insert(ROOT, Known { node, lookups: 1, is_renewed: false });
        Ok(nodes)
    }

    /// Returns the node of a number that the kernel sent. The kernel uses only numbers that it has
    /// looked up, so `ESTALE` indicates a bug.
    pub(super) fn get(&self, number: u64) -> Result<Arc<Node>, Errno> {
        self.shard(number).get(&number).map(|known| known.node.clone()).ok_or(Errno::STALE)
    }

    /// Adds an inode found below `near`, or increases its lookup count.
    pub(super) fn insert(&self, fd: OwnedFd, file_id: &FileId, near: &Arc<FsMount>) -> io::Result<Arc<Node>> {
        let fs_mount = self.fs_mounts.mount_of(file_id, &fd, Some(near))?;
        let handle = fs_mount.handle_of(&fd);
        let mut number = self.number_of(&fs_mount, file_id.inode);
        let mut shard = self.shard(number);
        if shard.get(&number).is_some_and(|known| !known.node.is(&fs_mount, file_id.inode)) {
            // Another file has been assigned the number since the check.
            drop(shard);
            number = self.assign_number(&fs_mount, file_id.inode);
            shard = self.shard(number);
        }
        let before = shard.get_mut(&number).filter(|known| known.node.is(&fs_mount, file_id.inode));
        if let Some(known) = before.filter(|known| !known.node.is_replaced_by(handle.as_ref())) {
            known.lookups += 1;
            known.is_renewed = false;
            return Ok(known.node.clone());
        }
        // The inode is new, or its number belonged to a deleted file. In the second case the lookup
        // counts of both add up, because FORGET requests name only the number.
        let (generation, lookups) =
            shard.get(&number).map_or((0, 0), |known| (known.node.generation + 1, known.lookups));
        let inode_ref = match handle {
            Some(handle) => InodeRef::Handle(handle),
            None => {
                self.held.fetch_add(1, Ordering::Relaxed);
                InodeRef::Descriptor(Arc::new(Backing::with_neighbour(
                    &fs_mount.backing,
                    fd,
                    file_id.device,
                    file_id.inode,
                )))
            }
        };
        let node = Arc::new(Node {
            number,
            generation,
            fs_mount,
            inode: file_id.inode,
            is_directory: file_id.is_directory,
            inode_ref,
        });
        let known = Known { node: node.clone(), lookups: lookups + 1, is_renewed: false };
        if let Some(Known { node, .. }) = shard.insert(number, known) {
            self.release(&node);
        }
        Ok(node)
    }

    /// Presents an inode that is not open as another one from its next lookup on: the kernel then
    /// drops all that it caches of the inode.
    pub(super) fn renew(&self, number: u64) {
        if let Some(known) = self.shard(number).get_mut(&number).filter(|known| known.node.number != ROOT) {
            known.node = known.node.with(known.node.generation + 1, known.node.inode_ref.clone());
            known.is_renewed = true;
        }
    }

    /// Returns true if the kernel has not looked up an inode since it was renewed.
    pub(super) fn is_renewed(&self, number: u64) -> bool {
        self.shard(number).get(&number).is_some_and(|known| known.is_renewed)
    }

    /// Holds a directory whose name was removed by its descriptor while the kernel knows it, so
    /// that it remains usable as a working directory.
    pub(super) fn hold_removed(&self, near: &Arc<FsMount>, fd: OwnedFd) {
        let Ok(found) = super::fs_mounts::stat_fd(&fd) else { return };
        let file_id = FileId::of(&found);
        let Ok(fs_mount) = self.fs_mounts.mount_of(&file_id, &fd, Some(near)) else { return };
        let number = self.number_of(&fs_mount, file_id.inode);
        let mut shard = self.shard(number);
        let Some(known) = shard.get_mut(&number).filter(|known| known.node.is(&fs_mount, file_id.inode)) else {
            return;
        };
        if let InodeRef::Handle(_) = known.node.inode_ref {
            let backing = Backing::with_neighbour(&fs_mount.backing, fd, file_id.device, file_id.inode);
            known.node = known.node.with(known.node.generation, InodeRef::Descriptor(Arc::new(backing)));
            self.held.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Decreases the lookup count. Returns true if the kernel no longer knows the inode.
    pub(super) fn forget(&self, number: u64, count: u64) -> bool {
        let mut shard = self.shard(number);
        let Some(known) = shard.get_mut(&number) else { return false };
        known.lookups = known.lookups.saturating_sub(count);
        if known.lookups > 0 || number == ROOT {
            return false;
        }
        let node = shard.remove(&number).map(|known| known.node);
        drop(shard);
        if let Some(node) = node {
            self.release(&node);
            if number >= FIRST_ASSIGNED {
                lock(&self.assigned).remove(&(node.fs_mount.index, node.inode));
            }
            let fs_mount = node.fs_mount.clone();
            drop(node);
            self.fs_mounts.release_unused(fs_mount);
        }
        true
    }

    fn release(&self, node: &Node) {
        if let InodeRef::Descriptor(_) = node.inode_ref {
            self.held.fetch_sub(1, Ordering::Relaxed);
        }
        lock(&self.directories).remove(node.number);
    }

    /// Returns a descriptor of an inode (`O_PATH` or better), for attribute calls and lookups.
    pub(super) fn open_path(&self, node: &Node) -> io::Result<Arc<Backing>> {
        if let Some(backing) = self.descriptor(node) {
            return Ok(backing);
        }
        let fd = backing::Opener::open_path(node)?;
        let backing = Arc::new(node.opened(fd));
        if node.is_directory {
            lock(&self.directories).insert(node.number, backing.clone());
        }
        Ok(backing)
    }

    /// Sets the maximum number of cached directory descriptors.
    pub(super) fn keep_directories(&self, capacity: u64) {
        lock(&self.directories).capacity = usize::try_from(capacity).unwrap_or(usize::MAX).min(DIRECTORIES_MAX);
    }

    /// Returns a descriptor of an inode if one is open.
    pub(super) fn descriptor(&self, node: &Node) -> Option<Arc<Backing>> {
        match &node.inode_ref {
            InodeRef::Descriptor(backing) => Some(backing.clone()),
            InodeRef::Handle(_) if node.is_directory => {
                lock(&self.directories).get(node.number).filter(|backing| backing.inode == node.inode)
            }
            InodeRef::Handle(_) => None,
        }
    }

    /// Returns a placeholder for an inode that is not open, to be used in a request to the gate.
    pub(super) fn placeholder(&self, node: &Arc<Node>) -> Arc<Backing> {
        let near = &node.fs_mount.backing;
        // Without a free descriptor the request is charged to the mount as a whole.
        Backing::placeholder(node.inode, node.clone(), near).map_or_else(|_| near.clone(), Arc::new)
    }

    /// Opens an inode for reading, writing or listing.
    pub(super) fn open(&self, node: &Node, flags: OFlags) -> io::Result<Arc<Backing>> {
        let fd = match &node.inode_ref {
            InodeRef::Handle(handle) => node.fs_mount.open(handle, flags)?,
            InodeRef::Descriptor(backing) => self.descriptors.reopen(backing, flags)?,
        };
        let backing = node.opened(fd);
        // A dispatched request covers exactly its own range: read-ahead by the file system below
        // would be unscheduled I/O. The kernel reads ahead above the mount. A descriptor that
        // cannot be read does not accept the advice.
        let _ = fadvise(&backing, 0, None, Advice::Random);
        Ok(Arc::new(backing))
    }

    /// Returns the number under which an inode is or would be presented.
    pub(super) fn number_of(&self, fs_mount: &FsMount, inode: u64) -> u64 {
        if let Some(number) = fs_mount.number_of(inode) {
            let taken = self.shard(number).get(&number).is_some_and(|known| !known.node.is(fs_mount, inode));
            if !taken {
                return number;
            }
        }
        self.assign_number(fs_mount, inode)
    }

    /// Returns the assigned number of an inode, assigning one if needed.
    fn assign_number(&self, fs_mount: &FsMount, inode: u64) -> u64 {
        let mut assigned = lock(&self.assigned);
        *assigned.entry((fs_mount.index, inode)).or_insert_with(|| self.next_assigned.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number to present in a directory listing, where only the inode number is known.
    /// No number is assigned to it.
    pub(super) fn number_of_entry(&self, fs_mount: &FsMount, inode: u64) -> u64 {
        lock(&self.assigned)
            .get(&(fs_mount.index, inode))
            .copied()
            .or_else(|| fs_mount.number_of(inode))
            .unwrap_or(inode)
    }

    /// Returns the number of known inodes and the number of those that hold a descriptor.
    pub(super) fn counts(&self) -> (u64, u64) {
        let known = self.shards.iter().map(|shard| lock(shard).len() as u64).sum();
        (known, self.held.load(Ordering::Relaxed))
    }

    /// Reduces the tables to the size that the known inodes need.
    pub(super) fn shrink(&self) {
        for shard in &self.shards {
            shrink_map(&mut lock(shard));
        }
        shrink_map(&mut lock(&self.assigned));
        let mut directories = lock(&self.directories);
        shrink_map(&mut directories.young);
        shrink_map(&mut directories.old);
    }

    /// Returns the number of nodes that hold a descriptor.
    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, FxHashMap<u64, Known>> {
        // Consecutive numbers go to different shards, and so do those of one inode group.
        let shard = (number ^ number >> 6 ^ number >> 12) as usize % SHARDS;
        lock(&self.shards[shard])
    }
}

impl Node {
    /// Returns this node with another generation and another reference to the inode.
    fn with(&self, generation: u64, inode_ref: InodeRef) -> Arc<Node> {
        Arc::new(Node {
            number: self.number,
            generation,
            fs_mount: self.fs_mount.clone(),
            inode: self.inode,
            is_directory: self.is_directory,
            inode_ref,
        })
    }

    /// Returns true if the node holds a descriptor.
    pub(super) fn holds_descriptor(&self) -> bool {
        matches!(self.inode_ref, InodeRef::Descriptor(_))
    }

    /// Creates the backing file of a descriptor of this inode.
    fn opened(&self, fd: OwnedFd) -> Backing {
        Backing::with_neighbour(&self.fs_mount.backing, fd, self.fs_mount.device(), self.inode)
    }

    fn is(&self, fs_mount: &FsMount, inode: u64) -> bool {
        self.inode == inode && self.fs_mount.index == fs_mount.index && self.number != ROOT
    }

    /// Returns true if an inode with the same number but another handle is a different file. An
    /// inode that is held by a descriptor cannot be reused.
    fn is_replaced_by(&self, handle: Option<&Handle>) -> bool {
        matches!((&self.inode_ref, handle), (InodeRef::Handle(mine), Some(handle)) if mine != handle)
    }
}

impl backing::Opener for Node {
    fn open_path(&self) -> io::Result<OwnedFd> {
        match &self.inode_ref {
            InodeRef::Handle(handle) => self.fs_mount.open(handle, OFlags::PATH | OFlags::NOFOLLOW),
            InodeRef::Descriptor(backing) => Ok(rustix::io::fcntl_dupfd_cloexec(backing, 3)?),
        }
    }
}

/// A cache of directory descriptors in two generations: when the young generation is full, the old
/// one is dropped.
#[derive(Debug)]
struct DirectoryCache {
    capacity: usize,
    young: FxHashMap<u64, Arc<Backing>>,
    old: FxHashMap<u64, Arc<Backing>>,
}

impl Default for DirectoryCache {
    fn default() -> DirectoryCache {
        DirectoryCache { capacity: DIRECTORIES_MAX, young: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl DirectoryCache {
    fn get(&mut self, number: u64) -> Option<Arc<Backing>> {
        if let Some(backing) = self.young.get(&number) {
            return Some(backing.clone());
        }
        let backing = self.old.remove(&number)?;
        self.insert(number, backing.clone());
        Some(backing)
    }

    fn insert(&mut self, number: u64, backing: Arc<Backing>) {
        if self.young.len() >= self.capacity / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(number, backing);
    }

    fn remove(&mut self, number: u64) {
        self.young.remove(&number);
        self.old.remove(&number);
    }
}

/// Locks a mutex. A panic of another thread leaves these tables consistent, because every change is
/// a single step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
