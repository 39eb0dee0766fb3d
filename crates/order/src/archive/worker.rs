//! A thread that reads: names of a batch in, parts of the archive out.
//!
//! A batch is how far a thread looks ahead. Each of its files is opened and what is in memory of it is read; what is not is asked of the disk. Only then the first that
//! is missing is waited for, so that the disk has all of the batch before it and can choose.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{Advice, FileType, OFlags, Stat, fadvise, readlinkat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tar::EntryType;

use super::attributes::{self, Holder, Lists};
use super::data::{Got, InMemory, Waiting, became, read_at};
use super::header::{BLOCK, Facts, Member, NAME_MAX};
use super::names::Names;
use super::owners::Owners;
use super::plan::{Item, Part};
use super::queue::{Mark, Queue, SEGMENT_BYTES, Segment, Shared, Stopped};
use super::source::{self, Source};
use super::sparse::Map;
use super::trouble::{Told, Trouble};
use super::{Format, Moment, Options};
use crate::reach;
use crate::tree::{Follow, Id, Kind, Tree};

/// What all threads that read share.
pub(super) struct Reading<'a> {
    pub tree: &'a Tree,
    pub items: &'a [Item],
    pub options: &'a Options<'a>,
    pub queue: Queue,
    /// Items a batch.
    pub batch: usize,
    in_memory: InMemory,
    /// Files that a thread has open while they wait for the disk, at most.
    waiting_max: usize,
    /// Whether waiting for others to close files was in vain.
    is_out_of_files: AtomicBool,
    /// Files with several names: by device and inode, the first item of those that were met.
    met: Mutex<FxHashMap<Key, usize>>,
    has_met: AtomicBool,
    /// Files that several names of the tree lead to, where links are followed: their inodes know nothing of that.
    led_to: FxHashSet<Key>,
}

/// The device and the inode of a file.
type Key = (u64, u64);

impl<'a> Reading<'a> {
    pub fn new(tree: &'a Tree, items: &'a [Item], options: &'a Options<'a>, queue: Queue, batch: usize) -> Reading<'a> {
        let led_to = if options.follow == Follow::Always { repeated(tree) } else { FxHashSet::default() };
        Reading {
            tree,
            items,
            options,
            queue,
            batch,
            in_memory: InMemory::default(),
            waiting_max: waiting_max(options.readers.max(1)),
            is_out_of_files: AtomicBool::new(false),
            met: Mutex::default(),
            has_met: AtomicBool::new(false),
            led_to,
        }
    }

    /// Whether an item before this one has met a file.
    fn is_met(&self, key: Key, item: usize) -> bool {
        self.has_met.load(Ordering::Relaxed) && self.lock_met().get(&key).is_some_and(|first| *first < item)
    }

    /// Whether a file is read here: no item before this one has met it. If two threads think so, the one that writes keeps the first. Where no link may lead to this
    /// item, nobody hears of it.
    fn is_first(&self, key: Key, item: usize, may_be_target: bool) -> bool {
        let mut met = self.lock_met();
        if met.get(&key).is_some_and(|first| *first < item) {
            return false;
        }
        if may_be_target {
            met.insert(key, item);
            self.has_met.store(true, Ordering::Relaxed);
        }
        true
    }

    fn lock_met(&self) -> MutexGuard<'_, FxHashMap<Key, usize>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Files that a process has open beside those that wait for the disk.
const FILES_BESIDE: usize = 32;
/// Files that a thread opens to get at one: a directory, and the file.
const FILES_A_THREAD: usize = 3;
/// How often somebody who may open no more files asks again, and how long it waits each time.
const OPENING_TRIES: u32 = 100;
const OPENING_WAIT: Duration = Duration::from_millis(10);

/// How many files that wait for the disk each of so many threads may have open: what the process may is divided among them.
fn waiting_max(readers: usize) -> usize {
    let may =
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    (may.saturating_sub(FILES_BESIDE + FILES_A_THREAD * readers) / readers).max(1)
}

/// Files that a tree has more than one name of.
fn repeated(tree: &Tree) -> FxHashSet<Key> {
    let files = tree.ids().map(|id| tree.entry(id)).filter(|entry| entry.kind != Kind::Directory);
    let mut keys: Vec<Key> = files.map(|entry| (entry.device, entry.inode)).collect();
    keys.sort_unstable();
    keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}

/// One thread's state.
pub(super) struct Worker<'a> {
    reading: &'a Reading<'a>,
    owners: Owners,
    batch: usize,
    /// The item that is being added.
    item: usize,
    /// Its path on the disk, and its name in the archive.
    path: Vec<u8>,
    name: Vec<u8>,
    names: Names<'a>,
    header: Vec<u8>,
    records: Vec<u8>,
    segment: Option<Segment>,
    waiting: Vec<Waiting>,
}

impl<'a> Worker<'a> {
    pub fn new(reading: &'a Reading<'a>) -> Worker<'a> {
        Worker {
            reading,
            owners: Owners::default(),
            batch: 0,
            item: 0,
            path: Vec::new(),
            name: Vec::new(),
            names: Names::new(reading.tree, reading.options.absolute_names),
            header: Vec::new(),
            records: Vec::new(),
            segment: None,
            waiting: Vec::new(),
        }
    }

    /// Reads batches until there are none left, or the archive is given up.
    pub fn run(mut self) {
        while let Some(batch) = self.reading.queue.claim() {
            self.batch = batch;
            let begins = batch * self.reading.batch;
            let ends = (begins + self.reading.batch).min(self.reading.items.len());
            for item in begins..ends {
                self.item = item;
                if self.add(self.reading.items[item]).is_err() {
                    return;
                }
            }
            self.flush();
            self.reading.queue.finish(batch);
        }
    }

    fn add(&mut self, Item { id, part }: Item) -> Result<(), Stopped> {
        let kind = self.reading.tree.entry(id).kind;
        self.name_it(id, kind);
        self.hook(Moment::Found);
        match kind {
            Kind::File => self.add_file(id),
            Kind::Socket => self.tell(Trouble::Socket),
            _ => self.add_place(id, part),
        }
    }

    /// Sets path and name.
    fn name_it(&mut self, id: Id, kind: Kind) {
        let name = self.names.of(id, &mut self.path);
        self.name.clear();
        self.name.extend_from_slice(name);
        if kind == Kind::Directory && !self.name.ends_with(b"/") {
            self.name.push(b'/');
        }
    }

    /// Adds what was found to be a file.
    fn add_file(&mut self, id: Id) -> Result<(), Stopped> {
        if let Some(stat) = self.met_before(id) {
            return self.share(&stat, |_| Ok(()));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.open(id, flags) {
            Ok(source) if FileType::from_raw_mode(source.stat.st_mode) == FileType::RegularFile => {
                self.add_regular(source)
            }
            // A link or a socket in its place, or something else that is no file.
            Ok(_) | Err(Errno::LOOP | Errno::NXIO) => self.add_place(id, Part::Whole),
            Err(errno) => self.tell(Trouble::opening(errno)),
        }
    }

    /// Opens what lies at its path. Where no more files may be open at once, those that wait for the disk are read first.
    fn open(&mut self, id: Id, flags: OFlags) -> Result<Source, Errno> {
        let reading = self.reading;
        let mut tries = 0;
        loop {
            match source::open(reading.tree, id, &self.path, reading.options.follow, flags) {
                Err(Errno::MFILE | Errno::NFILE) if !self.waiting.is_empty() => self.settle(),
                // Others have them open: other threads of ours, or other programs.
                Err(Errno::MFILE | Errno::NFILE)
                    if tries < OPENING_TRIES && !reading.is_out_of_files.load(Ordering::Relaxed) =>
                {
                    tries += 1;
                    std::thread::sleep(OPENING_WAIT);
                }
                opened => {
                    if tries == OPENING_TRIES {
                        reading.is_out_of_files.store(opened.is_err(), Ordering::Relaxed);
                    }
                    return opened;
                }
            }
        }
    }

    /// What a file is that was met under another name before: a link to that is all there is to it, so that it is not opened.
    fn met_before(&self, id: Id) -> Option<Stat> {
        let tree = self.reading.tree;
        let entry = tree.entry(id);
        let key = (entry.device, entry.inode);
        if !self.reading.is_met(key, self.item) {
            return None;
        }
        let stat = reach::stat(tree.base(id), &self.path, tree.is_followed(id)).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        (is_file && (stat.st_dev, stat.st_ino) == key).then_some(stat)
    }

    /// Adds what is not read: directories, links, devices.
    fn add_place(&mut self, id: Id, part: Part) -> Result<(), Stopped> {
        let flags = OFlags::PATH;
        let Source { fd, stat } = match self.open(id, flags) {
            Ok(source) => source,
            // Where it stood before its files it was told already.
            Err(_) if part == Part::After => return Ok(()),
            Err(errno) => return self.tell(Trouble::opening(errno)),
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
                Err(errno) => return self.tell(Trouble::ReadLink(errno)),
            },
            FileType::Socket => return self.tell(Trouble::Socket),
            // A file has taken its place, or it is one that was found in a moment when it was none.
            _ => return self.add_found_late(id),
        };
        if kind == EntryType::Directory {
            return self.add_directory(&fd, &stat, part);
        }
        if self.name.ends_with(b"/") {
            self.name.pop();
        }
        if !self.prepare(&Holder::place(fd.as_fd()), kind, &stat, &link, None)? {
            return Ok(());
        }
        if self.may_have_other_names(&stat) {
            return self.share(&stat, |_| Ok(()));
        }
        self.push_header(0).map(drop)
    }

    fn add_found_late(&mut self, id: Id) -> Result<(), Stopped> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        if self.name.ends_with(b"/") {
            self.name.pop();
        }
        match self.open(id, flags) {
            Ok(source) if FileType::from_raw_mode(source.stat.st_mode) == FileType::RegularFile => {
                self.add_regular(source)
            }
            Ok(_) => self.tell(Trouble::Changed),
            Err(errno) => self.tell(Trouble::opening(errno)),
        }
    }

    fn add_directory(&mut self, fd: &OwnedFd, stat: &Stat, part: Part) -> Result<(), Stopped> {
        if !self.name.ends_with(b"/") {
            self.name.push(b'/');
        }
        // Where its owner may not write nothing could be extracted into it any more, and where it hands on its group what is extracted gets that. Until all is in it,
        // it is its owner's alone.
        let hinders = stat.st_mode & 0o700 != 0o700 || stat.st_mode & 0o2000 != 0;
        let is_guarded = part == Part::Before && hinders;
        let mut shown = *stat;
        if is_guarded {
            shown.st_mode = FileType::Directory.as_raw_mode() | 0o700;
        }
        let lists = if is_guarded { Lists::Default } else { Lists::AccessAndDefault };
        // Both times with its attributes: bsdtar gives a directory the list that it hands on only where it makes it.
        self.records.clear();
        if let Err(errno) = self.gather(&Holder::place(fd.as_fd()), lists)
            && part != Part::Before
        {
            self.tell(Trouble::Attributes(errno))?;
        }
        if !self.build(EntryType::Directory, &shown, &[], None)? {
            return Ok(());
        }
        if part == Part::After {
            return self.push_all();
        }
        self.push_header(0).map(drop)
    }

    fn add_regular(&mut self, Source { fd, stat }: Source) -> Result<(), Stopped> {
        let options = self.reading.options;
        if options.archive.contains(&(stat.st_dev, stat.st_ino)) {
            return self.tell(Trouble::Itself);
        }
        self.hook(Moment::Opened);
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let has_holes = options.sparse && u64::try_from(stat.st_blocks).unwrap_or(0) < size.div_ceil(BLOCK as u64);
        let map = if has_holes { Map::of(fd.as_fd(), size) } else { None };
        if !self.prepare(&Holder::open(fd.as_fd()), EntryType::Regular, &stat, &[], map.as_ref())? {
            return Ok(());
        }
        if self.may_have_other_names(&stat) {
            return self.share(&stat, |worker| worker.add_data(fd, &stat, size, map));
        }
        self.add_data(fd, &stat, size, map)
    }

    /// Makes the header of a member; `false` if it cannot be one, which is told.
    fn prepare(
        &mut self,
        holder: &Holder<'_>,
        kind: EntryType,
        stat: &Stat,
        link: &[u8],
        map: Option<&Map>,
    ) -> Result<bool, Stopped> {
        self.records.clear();
        if let Err(errno) = self.gather(holder, Lists::Access) {
            self.tell(Trouble::Attributes(errno))?;
        }
        self.build(kind, stat, link, map)
    }

    fn gather(&mut self, holder: &Holder<'_>, lists: Lists) -> Result<(), Errno> {
        let options = self.reading.options;
        if !options.attributes.any() {
            return Ok(());
        }
        let numeric = options.numeric_owner;
        attributes::append(options.attributes, holder, lists, numeric, &mut self.owners, &mut self.records)
    }

    fn build(&mut self, kind: EntryType, stat: &Stat, link: &[u8], map: Option<&Map>) -> Result<bool, Stopped> {
        let options = self.reading.options;
        self.header.clear();
        let (user, group) =
            if options.numeric_owner { (&[][..], &[][..]) } else { self.owners.both(stat.st_uid, stat.st_gid) };
        let size = if kind == EntryType::Regular { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
        let facts = Facts::of(stat);
        let member = Member { name: &self.name, link, kind, facts, user, group, size, records: &self.records, map };
        match member.append(options.format, &mut self.header) {
            Ok(()) => Ok(true),
            Err(unfit) => self.tell(Trouble::Unfit(unfit)).map(|()| false),
        }
    }

    /// Whether a file may be met again under another name.
    fn may_have_other_names(&self, stat: &Stat) -> bool {
        stat.st_nlink > 1 || self.reading.led_to.contains(&(stat.st_dev, stat.st_ino))
    }

    /// Puts a file that may have been met before: with its header, which is made, and its data if it was not.
    fn share(&mut self, stat: &Stat, data: impl FnOnce(&mut Worker<'a>) -> Result<(), Stopped>) -> Result<(), Stopped> {
        let key = (stat.st_dev, stat.st_ino);
        // In the format ustar no link leads to a longer name: such a file is there once more.
        let may_be_target = self.reading.options.format != Format::Ustar || self.name.len() <= NAME_MAX;
        let has_data = self.reading.is_first(key, self.item, may_be_target);
        let shared = Shared { key, name: self.name.clone(), facts: Facts::of(stat), may_be_target, has_data };
        self.room_or_full()?.mark(Mark::Shared(Box::new(shared)));
        if !has_data {
            return self.tell_member();
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            self.push_header(0)?;
        }
        data(self)?;
        self.room_or_full()?.mark(Mark::SharedEnd);
        Ok(())
    }

    /// Puts header and data of a file.
    fn add_data(&mut self, fd: OwnedFd, stat: &Stat, size: u64, map: Option<Map>) -> Result<(), Stopped> {
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
        let reading = self.reading;
        let Some(segment) = &mut self.segment else { return Ok(()) };
        match reading.in_memory.read(fd.as_fd(), segment.part(begins, size)) {
            Got::All => {
                self.hook(Moment::Read);
                became(&fd, stat, size as u64, size as u64, None).map_or(Ok(()), |trouble| self.tell(trouble))
            }
            Got::Some(got) => {
                self.waiting.push(Waiting { fd, stat: *stat, begins, size, got, path: self.path.clone() });
                if self.waiting.len() >= reading.waiting_max {
                    self.settle();
                }
                Ok(())
            }
        }
    }

    /// Puts the data of a file that does not fit into a segment, or has holes.
    fn stream(&mut self, fd: &OwnedFd, stat: &Stat, size: u64, map: Option<Map>) -> Result<(), Stopped> {
        // Where that cannot be told it is read all the same.
        let _ = fadvise(fd, 0, None, Advice::Sequential);
        let whole = [(0, size)];
        let pieces = map.as_ref().map_or(&whole[..], Map::pieces);
        let mut told = None;
        for (offset, length) in pieces {
            let mut done = 0;
            while done < *length {
                let segment = self.room()?;
                let bytes = usize::try_from(length - done).unwrap_or(usize::MAX).min(segment.room());
                let begins = segment.take(bytes);
                let place = segment.part(begins, bytes);
                let (got, errno) = if told.is_some() { (0, None) } else { read_at(fd.as_fd(), place, offset + done) };
                place[got..].fill(0);
                done += bytes as u64;
                if got < bytes && told.is_none() {
                    let read = offset + done - (bytes - got) as u64;
                    told = became(fd, stat, read, size, errno);
                    let trouble = told.clone();
                    trouble.map_or(Ok(()), |trouble| self.tell(trouble))?;
                }
            }
        }
        let stored = map.as_ref().map_or(size, Map::stored);
        let padding = (stored.next_multiple_of(BLOCK as u64) - stored) as usize;
        self.push(&[0; BLOCK][..padding])?;
        self.hook(Moment::Read);
        match told {
            Some(_) => Ok(()),
            None => became(fd, stat, size, size, None).map_or(Ok(()), |trouble| self.tell(trouble)),
        }
    }

    /// Appends the header to a segment that has room for `after` bytes behind it, if any has.
    fn push_header(&mut self, after: usize) -> Result<&mut Segment, Stopped> {
        let wanted = self.header.len() + after;
        if wanted <= SEGMENT_BYTES && self.segment.as_ref().is_some_and(|segment| segment.room() < wanted) {
            self.flush();
        }
        self.tell_member()?;
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

    /// A segment that there is room in.
    fn room(&mut self) -> Result<&mut Segment, Stopped> {
        if self.segment.as_ref().is_some_and(|segment| segment.room() == 0) {
            self.flush();
        }
        self.room_or_full()
    }

    /// The segment that is being filled.
    fn room_or_full(&mut self) -> Result<&mut Segment, Stopped> {
        let segment = match self.segment.take() {
            Some(segment) => segment,
            None => self.reading.queue.segment(self.batch)?,
        };
        Ok(self.segment.insert(segment))
    }

    /// Waits for what was asked of the disk, and hands the segment over.
    fn flush(&mut self) {
        self.settle();
        if let Some(segment) = self.segment.take() {
            self.reading.queue.put(self.batch, segment);
        }
    }

    /// Waits for what was asked of the disk: no file is open after that.
    fn settle(&mut self) {
        let Some(segment) = &mut self.segment else { return };
        for Waiting { fd, stat, begins, size, got, path } in self.waiting.drain(..) {
            let place = &mut segment.part(begins, size)[got..];
            let (more, errno) = read_at(fd.as_fd(), place, got as u64);
            place[more..].fill(0);
            if let Some(hook) = self.reading.options.hook {
                hook(Moment::Read, &path);
            }
            if let Some(trouble) = became(&fd, &stat, (got + more) as u64, size as u64, errno) {
                segment.mark_at(begins, Mark::Told(Told::Trouble(path, trouble)));
            }
        }
    }

    fn tell(&mut self, trouble: Trouble) -> Result<(), Stopped> {
        let told = Told::Trouble(self.path.clone(), trouble);
        self.room_or_full()?.mark(Mark::Told(told));
        Ok(())
    }

    fn tell_member(&mut self) -> Result<(), Stopped> {
        let name = self.reading.options.tell_members.then(|| self.name.clone());
        let segment = self.room_or_full()?;
        segment.members += 1;
        if let Some(name) = name {
            segment.mark(Mark::Told(Told::Member(name)));
        }
        Ok(())
    }

    fn hook(&self, moment: Moment) {
        if let Some(hook) = self.reading.options.hook {
            hook(moment, &self.path);
        }
    }
}

impl Drop for Worker<'_> {
    /// Whoever writes must not wait for a thread that is gone.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.reading.queue.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::archive::plan::plan;
    use crate::sort::By;
    use crate::walk;

    /// What a thread does with files of 100 bytes of which nothing is in memory: when each is opened and read, and how many segments it hands over.
    fn read_ahead(
        files: usize,
        follow: Follow,
        waiting_max: usize,
        link: impl Fn(PathBuf, PathBuf),
    ) -> (Vec<Moment>, usize) {
        let folder = tempfile::tempdir().unwrap();
        for file in 0..files {
            std::fs::write(folder.path().join(format!("{file}a")), [b'x'; 100]).unwrap();
            link(folder.path().join(format!("{file}a")), folder.path().join(format!("{file}b")));
        }
        let mut tree = Tree::new();
        let walking = walk::Options { follow, ..walk::Options::default() };
        walk::walk(&[folder.path().to_owned()], &walking, &mut tree, &mut |problem| panic!("{problem}")).unwrap();
        let items = plan(&tree, By::Name, false, false).items;
        let moments = Mutex::default();
        let hook = |moment: Moment, _: &[u8]| {
            if moment != Moment::Found {
                let mut moments: MutexGuard<'_, Vec<Moment>> = moments.lock().unwrap();
                moments.push(moment);
            }
        };
        let options = Options { follow, hook: Some(&hook), ..Options::default() };
        let mut reading = Reading::new(&tree, &items, &options, Queue::new(1, 1 << 20, 1), items.len());
        reading.in_memory = InMemory::never();
        reading.waiting_max = waiting_max;
        Worker::new(&reading).run();
        let segments = std::iter::from_fn(|| reading.queue.next()).count();
        (moments.into_inner().unwrap(), segments)
    }

    #[test]
    fn files_with_several_names_are_read_ahead_like_others() {
        let wanted = [[Moment::Opened; 50], [Moment::Read; 50]].concat();
        let (moments, segments) = read_ahead(50, Follow::Never, 64, |from, to| std::fs::hard_link(from, to).unwrap());
        assert_eq!((moments, segments), (wanted.clone(), 1));
        let symlink = |from, to| std::os::unix::fs::symlink(from, to).unwrap();
        let (moments, segments) = read_ahead(50, Follow::Always, 64, symlink);
        assert_eq!((moments, segments), (wanted, 1));
    }

    #[test]
    fn no_more_files_are_open_at_once_than_may_be() {
        let turn = [[Moment::Opened; 5], [Moment::Read; 5]].concat();
        let (moments, segments) = read_ahead(20, Follow::Never, 5, |_, _| {});
        assert_eq!((moments, segments), (turn.repeat(4), 1));
    }
}
