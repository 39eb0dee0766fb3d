//! A mapped file: the pages in the page tables of a process, and the read of a page fault.

use super::window::Window;

/// Excess of misses over hits from which on a fault reads its page alone.
const MISSES_MAX: u32 = 100;

/// The state of a process's mapping of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    /// A bit for each page that is mapped.
    mapped: Vec<u64>,
    /// Faults without a cached page, less faults with one.
    misses: u32,
}

impl Mapping {
    /// Maps a page. Returns true if the page was not mapped before: the access is a fault.
    pub fn touch(&mut self, page: u64) -> bool {
        let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
        if word >= self.mapped.len() {
            self.mapped.resize(word + 1, 0);
        }
        let faults = self.mapped[word] & bit == 0;
        self.mapped[word] |= bit;
        faults
    }

    /// Counts a fault whose page is cached or being read.
    pub fn hit(&mut self) {
        self.misses = self.misses.saturating_sub(1);
    }

    /// Counts a fault whose page is missing, and returns the pages to read: half a window before
    /// the page and half after it, or the page alone after too many misses.
    pub fn read_around(&mut self, page: u64, window_pages: u64, file_pages: u64) -> Window {
        self.misses = self.misses.saturating_add(1);
        if self.misses > MISSES_MAX || window_pages == 0 {
            return Window { start: page, pages: 1 };
        }
        let start = page.saturating_sub(window_pages / 2);
        Window { start, pages: window_pages.min(file_pages.saturating_sub(start)).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_faults_once() {
        let mut mapping = Mapping::default();
        assert_eq!([100, 101, 100].map(|page| mapping.touch(page)), [true, true, false]);
    }

    #[test]
    fn a_miss_reads_half_a_window_on_each_side_within_the_file() {
        let mut mapping = Mapping::default();
        assert_eq!(mapping.read_around(100, 32, 1000), Window { start: 84, pages: 32 });
        assert_eq!(mapping.read_around(3, 32, 1000), Window { start: 0, pages: 32 });
        assert_eq!(mapping.read_around(999, 32, 1000), Window { start: 983, pages: 17 });
    }

    #[test]
    fn after_an_excess_of_a_hundred_misses_a_fault_reads_its_page_alone() {
        let mut mapping = Mapping::default();
        let windows: Vec<u64> = (0..101).map(|page| mapping.read_around(page * 100, 32, 100_000).pages).collect();
        assert_eq!((windows[99], windows[100]), (32, 1));
        mapping.hit();
        mapping.hit();
        assert_eq!(mapping.read_around(500, 32, 100_000).pages, 32);
    }
}
