//! A file: its pages in the page cache and on the disk, and its write-back errors.

use std::collections::BTreeSet;
use std::ops::Range;

use hoistway_reactor::simulated::Prng;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// The number of write-back errors that a description has reported.
pub(super) type Since = usize;

/// Contents of pages, by index. The content of a page is the number of the write that wrote it, 0
/// for a hole.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    written: Vec<u64>,
    /// For each page the number of the last truncation that removed it.
    cut: Vec<u64>,
}

/// A file.
#[derive(Debug, Default)]
pub(super) struct Inode {
    /// The inode number, which a later file may get again.
    pub number: u64,
    /// The number of names.
    pub links: u64,
    /// The page cache.
    live: Pages,
    /// Pages that the disk does not have yet.
    dirty: BTreeSet<usize>,
    /// Pages under write-back.
    busy: BTreeSet<usize>,
    /// Dirty and busy pages that the mount does not count: a failed chunk or a dead mount has left
    /// them.
    left: BTreeSet<usize>,
    /// The content of the disk with its cache, as the running transaction maps it.
    disk: Pages,
    /// The content of the disk without its cache, as the last transaction maps it.
    durable: Pages,
    /// The error of each failed write-back so far, and whether a description reported the last one
    /// (errseq).
    pub errors: Vec<i32>,
    is_seen: bool,
    /// The transaction that has the last change of metadata, and of the size or the blocks.
    pub changed_in: u64,
    pub mapped_in: u64,
}

impl Pages {
    /// Returns the number of pages.
    pub fn len(&self) -> usize {
        self.written.len()
    }

    /// Returns the number of the write or truncation that determines the content of a page.
    pub fn at(&self, page: usize) -> u64 {
        match self.stored(page) {
            0 => self.cut_of(page),
            number => number,
        }
    }

    fn cut_of(&self, page: usize) -> u64 {
        self.cut.get(page).copied().unwrap_or(0)
    }

    /// Returns true if a page is no hole.
    pub fn is_stored(&self, page: usize) -> bool {
        self.stored(page) != 0
    }

    fn stored(&self, page: usize) -> u64 {
        self.written.get(page).copied().unwrap_or(0)
    }

    fn set(&mut self, page: usize, number: u64) {
        if self.written.len() <= page {
            self.written.resize(page + 1, 0);
        }
        self.written[page] = number;
    }

    fn truncate(&mut self, pages: usize, known: usize, number: u64) {
        self.cut.resize(known, 0);
        for cut in self.cut.iter_mut().skip(pages) {
            *cut = number;
        }
        self.written.truncate(pages);
    }

    /// Returns the pages that a transaction makes durable: the data of blocks that it does not
    /// change may be newer than its own.
    fn committed(&self, mapped: Pages) -> Pages {
        let Pages { mut written, cut } = mapped;
        for (page, number) in written.iter_mut().enumerate() {
            let is_same_block = self.cut_of(page) == cut.get(page).copied().unwrap_or(0);
            *number = if is_same_block { self.stored(page).max(*number) } else { *number };
        }
        Pages { written, cut }
    }

    /// Returns true if a page has a block, and `now` has it in the same block.
    fn has_same_block(&self, now: &Pages, page: usize) -> bool {
        self.stored(page) != 0 && self.cut_of(page) == now.cut_of(page)
    }

    /// Returns the number of pages that are no holes.
    pub fn used(&self) -> usize {
        self.written.iter().filter(|number| **number != 0).count()
    }
}

impl Inode {
    /// Creates an empty file with one name.
    pub fn new(number: u64) -> Inode {
        Inode { number, links: 1, ..Inode::default() }
    }

    /// Returns the page cache.
    pub fn live(&self) -> &Pages {
        &self.live
    }

    /// Returns the blocks of the file in pages.
    pub fn blocks(&self) -> usize {
        self.disk.used()
    }

    /// Returns a snapshot of what a transaction that begins to commit now makes durable.
    pub fn mapped(&self) -> Pages {
        self.disk.clone()
    }

    /// Writes pages into the cache.
    pub fn write(&mut self, pages: Range<usize>, number: u64) {
        for page in pages {
            self.live.set(page, number);
            self.dirty.insert(page);
            self.left.remove(&page);
        }
    }

    /// Returns true if pages of a range are under write-back.
    pub fn is_busy(&self, pages: &Range<usize>) -> bool {
        self.busy.range(pages.clone()).next().is_some()
    }

    /// Returns true if pages of a range are dirty or under write-back.
    pub fn is_unwritten(&self, pages: &Range<usize>) -> bool {
        self.is_busy(pages) || self.dirty.range(pages.clone()).next().is_some()
    }

    /// Returns the dirty pages that the disk has no blocks for, and those under write-back.
    pub fn unwritten(&self) -> Vec<usize> {
        let has_no_block = |page: &&usize| self.disk.stored(**page) == 0;
        self.dirty.union(&self.busy).filter(has_no_block).copied().collect()
    }

    /// Takes dirty pages for write-back. Returns them with their content.
    pub fn begin_write(&mut self, pages: Range<usize>) -> Vec<(usize, u64)> {
        let taken: Vec<usize> = self.dirty.range(pages).filter(|page| !self.busy.contains(page)).copied().collect();
        for page in &taken {
            self.dirty.remove(page);
            self.busy.insert(*page);
        }
        taken.into_iter().map(|page| (page, self.live.stored(page))).collect()
    }

    /// Ends the write-back of pages. Returns true if the disk got new blocks.
    pub fn end_write(&mut self, pages: &[(usize, u64)], error: Option<i32>) -> bool {
        let mut is_mapped = false;
        for (page, number) in pages {
            self.busy.remove(page);
            if !self.dirty.contains(page) {
                self.left.remove(page);
            }
            if error.is_none() {
                is_mapped |= self.disk.stored(*page) == 0;
                self.disk.set(*page, *number);
            }
        }
        if let Some(errno) = error {
            self.errors.push(errno);
            self.is_seen = false;
        }
        is_mapped
    }

    /// Returns the number of pages that the disk has no blocks for.
    pub fn count_new(&self, pages: &[(usize, u64)]) -> usize {
        pages.iter().filter(|(page, _)| !self.disk.is_stored(*page)).count()
    }

    /// Writes pages to the disk past the page cache, except those that were changed meanwhile.
    /// Returns true if the disk got new blocks.
    pub fn write_directly(&mut self, pages: Range<usize>, number: u64) -> bool {
        let written: Vec<(usize, u64)> =
            pages.filter(|page| self.live.at(*page) < number).map(|page| (page, number)).collect();
        let is_mapped = self.count_new(&written) > 0;
        for (page, number) in &written {
            self.live.set(*page, *number);
            self.disk.set(*page, *number);
        }
        is_mapped
    }

    /// Marks the unwritten pages of a range as not counted by the mount.
    pub fn leave(&mut self, pages: Range<usize>) {
        self.left.extend(self.dirty.range(pages.clone()).chain(self.busy.range(pages)).copied());
    }

    /// Returns a dirty page that the mount has to write.
    pub fn forgotten_page(&self) -> Option<usize> {
        self.dirty.difference(&self.left).next().copied()
    }

    /// Returns a page with this content that the mount has to write and the disk does not have.
    pub fn awaited_page(&self, pages: &Pages) -> Option<usize> {
        let mut unwritten = self.dirty.union(&self.busy).filter(|page| !self.left.contains(page));
        unwritten.find(|page| self.live.at(**page) == pages.at(**page)).copied()
    }

    /// Returns the errors that a new description need not report.
    pub fn sample(&self) -> Since {
        if self.is_seen { self.errors.len() } else { self.errors.len().saturating_sub(1) }
    }

    /// Returns the error that a description has to report, and marks it as reported.
    pub fn report(&mut self, since: &mut Since) -> Option<i32> {
        if *since == self.errors.len() {
            return None;
        }
        (*since, self.is_seen) = (self.errors.len(), true);
        self.errors.last().copied()
    }

    /// Truncates the file.
    pub fn truncate(&mut self, pages: usize, number: u64) {
        let known = self.live.len().max(self.live.cut.len());
        self.live.truncate(pages, known, number);
        self.disk.truncate(pages, known, number);
        self.dirty.split_off(&pages);
        self.left.split_off(&pages);
    }

    /// Forgets the dirty pages of a file that no process can read any more.
    pub fn evict(&mut self) {
        self.dirty.clear();
        self.left.clear();
    }

    /// Makes the metadata of a committed transaction durable, with the data of that time.
    pub fn commit(&mut self, mapped: Pages) {
        self.durable = self.durable.committed(mapped);
    }

    /// Makes the data durable that the disk had when a flush of its cache began, in the blocks that
    /// the last transaction maps.
    pub fn flush(&mut self, begun: &Pages) {
        for page in 0..self.durable.len() {
            if self.durable.has_same_block(begun, page) {
                self.durable.written[page] = self.durable.stored(page).max(begun.stored(page));
            }
        }
    }

    /// Returns the pages that a power failure now may leave; `mapped` is the file in the
    /// transaction that has reached the journal just now.
    pub fn after_power_failure(&self, mapped: Option<&Pages>, prng: &mut Prng) -> Pages {
        let mut found = mapped.map_or_else(|| self.durable.clone(), |mapped| self.durable.committed(mapped.clone()));
        for page in 0..found.len() {
            let differs = self.disk.stored(page) != found.stored(page);
            if differs && found.has_same_block(&self.disk, page) && prng.permille(500) {
                found.written[page] = self.disk.stored(page);
            }
        }
        found
    }

    /// Returns the file as it is after a power failure that left these pages.
    pub fn recovered(&self, found: Pages) -> Inode {
        Inode {
            number: self.number,
            links: 1,
            live: found.clone(),
            disk: found.clone(),
            durable: found,
            ..Inode::default()
        }
    }
}
