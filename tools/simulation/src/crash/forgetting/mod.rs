//! A file system (FUSE) in this process that forgets: it keeps every change in memory until a
//! request makes it durable. `fsync` and writes with `O_DSYNC` make data durable, `fsync` of a
//! directory makes its names durable. A power failure drops everything else, but for random parts.

mod history;
mod tree;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use hoistway_reactor::simulated::Prng;

pub use self::tree::Fault;
use self::tree::{Body, Directory, File, NameChange, ROOT, Tree};

const TTL: Duration = Duration::from_secs(60);
const BLOCK: u64 = 4096;

/// How the kernel's page cache above the file system is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Every read and write reaches the file system.
    Bypassed,
    /// The kernel keeps written pages until a sync or its own write-back sends them.
    WriteBack,
}

/// The disk of the file system; clones share it. It outlives mounts.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<Tree>>);

type Result<T> = std::result::Result<T, Errno>;

impl Disk {
    /// Creates an empty file system.
    pub fn new(fault: Fault, seed: u64) -> Disk {
        Disk(Arc::new(Mutex::new(Tree::new(fault, seed))))
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Mounts the file system until the session is dropped.
    pub fn mount(&self, at: &Path, cache: Cache) -> std::result::Result<Session, String> {
        let mut config = fuser::Config::default();
        config.n_threads = Some(3);
        config.acl = fuser::SessionACL::All;
        let generation = {
            let mut tree = self.tree();
            tree.generation += 1;
            tree.generation
        };
        let forgetting = Forgetting { disk: self.clone(), cache, generation };
        match fuser::spawn_mount(forgetting, at, &config) {
            Ok(session) => Ok(Session { _session: session, at: at.to_owned() }),
            Err(error) => Err(format!("cannot mount a file system (FUSE): {error}")),
        }
    }

    /// Creates a durable file in the root, or replaces its contents.
    pub fn put(&self, name: &str, data: Vec<u8>) {
        let mut tree = self.tree();
        if let Ok(ino) = tree.lookup(ROOT, OsStr::new(name)) {
            if let Ok(node) = tree.node(ino) {
                node.body = Body::File(File::of(data));
            }
        } else {
            let _ = tree.create(ROOT, OsStr::new(name), Body::File(File::of(data)), 0o644, (0, 0));
            let _ = tree.sync_directory(ROOT);
        }
    }

    /// Reads a file in the root; `None` if there is none.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let mut tree = self.tree();
        let powered = std::mem::replace(&mut tree.powered, true);
        let ino = tree.lookup(ROOT, OsStr::new(name));
        tree.powered = powered;
        tree.file(ino.ok()?).ok().map(|file| file.seen.clone())
    }

    /// Describes the last requests that concern a byte of a file in the root.
    pub fn history(&self, name: &str, at: usize) -> String {
        let mut tree = self.tree();
        let powered = std::mem::replace(&mut tree.powered, true);
        let ino = tree.lookup(ROOT, OsStr::new(name));
        tree.powered = powered;
        let now = Instant::now();
        let known = ino.and_then(|ino| Ok(tree.file(ino)?.history.of_byte(at, now)));
        known.map_or(String::new(), |requests| requests.iter().map(|request| format!("\n    {request}")).collect())
    }

    /// Makes the disk acknowledge some operations without their effect from now on.
    pub fn set_fault(&self, fault: Fault) {
        self.tree().fault = fault;
    }

    /// Makes everything durable.
    pub fn sync_all(&self) {
        self.tree().sync_all();
    }

    /// Returns true until the power fails.
    pub fn is_on(&self) -> bool {
        self.tree().powered
    }

    /// Switches the power on.
    pub fn power_on(&self) {
        self.tree().powered = true;
    }

    /// Fails the power: changes that are not durable are lost, and all requests fail from now on.
    pub fn fail_power(&self, prng: &mut Prng) {
        self.tree().fail_power(prng);
    }

    /// Lets a share of the writes and syncs fail.
    pub fn set_errors(&self, permille: u64) {
        self.tree().errors_permille = permille;
    }

    /// Returns the number of writes and syncs that failed.
    pub fn errors(&self) -> u64 {
        self.tree().errors
    }
}

/// A mounted file system. Dropping it unmounts.
pub struct Session {
    _session: fuser::BackgroundSession,
    at: PathBuf,
}

impl Drop for Session {
    fn drop(&mut self) {
        // The kernel may still release files of a killed process, so the mount may be busy.
        let _ = rustix::mount::unmount(&self.at, rustix::mount::UnmountFlags::DETACH);
    }
}

/// A mount of the file system.
struct Forgetting {
    disk: Disk,
    cache: Cache,
    /// The number of this mount. The kernel may end I/O of a killed process later; requests of an
    /// earlier mount must not reach the disk of the next round.
    generation: u64,
}

fn attributes(tree: &mut Tree, ino: u64) -> Result<FileAttr> {
    let names = tree.names_of(ino);
    let node = tree.node(ino)?;
    let (kind, size) = match &node.body {
        Body::File(file) => (FileType::RegularFile, file.seen.len() as u64),
        Body::Directory(_) => (FileType::Directory, BLOCK),
    };
    Ok(FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: node.changed,
        ctime: node.changed,
        crtime: UNIX_EPOCH,
        kind,
        perm: (node.mode & 0o7777) as u16,
        nlink: if kind == FileType::Directory { 2 } else { names },
        uid: node.owner.0,
        gid: node.owner.1,
        rdev: 0,
        flags: 0,
        blksize: BLOCK as u32,
    })
}

fn owner(request: &Request) -> (u32, u32) {
    (request.uid(), request.gid())
}

fn done(reply: ReplyEmpty, result: Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Forgetting {
    /// Locks the disk; fails if a later mount has it.
    fn tree(&self) -> Result<MutexGuard<'_, Tree>> {
        let tree = self.disk.tree();
        if tree.generation == self.generation { Ok(tree) } else { Err(Errno::EIO) }
    }

    fn open_flags(&self) -> FopenFlags {
        match self.cache {
            Cache::Bypassed => FopenFlags::FOPEN_DIRECT_IO,
            Cache::WriteBack => FopenFlags::FOPEN_KEEP_CACHE,
        }
    }

    fn reply_entry(&self, tree: &mut Tree, ino: Result<u64>, reply: ReplyEntry) {
        match ino.and_then(|ino| attributes(tree, ino)) {
            Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn rename_within(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: RenameFlags) -> Result<()> {
        let mut tree = self.tree()?;
        let moved = tree.lookup(from.0, from.1)?;
        let replaced = tree.lookup(to.0, to.1).ok();
        if flags.contains(RenameFlags::RENAME_NOREPLACE) && replaced.is_some() {
            return Err(Errno::EEXIST);
        }
        let left =
            if flags.contains(RenameFlags::RENAME_EXCHANGE) { Some(replaced.ok_or(Errno::ENOENT)?) } else { None };
        let change: NameChange = vec![(from.0, from.1.into(), left), (to.0, to.1.into(), Some(moved))];
        tree.change_names(change)
    }

    fn remove(&self, parent: u64, name: &OsStr) -> Result<()> {
        let mut tree = self.tree()?;
        let ino = tree.lookup(parent, name)?;
        if let Ok(directory) = tree.directory(ino)
            && !directory.seen.is_empty()
        {
            return Err(Errno::ENOTEMPTY);
        }
        tree.change_names(vec![(parent, name.into(), None)])
    }

    /// Zeroes a range, or extends the file.
    fn allocate(&self, ino: u64, offset: u64, length: u64, mode: i32) -> Result<()> {
        let mut tree = self.tree()?;
        let size = tree.file(ino)?.seen.len() as u64;
        let keeps_size = mode & (libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE) != 0;
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0 {
            let end = (offset + length).min(size);
            if offset < end {
                tree.write(ino, offset, &vec![0; (end - offset) as usize], false)?;
            }
        } else if mode & !libc::FALLOC_FL_KEEP_SIZE != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if keeps_size || offset + length <= size { Ok(()) } else { tree.set_size(ino, offset + length) }
    }
}

impl Filesystem for Forgetting {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _ = config.add_capabilities(InitFlags::FUSE_EXPORT_SUPPORT | InitFlags::FUSE_PARALLEL_DIROPS);
        if self.cache == Cache::WriteBack {
            config
                .add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE)
                .map_err(|_| std::io::Error::other("the kernel has no write-back cache for FUSE"))?;
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut tree = match self.tree() {
            Ok(tree) => tree,
            Err(error) => return reply.error(error),
        };
        let found = tree.lookup(parent.0, name);
        self.reply_entry(&mut tree, found, reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree().and_then(|mut tree| attributes(&mut tree, ino.0)) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut tree = match self.tree() {
            Ok(tree) => tree,
            Err(error) => return reply.error(error),
        };
        let resized = size.map_or(tree.require_power(), |size| tree.set_size(ino.0, size));
        let changed = resized.and_then(|()| {
            let node = tree.node(ino.0)?;
            node.mode = mode.unwrap_or(node.mode);
            node.owner = (uid.unwrap_or(node.owner.0), gid.unwrap_or(node.owner.1));
            attributes(&mut tree, ino.0)
        });
        match changed {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, _: u32, reply: ReplyEntry) {
        let mut tree = match self.tree() {
            Ok(tree) => tree,
            Err(error) => return reply.error(error),
        };
        let made = tree.create(parent.0, name, Body::File(File::default()), mode, owner(request));
        self.reply_entry(&mut tree, made, reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let mut tree = match self.tree() {
            Ok(tree) => tree,
            Err(error) => return reply.error(error),
        };
        let made = tree.create(parent.0, name, Body::Directory(Directory::default()), mode, owner(request));
        self.reply_entry(&mut tree, made, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.remove(parent.0, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.remove(parent.0, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        done(reply, self.rename_within((parent.0, name), (to.0, new_name), flags));
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut tree = match self.tree() {
            Ok(tree) => tree,
            Err(error) => return reply.error(error),
        };
        let linked = tree.link(ino.0, parent.0, name);
        self.reply_entry(&mut tree, linked.map(|()| ino.0), reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), self.open_flags());
    }

    fn create(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, _: i32, reply: ReplyCreate) {
        let mut tree = match self.tree() {
            Ok(tree) => tree,
            Err(error) => return reply.error(error),
        };
        let made = tree.create(parent.0, name, Body::File(File::default()), mode, owner(request));
        match made.and_then(|ino| attributes(&mut tree, ino)) {
            Ok(attr) => reply.created(&TTL, &attr, Generation(0), FileHandle(0), self.open_flags()),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.tree().and_then(|mut tree| tree.read(ino.0, offset, size)) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let durable = flags.0 & libc::O_DSYNC != 0;
        match self.tree().and_then(|mut tree| tree.write(ino.0, offset, data, durable)) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        done(reply, self.allocate(ino.0, offset, length, mode));
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.tree().and_then(|mut tree| tree.sync_file(ino.0)));
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.tree().and_then(|mut tree| tree.sync_directory(ino.0)));
    }

    /// Handles a close, which makes no data durable.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut tree = match self.tree() {
            Ok(tree) => tree,
            Err(error) => return reply.error(error),
        };
        let entries: Vec<_> = match tree.directory(ino.0) {
            Ok(directory) => directory.seen.iter().map(|(name, ino)| (name.clone(), *ino)).collect(),
            Err(error) => return reply.error(error),
        };
        for (at, (name, ino)) in entries.into_iter().enumerate().skip(offset as usize) {
            let is_directory = tree.directory(ino).is_ok();
            let kind = if is_directory { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(ino), at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, BLOCK as u32, 255, BLOCK as u32);
    }
}
