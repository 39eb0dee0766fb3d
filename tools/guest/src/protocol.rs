//! What the guest prints: one event a line, each a JSON object after a prefix.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The beginning of every line with an event.
pub const PREFIX: &str = "@hoistway ";

/// Figures of a campaign by their names.
pub type Counts = BTreeMap<String, u64>;

/// How a campaign ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// All checks held.
    Passed,
    /// A check failed.
    Failed,
    /// The kernel lacks what the campaign needs.
    Skipped,
    /// The campaign did not end within its time limit.
    Hung,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The guest has read its plan.
    Started {
        /// The release of the kernel.
        release: String,
        /// The number of campaigns in the plan.
        campaigns: usize,
    },
    /// A campaign begins.
    Begun {
        /// The name of the campaign in the plan.
        name: String,
    },
    /// A campaign has ended.
    Ended {
        /// The name of the campaign in the plan.
        name: String,
        /// How it ended.
        status: Status,
        /// What failed or why it was skipped; empty if it passed.
        detail: String,
        /// The figures of the campaign.
        counts: Counts,
        /// The duration in milliseconds.
        milliseconds: u64,
    },
    /// The kernel's log has a report of an error.
    Report {
        /// The campaign that ran.
        name: String,
        /// The kind of the report.
        kind: String,
        /// The lines of the report.
        text: String,
    },
    /// The state of a queue or of tasks, after a campaign hung.
    Dump {
        /// The name of what was read.
        name: String,
        /// The contents.
        text: String,
    },
    /// All campaigns have ended, and the guest powers off.
    Finished {
        /// The number of campaigns that ran.
        campaigns: usize,
    },
}

impl Event {
    /// The line of the event, without a line feed.
    pub fn line(&self) -> String {
        // The types have no maps with keys that are no strings, which is the one reason to fail.
        format!("{PREFIX}{}", serde_json::to_string(self).unwrap_or_default())
    }

    /// Parses a line. Returns None if it is no event's line, and an error if it is a damaged one.
    pub fn parse(line: &str) -> Option<Result<Event, String>> {
        let at = line.find(PREFIX)?;
        let json = line.get(at + PREFIX.len()..)?.trim();
        Some(serde_json::from_str(json).map_err(|error| format!("a damaged line of the guest: {error}: {json}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_printing_and_parsing() {
        let counts = Counts::from([("switches".to_owned(), 40)]);
        let detail = "a \"quoted\"\nline".to_owned();
        let event =
            Event::Ended { name: "switch vda".to_owned(), status: Status::Failed, detail, counts, milliseconds: 12 };
        let line = event.line();
        assert!(!line.contains('\n'));
        assert_eq!(Event::parse(&format!("\r{line}\r")), Some(Ok(event)));
    }

    #[test]
    fn other_lines_are_no_events_and_damaged_lines_are_errors() {
        assert_eq!(Event::parse("[    0.1] virtio_blk virtio0: [vda]"), None);
        assert!(matches!(Event::parse("@hoistway {\"event\":\"ended\",\"na"), Some(Err(_))));
    }
}
