//! Lines that have the time of a completion and a duration: the time of submission is their
//! difference, which can lie before the start of the text's clock.

use super::LineOutput;
use crate::lines::LINE_BYTES_MAX;

/// Moves all times of a text so that the first submissions are not before 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionClock {
    shift_ns: u64,
}

/// Positions for requests of a text that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InventedOffsets {
    next: u64,
}

impl CompletionClock {
    /// Creates the clock of a text with this beginning; `times` extracts completion and duration in
    /// ns from a line.
    pub fn new(head: &[u8], times: impl Fn(&[u8]) -> Option<(u64, u64)>) -> CompletionClock {
        let end = memchr::memrchr(b'\n', head).unwrap_or(0);
        let lines = head.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
        let before = lines.filter(|line| line.len() < LINE_BYTES_MAX).filter_map(|line| times(line.trim_ascii()));
        let shift_ns = before.map(|(completed_ns, duration_ns)| duration_ns.saturating_sub(completed_ns)).max();
        CompletionClock { shift_ns: shift_ns.unwrap_or(0) }
    }

    /// Returns the time of submission in ns.
    pub fn submission_ns(self, completed_ns: u64, duration_ns: u64, out: &mut LineOutput<'_>) -> u64 {
        let completed_ns = completed_ns.saturating_add(self.shift_ns);
        completed_ns.checked_sub(duration_ns).unwrap_or_else(|| {
            out.notices.count("a duration begins before the first time of the text: it is cut", out.position, || {
                format!("{duration_ns} ns before {completed_ns} ns")
            });
            0
        })
    }
}

impl InventedOffsets {
    /// Remark for texts without positions.
    pub const REMARK: &'static str = "the text has no positions on the disk: each request gets one of its own, so that distances, \
                                      seeks and predictions mean nothing";

    /// Returns an offset that no other request of the text has; a gap separates it from the others.
    pub fn next(&mut self, bytes: u64) -> u64 {
        let offset = self.next;
        self.next = offset.saturating_add(2 * bytes.max(512).next_multiple_of(512)) & !511;
        offset
    }
}
