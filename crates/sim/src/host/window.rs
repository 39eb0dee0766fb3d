//! A read-ahead window, and the growth of windows.

/// Consecutive pages; none when the length is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub start: u64,
    pub pages: u64,
}

/// Length of the window after one of `pages` pages: four times a small one, twice a larger one.
pub(super) fn next_window(last: u64, max: u64) -> u64 {
    let scaled = if last < max / 16 { last * 4 } else { last * 2 };
    scaled.clamp(1, max)
}
