//! The page cache: the state of every cached page (being read, up to date, dirty, under
//! write-back).
//!
//! Pages are kept in chunks of 64, with one bit per page and state. Chunks are reclaimed in
//! least-recently-used order; pages that are dirty or in flight stay.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

const CHUNK_PAGES: u64 = 64;
const NONE: u32 = u32::MAX;
/// The maximum number of chunks that one reclaim pass examines.
const RECLAIM_STEPS: u32 = 64;

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageState {
    Missing,
    /// The page is being read.
    Coming,
    /// The page is up to date.
    Ready,
}

/// The page cache of the host.
#[derive(Debug)]
pub(crate) struct PageCache {
    limit: u64,
    resident: u64,
    dirty: u64,
    writeback: u64,
    /// Pages that became dirty, and pages that were written, since the start of the world.
    dirtied: u64,
    written: u64,
    /// The highest number of pages that were dirty or under write-back.
    dirty_max: u64,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    index: HashMap<(u32, u32), u32, BuildHasherDefault<KeyHasher>>,
    /// The chunk of the last lookup: file, chunk number and slot.
    latest: (u32, u32, u32),
    /// Ends of the LRU list: most and least recently used chunk.
    newest: u32,
    oldest: u32,
    files: Vec<FileState>,
}

#[derive(Clone, Debug, Default)]
struct FileState {
    resident: u64,
    writeback: u64,
    dirty_chunks: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    file: u32,
    number: u32,
    coming: u64,
    ready: u64,
    dirty: u64,
    writeback: u64,
    /// One bit per page that carries a read-ahead marker.
    marked: u64,
    /// Time at which the chunk's oldest dirty page became dirty, in ns.
    dirtied_ns: u64,
    newer: u32,
    older: u32,
}

impl PageCache {
    pub fn new(limit_pages: u64, files: usize) -> PageCache {
        PageCache {
            limit: limit_pages.max(1),
            resident: 0,
            dirty: 0,
            writeback: 0,
            dirtied: 0,
            written: 0,
            dirty_max: 0,
            chunks: Vec::new(),
            free: Vec::new(),
            index: HashMap::default(),
            latest: (NONE, NONE, NONE),
            newest: NONE,
            oldest: NONE,
            files: vec![FileState::default(); files],
        }
    }

    /// The state of a page.
    #[inline]
    pub fn state(&mut self, file: u32, page: u64) -> PageState {
        let (number, bit) = split(page);
        let Some(slot) = self.find(file, number) else { return PageState::Missing };
        let chunk = &self.chunks[slot as usize];
        if chunk.ready & bit != 0 {
            PageState::Ready
        } else if chunk.coming & bit != 0 {
            PageState::Coming
        } else {
            PageState::Missing
        }
    }

    /// Returns true if a page is dirty and not under write-back.
    pub fn is_dirty_page(&mut self, file: u32, page: u64) -> bool {
        let (number, bit) = split(page);
        self.find(file, number).is_some_and(|slot| self.chunks[slot as usize].dirty & bit != 0)
    }

    /// Records the use of a page: its chunk moves to the front of the LRU list.
    #[inline]
    pub fn touch(&mut self, file: u32, page: u64) {
        if let Some(slot) = self.find(file, split(page).0) {
            self.move_to_front(slot);
        }
    }

    /// Marks a missing page as being read.
    pub fn begin_read(&mut self, file: u32, page: u64) {
        let (number, bit) = split(page);
        let slot = self.find_or_make(file, number);
        let chunk = &mut self.chunks[slot as usize];
        debug_assert!((chunk.coming | chunk.ready) & bit == 0, "page {page} is not missing");
        chunk.coming |= bit;
        self.count_resident(file, 1);
        self.reclaim();
    }

    /// Sets the read-ahead marker of a page that is being read.
    pub fn mark(&mut self, file: u32, page: u64) {
        let (number, bit) = split(page);
        if let Some(slot) = self.find(file, number) {
            self.chunks[slot as usize].marked |= bit;
        }
    }

    /// Clears the read-ahead marker of a page. Returns true if the page had one.
    #[inline]
    pub fn take_mark(&mut self, file: u32, page: u64) -> bool {
        let (number, bit) = split(page);
        let Some(slot) = self.find(file, number) else { return false };
        let chunk = &mut self.chunks[slot as usize];
        let marked = chunk.marked & bit != 0;
        chunk.marked &= !bit;
        marked
    }

    /// Marks pages as up to date after their read.
    pub fn end_read(&mut self, file: u32, first: u64, pages: u64) {
        self.each_chunk(file, first, pages, |chunk, bits| {
            chunk.ready |= chunk.coming & bits;
            chunk.coming &= !bits;
        });
    }

    /// Marks pages as missing after their read failed.
    pub fn fail_read(&mut self, file: u32, first: u64, pages: u64) {
        let mut count = 0;
        self.each_chunk(file, first, pages, |chunk, bits| {
            count += u64::from((chunk.coming & bits).count_ones());
            chunk.coming &= !bits;
            chunk.marked &= !(bits & !chunk.ready);
        });
        self.resident -= count;
        self.files[file as usize].resident -= count;
    }

    /// Marks a page as dirty and up to date. Returns true if the page was clean before.
    pub fn make_dirty(&mut self, file: u32, page: u64, now_ns: u64) -> bool {
        let (number, bit) = split(page);
        let slot = self.find_or_make(file, number);
        let chunk = &mut self.chunks[slot as usize];
        let new = (chunk.coming | chunk.ready) & bit == 0;
        chunk.ready |= bit;
        chunk.coming &= !bit;
        let was_clean = chunk.dirty & bit == 0;
        if was_clean {
            if chunk.dirty == 0 {
                chunk.dirtied_ns = now_ns;
                self.files[file as usize].dirty_chunks.insert(number);
            }
            chunk.dirty |= bit;
            self.dirty += 1;
            self.dirtied += 1;
            self.dirty_max = self.dirty_max.max(self.unwritten());
        }
        if new {
            self.count_resident(file, 1);
        }
        self.move_to_front(slot);
        if new {
            self.reclaim();
        }
        was_clean
    }

    /// Takes up to `max` dirty pages of a file for write-back, in the order of the file from chunk
    /// `from` on. Only chunks that became dirty at or before `until_ns` count. Contiguous pages are
    /// added to `runs` as first page and length. Returns the chunk to continue from, or `None` at
    /// the end of the file.
    pub fn take_dirty(
        &mut self,
        file: u32,
        from: u32,
        max: u64,
        until_ns: u64,
        runs: &mut Vec<(u64, u64)>,
    ) -> Option<u32> {
        let mut taken = 0;
        let mut from = from;
        loop {
            let number = *self.files[file as usize].dirty_chunks.range(from..).next()?;
            if taken >= max {
                return Some(number);
            }
            from = number.checked_add(1)?;
            let Some(slot) = self.find(file, number) else { continue };
            let chunk = &mut self.chunks[slot as usize];
            if chunk.dirtied_ns > until_ns {
                continue;
            }
            let bits = chunk.dirty & !chunk.writeback;
            chunk.dirty &= !bits;
            chunk.writeback |= bits;
            if chunk.dirty == 0 {
                self.files[file as usize].dirty_chunks.remove(&number);
            }
            let count = u64::from(bits.count_ones());
            self.dirty -= count;
            self.writeback += count;
            self.files[file as usize].writeback += count;
            taken += count;
            add_runs(u64::from(number) * CHUNK_PAGES, bits, runs);
        }
    }

    /// Ends the write-back of pages.
    pub fn end_write(&mut self, file: u32, first: u64, pages: u64) {
        let mut ended = 0;
        self.each_chunk(file, first, pages, |chunk, bits| {
            ended += u64::from((chunk.writeback & bits).count_ones());
            chunk.writeback &= !bits;
        });
        self.writeback -= ended;
        self.written += ended;
        self.files[file as usize].writeback -= ended;
    }

    /// Drops the clean pages of a file.
    pub fn invalidate(&mut self, file: u32) {
        if self.files[file as usize].resident == 0 {
            return;
        }
        for slot in 0..self.chunks.len() as u32 {
            if self.chunks[slot as usize].file == file {
                self.drop_clean(slot);
            }
        }
    }

    /// Drops the pages of removed files: the dirty ones are never written. Pages that are being
    /// read or written stay.
    pub fn discard(&mut self, files: &HashSet<u32>) {
        for file in files {
            for number in std::mem::take(&mut self.files[*file as usize].dirty_chunks) {
                let Some(slot) = self.find(*file, number) else { continue };
                let chunk = &mut self.chunks[slot as usize];
                self.dirty -= u64::from(chunk.dirty.count_ones());
                chunk.dirty = 0;
            }
        }
        self.invalidate_where(|file| files.contains(&file));
    }

    /// Drops the clean pages of all files for which `is_meant` returns true, in one pass over the
    /// cache.
    pub fn invalidate_where(&mut self, is_meant: impl Fn(u32) -> bool) {
        for slot in 0..self.chunks.len() as u32 {
            let file = self.chunks[slot as usize].file;
            if file != NONE && is_meant(file) {
                self.drop_clean(slot);
            }
        }
    }

    /// Number of cached pages, including pages that are being read.
    #[cfg(test)]
    pub fn resident(&self) -> u64 {
        self.resident
    }

    /// Number of dirty pages that are not under write-back.
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Number of pages that are dirty or under write-back.
    pub fn unwritten(&self) -> u64 {
        self.dirty + self.writeback
    }

    /// The highest number of pages that were dirty or under write-back at any time.
    pub fn dirty_max(&self) -> u64 {
        self.dirty_max
    }

    /// Number of pages that became dirty since the start of the world.
    pub fn dirtied(&self) -> u64 {
        self.dirtied
    }

    /// Number of pages that were written since the start of the world.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Number of a file's pages under write-back.
    pub fn writeback_of(&self, file: u32) -> u64 {
        self.files[file as usize].writeback
    }

    /// Returns true if a file has dirty pages that are not under write-back.
    pub fn is_dirty(&self, file: u32) -> bool {
        !self.files[file as usize].dirty_chunks.is_empty()
    }

    #[inline]
    fn find(&mut self, file: u32, number: u32) -> Option<u32> {
        if (self.latest.0, self.latest.1) == (file, number) {
            return Some(self.latest.2);
        }
        self.look_up(file, number)
    }

    #[inline(never)]
    fn look_up(&mut self, file: u32, number: u32) -> Option<u32> {
        let slot = *self.index.get(&(file, number))?;
        self.latest = (file, number, slot);
        Some(slot)
    }

    fn find_or_make(&mut self, file: u32, number: u32) -> u32 {
        if let Some(slot) = self.find(file, number) {
            return slot;
        }
        let chunk = Chunk {
            file,
            number,
            coming: 0,
            ready: 0,
            dirty: 0,
            writeback: 0,
            marked: 0,
            dirtied_ns: 0,
            newer: NONE,
            older: NONE,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.chunks[slot as usize] = chunk;
                slot
            }
            None => {
                self.chunks.push(chunk);
                self.chunks.len() as u32 - 1
            }
        };
        self.index.insert((file, number), slot);
        self.latest = (file, number, slot);
        self.link_front(slot);
        slot
    }

    fn each_chunk(&mut self, file: u32, first: u64, pages: u64, mut change: impl FnMut(&mut Chunk, u64)) {
        let mut page = first;
        let end = first + pages;
        while page < end {
            let (number, _) = split(page);
            let offset = page % CHUNK_PAGES;
            let count = (CHUNK_PAGES - offset).min(end - page);
            if let Some(slot) = self.find(file, number) {
                change(&mut self.chunks[slot as usize], mask(offset, count));
            }
            page += count;
        }
    }

    fn count_resident(&mut self, file: u32, pages: u64) {
        self.resident += pages;
        self.files[file as usize].resident += pages;
    }

    /// Reclaims clean pages of the least recently used chunks while the cache is over its size.
    fn reclaim(&mut self) {
        let mut steps = 0;
        while self.resident > self.limit && steps < RECLAIM_STEPS && self.oldest != NONE {
            let slot = self.oldest;
            self.drop_clean(slot);
            if self.oldest == slot {
                self.move_to_front(slot);
            }
            steps += 1;
        }
    }

    /// Drops a chunk's clean pages, and the chunk itself if no page is left.
    fn drop_clean(&mut self, slot: u32) {
        let chunk = &mut self.chunks[slot as usize];
        let clean = chunk.ready & !chunk.dirty & !chunk.writeback;
        chunk.ready &= !clean;
        chunk.marked &= !clean;
        let (file, number) = (chunk.file, chunk.number);
        let empty = chunk.ready | chunk.coming == 0;
        let count = u64::from(clean.count_ones());
        self.resident -= count;
        if let Some(state) = self.files.get_mut(file as usize) {
            state.resident -= count;
        }
        if empty && file != NONE {
            self.unlink(slot);
            self.index.remove(&(file, number));
            self.chunks[slot as usize].file = NONE;
            self.free.push(slot);
            self.latest = (NONE, NONE, NONE);
        }
    }

    fn move_to_front(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.link_front(slot);
        }
    }

    fn link_front(&mut self, slot: u32) {
        let older = self.newest;
        self.chunks[slot as usize].newer = NONE;
        self.chunks[slot as usize].older = older;
        match older {
            NONE => self.oldest = slot,
            older => self.chunks[older as usize].newer = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Chunk { newer, older, .. } = self.chunks[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.chunks[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.chunks[older as usize].newer = newer,
        }
    }
}

/// The chunk of a page, and the page's bit within the chunk.
#[inline]
fn split(page: u64) -> (u32, u64) {
    ((page / CHUNK_PAGES) as u32, 1 << (page % CHUNK_PAGES))
}

fn mask(offset: u64, count: u64) -> u64 {
    if count >= CHUNK_PAGES { u64::MAX } else { ((1 << count) - 1) << offset }
}

/// Appends the runs of set bits to a list of runs; the first new run may extend the last run of the
/// list.
fn add_runs(first: u64, mut bits: u64, runs: &mut Vec<(u64, u64)>) {
    while bits != 0 {
        let start = u64::from(bits.trailing_zeros());
        let count = u64::from((!(bits >> start)).trailing_zeros()).min(CHUNK_PAGES - start);
        match runs.last_mut() {
            Some((page, pages)) if *page + *pages == first + start => *pages += count,
            _ => runs.push((first + start, count)),
        }
        bits &= !mask(start, count);
    }
}

/// Multiplies and folds. The keys are small numbers from the simulation itself, so no defence
/// against chosen keys is needed.
#[derive(Clone, Copy, Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }
    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(29) ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_missing_then_being_read_then_up_to_date() {
        let mut cache = PageCache::new(1000, 1);
        assert_eq!(cache.state(0, 70), PageState::Missing);
        for page in 60..70 {
            cache.begin_read(0, page);
        }
        assert_eq!(cache.state(0, 63), PageState::Coming);
        cache.end_read(0, 60, 8);
        assert_eq!(
            (cache.state(0, 63), cache.state(0, 67), cache.state(0, 68)),
            (PageState::Ready, PageState::Ready, PageState::Coming)
        );
        assert_eq!(cache.resident(), 10);
    }

    #[test]
    fn the_least_recently_used_clean_pages_make_room() {
        let mut cache = PageCache::new(3 * 64, 1);
        for page in 0..3 * 64 {
            cache.begin_read(0, page);
        }
        cache.end_read(0, 0, 3 * 64);
        cache.touch(0, 0);
        cache.make_dirty(0, 64, 0);
        cache.begin_read(0, 1000);
        // The third chunk was used least recently; the dirty page would have stayed in any case.
        assert_eq!(cache.state(0, 128), PageState::Missing);
        assert_eq!((cache.state(0, 0), cache.state(0, 64)), (PageState::Ready, PageState::Ready));
        assert_eq!(cache.resident(), 2 * 64 + 1);
    }

    #[test]
    fn dirty_pages_are_taken_in_runs_and_in_the_order_of_the_file() {
        let mut cache = PageCache::new(10_000, 2);
        for page in (60..70).chain(200..203).rev() {
            cache.make_dirty(1, page, 5);
        }
        let mut runs = Vec::new();
        assert_eq!(cache.take_dirty(1, 0, 1000, 4, &mut runs), None);
        assert_eq!(runs, []);
        assert_eq!(cache.take_dirty(1, 0, 1000, 5, &mut runs), None);
        assert_eq!(runs, [(60, 10), (200, 3)]);
        assert_eq!((cache.dirty(), cache.writeback, cache.writeback_of(1)), (0, 13, 13));
        cache.end_write(1, 60, 10);
        assert_eq!((cache.writeback, cache.is_dirty(1)), (3, false));
    }

    #[test]
    fn taking_dirty_pages_stops_at_the_end_of_a_chunk_and_continues_there() {
        let mut cache = PageCache::new(10_000, 1);
        for page in 0..256 {
            cache.make_dirty(0, page, 0);
        }
        let mut runs = Vec::new();
        assert_eq!(cache.take_dirty(0, 0, 100, 0, &mut runs), Some(2));
        assert_eq!(runs, [(0, 128)]);
    }

    #[test]
    fn invalidation_keeps_dirty_pages_only() {
        let mut cache = PageCache::new(10_000, 1);
        cache.make_dirty(0, 1, 0);
        cache.begin_read(0, 2);
        cache.end_read(0, 2, 1);
        cache.begin_read(0, 200);
        cache.end_read(0, 200, 1);
        cache.invalidate(0);
        assert_eq!(
            (cache.state(0, 1), cache.state(0, 2), cache.state(0, 200)),
            (PageState::Ready, PageState::Missing, PageState::Missing)
        );
        assert_eq!(cache.resident(), 1);
    }
}
