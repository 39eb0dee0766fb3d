//! Files with a page cache and a disk below: a power failure keeps any subset of the pages that
//! were written but not synced.

use std::collections::BTreeSet;

use hoistway_reactor::simulated::Prng;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// A file. The content of a page is the number of the write that wrote it, 0 for a hole.
#[derive(Debug, Default)]
pub(super) struct Inode {
    /// The page cache.
    pub live: Vec<u64>,
    /// Pages that the disk does not have yet.
    pub dirty: BTreeSet<usize>,
    /// Pages under write-back.
    pub busy: BTreeSet<usize>,
    /// The content of the disk with its cache, and without.
    disk: Vec<u64>,
    durable: Vec<u64>,
    /// The file was truncated since the last commit.
    is_truncated: bool,
    pub links: u64,
    /// Write-back errors so far, and whether the last one was reported (errseq).
    errors: u64,
    is_seen: bool,
    /// The number of the last truncation: older writes are gone.
    truncation: u64,
    /// The number of the last truncation that is durable.
    durable_truncation: u64,
    /// For each page the number of the oldest write that may be there after a power failure.
    floor: Vec<u64>,
    /// Pages whose last write-back failed.
    lost: BTreeSet<usize>,
    /// The last write-back error was reported to no handle.
    pub is_untold: bool,
}

/// The part of the errors that a description has reported.
pub(super) type Since = u64;

fn at(pages: &[u64], page: usize) -> u64 {
    pages.get(page).copied().unwrap_or(0)
}

fn set(pages: &mut Vec<u64>, page: usize, value: u64) {
    if pages.len() <= page {
        pages.resize(page + 1, 0);
    }
    pages[page] = value;
}

impl Inode {
    /// Writes pages into the cache.
    pub fn write(&mut self, pages: std::ops::Range<usize>, number: u64) {
        for page in pages {
            set(&mut self.live, page, number);
            self.dirty.insert(page);
        }
    }

    /// Takes dirty pages for write-back. Returns them with their content.
    pub fn begin_write(&mut self, pages: std::ops::Range<usize>) -> Vec<(usize, u64)> {
        let taken: Vec<usize> = self.dirty.range(pages).copied().collect();
        for page in &taken {
            self.dirty.remove(page);
            self.busy.insert(*page);
        }
        taken.into_iter().map(|page| (page, at(&self.live, page))).collect()
    }

    /// Ends the write-back of pages.
    pub fn end_write(&mut self, pages: &[(usize, u64)], fails: bool) {
        for (page, content) in pages {
            self.busy.remove(page);
            if fails {
                self.lost.insert(*page);
            } else {
                set(&mut self.disk, *page, *content);
                self.lost.remove(page);
            }
        }
        if fails && !pages.is_empty() {
            (self.errors, self.is_seen, self.is_untold) = (self.errors + 1, false, true);
        }
    }

    /// Returns the errors that a new description need not report.
    pub fn sample(&self) -> Since {
        if self.is_seen || self.errors == 0 { self.errors } else { self.errors - 1 }
    }

    /// Returns true if a description has to report an error, which is reported then.
    pub fn reports(&mut self, since: &mut Since) -> bool {
        let reports = *since != self.errors;
        self.is_seen |= reports;
        *since = self.errors;
        reports
    }

    /// Truncates the file to nothing.
    pub fn truncate(&mut self, number: u64) {
        self.truncation = number;
        self.live.clear();
        self.dirty.clear();
        self.disk.clear();
        self.lost.clear();
        self.is_truncated = true;
    }

    /// Makes everything that the disk has durable.
    pub fn commit(&mut self) {
        self.durable.clone_from(&self.disk);
        self.durable_truncation = self.truncation;
        self.is_truncated = false;
    }

    /// Returns the content that a sync beginning now promises.
    pub fn promise(&self) -> (Vec<u64>, u64) {
        (self.live.clone(), self.truncation)
    }

    /// Records the success of a sync.
    pub fn promised(&mut self, (live, truncation): &(Vec<u64>, u64)) {
        let pages = live.len().max(self.floor.len());
        for page in (0..pages).filter(|page| !self.lost.contains(page)) {
            let number = at(live, page).max(*truncation).max(at(&self.floor, page));
            set(&mut self.floor, page, number);
        }
    }

    /// Pages that are lost stay so until they are written again.
    pub fn forgive(&mut self, pages: &[(usize, u64)]) {
        for (page, _) in pages {
            set(&mut self.floor, *page, 0);
        }
    }

    /// Checks what a power failure now would leave.
    pub fn check_power_failure(&self, prng: &mut Prng) -> Result<(), String> {
        for page in 0..self.floor.len().max(self.live.len()) {
            let keeps = !self.is_truncated && prng.permille(500);
            let found = at(if keeps { &self.disk } else { &self.durable }, page);
            let number = if found == 0 { self.durable_truncation } else { found };
            if number < at(&self.floor, page) {
                let floor = at(&self.floor, page);
                return Err(format!(
                    "after a power failure page {page} has write {found}; write {floor} was synced (truncated by {})",
                    self.truncation
                ));
            }
        }
        Ok(())
    }

    /// Checks that a power failure would leave everything, as after a drain.
    pub fn check_written(&self) -> Result<(), String> {
        match self.dirty.iter().next() {
            Some(page) if self.links > 0 => Err(format!("page {page} is dirty after the drain")),
            _ => Ok(()),
        }
    }
}
