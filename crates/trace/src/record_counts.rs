//! Numbers of records by kind, for messages that say what a trace has and what it lacks.

use std::fmt;

use hoistway_units::figures::grouped;

use crate::event::{Action, Event};

/// The numbers of records of a trace, or of one of its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RecordCounts {
    /// Records of all kinds.
    pub records: u64,
    /// Submissions of bios (Q).
    pub submissions: u64,
    /// Requests that the driver took (D).
    pub issues: u64,
    /// Completions (C).
    pub completions: u64,
}

impl RecordCounts {
    /// Counts an event.
    pub fn count(&mut self, event: &Event) {
        self.records += 1;
        match event.action {
            Action::Queue => self.submissions += 1,
            Action::Issue => self.issues += 1,
            Action::Complete => self.completions += 1,
            _ => {}
        }
    }

    /// Adds the numbers of another device.
    pub fn add(&mut self, other: &RecordCounts) {
        self.records += other.records;
        self.submissions += other.submissions;
        self.issues += other.issues;
        self.completions += other.completions;
    }
}

impl fmt::Display for RecordCounts {
    /// Formats the numbers: "40,397 records: 40,397 submissions (Q), no issues (D), no completions
    /// (C)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: u64, what: &str| match count {
            0 => format!("no {what}s"),
            1 => format!("1 {what}"),
            count => format!("{} {what}s", grouped(count)),
        };
        write!(
            f,
            "{}: {} (Q), {} (D), {} (C)",
            count(self.records, "record"),
            count(self.submissions, "submission"),
            count(self.issues, "issue"),
            count(self.completions, "completion")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_the_missing_kinds_of_records() {
        let counts = RecordCounts { records: 80_794, submissions: 1, issues: 0, completions: 1_234_567 };
        assert_eq!(counts.to_string(), "80,794 records: 1 submission (Q), no issues (D), 1,234,567 completions (C)");
    }
}
