//! The table of nodes: the inodes that the kernel has looked up, by node number (`numbers.rs`).
//!
//! A [`Node`] is reached by file handle where the file system has them, so that a million known
//! inodes cost only memory, and by descriptor elsewhere. A file handle does not keep an inode. Two
//! kinds of inodes are therefore held by descriptors as well:
//!
//! - An inode whose last name was removed through this mount, until the kernel forgets it: another
//!   process may be between the lookup and the open of the replaced file, or may have an `O_PATH`
//!   descriptor or a working directory there. A lookup that overlaps the removal may find the inode
//!   before and enter it into the table after it ([`Removals`]).
//! - An inode that was looked up recently, because a program outside the mount may remove it
//!   (`recent.rs`).
//!
//! A held inode exists, so the file system below cannot give its number to a new file. If an inode
//! vanishes all the same, requests for it fail with `ESTALE` and the kernel looks up the name
//! again.
//!
//! Open descriptors of directories are cached besides, since every lookup starts at one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;
use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::Errno;

use super::descriptors::Descriptors;
use super::files::{Removed, SharedFile};
use super::fs_mounts::{FileId, FsMount, FsMounts, stat_fd};
use super::handle::Handle;
use super::held_descriptor::HeldDescriptor;
use super::locks::lock;
use super::numbers::{Found, Number, NumberTable, Numbered, Place};
use super::recent::RecentDescriptors;
use crate::backing::{self, Backing};
use crate::gate::Caller;
use crate::memory::shrink_map;

/// The node number of the root in every FUSE mount.
pub(super) const ROOT: u64 = 1;

/// Maximum number of cached directory descriptors.
const DIRECTORIES_MAX: usize = 4096;

/// An inode known to the kernel.
#[derive(Debug)]
pub(super) struct Node {
    /// The number by which the kernel refers to the inode.
    pub(super) number: u64,
    /// The inode number that programs see.
    pub(super) shown: u64,
    pub(super) fs_mount: Arc<FsMount>,
    pub(super) inode: u64,
    is_directory: bool,
    inode_ref: InodeRef,
    /// State of the file once it was opened or its last name was removed.
    shared: OnceLock<Arc<SharedFile>>,
}

#[derive(Debug)]
enum InodeRef {
    Handle(Handle),
    Descriptor(HeldDescriptor),
}

/// The number of removals through this mount, taken before an inode is opened by name. If another
/// removal has completed since, the inode may be without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Removals(u64);

/// The node table.
#[derive(Debug)]
pub(super) struct NodeTable {
    numbers: NumberTable<Node>,
    directories: Mutex<DirectoryCache>,
    recent: RecentDescriptors,
    /// Number of nodes that hold a descriptor, and the number above which no further ones should.
    held: Arc<AtomicU64>,
    held_max: AtomicU64,
    /// Number of completed removals of names through this mount.
    removals: AtomicU64,
    pub(super) fs_mounts: FsMounts,
    pub(super) descriptors: Arc<Descriptors>,
}

impl NodeTable {
    /// Creates a table with the root node: `source`, open as `O_PATH`.
    pub(super) fn new(source: OwnedFd, handles: bool) -> io::Result<NodeTable> {
        let descriptors = Arc::new(Descriptors::open()?);
        let nodes = NodeTable {
            numbers: NumberTable::new(),
            directories: Mutex::default(),
            recent: RecentDescriptors::new(),
            held: Arc::default(),
            held_max: AtomicU64::new(u64::MAX),
            removals: AtomicU64::new(0),
            fs_mounts: FsMounts::new(descriptors.clone(), handles),
            descriptors,
        };
        let file_id = FileId::of(&stat_fd(&source)?);
        let fs_mount = nodes.fs_mounts.mount_of(&file_id, &source, None)?;
        let inode_ref = nodes.inode_ref(&fs_mount, source, &file_id);
        let number = Number { node: ROOT, shown: file_id.inode };
        nodes.numbers.insert_fixed(ROOT, Arc::new(Node::new(number, fs_mount, &file_id, inode_ref)));
        Ok(nodes)
    }

    /// Returns the node of a number that the kernel sent. The kernel uses only numbers that it has
    /// looked up, so `ESTALE` indicates a bug.
    pub(super) fn get(&self, number: u64) -> Result<Arc<Node>, Errno> {
        self.numbers.get(number).ok_or(Errno::STALE)
    }

    /// Adds an inode found below `near`, or increases its lookup count. `before` is the number of
    /// removals before the name was opened.
    pub(super) fn insert(
        &self,
        fd: OwnedFd,
        file_id: &FileId,
        near: &Arc<FsMount>,
        before: Removals,
    ) -> io::Result<Arc<Node>> {
        let fs_mount = self.fs_mounts.mount_of(file_id, &fd, Some(near))?;
        let handle = fs_mount.handle_of(&fd);
        let place = fs_mount.place_of(file_id.inode);
        let is_same = |node: &Node| node.is_same(handle.as_ref());
        let make = |number, inode_ref| Arc::new(Node::new(number, fs_mount.clone(), file_id, inode_ref));
        let Some(own_handle) = handle.clone() else {
            let make = |number| make(number, self.inode_ref(&fs_mount, fd, file_id));
            return Ok(self.numbers.look_up(place, is_same, make).into_node());
        };
        let found = self.numbers.look_up(place, is_same, |number| make(number, InodeRef::Handle(own_handle)));
        let is_new = matches!(found, Found::New(_));
        let node = found.into_node();
        if node.holds_descriptor() {
            return Ok(node);
        }
        // The removal that found no node of the inode has left it to this lookup.
        if is_new && self.removals() != before && stat_fd(&fd).is_ok_and(|found| found.stx_nlink == 0) {
            self.hold(&node, fd, Caller { tid: 0, uid: 0, gid: 0 });
        } else {
            self.recent.keep(node.number, fd);
        }
        Ok(node)
    }

    /// Returns the number of removals so far.
    pub(super) fn removals(&self) -> Removals {
        Removals(self.removals.load(Ordering::SeqCst))
    }

    /// Records a removal of a name. If it was the last one of its inode, the inode is held while
    /// the kernel knows it. `fd` was opened by the name. Returns the node if the kernel knows it.
    pub(super) fn note_removal(
        &self,
        near: &Arc<FsMount>,
        fd: OwnedFd,
        file_id: &FileId,
        is_last: bool,
        remover: Caller,
    ) -> Option<Arc<Node>> {
        // Before the search: a lookup that enters the inode later sees the new number.
        self.removals.fetch_add(1, Ordering::SeqCst);
        let fs_mount = self.fs_mounts.mount_of(file_id, &fd, Some(near)).ok()?;
        let handle = fs_mount.handle_of(&fd);
        let node = self.numbers.current(fs_mount.place_of(file_id.inode))?;
        if !node.is_same(handle.as_ref()) {
            return None;
        }
        if is_last && !node.holds_descriptor() {
            self.hold(&node, fd, remover);
        }
        Some(node)
    }

    /// Holds an inode without a name by a descriptor while the kernel knows it.
    fn hold(&self, node: &Node, fd: OwnedFd, remover: Caller) {
        if self.held() > self.held_max.load(Ordering::Relaxed) {
            tracing::debug!("too many descriptors: a removed file fails with ESTALE where it is still in use");
            return;
        }
        let held = HeldDescriptor::new(node.opened(fd), &self.held);
        node.shared().state().removed.get_or_insert(Removed { held, remover });
        self.recent.remove(node.number);
    }

    /// Refers to an inode by its descriptor.
    fn inode_ref(&self, fs_mount: &FsMount, fd: OwnedFd, file_id: &FileId) -> InodeRef {
        let backing = Backing::with_neighbour(&fs_mount.backing, fd, file_id.device, file_id.inode);
        InodeRef::Descriptor(HeldDescriptor::new(backing, &self.held))
    }

    /// Presents an inode that is not open as another one from its next lookup on: the kernel then
    /// has nothing cached of the inode.
    pub(super) fn renew(&self, number: u64) {
        if number != ROOT {
            self.numbers.renew(number);
        }
    }

    /// Returns true if an inode was renewed: the kernel has to look it up again.
    pub(super) fn is_renewed(&self, number: u64) -> bool {
        self.numbers.is_renewed(number)
    }

    /// Decreases the lookup count. Returns the descriptor that held an inode without a name if the
    /// kernel no longer knows the inode.
    pub(super) fn forget(&self, number: u64, count: u64) -> Option<Removed> {
        if number == ROOT {
            return None;
        }
        let node = self.numbers.forget(number, count)?;
        lock(&self.directories).remove(number);
        self.recent.remove(number);
        let removed = node.shared.get().and_then(|shared| shared.state().removed.take());
        let fs_mount = node.fs_mount.clone();
        drop(node);
        self.fs_mounts.release_unused(fs_mount);
        removed
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

    /// Divides a limit of descriptors: half of it is for inodes, an eighth for cached directories,
    /// a sixteenth for recently looked-up inodes. The rest is for open files and for files with
    /// dirty data.
    pub(super) fn limit_descriptors(&self, limit: u64) {
        self.held_max.store(limit / 2, Ordering::Relaxed);
        lock(&self.directories).capacity = usize::try_from(limit / 8).unwrap_or(usize::MAX).min(DIRECTORIES_MAX);
        self.recent.limit(limit / 16);
    }

    /// Returns true if more inodes hold a descriptor than should.
    pub(super) fn exceeds_limit(&self) -> bool {
        self.held() > self.held_max.load(Ordering::Relaxed)
    }

    /// Returns a descriptor of an inode if one is open: its attributes are in memory.
    pub(super) fn descriptor(&self, node: &Node) -> Option<Arc<Backing>> {
        match &node.inode_ref {
            InodeRef::Descriptor(held) => Some(held.backing.clone()),
            InodeRef::Handle(_) => node.open_descriptor().or_else(|| {
                let cached = node.is_directory.then(|| lock(&self.directories).get(node.number)).flatten();
                cached.filter(|backing| backing.inode == node.inode)
            }),
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
            InodeRef::Handle(handle) => match (node.fs_mount.open(handle, flags), node.removed_descriptor()) {
                // A file system may refuse to open an inode without a name by its handle.
                (Err(error), Some(removed)) if error.raw_os_error() == Some(libc::ESTALE) => {
                    self.descriptors.reopen(&*removed, flags)?
                }
                (opened, _) => opened?,
            },
            InodeRef::Descriptor(held) => self.descriptors.reopen(&*held.backing, flags)?,
        };
        let backing = node.opened(fd);
        // A dispatched request covers exactly its own range: read-ahead by the file system below
        // would be unscheduled I/O. The kernel reads ahead above the mount. A descriptor that
        // cannot be read does not accept the advice.
        let _ = fadvise(&backing, 0, None, Advice::Random);
        Ok(Arc::new(backing))
    }

    /// Returns the number to present in a directory listing, where only the inode number is known.
    /// No number is assigned to it.
    pub(super) fn number_of_entry(&self, fs_mount: &FsMount, inode: u64) -> u64 {
        self.numbers.shown(fs_mount.place_of(inode))
    }

    /// Returns the number of known inodes and the number of those that hold a descriptor.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.numbers.len(), self.held())
    }

    /// Closes descriptors of inodes that were looked up before the previous call.
    pub(super) fn age_recent(&self) {
        self.recent.age();
    }

    /// Reduces the tables to the size that the known inodes need, and drops state of files that
    /// holds nothing of use: that of closed files without dirty data whose pages the kernel has to
    /// read again in any case.
    pub(super) fn shrink(&self) {
        self.numbers.for_each_unreferenced(|node| {
            // Without other references of the state, no thread can change it meanwhile.
            if node.shared.get_mut().and_then(Arc::get_mut).is_some_and(|shared| !shared.state().is_useful()) {
                node.shared.take();
            }
        });
        self.numbers.shrink();
        let mut directories = lock(&self.directories);
        shrink_map(&mut directories.young);
        shrink_map(&mut directories.old);
    }

    /// Returns the number of nodes that hold a descriptor.
    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

impl Node {
    fn new(number: Number, fs_mount: Arc<FsMount>, file_id: &FileId, inode_ref: InodeRef) -> Node {
        Node {
            number: number.node,
            shown: number.shown,
            fs_mount,
            inode: file_id.inode,
            is_directory: file_id.is_directory,
            inode_ref,
            shared: OnceLock::new(),
        }
    }

    /// Returns true if the node itself holds a descriptor.
    pub(super) fn holds_descriptor(&self) -> bool {
        matches!(self.inode_ref, InodeRef::Descriptor(..))
    }

    /// Returns the state shared by all handles of the file, creating it if needed.
    pub(super) fn shared(&self) -> &Arc<SharedFile> {
        self.shared.get_or_init(Arc::default)
    }

    /// Returns true if the file was opened, or its last name was removed.
    pub(super) fn has_state(&self) -> bool {
        self.shared.get().is_some()
    }

    /// Returns a descriptor of a file that is open, or of an inode without a name.
    pub(super) fn open_descriptor(&self) -> Option<Arc<Backing>> {
        self.shared.get().and_then(|shared| shared.state().any_descriptor())
    }

    /// Returns the descriptor that holds an inode without a name.
    fn removed_descriptor(&self) -> Option<Arc<Backing>> {
        let shared = self.shared.get()?;
        let state = shared.state();
        state.removed.as_ref().map(|removed| removed.held.backing.clone())
    }

    /// Creates the backing file of a descriptor of this inode.
    pub(super) fn opened(&self, fd: OwnedFd) -> Backing {
        let generation = match &self.inode_ref {
            InodeRef::Handle(handle) => handle.generation(),
            // The number of a held inode is not reused.
            InodeRef::Descriptor(_) => 0,
        };
        let near = &self.fs_mount.backing;
        Backing::with_neighbour(near, fd, self.fs_mount.device(), self.inode).with_generation(generation)
    }

    /// Returns true if an inode with the same number on the same file system is this one. An inode
    /// that is held by a descriptor cannot be reused.
    fn is_same(&self, handle: Option<&Handle>) -> bool {
        !matches!((&self.inode_ref, handle), (InodeRef::Handle(mine), Some(handle)) if mine != handle)
    }
}

impl Numbered for Node {
    fn place(&self) -> Place {
        self.fs_mount.place_of(self.inode)
    }

    fn number(&self) -> Number {
        Number { node: self.number, shown: self.shown }
    }
}

impl backing::Opener for Node {
    fn open_path(&self) -> io::Result<OwnedFd> {
        let held = match &self.inode_ref {
            InodeRef::Handle(handle) => match self.removed_descriptor() {
                None => return self.fs_mount.open(handle, OFlags::PATH | OFlags::NOFOLLOW),
                Some(removed) => removed,
            },
            InodeRef::Descriptor(held) => held.backing.clone(),
        };
        Ok(rustix::io::fcntl_dupfd_cloexec(&*held, 3)?)
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
