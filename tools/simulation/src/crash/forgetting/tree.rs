//! The state of the forgetting file system: the visible contents, the durable ones, and the changes
//! from these to those.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use fuser::Errno;
use hoistway_reactor::simulated::Prng;

use super::history::{History, Request};

/// The unit in which a power failure keeps or drops written data.
const SECTOR: usize = 512;
/// The inode number of the root.
pub const ROOT: u64 = 1;

/// A fault of the disk: it acknowledges an operation without its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// `fsync` makes nothing durable; writes with `O_DSYNC` are.
    Fsync,
    /// Writes with `O_DSYNC` are not durable; `fsync` makes them so.
    DurableWrites,
    /// `fsync` of a directory makes no name durable.
    DirectorySync,
    /// One write of fifty is acknowledged and dropped.
    DroppedWrites,
}

/// A change of a file that is visible and not durable yet, or durable out of order.
enum Change {
    Write { offset: usize, data: Vec<u8>, durable: bool },
    Size(usize),
}

/// The contents of a file.
#[derive(Default)]
pub struct File {
    /// The contents that reads return.
    pub seen: Vec<u8>,
    /// The contents after the last sync.
    stable: Vec<u8>,
    /// The changes since then, in order.
    changes: Vec<Change>,
    pub history: History,
}

/// The entries of a directory.
#[derive(Default)]
pub struct Directory {
    pub seen: BTreeMap<OsString, u64>,
    stable: BTreeMap<OsString, u64>,
}

/// The contents of an inode.
pub enum Body {
    File(File),
    Directory(Directory),
}

/// An inode.
pub struct Node {
    pub body: Body,
    pub mode: u32,
    pub owner: (u32, u32),
    pub changed: SystemTime,
}

/// A change of names that takes effect completely or not at all: directory, name, new inode.
pub type NameChange = Vec<(u64, OsString, Option<u64>)>;

type Result<T> = std::result::Result<T, Errno>;

/// The whole state.
pub struct Tree {
    pub nodes: BTreeMap<u64, Node>,
    /// Changes of names that are visible and not durable, in order.
    names: Vec<NameChange>,
    next: u64,
    pub fault: Fault,
    /// The disk has power. Without it every request fails.
    pub powered: bool,
    /// The share of writes and syncs that fail with `EIO`, in permille.
    pub errors_permille: u64,
    /// Requests that failed so far.
    pub errors: u64,
    prng: Prng,
    /// The number of the current mount.
    pub generation: u64,
}

fn node(body: Body, mode: u32, owner: (u32, u32)) -> Node {
    Node { body, mode, owner, changed: SystemTime::now() }
}

impl Tree {
    pub fn new(fault: Fault, seed: u64) -> Tree {
        let root = node(Body::Directory(Directory::default()), 0o755, (0, 0));
        Tree {
            nodes: BTreeMap::from([(ROOT, root)]),
            names: Vec::new(),
            next: ROOT + 1,
            fault,
            powered: true,
            errors_permille: 0,
            errors: 0,
            prng: Prng::new(seed),
            generation: 0,
        }
    }

    /// Fails if the disk has no power.
    pub fn require_power(&self) -> Result<()> {
        if self.powered { Ok(()) } else { Err(Errno::EIO) }
    }

    /// Fails if the disk has no power or by a random error.
    fn try_io(&mut self) -> Result<()> {
        self.require_power()?;
        if self.errors_permille > 0 && self.prng.permille(self.errors_permille) {
            self.errors += 1;
            return Err(Errno::EIO);
        }
        Ok(())
    }

    pub fn node(&mut self, ino: u64) -> Result<&mut Node> {
        self.nodes.get_mut(&ino).ok_or(Errno::ESTALE)
    }

    pub fn file(&mut self, ino: u64) -> Result<&mut File> {
        match &mut self.node(ino)?.body {
            Body::File(file) => Ok(file),
            Body::Directory(_) => Err(Errno::EISDIR),
        }
    }

    pub fn directory(&mut self, ino: u64) -> Result<&mut Directory> {
        match &mut self.node(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            Body::File(_) => Err(Errno::ENOTDIR),
        }
    }

    /// Finds an entry. `.` and `..` occur when an inode is opened by a file handle.
    pub fn lookup(&mut self, parent: u64, name: &OsStr) -> Result<u64> {
        self.require_power()?;
        if name == "." {
            return self.node(parent).map(|_| parent);
        }
        if name == ".." {
            let holds = |node: &Node| match &node.body {
                Body::Directory(directory) => directory.seen.values().any(|ino| *ino == parent),
                Body::File(_) => false,
            };
            return Ok(self.nodes.iter().find(|(_, node)| holds(node)).map_or(ROOT, |(ino, _)| *ino));
        }
        self.directory(parent)?.seen.get(name).copied().ok_or(Errno::ENOENT)
    }

    /// Creates an inode with a name.
    pub fn create(&mut self, parent: u64, name: &OsStr, body: Body, mode: u32, owner: (u32, u32)) -> Result<u64> {
        self.require_power()?;
        if self.directory(parent)?.seen.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        let ino = self.next;
        self.next += 1;
        self.nodes.insert(ino, node(body, mode, owner));
        self.change_names(vec![(parent, name.into(), Some(ino))])?;
        Ok(ino)
    }

    /// Gives a file another name.
    pub fn link(&mut self, ino: u64, parent: u64, name: &OsStr) -> Result<()> {
        self.require_power()?;
        self.file(ino)?;
        if self.directory(parent)?.seen.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        self.change_names(vec![(parent, name.into(), Some(ino))])
    }

    /// Counts the names of an inode.
    pub fn names_of(&self, ino: u64) -> u32 {
        let names = |node: &Node| match &node.body {
            Body::Directory(directory) => directory.seen.values().filter(|named| **named == ino).count(),
            Body::File(_) => 0,
        };
        self.nodes.values().map(|node| names(node) as u32).sum()
    }

    /// Applies a change of names. It is durable after the next sync of one of its directories.
    pub fn change_names(&mut self, change: NameChange) -> Result<()> {
        self.require_power()?;
        for (directory, name, ino) in &change {
            let entries = &mut self.directory(*directory)?.seen;
            match ino {
                Some(ino) => entries.insert(name.clone(), *ino),
                None => entries.remove(name),
            };
        }
        self.names.push(change);
        Ok(())
    }

    /// Writes data, which are durable at once with `durable`.
    pub fn write(&mut self, ino: u64, offset: u64, data: &[u8], durable: bool) -> Result<()> {
        self.try_io()?;
        if self.fault == Fault::DroppedWrites && self.prng.permille(20) {
            return Ok(());
        }
        let durable = durable && self.fault != Fault::DurableWrites;
        self.node(ino)?.changed = SystemTime::now();
        let file = self.file(ino)?;
        let offset = usize::try_from(offset).map_err(|_| Errno::EFBIG)?;
        put(&mut file.seen, offset, data);
        file.history.add(Request::Write { offset, data: data.to_vec(), durable });
        file.changes.push(Change::Write { offset, data: data.to_vec(), durable });
        Ok(())
    }

    /// Reads up to the end of the file.
    pub fn read(&mut self, ino: u64, offset: u64, length: u32) -> Result<Vec<u8>> {
        self.require_power()?;
        let file = self.file(ino)?;
        let (offset, length) = (usize::try_from(offset).map_err(|_| Errno::EINVAL)?, length as usize);
        let start = offset.min(file.seen.len());
        let data = file.seen[start..start.saturating_add(length).min(file.seen.len())].to_vec();
        file.history.add(Request::Read { offset, length, data: data.clone() });
        Ok(data)
    }

    pub fn set_size(&mut self, ino: u64, size: u64) -> Result<()> {
        self.try_io()?;
        self.node(ino)?.changed = SystemTime::now();
        let file = self.file(ino)?;
        let size = usize::try_from(size).map_err(|_| Errno::EFBIG)?;
        let before = file.seen.len();
        file.history.add(Request::Size { before, after: size });
        if size != before {
            file.seen.resize(size, 0);
            file.changes.push(Change::Size(size));
        }
        Ok(())
    }

    /// Makes the data of a file durable. After an error they never become durable, although reads
    /// return them, as in file systems that mark pages clean after a failed write.
    pub fn sync_file(&mut self, ino: u64) -> Result<()> {
        let tried = self.try_io();
        let is_ignored = self.fault == Fault::Fsync;
        let powered = self.powered;
        let file = self.file(ino)?;
        file.history.add(if tried.is_ok() { Request::Sync } else { Request::Failed("sync") });
        match tried {
            Ok(()) if !is_ignored => file.changes.drain(..).for_each(|change| apply(&mut file.stable, &change)),
            Err(_) if powered => file.changes.clear(),
            _ => {}
        }
        tried
    }

    /// Makes all changes of names durable up to the last one in this directory.
    pub fn sync_directory(&mut self, ino: u64) -> Result<()> {
        self.require_power()?;
        if self.fault == Fault::DirectorySync {
            return Ok(());
        }
        let touches = |change: &NameChange| change.iter().any(|(directory, ..)| *directory == ino);
        let count = self.names.iter().rposition(touches).map_or(0, |last| last + 1);
        self.persist_names(count);
        Ok(())
    }

    fn persist_names(&mut self, count: usize) {
        for (directory, name, ino) in self.names.drain(..count).flatten().collect::<Vec<_>>() {
            let Ok(directory) = self.directory(directory) else { continue };
            match ino {
                Some(ino) => directory.stable.insert(name, ino),
                None => directory.stable.remove(&name),
            };
        }
    }

    /// Makes everything durable, as a test does that prepares a disk.
    pub fn sync_all(&mut self) {
        for node in self.nodes.values_mut() {
            if let Body::File(file) = &mut node.body {
                file.changes.clear();
                file.stable.clone_from(&file.seen);
            }
        }
        self.persist_names(self.names.len());
    }

    /// Drops what is not durable, except for random sectors and a random number of the oldest
    /// changes of names. Everything fails from now on.
    pub fn fail_power(&mut self, prng: &mut Prng) {
        if !std::mem::take(&mut self.powered) {
            return;
        }
        let keep_permille = prng.pick(&[0, 300, 900]);
        let kept = if keep_permille == 0 { 0 } else { prng.index(self.names.len() + 1) };
        self.persist_names(kept);
        self.names.clear();
        for node in self.nodes.values_mut() {
            match &mut node.body {
                Body::File(file) => file.crash(prng, keep_permille),
                Body::Directory(directory) => directory.seen.clone_from(&directory.stable),
            }
        }
        let reachable = self.reachable();
        self.nodes.retain(|ino, _| reachable.contains(ino));
    }

    fn reachable(&self) -> BTreeSet<u64> {
        let (mut found, mut pending) = (BTreeSet::new(), vec![ROOT]);
        while let Some(ino) = pending.pop() {
            if let Some(Body::Directory(directory)) = self.nodes.get(&ino).map(|node| &node.body) {
                pending.extend(directory.seen.values().filter(|ino| !found.contains(*ino)));
            }
            found.insert(ino);
        }
        found
    }
}

impl File {
    pub fn of(data: Vec<u8>) -> File {
        File { seen: data.clone(), stable: data, changes: Vec::new(), history: History::default() }
    }

    fn crash(&mut self, prng: &mut Prng, keep_permille: u64) {
        for change in std::mem::take(&mut self.changes) {
            match change {
                Change::Write { durable: true, .. } => apply(&mut self.stable, &change),
                Change::Size(_) if prng.permille(keep_permille) => apply(&mut self.stable, &change),
                Change::Write { offset, data, .. } => {
                    keep_sectors(&mut self.stable, offset, &data, prng, keep_permille)
                }
                Change::Size(_) => {}
            }
        }
        self.seen.clone_from(&self.stable);
    }
}

/// Applies random sectors of a write.
fn keep_sectors(into: &mut Vec<u8>, offset: usize, data: &[u8], prng: &mut Prng, keep_permille: u64) {
    let mut at = offset;
    while at < offset + data.len() {
        let end = ((at / SECTOR + 1) * SECTOR).min(offset + data.len());
        if prng.permille(keep_permille) {
            put(into, at, &data[at - offset..end - offset]);
        }
        at = end;
    }
}

fn apply(into: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, data, .. } => put(into, *offset, data),
        Change::Size(size) => into.resize(*size, 0),
    }
}

/// Writes data, with zeroes before them if the contents end earlier.
fn put(into: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if into.len() < offset + data.len() {
        into.resize(offset + data.len(), 0);
    }
    into[offset..offset + data.len()].copy_from_slice(data);
}
