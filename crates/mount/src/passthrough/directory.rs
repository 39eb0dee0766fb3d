//! Directories that are open: their entries, in the file system's own order and with its own offsets, so that a reader may go back to any of them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use fuser::{FileHandle, FopenFlags, INodeNo, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyOpen};
use rustix::fs::{OFlags, SeekFrom, fdatasync, fsync, seek};

use super::attributes::{attributes, kind_of_entry};
use super::nodes::{Node, ROOT, lock};
use super::places::look_at;
use super::{Through, errno};
use crate::backing::Backing;
use crate::gate::{Asker, Gate, Operation};

/// What is asked of the file system below at once, in bytes: a thousand short names.
const LISTING_BYTES: usize = 32 << 10;

/// Where the name begins in the kernel's record of an entry (`linux_dirent64`).
const NAME_AT: usize = 19;

/// A directory that was opened once.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    backing: Arc<Backing>,
    node: Arc<Node>,
    listing: Mutex<Listing>,
}

/// What was read of a directory and not handed on yet.
#[derive(Debug, Default)]
struct Listing {
    records: Vec<u8>,
    at: usize,
    /// The offset that the next entry is asked for with.
    offset: i64,
}

/// An entry of a directory.
struct Entry<'a> {
    inode: u64,
    /// With this offset the one after it is asked for.
    next: i64,
    kind: u8,
    length: usize,
    name: &'a OsStr,
}

/// Where entries are put until there is no room.
trait Reply: Send + 'static {
    /// Says whether it was full before.
    fn add<G: Gate>(&mut self, through: &Through<G>, directory: &OpenDirectory, entry: &Entry<'_>) -> io::Result<bool>;
    fn finish(self, listed: io::Result<()>);
}

impl<G: Gate> Through<G> {
    pub(super) fn open_directory(self: &Arc<Self>, asker: Asker, number: u64, reply: ReplyOpen) {
        let node = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        let on = self.nodes.descriptor(&node).unwrap_or_else(|| self.nodes.stand_in(&node));
        self.run_on(asker, Operation::Look, &on, move |through| {
            match through.nodes.open(&node, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(backing) => {
                    let open = Arc::new(OpenDirectory { backing, node, listing: Mutex::default() });
                    reply.opened(FileHandle(through.open_directories.insert(open, number)), FopenFlags::empty());
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub(super) fn list(self: &Arc<Self>, asker: Asker, handle: u64, offset: u64, reply: ReplyDirectory) {
        self.list_into(asker, handle, offset, reply, ReplyDirectory::error);
    }

    pub(super) fn list_with_attributes(
        self: &Arc<Self>,
        asker: Asker,
        handle: u64,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.list_into(asker, handle, offset, reply, ReplyDirectoryPlus::error);
    }

    fn list_into<R: Reply>(
        self: &Arc<Self>,
        asker: Asker,
        handle: u64,
        offset: u64,
        mut reply: R,
        fail: fn(R, fuser::Errno),
    ) {
        let directory = match self.open_directories.get(handle) {
            Ok(directory) => directory,
            Err(error) => return fail(reply, errno(error)),
        };
        self.run_on(asker, Operation::Look, &directory.backing.clone(), move |through| {
            let listed = through.fill(&directory, offset as i64, &mut reply);
            reply.finish(listed);
        });
    }

    fn fill(&self, directory: &OpenDirectory, offset: i64, reply: &mut impl Reply) -> io::Result<()> {
        let mut listing = lock(&directory.listing);
        if listing.offset != offset {
            seek(&directory.backing, SeekFrom::Start(offset as u64))?;
            *listing = Listing { records: std::mem::take(&mut listing.records), at: usize::MAX, offset };
        }
        let mut added = 0;
        loop {
            if listing.at >= listing.records.len() {
                match listing.refill(&directory.backing) {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    // What was found before the fault is told first.
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
            listing.at += length;
            listing.offset = next;
        }
    }

    pub(super) fn close_directory(&self, handle: u64) {
        self.open_directories.remove(handle);
    }

    pub(super) fn sync_directory(self: &Arc<Self>, asker: Asker, handle: u64, only_data: bool, reply: ReplyEmpty) {
        let directory = match self.open_directories.get(handle) {
            Ok(directory) => directory,
            Err(error) => return reply.error(errno(error)),
        };
        self.run_on(asker, Operation::Sync, &directory.backing.clone(), move |_| {
            match if only_data { fdatasync(&directory.backing) } else { fsync(&directory.backing) } {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// A descriptor of a directory that is open.
    pub(super) fn opened_directory(&self, handle: u64) -> Option<Arc<Backing>> {
        self.open_directories.get(handle).ok().map(|directory| directory.backing.clone())
    }
}

impl Listing {
    /// Reads the next records. Says whether there are any.
    fn refill(&mut self, directory: impl AsFd) -> io::Result<bool> {
        self.records.resize(LISTING_BYTES, 0);
        // SAFETY: the buffer is as long as is said.
        let read = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory.as_fd().as_raw_fd(),
                self.records.as_mut_ptr(),
                self.records.len(),
            )
        };
        self.at = 0;
        let read = usize::try_from(read).map_err(|_| {
            let error = io::Error::last_os_error();
            self.records.clear();
            error
        })?;
        self.records.truncate(read);
        Ok(read > 0)
    }

    fn entry(&self) -> Option<Entry<'_>> {
        let record = self.records.get(self.at..)?;
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

impl Reply for ReplyDirectory {
    fn add<G: Gate>(&mut self, through: &Through<G>, directory: &OpenDirectory, entry: &Entry<'_>) -> io::Result<bool> {
        let number = through.nodes.number_of_entry(&directory.node.place, entry.inode);
        Ok(ReplyDirectory::add(self, INodeNo(number), entry.next as u64, kind_of_entry(entry.kind), entry.name))
    }

    fn finish(self, listed: io::Result<()>) {
        match listed {
            Ok(()) => self.ok(),
            Err(error) => self.error(errno(error)),
        }
    }
}

impl Reply for ReplyDirectoryPlus {
    fn add<G: Gate>(&mut self, through: &Through<G>, directory: &OpenDirectory, entry: &Entry<'_>) -> io::Result<bool> {
        let valid = &through.options.valid;
        if matches!(entry.name.as_bytes(), b"." | b"..") {
            // The kernel takes the type and the number of these, and counts no look-up.
            let mut shown = attributes(&look_at(&directory.backing)?, entry.inode);
            shown.kind = fuser::FileType::Directory;
            return Ok(ReplyDirectoryPlus::add(
                self,
                INodeNo(entry.inode),
                entry.next as u64,
                entry.name,
                valid,
                &shown,
                fuser::Generation(0),
            ));
        }
        let name = OsString::from(entry.name);
        let found = match through.look_up(&directory.backing, &directory.node.place, directory.node.number, &name) {
            Ok(found) => found,
            // Removed since it was listed, or the mount itself, which must not be looked into from within.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ELOOP)) => return Ok(false),
            // To leave a name out would be to say that it is not there.
            Err(error) => return Err(error),
        };
        let full = ReplyDirectoryPlus::add(
            self,
            found.attributes.ino,
            entry.next as u64,
            entry.name,
            valid,
            &found.attributes,
            found.generation(),
        );
        if full {
            through.forget(found.node.number, 1);
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
