//! A reader thread: reads the files of a batch into segments of the archive.
//!
//! A batch is the read-ahead distance of a thread. The thread opens each file of the batch, reads
//! cached data at once and requests read-ahead for the rest. Then it waits for the first missing
//! file. Until then the disk has all requests of the batch and can sort them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{Advice, FileType, OFlags, Stat, fadvise, readlinkat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tar::EntryType;

use super::attributes::{self, AclScope, AttributeSource};
use super::block::BLOCK;
use super::data::{CachedRead, CachedReader, PendingRead, detect_change, read_at};
use super::event::{ArchiveEvent, ArchiveWarning};
use super::header::{Format, FormatError, InodeMetadata, Member, NAME_MAX};
use super::members::{Pass, PlannedMember};
use super::names::MemberNames;
use super::options::{Options, ReadPhase};
use super::owners::OwnerNames;
use super::queue::{LinkCandidate, Mark, Queue, SEGMENT_BYTES, Segment, Stopped};
use super::source::{self, Source};
use super::sparse::SparseMap;
use crate::open;
use crate::tree::{EntryId, FileKind, FollowLinks, Tree};

/// State that all reader threads share.
pub(super) struct ReaderContext<'a> {
    pub tree: &'a Tree,
    pub items: &'a [PlannedMember],
    pub options: &'a Options<'a>,
    pub queue: Queue,
    /// Members per batch.
    pub batch: usize,
    cached_reader: CachedReader,
    /// Largest number of open files per thread that wait for the disk.
    pending_max: usize,
    /// True after waiting for free file descriptors has failed.
    is_out_of_files: AtomicBool,
    /// Files with several names: the first member by device and inode number.
    first_items: Mutex<FxHashMap<Key, usize>>,
    has_first_items: AtomicBool,
    /// Files that are reachable by several names through followed links, which the link count does
    /// not include.
    multiply_reachable: FxHashSet<Key>,
}

/// Device and inode number.
type Key = (u64, u64);

impl<'a> ReaderContext<'a> {
    pub fn new(
        tree: &'a Tree,
        items: &'a [PlannedMember],
        options: &'a Options<'a>,
        queue: Queue,
        batch: usize,
    ) -> ReaderContext<'a> {
        let multiply_reachable =
            if options.follow == FollowLinks::Always { repeated(tree) } else { FxHashSet::default() };
        ReaderContext {
            tree,
            items,
            options,
            queue,
            batch,
            cached_reader: CachedReader::default(),
            pending_max: pending_max(options.readers.max(1)),
            is_out_of_files: AtomicBool::new(false),
            first_items: Mutex::default(),
            has_first_items: AtomicBool::new(false),
            multiply_reachable,
        }
    }

    /// Returns true if an earlier member has the same file.
    fn is_earlier(&self, key: Key, item: usize) -> bool {
        self.has_first_items.load(Ordering::Relaxed)
            && self.lock_first_items().get(&key).is_some_and(|first| *first < item)
    }

    /// Returns true if no earlier member has the same file, so that its data are read here. Two
    /// threads may both receive true; the writer keeps the first. Members that cannot be link
    /// targets are not recorded.
    fn is_first(&self, key: Key, item: usize, may_be_target: bool) -> bool {
        let mut first_items = self.lock_first_items();
        if first_items.get(&key).is_some_and(|first| *first < item) {
            return false;
        }
        if may_be_target {
            first_items.insert(key, item);
            self.has_first_items.store(true, Ordering::Relaxed);
        }
        true
    }

    fn lock_first_items(&self) -> MutexGuard<'_, FxHashMap<Key, usize>> {
        self.first_items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// File descriptors of the process for other uses.
const OTHER_FILES: usize = 32;
/// File descriptors that a thread needs to open a file: a directory and the file.
const FILES_PER_THREAD: usize = 3;
/// Number of attempts and delay between them while all file descriptors are in use.
const OPENING_TRIES: u32 = 100;
const OPENING_WAIT: Duration = Duration::from_millis(10);

/// Divides the file descriptors of the process among the threads. Returns the number of waiting
/// files per thread.
fn pending_max(readers: usize) -> usize {
    let may =
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    (may.saturating_sub(OTHER_FILES + FILES_PER_THREAD * readers) / readers).max(1)
}

/// Returns the files that have several names in the tree.
fn repeated(tree: &Tree) -> FxHashSet<Key> {
    let files = tree.ids().map(|id| tree.entry(id)).filter(|entry| entry.kind != FileKind::Directory);
    let mut keys: Vec<Key> = files.map(|entry| (entry.device, entry.inode)).collect();
    keys.sort_unstable();
    keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}

/// The state of one thread.
pub(super) struct Worker<'a> {
    context: &'a ReaderContext<'a>,
    owners: OwnerNames,
    batch: usize,
    /// Index of the current member.
    item: usize,
    /// Path of the current file on the disk, and its member name.
    path: Vec<u8>,
    name: Vec<u8>,
    names: MemberNames<'a>,
    header: Vec<u8>,
    records: Vec<u8>,
    segment: Option<Segment>,
    pending: Vec<PendingRead>,
}

impl<'a> Worker<'a> {
    pub fn new(context: &'a ReaderContext<'a>) -> Worker<'a> {
        Worker {
            context,
            owners: OwnerNames::default(),
            batch: 0,
            item: 0,
            path: Vec::new(),
            name: Vec::new(),
            names: MemberNames::new(context.tree, context.options.absolute_names),
            header: Vec::new(),
            records: Vec::new(),
            segment: None,
            pending: Vec::new(),
        }
    }

    /// Processes batches until none is left or the run is stopped.
    pub fn run(mut self) {
        while let Some(batch) = self.context.queue.claim() {
            self.batch = batch;
            let begins = batch * self.context.batch;
            let ends = (begins + self.context.batch).min(self.context.items.len());
            for item in begins..ends {
                self.item = item;
                if self.add(self.context.items[item]).is_err() {
                    return;
                }
            }
            self.flush();
            self.context.queue.finish(batch);
        }
    }

    fn add(&mut self, PlannedMember { id, part }: PlannedMember) -> Result<(), Stopped> {
        let kind = self.context.tree.entry(id).kind;
        self.set_name(id, kind);
        self.hook(ReadPhase::Found);
        match kind {
            FileKind::File => self.add_file(id),
            FileKind::Socket => self.warn(ArchiveWarning::Socket),
            _ => self.add_special(id, part),
        }
    }

    /// Sets path and member name.
    fn set_name(&mut self, id: EntryId, kind: FileKind) {
        let name = self.names.of(id, &mut self.path);
        self.name.clear();
        self.name.extend_from_slice(name);
        if kind == FileKind::Directory && !self.name.ends_with(b"/") {
            self.name.push(b'/');
        }
    }

    /// Adds a name that the walk found as a regular file.
    fn add_file(&mut self, id: EntryId) -> Result<(), Stopped> {
        if let Some(stat) = self.known_file(id) {
            return self.share(&stat, |_| Ok(()));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.open(id, flags) {
            Ok(source) if FileType::from_raw_mode(source.stat.st_mode) == FileType::RegularFile => {
                self.add_regular(source)
            }
            // Replaced by a link, a socket or another special file.
            Ok(_) | Err(Errno::LOOP | Errno::NXIO) => self.add_special(id, Pass::Only),
            Err(errno) => self.warn(ArchiveWarning::opening(errno)),
        }
    }

    /// Opens the file at the current path. If the process has no free file descriptors, the pending
    /// reads are completed first.
    fn open(&mut self, id: EntryId, flags: OFlags) -> Result<Source, Errno> {
        let context = self.context;
        let mut tries = 0;
        loop {
            match source::open(context.tree, id, &self.path, context.options.follow, flags) {
                Err(Errno::MFILE | Errno::NFILE) if !self.pending.is_empty() => self.finish_pending_reads(),
                // Other threads or programs hold the descriptors.
                Err(Errno::MFILE | Errno::NFILE)
                    if tries < OPENING_TRIES && !context.is_out_of_files.load(Ordering::Relaxed) =>
                {
                    tries += 1;
                    std::thread::sleep(OPENING_WAIT);
                }
                opened => {
                    if tries == OPENING_TRIES {
                        context.is_out_of_files.store(opened.is_err(), Ordering::Relaxed);
                    }
                    return opened;
                }
            }
        }
    }

    /// Returns the `stat` of a file that an earlier member has under another name. A hard link is
    /// enough for it, so that it is not opened.
    fn known_file(&self, id: EntryId) -> Option<Stat> {
        let tree = self.context.tree;
        let entry = tree.entry(id);
        let key = (entry.device, entry.inode);
        if !self.context.is_earlier(key, self.item) {
            return None;
        }
        let stat = open::stat(tree.base(id), &self.path, tree.is_followed(id)).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        (is_file && (stat.st_dev, stat.st_ino) == key).then_some(stat)
    }

    /// Adds a name without data: a directory, link or device.
    fn add_special(&mut self, id: EntryId, part: Pass) -> Result<(), Stopped> {
        let flags = OFlags::PATH;
        let Source { fd, stat } = match self.open(id, flags) {
            Ok(source) => source,
            // The first member of this directory has reported the error.
            Err(_) if part == Pass::Final => return Ok(()),
            Err(errno) => return self.warn(ArchiveWarning::opening(errno)),
        };
        let mut link = Vec::new();
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => EntryType::Directory,
            FileType::CharacterDevice => EntryType::Char,
            FileType::BlockDevice => EntryType::Block,
            FileType::Fifo => EntryType::Fifo,
            FileType::Symlink => match readlinkat(&fd, c"", Vec::new()) {
                Ok(target) => {
                    link = target.into_bytes();
                    EntryType::Symlink
                }
                Err(errno) => return self.warn(ArchiveWarning::ReadLink(errno)),
            },
            FileType::Socket => return self.warn(ArchiveWarning::Socket),
            // A regular file now, because it was replaced or was misread during the walk.
            _ => return self.add_late_file(id),
        };
        if kind == EntryType::Directory {
            return self.add_directory(&fd, &stat, part);
        }
        if self.name.ends_with(b"/") {
            self.name.pop();
        }
        if !self.prepare(&AttributeSource::path_only(fd.as_fd()), kind, &stat, &link, None)? {
            return Ok(());
        }
        if self.may_have_other_names(&stat) {
            return self.share(&stat, |_| Ok(()));
        }
        self.push_header(0).map(drop)
    }

    fn add_late_file(&mut self, id: EntryId) -> Result<(), Stopped> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        if self.name.ends_with(b"/") {
            self.name.pop();
        }
        match self.open(id, flags) {
            Ok(source) if FileType::from_raw_mode(source.stat.st_mode) == FileType::RegularFile => {
                self.add_regular(source)
            }
            Ok(_) => self.warn(ArchiveWarning::Changed),
            Err(errno) => self.warn(ArchiveWarning::opening(errno)),
        }
    }

    fn add_directory(&mut self, fd: &OwnedFd, stat: &Stat, part: Pass) -> Result<(), Stopped> {
        if !self.name.ends_with(b"/") {
            self.name.push(b'/');
        }
        // A directory that its owner may not write to, or that passes on its group, would prevent
        // or change the extraction of its files. It is private to its owner until the final member.
        let hinders = stat.st_mode & 0o700 != 0o700 || stat.st_mode & 0o2000 != 0;
        let is_guarded = part == Pass::First && hinders;
        let mut shown = *stat;
        if is_guarded {
            shown.st_mode = FileType::Directory.as_raw_mode() | 0o700;
        }
        let lists = if is_guarded { AclScope::Default } else { AclScope::AccessAndDefault };
        // Both members have the attributes: bsdtar sets a default ACL only when it creates the
        // directory.
        self.records.clear();
        if let Err(errno) = self.gather(&AttributeSource::path_only(fd.as_fd()), lists)
            && part != Pass::First
        {
            self.warn(ArchiveWarning::Attributes(errno))?;
        }
        match self.try_build(EntryType::Directory, &shown, &[], None) {
            Ok(()) => {}
            // The first member of this directory has reported the error.
            Err(_) if part == Pass::Final => return Ok(()),
            Err(error) => return self.warn(ArchiveWarning::Format(error)),
        }
        if part == Pass::Final {
            return self.push_all();
        }
        self.push_header(0).map(drop)
    }

    fn add_regular(&mut self, Source { fd, stat }: Source) -> Result<(), Stopped> {
        let options = self.context.options;
        if options.archive.contains(&(stat.st_dev, stat.st_ino)) {
            return self.warn(ArchiveWarning::Itself);
        }
        self.hook(ReadPhase::Opened);
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let has_holes = options.sparse && u64::try_from(stat.st_blocks).unwrap_or(0) < size.div_ceil(BLOCK as u64);
        let map = if has_holes { SparseMap::of(fd.as_fd(), size) } else { None };
        if !self.prepare(&AttributeSource::open(fd.as_fd()), EntryType::Regular, &stat, &[], map.as_ref())? {
            return Ok(());
        }
        if self.may_have_other_names(&stat) {
            return self.share(&stat, |worker| worker.add_data(fd, &stat, size, map));
        }
        self.add_data(fd, &stat, size, map)
    }

    /// Builds the headers of a member. Returns false after a warning if the format cannot represent
    /// the member.
    fn prepare(
        &mut self,
        source: &AttributeSource<'_>,
        kind: EntryType,
        stat: &Stat,
        link: &[u8],
        map: Option<&SparseMap>,
    ) -> Result<bool, Stopped> {
        self.records.clear();
        if let Err(errno) = self.gather(source, AclScope::Access) {
            self.warn(ArchiveWarning::Attributes(errno))?;
        }
        self.build(kind, stat, link, map)
    }

    fn gather(&mut self, source: &AttributeSource<'_>, lists: AclScope) -> Result<(), Errno> {
        let options = self.context.options;
        if !options.attributes.any() {
            return Ok(());
        }
        let numeric = options.numeric_owner;
        attributes::append(options.attributes, source, lists, numeric, &mut self.owners, &mut self.records)
    }

    fn build(&mut self, kind: EntryType, stat: &Stat, link: &[u8], map: Option<&SparseMap>) -> Result<bool, Stopped> {
        match self.try_build(kind, stat, link, map) {
            Ok(()) => Ok(true),
            Err(error) => self.warn(ArchiveWarning::Format(error)).map(|()| false),
        }
    }

    fn try_build(
        &mut self,
        kind: EntryType,
        stat: &Stat,
        link: &[u8],
        map: Option<&SparseMap>,
    ) -> Result<(), FormatError> {
        let options = self.context.options;
        self.header.clear();
        let (user, group) =
            if options.numeric_owner { (&[][..], &[][..]) } else { self.owners.both(stat.st_uid, stat.st_gid) };
        let size = if kind == EntryType::Regular { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
        let metadata = InodeMetadata::of(stat);
        let member = Member { name: &self.name, link, kind, metadata, user, group, size, records: &self.records, map };
        member.append(options.format, &mut self.header)
    }

    /// Returns true if the file may occur again under another name.
    fn may_have_other_names(&self, stat: &Stat) -> bool {
        stat.st_nlink > 1 || self.context.multiply_reachable.contains(&(stat.st_dev, stat.st_ino))
    }

    /// Adds a file that an earlier member may have: the header, and the data if this is the first
    /// member.
    fn share(&mut self, stat: &Stat, data: impl FnOnce(&mut Worker<'a>) -> Result<(), Stopped>) -> Result<(), Stopped> {
        let key = (stat.st_dev, stat.st_ino);
        // In ustar a link target is limited to 100 bytes. A file with a longer name is stored
        // again.
        let may_be_target = self.context.options.format != Format::Ustar || self.name.len() <= NAME_MAX;
        let has_data = self.context.is_first(key, self.item, may_be_target);
        let shared =
            LinkCandidate { key, name: self.name.clone(), metadata: InodeMetadata::of(stat), may_be_target, has_data };
        self.room_or_full()?.mark(Mark::LinkCandidate(Box::new(shared)));
        if !has_data {
            return self.report_member();
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            self.push_header(0)?;
        }
        data(self)?;
        self.room_or_full()?.mark(Mark::LinkCandidateEnd);
        Ok(())
    }

    /// Adds header and data of a regular file.
    fn add_data(&mut self, fd: OwnedFd, stat: &Stat, size: u64, map: Option<SparseMap>) -> Result<(), Stopped> {
        let fits =
            map.is_none() && self.header.len() as u64 + size.next_multiple_of(BLOCK as u64) <= SEGMENT_BYTES as u64;
        if !fits {
            self.push_header(0)?;
            return self.stream(&fd, stat, size, map);
        }
        let size = size as usize;
        let padded = size.next_multiple_of(BLOCK);
        let segment = self.push_header(padded)?;
        let begins = segment.take(padded);
        segment.part(begins + size, padded - size).fill(0);
        if size == 0 {
            return Ok(());
        }
        let context = self.context;
        let Some(segment) = &mut self.segment else { return Ok(()) };
        match context.cached_reader.read(fd.as_fd(), segment.part(begins, size)) {
            CachedRead::Complete => {
                self.hook(ReadPhase::Read);
                detect_change(&fd, stat, size as u64, size as u64, None).map_or(Ok(()), |warning| self.warn(warning))
            }
            CachedRead::Partial(got) => {
                self.pending.push(PendingRead { fd, stat: *stat, begins, size, got, path: self.path.clone() });
                if self.pending.len() >= context.pending_max {
                    self.finish_pending_reads();
                }
                Ok(())
            }
        }
    }

    /// Adds the data of a file that is sparse or does not fit into a segment.
    fn stream(&mut self, fd: &OwnedFd, stat: &Stat, size: u64, map: Option<SparseMap>) -> Result<(), Stopped> {
        // A hint only; failure has no effect.
        let _ = fadvise(fd, 0, None, Advice::Sequential);
        let whole = [(0, size)];
        let pieces = map.as_ref().map_or(&whole[..], SparseMap::pieces);
        let mut found = None;
        for (offset, length) in pieces {
            let mut done = 0;
            while done < *length {
                let segment = self.room()?;
                let bytes = usize::try_from(length - done).unwrap_or(usize::MAX).min(segment.room());
                let begins = segment.take(bytes);
                let place = segment.part(begins, bytes);
                let (got, errno) = if found.is_some() { (0, None) } else { read_at(fd.as_fd(), place, offset + done) };
                place[got..].fill(0);
                done += bytes as u64;
                if got < bytes && found.is_none() {
                    let read = offset + done - (bytes - got) as u64;
                    found = detect_change(fd, stat, read, size, errno);
                    let warning = found.clone();
                    warning.map_or(Ok(()), |warning| self.warn(warning))?;
                }
            }
        }
        let stored = map.as_ref().map_or(size, SparseMap::stored);
        let padding = (stored.next_multiple_of(BLOCK as u64) - stored) as usize;
        self.push(&[0; BLOCK][..padding])?;
        self.hook(ReadPhase::Read);
        match found {
            Some(_) => Ok(()),
            None => detect_change(fd, stat, size, size, None).map_or(Ok(()), |warning| self.warn(warning)),
        }
    }

    /// Appends the header to a segment with `after` free bytes after it if possible.
    fn push_header(&mut self, after: usize) -> Result<&mut Segment, Stopped> {
        let wanted = self.header.len() + after;
        if wanted <= SEGMENT_BYTES && self.segment.as_ref().is_some_and(|segment| segment.room() < wanted) {
            self.flush();
        }
        self.report_member()?;
        let header = std::mem::take(&mut self.header);
        let pushed = self.push(&header);
        self.header = header;
        pushed?;
        self.room_or_full()
    }

    fn push_all(&mut self) -> Result<(), Stopped> {
        let header = std::mem::take(&mut self.header);
        let pushed = self.push(&header);
        self.header = header;
        pushed
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            let taken = self.room()?.push(bytes);
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Returns a segment with free bytes.
    fn room(&mut self) -> Result<&mut Segment, Stopped> {
        if self.segment.as_ref().is_some_and(|segment| segment.room() == 0) {
            self.flush();
        }
        self.room_or_full()
    }

    /// Returns the current segment.
    fn room_or_full(&mut self) -> Result<&mut Segment, Stopped> {
        let segment = match self.segment.take() {
            Some(segment) => segment,
            None => self.context.queue.segment(self.batch)?,
        };
        Ok(self.segment.insert(segment))
    }

    /// Completes the pending reads and passes the segment to the writer.
    fn flush(&mut self) {
        self.finish_pending_reads();
        if let Some(segment) = self.segment.take() {
            self.context.queue.put(self.batch, segment);
        }
    }

    /// Waits for all pending reads. No file is open afterwards.
    fn finish_pending_reads(&mut self) {
        let Some(segment) = &mut self.segment else { return };
        for PendingRead { fd, stat, begins, size, got, path } in self.pending.drain(..) {
            let place = &mut segment.part(begins, size)[got..];
            let (more, errno) = read_at(fd.as_fd(), place, got as u64);
            place[more..].fill(0);
            if let Some(hook) = self.context.options.hook {
                hook(ReadPhase::Read, &path);
            }
            if let Some(warning) = detect_change(&fd, &stat, (got + more) as u64, size as u64, errno) {
                segment.mark_at(begins, Mark::Event(ArchiveEvent::Warning(path, warning)));
            }
        }
    }

    fn warn(&mut self, warning: ArchiveWarning) -> Result<(), Stopped> {
        let event = ArchiveEvent::Warning(self.path.clone(), warning);
        self.room_or_full()?.mark(Mark::Event(event));
        Ok(())
    }

    fn report_member(&mut self) -> Result<(), Stopped> {
        let name = self.context.options.report_members.then(|| self.name.clone());
        let segment = self.room_or_full()?;
        segment.members += 1;
        if let Some(name) = name {
            segment.mark(Mark::Event(ArchiveEvent::Member(name)));
        }
        Ok(())
    }

    fn hook(&self, phase: ReadPhase) {
        if let Some(hook) = self.context.options.hook {
            hook(phase, &self.path);
        }
    }
}

impl Drop for Worker<'_> {
    /// Stops the run, because the writer would wait for this thread.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.context.queue.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::archive::members::plan;
    use crate::sort::SortKey;
    use crate::walk;

    /// Runs one thread over uncached files of 100 bytes. Returns the order of opens and reads and
    /// the number of segments.
    fn read_ahead(
        files: usize,
        follow: FollowLinks,
        pending_max: usize,
        link: impl Fn(PathBuf, PathBuf),
    ) -> (Vec<ReadPhase>, usize) {
        let folder = tempfile::tempdir().unwrap();
        for file in 0..files {
            std::fs::write(folder.path().join(format!("{file}a")), [b'x'; 100]).unwrap();
            link(folder.path().join(format!("{file}a")), folder.path().join(format!("{file}b")));
        }
        let mut tree = Tree::new();
        let walking = walk::Options { follow, ..walk::Options::default() };
        walk::walk(&[folder.path().to_owned()], &walking, &mut tree, &mut |problem| panic!("{problem}")).unwrap();
        let items = plan(&tree, SortKey::Name, false, false).items;
        let phases = Mutex::default();
        let hook = |phase: ReadPhase, _: &[u8]| {
            if phase != ReadPhase::Found {
                let mut phases: MutexGuard<'_, Vec<ReadPhase>> = phases.lock().unwrap();
                phases.push(phase);
            }
        };
        let options = Options { follow, hook: Some(&hook), ..Options::default() };
        let mut context = ReaderContext::new(&tree, &items, &options, Queue::new(1, 1 << 20, 1), items.len());
        context.cached_reader = CachedReader::never();
        context.pending_max = pending_max;
        Worker::new(&context).run();
        let segments = std::iter::from_fn(|| context.queue.next()).count();
        (phases.into_inner().unwrap(), segments)
    }

    #[test]
    fn files_with_several_names_are_read_ahead_like_other_files() {
        let wanted = [[ReadPhase::Opened; 50], [ReadPhase::Read; 50]].concat();
        let (phases, segments) =
            read_ahead(50, FollowLinks::Never, 64, |from, to| std::fs::hard_link(from, to).unwrap());
        assert_eq!((phases, segments), (wanted.clone(), 1));
        let symlink = |from, to| std::os::unix::fs::symlink(from, to).unwrap();
        let (phases, segments) = read_ahead(50, FollowLinks::Always, 64, symlink);
        assert_eq!((phases, segments), (wanted, 1));
    }

    #[test]
    fn the_number_of_open_files_is_limited() {
        let turn = [[ReadPhase::Opened; 5], [ReadPhase::Read; 5]].concat();
        let (phases, segments) = read_ahead(20, FollowLinks::Never, 5, |_, _| {});
        assert_eq!((phases, segments), (turn.repeat(4), 1));
    }
}
