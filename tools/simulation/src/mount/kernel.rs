//! The kernel below the mount: the page cache, writes of pages, the journal, and system calls.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::{Arc, Weak};

use hoistway_mount::Backing;
use hoistway_mount::scheduled::Fault;
use hoistway_mount::scheduled::simulated::Host;

use super::file_system::{FileSystem, Key};
use super::inode::{Inode, PAGE};
use super::judge::{FileId, NameChange};
use super::machine::{Machine, Owner, machine};
use super::plan::{FaultBelow, Sabotage};

/// All pages of a file.
const ALL: Range<usize> = 0..usize::MAX;
/// The key that stands for the directory of a file system.
pub(super) const DIRECTORY_KEY: Key = 0;

/// Pages of the pool below which the file system may refuse to sync.
const ROOM_PAGES: u64 = 64;

/// The error of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncError {
    /// The sync failed before it wrote anything.
    Refused(i32),
    /// Pages were not written, now or earlier (errseq).
    Lost(i32),
}

impl Machine {
    /// Calls `act` with a file system.
    pub fn with_system<T>(&self, device: u64, act: impl FnOnce(&mut FileSystem) -> T) -> Option<T> {
        self.file_systems.borrow_mut().get_mut(&device).map(act)
    }

    /// Calls `act` with a file that exists.
    pub fn with<T>(&self, file: FileId, act: impl FnOnce(&mut Inode) -> T) -> Option<T> {
        self.with_system(file.0, |system| system.inodes.get_mut(&file.1).map(act)).flatten()
    }

    /// Opens a description of a file.
    pub fn open(&self, file: FileId) -> Option<OwnedFd> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.null, 3).ok()?;
        let since = self.with(file, |inode| inode.sample()).unwrap_or(0);
        self.descriptors.borrow_mut().insert(fd.as_raw_fd(), (file, since));
        Some(fd)
    }

    /// Records an open file, which exists until `backing` is dropped.
    pub fn note_open(&self, file: FileId, backing: &Arc<Backing>) {
        self.opened.borrow_mut().push((file, Arc::downgrade(backing)));
    }

    /// Returns the files of a file system that are open.
    fn open_files(&self, device: u64) -> BTreeSet<Key> {
        let mut opened = self.opened.borrow_mut();
        opened.retain(|(_, backing)| Weak::strong_count(backing) > 0);
        opened.iter().filter(|(file, _)| file.0 == device).map(|(file, _)| file.1).collect()
    }

    fn file_of(&self, fd: RawFd) -> Option<FileId> {
        self.descriptors.borrow().get(&fd).map(|(file, _)| *file)
    }

    fn report(&self, fd: RawFd) -> Option<i32> {
        let mut descriptors = self.descriptors.borrow_mut();
        let (file, since) = descriptors.get_mut(&fd)?;
        self.with(*file, |inode| inode.report(since)).flatten()
    }

    /// Returns a file that has a name.
    pub fn lookup(&self, device: u64, name: u64) -> Option<FileId> {
        self.with_system(device, |system| system.names.get(&name).copied()).flatten().map(|key| (device, key))
    }

    /// Creates a file. `None`: the name exists.
    pub fn create(&self, device: u64, name: u64) -> Option<FileId> {
        let open = self.open_files(device);
        let key = self.with_system(device, |system| {
            system.drop_unlinked(&open);
            (!system.names.contains_key(&name)).then(|| system.create(name, &open))
        });
        let key = key.flatten()?;
        self.note(&[5, device, name, key], format_args!("{device}: {name} created as {key}"));
        self.judge.borrow_mut().note_name(device, NameChange::Added(name, key));
        Some((device, key))
    }

    /// Removes a name. Returns its file.
    pub fn unlink(&self, device: u64, name: u64) -> Option<FileId> {
        let key = self.with_system(device, |system| system.unlink(name)).flatten()?;
        self.note(&[6, device, name, key], format_args!("{device}: {name} unlinked from {key}"));
        self.judge.borrow_mut().note_name(device, NameChange::Removed(name, key));
        Some((device, key))
    }

    /// Renames a file. Returns the file that was replaced.
    pub fn rename(&self, device: u64, from: u64, to: u64) -> Option<FileId> {
        let (key, replaced) = self.with_system(device, |system| system.rename(from, to)).flatten()?;
        self.note(&[7, device, from, to, key], format_args!("{device}: {from} ({key}) renamed to {to}"));
        let mut judge = self.judge.borrow_mut();
        judge.note_name(device, NameChange::Renamed(from, to, key));
        replaced.map(|replaced| {
            let unwritten = self.with((device, key), |inode| {
                inode.unwritten().into_iter().map(|page| (page, inode.live().at(page))).collect()
            });
            judge.note_replacing((device, key), unwritten.unwrap_or_default());
            (device, replaced)
        })
    }

    /// Truncates a file, or extends it by a hole.
    pub fn truncate(&self, file: FileId, pages: usize) {
        self.wait_for_pages(file, &ALL);
        let number = self.note(&[3, file.0, file.1, pages as u64], format_args!("{file:?} truncated to {pages}"));
        self.with_system(file.0, |system| {
            if let Some(inode) = system.inodes.get_mut(&file.1) {
                inode.truncate(pages, number);
                system.change(file.1, true);
            }
        });
    }

    /// Writes pages into the page cache. Returns the number of pages, and the number of the write.
    ///
    /// # Errors
    /// `ENOSPC` if the file system has no room for the first page.
    pub fn write(&self, file: FileId, pages: Range<usize>) -> Result<(usize, u64), i32> {
        let open = self.open_files(file.0);
        let fits = self.with_system(file.0, |system| {
            system.drop_unlinked(&open);
            let free = system.free_pages(&open);
            let live = system.inodes.get(&file.1).map(Inode::live)?;
            let mut new = 0;
            let fits = pages.clone().take_while(|page| {
                new += u64::from(!live.is_stored(*page));
                new <= free
            });
            Some(fits.count())
        });
        let fits = fits.flatten().unwrap_or(0);
        let line = format_args!("{file:?} {pages:?} written, {fits} pages fit");
        let number = self.note(&[2, file.0, file.1, pages.start as u64, fits as u64], line);
        if fits == 0 {
            return Err(libc::ENOSPC);
        }
        self.with(file, |inode| inode.write(pages.start..pages.start + fits, number));
        Ok((fits, number))
    }

    /// Writes pages past the page cache, as with `O_DIRECT`. Returns the number of the write.
    ///
    /// # Errors
    /// The disk fails, or has no room.
    pub fn write_directly(&self, file: FileId, pages: Range<usize>) -> Result<u64, i32> {
        // Pages that are written while others of them are under write-back become dirty again. The
        // kernel does not write past dirty pages of its cache.
        while self.with(file, |inode| inode.is_unwritten(&pages)).unwrap_or(false) {
            self.write_pages(file, pages.clone());
        }
        let line = format_args!("{file:?} {pages:?} written directly");
        let number = self.note(&[8, file.0, file.1, pages.start as u64, pages.len() as u64], line);
        let error = self.write_to_disk(file, pages.len());
        let error = error.or_else(|| self.allocation_error(file, pages.len()));
        if let Some(errno) = error {
            return Err(errno);
        }
        if self.with(file, |inode| inode.write_directly(pages, number)).unwrap_or(false) {
            self.with_system(file.0, |system| system.change(file.1, true));
        }
        Ok(number)
    }

    /// Waits until no page of a range is under write-back.
    fn wait_for_pages(&self, file: FileId, pages: &Range<usize>) {
        while self.with(file, |inode| inode.is_busy(pages)).unwrap_or(false) {
            self.wait_for_disk();
        }
    }

    /// Starts to write the dirty pages of a range to the disk.
    fn start_write(&self, file: FileId, pages: Range<usize>) {
        let taken = self.with(file, |inode| inode.begin_write(pages)).unwrap_or_default();
        if !taken.is_empty() {
            self.spawn(Owner::Kernel, Box::new(move || machine().write_taken(file, &taken)));
        }
    }

    /// Waits as long as the disk takes to write pages. Returns an error of the disk.
    fn write_to_disk(&self, file: FileId, pages: usize) -> Option<i32> {
        let (fails, takes_ns) = {
            let mut prng = self.prng.borrow_mut();
            let hang_ns = if prng.permille(10) { prng.between(1, 4) * 1_000_000_000 } else { 0 };
            (
                prng.permille(self.fails_permille),
                prng.between(self.write_ns.0, self.write_ns.1) + 4_000 * pages as u64 + hang_ns,
            )
        };
        self.sleep(takes_ns);
        let numbers = [1, file.0, file.1, pages as u64, u64::from(fails)];
        self.note(&numbers, format_args!("{file:?}: {pages} pages on the disk, fails: {fails}"));
        fails.then_some(libc::EIO)
    }

    /// Returns `ENOSPC` if the pool below has no room for pages.
    fn allocation_error(&self, file: FileId, pages: usize) -> Option<i32> {
        let free = self.with_system(file.0, |system| system.free_blocks())?;
        (pages as u64 > free).then_some(libc::ENOSPC)
    }

    fn write_taken(&self, file: FileId, taken: &[(usize, u64)]) {
        let error = self.write_to_disk(file, taken.len());
        let new = self.with(file, |inode| inode.count_new(taken)).unwrap_or(0);
        let error = error.or_else(|| self.allocation_error(file, new));
        if error.is_some() {
            self.judge.borrow_mut().note_lost(file, taken);
        }
        self.with_system(file.0, |system| {
            let is_mapped = system.inodes.get_mut(&file.1).is_some_and(|inode| inode.end_write(taken, error));
            if is_mapped {
                system.change(file.1, true);
            }
        });
        self.wake_waiting();
    }

    /// Writes the dirty pages of a range to the disk, and waits for them.
    fn write_pages(&self, file: FileId, pages: Range<usize>) {
        self.wait_for_pages(file, &pages);
        self.start_write(file, pages.clone());
        self.wait_for_pages(file, &pages);
    }

    /// Writes and waits as sync_file_range(2). Returns the error that the description reports.
    fn write_and_report(&self, file: FileId, fd: RawFd, pages: Range<usize>) -> Option<i32> {
        self.wait_for_pages(file, &pages);
        // The wait for earlier writes may report an error of theirs, before anything is written.
        let errno = if self.prng.borrow_mut().permille(500) { self.report(fd) } else { None };
        if errno.is_some() {
            self.with(file, |inode| inode.leave(pages));
            return errno;
        }
        self.start_write(file, pages.clone());
        self.wait_for_pages(file, &pages);
        self.report(fd)
    }

    /// Writes dirty pages as the kernel does by itself.
    pub fn flush_some(&self, file: FileId, pages: Range<usize>) {
        self.start_write(file, pages);
    }

    /// Begins to commit the running transaction if it has changes.
    pub fn start_commit(&self, device: u64) {
        let must_start = |system: &mut FileSystem| {
            let has_changes = !system.is_durable(system.last_change());
            has_changes && !std::mem::replace(&mut system.is_committing, true)
        };
        if self.with_system(device, must_start).unwrap_or(false) {
            self.spawn(Owner::Kernel, Box::new(move || machine().commit_now(device)));
        }
    }

    fn commit_now(&self, device: u64) {
        loop {
            let ordered = self.with_system(device, FileSystem::take_ordered).unwrap_or_default();
            if ordered.is_empty() {
                break;
            }
            for key in ordered {
                self.write_pages((device, key), ALL);
            }
        }
        self.with_system(device, FileSystem::begin_commit);
        let takes_ns = self.prng.borrow_mut().magnitude(5_000_000);
        self.sleep(takes_ns);
        let open = self.open_files(device);
        self.with_system(device, |system| {
            system.finish_commit();
            system.is_committing = false;
            system.drop_unlinked(&open);
        });
        self.note(&[9, device], format_args!("{device}: transaction committed"));
        self.wake_waiting();
    }

    /// Waits until a transaction is durable.
    fn commit(&self, device: u64, transaction: u64) {
        while !self.with_system(device, |system| system.is_durable(transaction)).unwrap_or(true) {
            self.start_commit(device);
            self.wait_for_disk();
        }
    }

    /// Makes the names of a directory durable as fsync(2).
    pub fn sync_directory(&self, device: u64) {
        if !self.has_fault(FaultBelow::DirectorySyncDoesNothing) {
            let last = self.with_system(device, |system| system.last_change()).unwrap_or(0);
            self.commit(device, last);
        }
    }

    /// Makes a file durable as fsync(2), or as fdatasync(2) with `only_data`.
    ///
    /// # Errors
    /// The file system cannot begin, or a write-back error that this description has not reported.
    pub fn sync(&self, file: FileId, fd: RawFd, only_data: bool) -> Result<(), SyncError> {
        let is_full = self.with_system(file.0, |system| system.free_blocks() < ROOM_PAGES).unwrap_or(false);
        if is_full && self.prng.borrow_mut().permille(500) {
            let _ = self.report(fd);
            return Err(SyncError::Refused(libc::ENOSPC));
        }
        if !self.has_fault(FaultBelow::SyncDoesNothing) {
            self.write_pages(file, ALL);
            let transaction = self.with(file, |inode| if only_data { inode.mapped_in } else { inode.changed_in });
            self.commit(file.0, transaction.unwrap_or(0));
            let begun = self.with(file, |inode| inode.mapped()).unwrap_or_default();
            let takes_ns = self.prng.borrow_mut().magnitude(5_000_000);
            self.sleep(takes_ns);
            self.with(file, |inode| inode.flush(&begun));
        }
        self.report(fd).map_or(Ok(()), |errno| Err(SyncError::Lost(errno)))
    }
}

impl Host for Machine {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn start(&self, job: Box<dyn FnOnce() + Send>) {
        self.spawn(Owner::Mount, job);
    }

    fn exists(&self, _: u32) -> bool {
        true
    }

    fn is_killed(&self, tid: u32) -> bool {
        self.killed.borrow().contains(&tid)
    }

    fn io_priority(&self, tid: u32) -> u16 {
        // Classes real-time, best-effort and idle, or none.
        (tid as u16 % 4) << 13
    }

    fn descriptors_max(&self) -> u64 {
        1024
    }

    fn disk(&self, device: u64) -> (u64, bool) {
        (1 << 40, device.is_multiple_of(2))
    }

    fn links(&self, fd: RawFd) -> u64 {
        self.file_of(fd).and_then(|file| self.with(file, |inode| inode.links)).unwrap_or(0)
    }

    fn reopen(&self, fd: RawFd) -> Option<OwnedFd> {
        if self.reopens { self.open(self.file_of(fd)?) } else { None }
    }

    fn write_range(&self, fd: RawFd, (start, end): (u64, u64), waits: bool) -> io::Result<()> {
        let Some(file) = self.file_of(fd) else { return Ok(()) };
        let pages = (start / PAGE) as usize..end.div_ceil(PAGE) as usize;
        if !waits {
            self.start_write(file, pages.clone());
            // Pages that were under write-back are left to the kernel.
            self.with(file, |inode| inode.leave(pages));
            return Ok(());
        }
        self.written_back.borrow_mut().push(file);
        let error = self.write_and_report(file, fd, pages);
        let mut written_back = self.written_back.borrow_mut();
        if let Some(at) = written_back.iter().position(|other| *other == file) {
            written_back.swap_remove(at);
        }
        error.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    fn fault(&self) -> Option<Fault> {
        match self.sabotage? {
            Sabotage::Gate(fault) => Some(fault),
            Sabotage::Below(_) => None,
        }
    }
}
