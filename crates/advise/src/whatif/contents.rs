//! The contents of a trace in numbers, for messages that say what a trace lacks.

use std::fmt;

use hoistway_trace::RecordCounts;
use hoistway_trace::request::RequestRecord;
use serde::Serialize;

use super::recording::op_of;

/// The numbers of records and requests of one device of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TraceContents {
    /// The records.
    #[serde(flatten)]
    pub records: RecordCounts,
    /// Requests with data whose submission, or a later step before the completion, is recorded.
    pub requests: u64,
    /// Those of `requests` whose completion is recorded.
    pub completed: u64,
}

impl TraceContents {
    /// Counts the requests of a device.
    pub(super) fn new(records: RecordCounts, requests: &[RequestRecord]) -> TraceContents {
        let has_data = |record: &&RequestRecord| {
            op_of(record.op).is_some() && record.bytes > 0 && record.first_seen_ns().is_some()
        };
        let with_data = || requests.iter().filter(has_data);
        let completed = with_data().filter(|record| record.completed_ns.is_some()).count();
        TraceContents { records, requests: with_data().count() as u64, completed: completed as u64 }
    }

    /// Returns true if the completions of at least half of the requests are recorded, so that a
    /// model can be compared with the recording.
    pub fn has_completions(&self) -> bool {
        self.completed > 0 && self.completed * 2 >= self.requests
    }
}

impl fmt::Display for TraceContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.records.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_completions_suffice_for_a_comparison_with_the_recording() {
        let contents = |requests, completed| TraceContents { requests, completed, ..Default::default() };
        assert!(contents(10, 5).has_completions() && !contents(10, 4).has_completions());
        assert!(!contents(0, 0).has_completions());
    }
}
