//! Looks up where the data of files begin on the disk.
//!
//! Files are processed in inode order, so that the inodes are read in one sweep. On ext4 the
//! offsets come from the inode tables if the device may be read. Elsewhere the file system reports
//! the extents of each file (`FS_IOC_FIEMAP`).

mod inode_tables;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{Operation, PathError, WalkError};
use crate::fiemap::{Extent, ExtentReader, ExtentState};
use crate::open;
use crate::tree::{EntryId, FileKind, Placement, Tree};
use inode_tables::MountedTables;

/// Files per batch. Small, so that all threads job in the same region of the disk.
const BATCH_FILES: usize = 256;
/// Extents of the first ioctl. Most files have one extent, and of most others the first decides.
const FIRST_CALL_EXTENTS: usize = 2;

/// Options of [`locate`].
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Number of threads; 0 for one per processor and at most 4.
    pub threads: usize,
    /// Write dirty data first, so that it has an offset: of each file, or of a whole file system
    /// whose inode tables are read.
    pub sync: bool,
    /// Read the extents of each file, even if the inode tables could be read.
    pub skip_inode_tables: bool,
    /// Called now and then with the number of files that are done.
    pub progress: Option<&'a dyn Fn(usize)>,
}

/// Counters of one [`locate`] call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocateSummary {
    /// Regular files among the given entries.
    pub files: usize,
    /// Files whose offset was read from the inode tables of the device. These files were not
    /// opened.
    pub from_inode_tables: usize,
    /// Files whose data are dirty in memory; their placement is [`Placement::Unknown`].
    pub not_written: usize,
    /// File systems that do not report extents: device number and number of files.
    pub unsupported: Vec<(u64, usize)>,
}

/// Looks up the offset of each regular file among `ids` and stores it in the tree. Works on several
/// threads in inode order.
///
/// The placement of a file is the offset of its first written extent; holes and unwritten extents
/// do not count. A file without such an extent becomes [`Placement::NoData`]. A file that cannot be
/// opened is passed to `on_error` and becomes [`Placement::Unknown`]. The same holds for all files
/// of a file system that does not report extents; `on_error` receives one such file per file
/// system.
///
/// # Panics
/// If one of `ids` belongs to another tree.
pub fn locate(
    tree: &mut Tree,
    ids: &[EntryId],
    options: &Options<'_>,
    on_error: &mut dyn FnMut(PathError),
) -> LocateSummary {
    let files = in_inode_order(tree, ids);
    let mut summary = LocateSummary { files: files.len(), ..LocateSummary::default() };
    let mut placements = vec![Placement::Unknown; files.len()];
    let tables =
        if options.skip_inode_tables { MountedTables::none() } else { MountedTables::of(tree, &files, options.sync) };
    let job = LocateJob::new(tree, &files, tables);
    let sync = options.sync;
    let threads = threads(options.threads).min(files.len().div_ceil(BATCH_FILES)).max(1);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..threads {
            let (sender, job) = (sender.clone(), &job);
            scope.spawn(move || job.run(sync, &sender));
        }
        drop(sender);
        let mut done = 0;
        for batch in receiver {
            let begins = batch.number * BATCH_FILES;
            placements[begins..begins + batch.placements.len()].copy_from_slice(&batch.placements);
            summary.from_inode_tables += batch.from_inode_tables;
            summary.not_written += batch.not_written;
            batch.errors.into_iter().for_each(&mut *on_error);
            done += batch.placements.len();
            if let Some(progress) = options.progress {
                progress(done);
            }
        }
    });
    summary.unsupported = job.unsupported_devices();
    for (id, placement) in files.iter().zip(placements) {
        tree.set_placement(*id, placement);
    }
    summary
}

/// Returns the regular files sorted by file system and inode number.
fn in_inode_order(tree: &Tree, ids: &[EntryId]) -> Vec<EntryId> {
    let mut keyed: Vec<(u64, EntryId, u16)> = Vec::with_capacity(ids.len());
    for id in ids {
        let entry = tree.entry(*id);
        if entry.kind == FileKind::File {
            keyed.push((entry.inode, *id, tree.device_index(*id)));
        }
    }
    keyed.sort_unstable_by_key(|(inode, id, device)| (*device, *inode, *id));
    keyed.into_iter().map(|(_, id, _)| id).collect()
}

/// Length and extents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileExtents {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The extents in file order. Holes have no extent.
    pub extents: Vec<Extent>,
}

/// Returns length and extents of a file. Works for directories on file systems that report their
/// extents. `sync` writes dirty data of the file first.
///
/// # Errors
/// The failed operation; [`WalkError::NoExtentMap`] if the file system does not report extents.
///
/// # Panics
/// If `id` belongs to another tree.
pub fn extents(tree: &Tree, id: EntryId, sync: bool) -> Result<FileExtents, WalkError> {
    let opened = tree.open(id, OFlags::empty())?;
    let mut data = FileExtents { bytes: u64::try_from(opened.stat.st_size).unwrap_or(0), extents: Vec::new() };
    let result = ExtentReader::default().for_each(opened.fd.as_fd(), usize::MAX, sync, |extent| {
        data.extents.push(extent);
        true
    });
    match result {
        Ok(()) => Ok(data),
        Err(errno) if is_unsupported(errno) => Err(WalkError::NoExtentMap),
        Err(errno) => Err(WalkError::Failed { operation: Operation::MapExtents, errno }),
    }
}

/// State that all threads share.
struct LocateJob<'a> {
    tree: &'a Tree,
    files: &'a [EntryId],
    tables: MountedTables,
    /// Number of the next batch.
    next: AtomicUsize,
    /// True for each file system that turned out not to report extents.
    unsupported: Vec<AtomicBool>,
}

/// The result for one batch of files.
struct Batch {
    number: usize,
    placements: Vec<Placement>,
    from_inode_tables: usize,
    not_written: usize,
    errors: Vec<PathError>,
}

impl Batch {
    fn new(number: usize, files: usize) -> Batch {
        let placements = Vec::with_capacity(files);
        Batch { number, placements, from_inode_tables: 0, not_written: 0, errors: Vec::new() }
    }
}

impl<'a> LocateJob<'a> {
    fn new(tree: &'a Tree, files: &'a [EntryId], tables: MountedTables) -> LocateJob<'a> {
        let unsupported = tree.devices().iter().map(|_| AtomicBool::new(false)).collect();
        LocateJob { tree, files, tables, next: AtomicUsize::new(0), unsupported }
    }

    fn run(&self, sync: bool, done: &Sender<Batch>) {
        let mut extents = ExtentReader::default();
        let mut cache = DirectoryCache::default();
        let (mut window, mut offsets) = (Vec::new(), Vec::new());
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(files) = self.files.chunks(BATCH_FILES).nth(number) else { return };
            let mut batch = Batch::new(number, files.len());
            self.tables.lookup(self.tree, files, &mut window, &mut offsets);
            for (id, begins) in files.iter().zip(&offsets) {
                let placement = match begins {
                    Some(byte) => Placement::Offset(*byte),
                    None => self.extents_of(*id, sync, &mut extents, &mut cache, &mut batch),
                };
                batch.from_inode_tables += usize::from(begins.is_some());
                batch.placements.push(placement);
            }
            // The receiver is gone: stop.
            if done.send(batch).is_err() {
                return;
            }
        }
    }

    fn extents_of(
        &self,
        id: EntryId,
        sync: bool,
        extents: &mut ExtentReader,
        cache: &mut DirectoryCache,
        batch: &mut Batch,
    ) -> Placement {
        let unsupported = &self.unsupported[usize::from(self.tree.device_index(id))];
        if unsupported.load(Ordering::Relaxed) {
            return Placement::Unknown;
        }
        let mut failed = |operation: Operation, errno: Errno| {
            batch.errors.push(PathError::failed(self.path(id), id, operation, errno));
            Placement::Unknown
        };
        let fd = match cache.open(self.tree, id) {
            Ok(fd) => fd,
            Err(errno) => return failed(Operation::Open, errno),
        };
        let mut placement = Placement::NoData;
        let result = extents.for_each(fd.as_fd(), FIRST_CALL_EXTENTS, sync, |extent| {
            placement = match extent.state {
                ExtentState::Written => Placement::Offset(extent.physical),
                ExtentState::Unknown => Placement::Unknown,
                ExtentState::Unwritten | ExtentState::Inline => return true,
            };
            false
        });
        match result {
            Ok(()) => {
                batch.not_written += usize::from(placement == Placement::Unknown);
                placement
            }
            Err(errno) if is_unsupported(errno) => {
                if !unsupported.swap(true, Ordering::Relaxed) {
                    batch.errors.push(PathError { path: self.path(id), id: Some(id), error: WalkError::NoExtentMap });
                }
                Placement::Unknown
            }
            Err(errno) => failed(Operation::MapExtents, errno),
        }
    }

    fn path(&self, id: EntryId) -> Vec<u8> {
        let mut path = Vec::new();
        self.tree.path_into(id, &mut path);
        path
    }

    fn unsupported_devices(&self) -> Vec<(u64, usize)> {
        let files_of =
            |index: usize| self.files.iter().filter(|id| usize::from(self.tree.device_index(**id)) == index).count();
        let unsupported =
            self.unsupported.iter().enumerate().filter(|(_, unsupported)| unsupported.load(Ordering::Relaxed));
        unsupported.map(|(index, _)| (self.tree.devices()[index], files_of(index))).collect()
    }
}

/// The directory of the last file. The next file is often in the same directory, and a path
/// relative to it is shorter.
#[derive(Default)]
struct DirectoryCache {
    directory: Option<EntryId>,
    /// Opened for the second file in a row.
    fd: Option<OwnedFd>,
    path: Vec<u8>,
}

impl DirectoryCache {
    fn open(&mut self, tree: &Tree, id: EntryId) -> Result<OwnedFd, Errno> {
        let directory = tree.parent(id);
        if directory != self.directory {
            (self.directory, self.fd) = (directory, None);
        } else if let (Some(directory), None) = (directory, &self.fd) {
            tree.path_into(directory, &mut self.path);
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.fd = Some(open::open(tree.base(directory), &self.path, flags)?);
        }
        if let Some(fd) = &self.fd {
            return open::open(Some(fd.as_fd()), tree.name(id).as_bytes(), tree.open_flags(id));
        }
        tree.path_into(id, &mut self.path);
        open::open(tree.base(id), &self.path, tree.open_flags(id))
    }
}

/// Returns true if the error number means that the file system does not report extents.
fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS | Errno::INVAL)
}

fn threads(requested: usize) -> usize {
    match requested {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(4),
        threads => threads.min(64),
    }
}
