//! Read-ahead with two windows, as in Linux 2.6 up to 2.6.22.
//!
//! A sequential reader has a *current* window and, beyond it, an *ahead* window. The kernel reads
//! the ahead window when the reader enters the current one. When the reader reaches the ahead
//! window, that window becomes the current one, and the kernel reads the next window before the
//! reader waits. So two windows are in flight while a steady reader waits.

use super::window::{Window, next_window};

/// Number of consecutive cached pages after which read-ahead stops: the file is in memory.
const CACHED_ENOUGH: u64 = 256;

/// The read-ahead state of one open file. Units are pages of 4 KiB.
#[derive(Clone, Debug)]
pub(crate) struct ReadAhead {
    max: u64,
    current: Window,
    ahead: Window,
    /// The last requested page.
    last: Option<u64>,
    cached: u64,
}

/// The windows to read, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadAheadPlan {
    /// Windows to read; a window of length 0 does not count.
    pub windows: [Window; 2],
    /// Pages of the request that the plan covers: the next call is for the page after them.
    pub covered: u64,
}

impl ReadAhead {
    /// Creates a state with windows of at most `max` pages; 0 disables read-ahead.
    pub fn new(max: u64) -> ReadAhead {
        ReadAhead { max, current: Window::default(), ahead: Window::default(), last: None, cached: 0 }
    }

    /// Plans the reads for a reader that needs `wanted` pages from `page` on; the file has
    /// `file_pages` pages.
    pub fn plan(&mut self, page: u64, wanted: u64, file_pages: u64) -> ReadAheadPlan {
        let wanted = wanted.min(self.max.max(1)).max(1);
        if self.last == Some(page) {
            return ReadAheadPlan { covered: 1, ..ReadAheadPlan::default() };
        }
        let sequential = match self.last {
            None => page == 0,
            Some(last) => page == last.wrapping_add(1),
        };
        self.last = Some(page + wanted - 1);
        let clip =
            |window: Window| Window { pages: window.pages.min(file_pages.saturating_sub(window.start)), ..window };
        let mut windows = [Window::default(); 2];
        if self.max == 0 || self.cached >= CACHED_ENOUGH {
            self.close();
        } else if !sequential {
            self.close();
            windows[0] = clip(Window { start: page, pages: wanted });
        } else if self.current.pages == 0 {
            self.current = clip(Window { start: page, pages: first_window(wanted, self.max) });
            windows[0] = self.current;
            if wanted >= self.max {
                windows[1] = self.open_ahead(file_pages);
            }
        } else {
            if self.ahead.pages == 0 {
                windows[0] = self.open_ahead(file_pages);
            }
            if self.ahead.pages > 0 && page + wanted > self.ahead.start {
                self.current = self.ahead;
                windows[1] = self.open_ahead(file_pages);
            }
        }
        ReadAheadPlan { windows, covered: wanted }
    }

    /// Reports how many pages of a window were cached already and how many were missing.
    pub fn found(&mut self, cached: u64, missing: u64) {
        self.cached = if missing > 0 { 0 } else { self.cached.saturating_add(cached) };
    }

    /// Reports that an expected page was missing: read-ahead starts again.
    pub fn missed(&mut self) {
        self.cached = 0;
    }

    fn close(&mut self) {
        self.current = Window::default();
        self.ahead = Window::default();
    }

    fn open_ahead(&mut self, file_pages: u64) -> Window {
        let start = self.current.start + self.current.pages;
        let pages = next_window(self.current.pages, self.max).min(file_pages.saturating_sub(start));
        self.ahead = Window { start, pages };
        self.ahead
    }
}

/// Length of the first window for a request of this many pages.
fn first_window(wanted: u64, max: u64) -> u64 {
    let size = wanted.next_power_of_two();
    let scaled = if size <= max / 64 {
        size * size
    } else if size <= max / 4 {
        max / 4
    } else {
        max
    };
    scaled.clamp(1, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(plan: ReadAheadPlan) -> Vec<(u64, u64)> {
        plan.windows.iter().filter(|window| window.pages > 0).map(|window| (window.start, window.pages)).collect()
    }

    #[test]
    fn windows_of_a_page_by_page_reader_double_from_8_to_32_pages() {
        let mut reader = ReadAhead::new(32);
        let mut seen = Vec::new();
        for page in 0..100 {
            for window in windows(reader.plan(page, 1, 1000)) {
                seen.push((page, window));
            }
        }
        // 8 pages at the first read, 16 on entering them; the next at the first page of each ahead
        // window.
        let wanted = [(0, (0, 8)), (1, (8, 16)), (8, (24, 32)), (24, (56, 32)), (56, (88, 32)), (88, (120, 32))];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn windows_end_with_the_file() {
        let mut reader = ReadAhead::new(32);
        let read: u64 = (0..30).flat_map(|page| windows(reader.plan(page, 1, 30))).map(|window| window.1).sum();
        assert_eq!(read, 30);
    }

    #[test]
    fn a_jump_reads_the_requested_pages_and_closes_the_windows() {
        let mut reader = ReadAhead::new(32);
        reader.plan(0, 1, 1000);
        reader.plan(1, 1, 1000);
        assert_eq!(windows(reader.plan(500, 4, 1000)), [(500, 4)]);
        assert_eq!(windows(reader.plan(900, 1, 1000)), [(900, 1)]);
        // The next sequential read opens them again.
        assert_eq!(windows(reader.plan(901, 1, 1000)), [(901, 8)]);
    }

    #[test]
    fn a_request_of_the_longest_window_keeps_two_windows_in_flight() {
        let mut reader = ReadAhead::new(32);
        let plan = reader.plan(0, 256, 1000);
        assert_eq!((windows(plan), plan.covered), (vec![(0, 32), (32, 32)], 32));
    }

    #[test]
    fn after_256_cached_pages_nothing_is_read_ahead_until_a_miss() {
        let mut reader = ReadAhead::new(32);
        for page in 0..1000 {
            for window in windows(reader.plan(page, 1, 100_000)) {
                reader.found(window.1, 0);
            }
        }
        assert_eq!(windows(reader.plan(1000, 1, 100_000)), []);
        reader.missed();
        assert_eq!(windows(reader.plan(1001, 1, 100_000)), [(1001, 8)]);
    }

    #[test]
    fn small_first_reads_of_a_large_maximum_are_squared() {
        assert_eq!(first_window(3, 1024), 16);
        assert_eq!(first_window(64, 1024), 256);
        assert_eq!(first_window(500, 1024), 1024);
        assert_eq!(next_window(16, 1024), 64);
        assert_eq!(next_window(64, 1024), 128);
    }
}
