//! What the kernel knows of the source: its inodes, by the number under which they are presented.
//!
//! A number is the inode's own wherever it can be, since programs remember numbers longer than the kernel remembers inodes. How an inode is reached
//! - by a handle or by a descriptor - is in its [`Node`]; open descriptors of directories are kept besides, since everything begins at one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::Errno;

use super::descriptors::Descriptors;
use super::handle::Handle;
use super::places::{Place, Places, Spot};
use crate::backing::{self, Backing};

/// The number of the root, of every FUSE mount.
pub(super) const ROOT: u64 = 1;

/// In how many parts the table is locked: more than there are threads.
const SHARDS: usize = 64;

/// Numbers that are given to inodes whose own number is taken; file systems do not get there.
const FIRST_ODD: u64 = 1 << 62;

/// How many descriptors of directories are kept open where handles can open them again, at most.
const DIRECTORIES_MAX: usize = 4096;

/// An inode that the kernel knows.
#[derive(Debug)]
pub(super) struct Node {
    /// What it is presented as.
    pub(super) number: u64,
    /// Tells it from the one that had this number before it.
    pub(super) generation: u64,
    pub(super) place: Arc<Place>,
    pub(super) inode: u64,
    is_directory: bool,
    reach: Reach,
}

#[derive(Debug)]
enum Reach {
    Handle(Handle),
    Descriptor(Arc<Backing>),
}

#[derive(Debug)]
struct Known {
    node: Arc<Node>,
    /// How often the kernel was told of it and has not forgotten it.
    lookups: u64,
}

/// The table.
#[derive(Debug)]
pub(super) struct Nodes {
    shards: Vec<Mutex<FxHashMap<u64, Known>>>,
    /// Inodes that are presented under another number than their place has for them.
    odd: Mutex<FxHashMap<(u32, u64), u64>>,
    next_odd: AtomicU64,
    directories: Mutex<Recent>,
    /// How many inodes are held open by descriptors.
    held: AtomicU64,
    pub(super) places: Places,
    pub(super) descriptors: Arc<Descriptors>,
}

impl Nodes {
    /// A table that knows the root: `source`, opened as `O_PATH`.
    pub(super) fn new(source: OwnedFd, handles: bool) -> io::Result<Nodes> {
        let descriptors = Arc::new(Descriptors::open()?);
        let nodes = Nodes {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            odd: Mutex::default(),
            next_odd: AtomicU64::new(FIRST_ODD),
            directories: Mutex::default(),
            held: AtomicU64::new(0),
            places: Places::new(descriptors.clone(), handles),
            descriptors,
        };
        let spot = Spot::of(&super::places::look_at(&source)?);
        let place = nodes.places.of(&spot, &source, None)?;
        let reach = Reach::Descriptor(Arc::new(Backing::beside(&place.backing, source, spot.device, spot.inode)));
        let node = Arc::new(Node { number: ROOT, generation: 0, place, inode: spot.inode, is_directory: true, reach });
        nodes.shard(ROOT).insert(ROOT, Known { node, lookups: 1 });
        Ok(nodes)
    }

    /// What the kernel means by a number. It asks for nothing that it was not told of, so that `ESTALE` is a mistake of somebody's.
    pub(super) fn get(&self, number: u64) -> Result<Arc<Node>, Errno> {
        self.shard(number).get(&number).map(|known| known.node.clone()).ok_or(Errno::STALE)
    }

    /// Takes in what was found below `near`, as a file that the kernel is told of once more.
    pub(super) fn found(&self, fd: OwnedFd, spot: &Spot, near: &Arc<Place>) -> io::Result<Arc<Node>> {
        let place = self.places.of(spot, &fd, Some(near))?;
        let handle = place.handle_of(&fd);
        let mut number = self.number_of(&place, spot.inode);
        let mut shard = self.shard(number);
        if shard.get(&number).is_some_and(|known| !known.node.is(&place, spot.inode)) {
            // Another file has taken the number in this moment.
            drop(shard);
            number = self.odd_number(&place, spot.inode);
            shard = self.shard(number);
        }
        let before = shard.get_mut(&number).filter(|known| known.node.is(&place, spot.inode));
        if let Some(known) = before.filter(|known| !known.node.is_replaced_by(handle.as_ref())) {
            known.lookups += 1;
            return Ok(known.node.clone());
        }
        // Either it is new, or its number belonged to a file that does not exist any more: then the kernel has to forget the number as often as
        // it was told it, of the one and of the other.
        let (generation, lookups) =
            shard.get(&number).map_or((0, 0), |known| (known.node.generation + 1, known.lookups));
        let reach = match handle {
            Some(handle) => Reach::Handle(handle),
            None => {
                self.held.fetch_add(1, Ordering::Relaxed);
                Reach::Descriptor(Arc::new(Backing::beside(&place.backing, fd, spot.device, spot.inode)))
            }
        };
        let node =
            Arc::new(Node { number, generation, place, inode: spot.inode, is_directory: spot.is_directory, reach });
        if let Some(Known { node, .. }) = shard.insert(number, Known { node: node.clone(), lookups: lookups + 1 }) {
            self.let_go(&node);
        }
        Ok(node)
    }

    /// The kernel has forgotten a file so many times. Says whether it knows nothing of it any more.
    pub(super) fn forget(&self, number: u64, times: u64) -> bool {
        let mut shard = self.shard(number);
        let Some(known) = shard.get_mut(&number) else { return false };
        known.lookups = known.lookups.saturating_sub(times);
        if known.lookups > 0 || number == ROOT {
            return false;
        }
        let node = shard.remove(&number).map(|known| known.node);
        drop(shard);
        if let Some(node) = node {
            self.let_go(&node);
            if number >= FIRST_ODD {
                lock(&self.odd).remove(&(node.place.index, node.inode));
            }
            let place = node.place.clone();
            drop(node);
            self.places.forgot_of(place);
        }
        true
    }

    fn let_go(&self, node: &Node) {
        if let Reach::Descriptor(_) = node.reach {
            self.held.fetch_sub(1, Ordering::Relaxed);
        }
        lock(&self.directories).remove(node.number);
    }

    /// A descriptor of an inode, good for calls that name it and for what is in it.
    pub(super) fn reach(&self, node: &Node) -> io::Result<Arc<Backing>> {
        if let Some(backing) = self.descriptor(node) {
            return Ok(backing);
        }
        let fd = backing::Reach::reach(node)?;
        let backing = Arc::new(node.opened(fd));
        if node.is_directory {
            lock(&self.directories).insert(node.number, backing.clone());
        }
        Ok(backing)
    }

    /// So many descriptors of directories may be kept open.
    pub(super) fn keep_directories(&self, most: u64) {
        lock(&self.directories).most = usize::try_from(most).unwrap_or(usize::MAX).min(DIRECTORIES_MAX);
    }

    /// A descriptor of an inode, if one is open.
    pub(super) fn descriptor(&self, node: &Node) -> Option<Arc<Backing>> {
        match &node.reach {
            Reach::Descriptor(backing) => Some(backing.clone()),
            Reach::Handle(_) if node.is_directory => {
                lock(&self.directories).get(node.number).filter(|backing| backing.inode == node.inode)
            }
            Reach::Handle(_) => None,
        }
    }

    /// Stands for an inode that is not open, until it is its turn to be.
    pub(super) fn stand_in(&self, node: &Arc<Node>) -> Arc<Backing> {
        let near = &node.place.backing;
        // Without a descriptor it is asked for in the name of all that lies there.
        Backing::standing_for(node.inode, node.clone(), near).map_or_else(|_| near.clone(), Arc::new)
    }

    /// Opens an inode to read, write or list it.
    pub(super) fn open(&self, node: &Node, flags: OFlags) -> io::Result<Arc<Backing>> {
        let fd = match &node.reach {
            Reach::Handle(handle) => node.place.open(handle, flags)?,
            Reach::Descriptor(backing) => self.descriptors.reopen(backing, flags)?,
        };
        let backing = node.opened(fd);
        // A turn is for what was asked for: were the file system to read ahead by itself, it would do so out of turn. The kernel reads ahead above the mount.
        // What cannot be read takes no advice.
        let _ = fadvise(&backing, 0, None, Advice::Random);
        Ok(Arc::new(backing))
    }

    /// The number under which an inode is presented, or would be.
    pub(super) fn number_of(&self, place: &Place, inode: u64) -> u64 {
        if let Some(number) = place.number_of(inode) {
            let taken = self.shard(number).get(&number).is_some_and(|known| !known.node.is(place, inode));
            if !taken {
                return number;
            }
        }
        self.odd_number(place, inode)
    }

    /// A number of no file system's own.
    fn odd_number(&self, place: &Place, inode: u64) -> u64 {
        let mut odd = lock(&self.odd);
        *odd.entry((place.index, inode)).or_insert_with(|| self.next_odd.fetch_add(1, Ordering::Relaxed))
    }

    /// The same for an entry of a directory, of which nothing else is known; here a file whose number is taken is not worth a place in a table.
    pub(super) fn number_of_entry(&self, place: &Place, inode: u64) -> u64 {
        lock(&self.odd).get(&(place.index, inode)).copied().or_else(|| place.number_of(inode)).unwrap_or(inode)
    }

    /// How many inodes are known, and how many of them hold a descriptor.
    pub(super) fn counts(&self) -> (u64, u64) {
        let known = self.shards.iter().map(|shard| lock(shard).len() as u64).sum();
        (known, self.held.load(Ordering::Relaxed))
    }

    /// How many inodes hold a descriptor.
    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, FxHashMap<u64, Known>> {
        // Numbers that follow each other go to different shards, those of one group of inodes too.
        let shard = (number ^ number >> 6 ^ number >> 12) as usize % SHARDS;
        lock(&self.shards[shard])
    }
}

impl Node {
    /// Whether it takes a descriptor to know it.
    pub(super) fn holds_descriptor(&self) -> bool {
        matches!(self.reach, Reach::Descriptor(_))
    }

    /// It, by a descriptor.
    fn opened(&self, fd: OwnedFd) -> Backing {
        Backing::beside(&self.place.backing, fd, self.place.device(), self.inode)
    }

    fn is(&self, place: &Place, inode: u64) -> bool {
        self.inode == inode && self.place.index == place.index && self.number != ROOT
    }

    /// Whether an inode with the same number, but another handle, is another file. A descriptor keeps its inode from being given away.
    fn is_replaced_by(&self, handle: Option<&Handle>) -> bool {
        matches!((&self.reach, handle), (Reach::Handle(mine), Some(handle)) if mine != handle)
    }
}

impl backing::Reach for Node {
    fn reach(&self) -> io::Result<OwnedFd> {
        match &self.reach {
            Reach::Handle(handle) => self.place.open(handle, OFlags::PATH | OFlags::NOFOLLOW),
            Reach::Descriptor(backing) => Ok(rustix::io::fcntl_dupfd_cloexec(backing, 3)?),
        }
    }
}

/// Descriptors of directories, those used lately. It has two halves: when the younger one is full, what is in the older one is dropped.
#[derive(Debug)]
struct Recent {
    most: usize,
    young: FxHashMap<u64, Arc<Backing>>,
    old: FxHashMap<u64, Arc<Backing>>,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { most: DIRECTORIES_MAX, young: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl Recent {
    fn get(&mut self, number: u64) -> Option<Arc<Backing>> {
        if let Some(backing) = self.young.get(&number) {
            return Some(backing.clone());
        }
        let backing = self.old.remove(&number)?;
        self.insert(number, backing.clone());
        Some(backing)
    }

    fn insert(&mut self, number: u64, backing: Arc<Backing>) {
        if self.young.len() >= self.most / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(number, backing);
    }

    fn remove(&mut self, number: u64) {
        self.young.remove(&number);
        self.old.remove(&number);
    }
}

/// A panic of another thread leaves these tables whole: every change is one step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
