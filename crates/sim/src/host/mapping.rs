//! A mapped file: which pages a process has in its page tables, and what a fault reads.

use super::window::Window;

/// So many more misses than hits, and reading around them is not worth its while.
const MISSES_MAX: u32 = 100;

/// What a process's mapping of a file remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    /// A bit for each page that is mapped.
    mapped: Vec<u64>,
    /// Faults that found no page in memory, less those that did.
    misses: u32,
}

impl Mapping {
    /// A page is touched; answers whether it was not mapped, which is a fault.
    pub fn touch(&mut self, page: u64) -> bool {
        let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
        if word >= self.mapped.len() {
            self.mapped.resize(word + 1, 0);
        }
        let faults = self.mapped[word] & bit == 0;
        self.mapped[word] |= bit;
        faults
    }

    /// A fault found its page in memory, or on its way there.
    pub fn hit(&mut self) {
        self.misses = self.misses.saturating_sub(1);
    }

    /// A fault did not find its page: half a window before it is read with it, and half behind;
    /// after too many misses the page alone.
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
    fn a_miss_reads_half_a_window_on_both_sides_within_the_file() {
        let mut mapping = Mapping::default();
        assert_eq!(mapping.read_around(100, 32, 1000), Window { start: 84, pages: 32 });
        assert_eq!(mapping.read_around(3, 32, 1000), Window { start: 0, pages: 32 });
        assert_eq!(mapping.read_around(999, 32, 1000), Window { start: 983, pages: 17 });
    }

    #[test]
    fn after_a_hundred_misses_more_than_hits_a_fault_reads_its_page_alone() {
        let mut mapping = Mapping::default();
        let windows: Vec<u64> = (0..101).map(|page| mapping.read_around(page * 100, 32, 100_000).pages).collect();
        assert_eq!((windows[99], windows[100]), (32, 1));
        mapping.hit();
        mapping.hit();
        assert_eq!(mapping.read_around(500, 32, 100_000).pages, 32);
    }
}
