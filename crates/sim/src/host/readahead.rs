//! The read-ahead state of an open file, by the rules of the host.

use super::on_demand::OnDemand;
use super::two_windows::ReadAhead;

/// The read-ahead state of an open file, by the host's rules.
#[derive(Clone, Debug)]
pub(crate) enum Reader {
    TwoWindows(ReadAhead),
    OnDemand(OnDemand),
    /// No read-ahead: the requested pages alone, up to a number at a time.
    Requested(u64),
}

impl Reader {
    /// Reports how many pages of a window were cached already and how many were missing.
    pub fn found(&mut self, cached: u64, missing: u64) {
        if let Reader::TwoWindows(reader) = self {
            reader.found(cached, missing);
        }
    }

    /// Reports that an expected page was missing.
    pub fn missed(&mut self) {
        if let Reader::TwoWindows(reader) = self {
            reader.missed();
        }
    }
}
