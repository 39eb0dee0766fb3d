//! The read-ahead state of an open file, under whichever rules the host has.

use super::on_demand::OnDemand;
use super::two_windows::ReadAhead;

/// What the kernel remembers of one open file, by its rules of reading ahead.
#[derive(Clone, Debug)]
pub(crate) enum Reader {
    TwoWindows(ReadAhead),
    OnDemand(OnDemand),
}

impl Reader {
    /// What became of a window: how many of its pages were in the cache already, and how many were not.
    pub fn found(&mut self, cached: u64, missing: u64) {
        if let Reader::TwoWindows(reader) = self {
            reader.found(cached, missing);
        }
    }

    /// A page that should have been there was not.
    pub fn missed(&mut self) {
        if let Reader::TwoWindows(reader) = self {
            reader.missed();
        }
    }
}
