//! Open directories. Entries are listed in the order and with the offsets of the file system below,
//! so that a reader can seek to any entry.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use fuser::{FileHandle, FopenFlags, INodeNo, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyOpen};
use rustix::fs::{OFlags, SeekFrom, fdatasync, fsync, seek};

use super::attributes::{attributes, kind_of_entry};
use super::fs_mounts::stat_fd;
use super::locks::lock;
use super::lookup::GENERATION;
use super::nodes::{Node, ROOT};
use super::{FsState, errno};
use crate::backing::Backing;
use crate::gate::{Caller, Gate, Operation};

/// Size of a getdents64(2) buffer in bytes, enough for a thousand short names.
const LISTING_BYTES: usize = 32 << 10;

/// Offset of the name in `struct linux_dirent64`.
const NAME_AT: usize = 19;

/// One open directory handle.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    backing: Arc<Backing>,
    node: Arc<Node>,
    listing: Mutex<Listing>,
}

/// Directory records that were read but not yet returned.
#[derive(Debug, Default)]
struct Listing {
    records: Vec<u8>,
    position: usize,
    /// The offset of the next entry to return.
    offset: i64,
}

/// A directory entry.
struct Entry<'a> {
    inode: u64,
    /// The offset of the following entry.
    next: i64,
    kind: u8,
    length: usize,
    name: &'a OsStr,
}

/// A reply that collects entries until it is full.
trait DirectoryReply: Send + 'static {
    /// Adds an entry. Returns true if the entry no longer fits.
    fn add<G: Gate>(&mut self, fs: &FsState<G>, directory: &OpenDirectory, entry: &Entry<'_>) -> io::Result<bool>;
    fn finish(self, listed: io::Result<()>);
}

impl<G: Gate> FsState<G> {
    pub(super) fn open_directory(self: &Arc<Self>, caller: Caller, number: u64, reply: ReplyOpen) {
        let node = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        let target = self.nodes.descriptor(&node).unwrap_or_else(|| self.nodes.placeholder(&node));
        self.run_on(caller, Operation::MetadataRead, &target, move |fs| {
            match fs.nodes.open(&node, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(backing) => {
                    let open = Arc::new(OpenDirectory { backing, node, listing: Mutex::default() });
                    reply.opened(FileHandle(fs.open_directories.insert(open, number)), FopenFlags::empty());
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub(super) fn list_entries(self: &Arc<Self>, caller: Caller, handle: u64, offset: u64, reply: ReplyDirectory) {
        self.list_into(caller, handle, offset, reply, ReplyDirectory::error);
    }

    pub(super) fn list_with_attributes(
        self: &Arc<Self>,
        caller: Caller,
        handle: u64,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.list_into(caller, handle, offset, reply, ReplyDirectoryPlus::error);
    }

    fn list_into<R: DirectoryReply>(
        self: &Arc<Self>,
        caller: Caller,
        handle: u64,
        offset: u64,
        mut reply: R,
        fail: fn(R, fuser::Errno),
    ) {
        let directory = match self.open_directories.get(handle) {
            Ok(directory) => directory,
            Err(error) => return fail(reply, errno(error)),
        };
        self.run_on(caller, Operation::MetadataRead, &directory.backing.clone(), move |fs| {
            let listed = fs.fill_listing(&directory, offset as i64, &mut reply);
            reply.finish(listed);
        });
    }

    fn fill_listing(&self, directory: &OpenDirectory, offset: i64, reply: &mut impl DirectoryReply) -> io::Result<()> {
        let mut listing = lock(&directory.listing);
        if listing.offset != offset {
            seek(&directory.backing, SeekFrom::Start(offset as u64))?;
            *listing = Listing { records: std::mem::take(&mut listing.records), position: usize::MAX, offset };
        }
        let mut added = 0;
        loop {
            if listing.position >= listing.records.len() {
                match listing.refill(&directory.backing) {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    // The entries before the error are returned first.
                    Err(_) if added > 0 => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            let Some(entry) = listing.entry() else { return Err(rustix::io::Errno::IO.into()) };
            if reply.add(self, directory, &entry)? {
                return Ok(());
            }
            added += 1;
            let (length, next) = (entry.length, entry.next);
            listing.position += length;
            listing.offset = next;
        }
    }

    pub(super) fn close_directory(&self, handle: u64) {
        let Some(directory) = self.open_directories.remove(handle) else { return };
        // The kernel may have forgotten the directory already.
        let fs_mount = directory.node.fs_mount.clone();
        drop(directory);
        self.nodes.fs_mounts.release_unused(fs_mount);
    }

    pub(super) fn sync_directory(self: &Arc<Self>, caller: Caller, handle: u64, only_data: bool, reply: ReplyEmpty) {
        let directory = match self.open_directories.get(handle) {
            Ok(directory) => directory,
            Err(error) => return reply.error(errno(error)),
        };
        self.run_on(caller, Operation::Sync, &directory.backing.clone(), move |_| {
            match if only_data { fdatasync(&directory.backing) } else { fsync(&directory.backing) } {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Returns the descriptor of an open directory.
    pub(super) fn opened_directory(&self, handle: u64) -> Option<Arc<Backing>> {
        self.open_directories.get(handle).ok().map(|directory| directory.backing.clone())
    }
}

impl Listing {
    /// Reads the next records. Returns false at the end of the directory.
    fn refill(&mut self, directory: impl AsFd) -> io::Result<bool> {
        self.records.resize(LISTING_BYTES, 0);
        // SAFETY: pointer and length are those of the buffer.
        let read = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory.as_fd().as_raw_fd(),
                self.records.as_mut_ptr(),
                self.records.len(),
            )
        };
        self.position = 0;
        let read = usize::try_from(read).map_err(|_| {
            let error = io::Error::last_os_error();
            self.records.clear();
            error
        })?;
        self.records.truncate(read);
        Ok(read > 0)
    }

    fn entry(&self) -> Option<Entry<'_>> {
        let record = self.records.get(self.position..)?;
        let length = usize::from(u16::from_ne_bytes(record.get(16..18)?.try_into().ok()?));
        let name = record.get(NAME_AT..length)?;
        let name = &name[..name.iter().position(|byte| *byte == 0)?];
        Some(Entry {
            inode: u64::from_ne_bytes(record.get(..8)?.try_into().ok()?),
            next: i64::from_ne_bytes(record.get(8..16)?.try_into().ok()?),
            kind: *record.get(18)?,
            length,
            name: OsStr::from_bytes(name),
        })
    }
}

impl DirectoryReply for ReplyDirectory {
    fn add<G: Gate>(&mut self, fs: &FsState<G>, directory: &OpenDirectory, entry: &Entry<'_>) -> io::Result<bool> {
        let number = fs.nodes.number_of_entry(&directory.node.fs_mount, entry.inode);
        Ok(ReplyDirectory::add(self, INodeNo(number), entry.next as u64, kind_of_entry(entry.kind), entry.name))
    }

    fn finish(self, listed: io::Result<()>) {
        match listed {
            Ok(()) => self.ok(),
            Err(error) => self.error(errno(error)),
        }
    }
}

impl DirectoryReply for ReplyDirectoryPlus {
    fn add<G: Gate>(&mut self, fs: &FsState<G>, directory: &OpenDirectory, entry: &Entry<'_>) -> io::Result<bool> {
        let valid = &fs.options.valid;
        if matches!(entry.name.as_bytes(), b"." | b"..") {
            // The kernel uses type and number of these entries only, and does not count a lookup.
            let mut shown = attributes(&stat_fd(&directory.backing)?, entry.inode);
            shown.kind = fuser::FileType::Directory;
            return Ok(ReplyDirectoryPlus::add(
                self,
                INodeNo(entry.inode),
                entry.next as u64,
                entry.name,
                valid,
                &shown,
                GENERATION,
            ));
        }
        let name = OsString::from(entry.name);
        let found = match fs.lookup_name(&directory.backing, &directory.node.fs_mount, directory.node.number, &name) {
            Ok(found) => found,
            // Removed since it was listed, or the mount itself, which must not be entered from
            // within.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ELOOP)) => return Ok(false),
            // Omitting the name would claim that it does not exist.
            Err(error) => return Err(error),
        };
        let full = ReplyDirectoryPlus::add(
            self,
            found.attributes.ino,
            entry.next as u64,
            entry.name,
            &found.valid(*valid),
            &found.attributes,
            GENERATION,
        );
        if full {
            fs.forget(found.node.number, 1);
        }
        debug_assert_ne!(found.node.number, ROOT);
        Ok(full)
    }

    fn finish(self, listed: io::Result<()>) {
        match listed {
            Ok(()) => self.ok(),
            Err(error) => self.error(errno(error)),
        }
    }
}
