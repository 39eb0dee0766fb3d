//! Read-ahead on demand, as in Linux from 2.6.23 on.
//!
//! The kernel does nothing while a reader finds its pages. Read-ahead runs at two events only: a
//! page is missing, or the reader comes to a page that carries a *marker*. A missing page starts a
//! window at once. The marker within a window starts the next window while the pages after the
//! marker are still unread. The purpose of a window follows from the position of the event and the
//! state of the open file. Where that state is of no use (several readers of one open file), it
//! follows from the page cache itself.
//!
//! The rules are those of F. Wu, H. Xi and C. Xu, "On the design of a new Linux readahead
//! framework", ACM SIGOPS Operating Systems Review 42(5), 2008: sections on the state, on the two
//! triggers and on interleaved and context-based read-ahead.

use super::window::{Window, next_window};

/// The read-ahead state of one open file. Units are pages of 4 KiB.
#[derive(Clone, Debug)]
pub(crate) struct OnDemand {
    max: u64,
    /// The rules of 2.6.31 and later: streams are recognised by the cached pages before a page, and
    /// a window whose marker would be reached at once is read together with the next.
    uses_history: bool,
    window: Window,
    /// Number of pages of the window from the marked page on.
    behind: u64,
    /// The last page that was read.
    last: Option<u64>,
}

/// A window to read, with the page in it that gets the marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkedWindow {
    pub window: Window,
    pub marker: Option<u64>,
}

/// The position of a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadPosition {
    /// The page that the reader has reached.
    pub page: u64,
    /// Number of requested pages from there on.
    pub wanted: u64,
    /// Number of pages of the file.
    pub file_pages: u64,
}

impl OnDemand {
    /// Creates a state with windows of at most `max` pages; 0 disables read-ahead.
    pub fn new(max: u64, uses_history: bool) -> OnDemand {
        OnDemand { max, uses_history, window: Window::default(), behind: 0, last: None }
    }

    /// Handles a missing page. `is_cached` returns true for pages of the file that are cached or
    /// being read.
    pub fn missing(&mut self, at: ReadPosition, is_cached: impl FnMut(u64) -> bool) -> Option<MarkedWindow> {
        if self.max == 0 {
            return None;
        }
        if !self.goes_on(at.page) {
            let follows = self.last.map_or(at.page == 0, |last| at.page.wrapping_sub(last) <= 1);
            if at.page == 0 || at.wanted > self.max || follows {
                self.begin(at);
            } else if !(self.uses_history && self.find_stream(at, is_cached)) {
                // A random read: only the requested pages are read. The state stays, as it may
                // belong to a stream.
                return marked(Window { start: at.page, pages: at.wanted }, None, at.file_pages);
            }
        }
        self.read(at)
    }

    /// Handles a page whose marker was just cleared.
    pub fn met_marker(&mut self, at: ReadPosition, mut is_cached: impl FnMut(u64) -> bool) -> Option<MarkedWindow> {
        if self.max == 0 {
            return None;
        }
        if !self.goes_on(at.page) {
            // Another stream of the same open file left it: what is read on begins where what is
            // cached ends.
            let start = (at.page + 1..=at.page + self.max).find(|page| !is_cached(*page))?;
            self.window = Window { start, pages: next_window(start - at.page + at.wanted, self.max) };
            self.behind = self.window.pages;
        }
        self.read(at)
    }

    /// Records that a page was read.
    pub fn was_read(&mut self, page: u64) {
        self.last = Some(page);
    }

    /// Returns true if the stream of the window was expected at this page: at the marker, or after
    /// the end. The window then advances.
    fn goes_on(&mut self, page: u64) -> bool {
        let end = self.window.start + self.window.pages;
        if page == 0 || (page != end && page != end - self.behind) {
            return false;
        }
        self.window = Window { start: end, pages: next_window(self.window.pages, self.max) };
        self.behind = self.window.pages;
        true
    }

    fn begin(&mut self, at: ReadPosition) {
        let pages = first_window(at.wanted, self.max);
        self.window = Window { start: at.page, pages };
        self.behind = if pages > at.wanted { pages - at.wanted } else { pages };
    }

    /// Returns true if the pages before this one are cached, as after a sequential reader. More
    /// such pages make a longer window.
    fn find_stream(&mut self, at: ReadPosition, mut is_cached: impl FnMut(u64) -> bool) -> bool {
        let cached = (1..=self.max.min(at.page)).take_while(|back| is_cached(at.page - back)).count() as u64;
        if cached == 0 {
            return false;
        }
        // From the file's beginning on: a reader of all of it.
        let seen = if cached >= at.page { cached * 2 } else { cached };
        self.window = Window { start: at.page, pages: first_window(seen + at.wanted, self.max) };
        self.behind = self.window.pages;
        true
    }

    fn read(&mut self, at: ReadPosition) -> Option<MarkedWindow> {
        if self.uses_history && at.page == self.window.start && self.behind == self.window.pages {
            // The marker would be on the page that is read next.
            self.behind = next_window(self.window.pages, self.max);
            self.window.pages += self.behind;
        }
        let marker = self.window.start + self.window.pages - self.behind;
        marked(self.window, Some(marker), at.file_pages)
    }
}

/// The part of a window that the file has.
fn marked(window: Window, marker: Option<u64>, file_pages: u64) -> Option<MarkedWindow> {
    let pages = window.pages.min(file_pages.saturating_sub(window.start));
    let marker = marker.filter(|page| *page < window.start + pages);
    (pages > 0).then_some(MarkedWindow { window: Window { pages, ..window }, marker })
}

/// Length of the first window for a request of `wanted` pages: four times a small request, twice a
/// larger one.
fn first_window(wanted: u64, max: u64) -> u64 {
    let size = wanted.max(1).next_power_of_two();
    let scaled = if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    };
    scaled.clamp(1, max)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A file's cached pages and markers, and what was read into it: for which page, and the
    /// window.
    #[derive(Default)]
    struct Cache {
        pages: BTreeSet<u64>,
        markers: BTreeSet<u64>,
        read: Vec<(u64, u64, u64)>,
    }

    impl Cache {
        fn read_page(&mut self, reader: &mut OnDemand, at: ReadPosition) {
            if !self.pages.contains(&at.page) {
                let plan = reader.missing(at, |page| self.pages.contains(&page));
                self.take_in(at.page, plan);
                self.pages.insert(at.page);
            }
            if self.markers.remove(&at.page) {
                let plan = reader.met_marker(at, |page| self.pages.contains(&page));
                self.take_in(at.page, plan);
            }
            reader.was_read(at.page);
        }

        fn take_in(&mut self, page: u64, plan: Option<MarkedWindow>) {
            let Some(MarkedWindow { window, marker }) = plan else { return };
            self.read.push((page, window.start, window.pages));
            for new in window.start..window.start + window.pages {
                if self.pages.insert(new) && Some(new) == marker {
                    self.markers.insert(new);
                }
            }
        }
    }

    fn at(page: u64, wanted: u64) -> ReadPosition {
        ReadPosition { page, wanted, file_pages: 100_000 }
    }

    #[test]
    fn windows_of_a_page_by_page_reader_double_and_start_at_the_previous_marker() {
        let (mut cache, mut reader) = (Cache::default(), OnDemand::new(32, false));
        (0..100).for_each(|page| cache.read_page(&mut reader, at(page, 1)));
        // 4 pages for the first, marked after the wanted pages; then windows that are marked at
        // their beginnings.
        let wanted = [(0, 0, 4), (1, 4, 8), (4, 12, 16), (12, 28, 32), (28, 60, 32), (60, 92, 32), (92, 124, 32)];
        assert_eq!(cache.read, wanted);
    }

    #[test]
    fn a_request_of_the_longest_window_starts_the_next_window_at_its_start() {
        let (mut cache, mut reader) = (Cache::default(), OnDemand::new(32, false));
        (0..40).for_each(|page| cache.read_page(&mut reader, at(page, 256 - page)));
        assert_eq!(cache.read, [(0, 0, 32), (0, 32, 32), (32, 64, 32)]);
        let (mut cache, mut reader) = (Cache::default(), OnDemand::new(32, true));
        (0..40).for_each(|page| cache.read_page(&mut reader, at(page, 256 - page)));
        // From 2.6.31 on the two are one call.
        assert_eq!(cache.read, [(0, 0, 64), (32, 64, 32)]);
    }

    #[test]
    fn random_reads_read_the_requested_pages_and_keep_the_stream() {
        let (mut cache, mut reader) = (Cache::default(), OnDemand::new(32, false));
        (0..2).for_each(|page| cache.read_page(&mut reader, at(page, 1)));
        cache.read_page(&mut reader, at(5000, 2));
        (2..5).for_each(|page| cache.read_page(&mut reader, at(page, 1)));
        assert_eq!(cache.read, [(0, 0, 4), (1, 4, 8), (5000, 5000, 2), (4, 12, 16)]);
    }

    #[test]
    fn two_streams_of_one_open_file_are_distinguished_by_their_markers() {
        let (mut cache, mut reader) = (Cache::default(), OnDemand::new(32, true));
        (0..2).for_each(|page| cache.read_page(&mut reader, at(page, 1)));
        // A second stream: its first page is random, its second follows, from then on they take
        // turns.
        (1000..1002).for_each(|page| cache.read_page(&mut reader, at(page, 1)));
        for step in 0..40 {
            cache.read_page(&mut reader, at(2 + step, 1));
            cache.read_page(&mut reader, at(1002 + step, 1));
        }
        let of = |low: u64| -> Vec<u64> {
            cache.read.iter().filter(|read| (read.0 >= 1000) == (low > 0)).map(|read| read.2).collect()
        };
        assert!(of(1).iter().skip(2).all(|pages| *pages >= 8), "{:?}", cache.read);
        assert!(of(0).len() <= 6 && of(1).len() <= 7, "{:?}", cache.read);
    }

    #[test]
    fn a_stream_without_state_is_recognised_by_the_cached_pages_before_it() {
        let mut cache = Cache { pages: (100..108).collect(), ..Cache::default() };
        // 8 pages of history and 1 that is wanted round up to 16: above max / 4 it is the longest
        // window, and its marker is met at once.
        let mut reader = OnDemand::new(32, true);
        cache.read_page(&mut reader, at(108, 1));
        assert_eq!(cache.read, [(108, 108, 64)]);
        let mut cache = Cache { pages: (100..108).collect(), ..Cache::default() };
        cache.read_page(&mut OnDemand::new(32, false), at(108, 1));
        assert_eq!(cache.read, [(108, 108, 1)]);
    }

    #[test]
    fn windows_end_with_the_file_and_a_window_of_0_reads_nothing_ahead() {
        let (mut cache, mut reader) = (Cache::default(), OnDemand::new(32, true));
        (0..30).for_each(|page| cache.read_page(&mut reader, ReadPosition { page, wanted: 1, file_pages: 30 }));
        assert_eq!(cache.read.iter().map(|read| read.2).sum::<u64>(), 30);
        let mut none = OnDemand::new(0, true);
        assert_eq!(none.missing(at(0, 8), |_| false), None);
        assert_eq!(none.met_marker(at(3, 8), |_| false), None);
    }

    #[test]
    fn windows_grow_from_the_requested_length() {
        assert_eq!([1, 2, 8, 9, 32].map(|wanted| first_window(wanted, 32)), [4, 4, 16, 32, 32]);
        assert_eq!([1, 2, 16, 32].map(|last| next_window(last, 32)), [4, 4, 32, 32]);
        assert_eq!(first_window(32, 1024), 128);
    }
}
