//! Lines that cannot be read: they are skipped and counted up to a limit, or are errors.

use crate::notices::NoticeCollector;
use crate::source::InputPosition;

/// Number of skipped lines whose reasons are reported one by one.
const REPORTED_MAX: u64 = 5;
/// Number of lines at the beginning of which at least one must be readable.
const FIRST_LINES: u64 = 20;
/// Number of skipped lines above which [`SHARE_MAX_PERCENT`] applies.
const SKIPPED_MAX: u64 = 100;
/// Largest share of skipped lines in percent, once more than [`SKIPPED_MAX`] lines were skipped.
const SHARE_MAX_PERCENT: u64 = 1;

/// Reason why the parser of a format rejects a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineError {
    /// The line is invalid. The lines after it can be read.
    Line(String),
    /// The input as a whole is invalid: it has another format, or exceeds a limit.
    Input(String),
}

impl LineError {
    /// The reason, with the invalid value and the valid form.
    pub fn into_reason(self) -> String {
        match self {
            LineError::Line(reason) | LineError::Input(reason) => reason,
        }
    }
}

impl From<String> for LineError {
    fn from(reason: String) -> LineError {
        LineError::Line(reason)
    }
}

impl From<&str> for LineError {
    fn from(reason: &str) -> LineError {
        LineError::Line(reason.to_owned())
    }
}

/// Counts the skipped lines of an input, and decides when there are too many.
#[derive(Debug, Default)]
pub(super) struct SkippedLines {
    /// True if an invalid line is an error.
    is_strict: bool,
    count: u64,
    first: Option<(InputPosition, String)>,
}

impl SkippedLines {
    /// Creates the counter of an input.
    pub fn new(is_strict: bool) -> SkippedLines {
        SkippedLines { is_strict, ..SkippedLines::default() }
    }

    /// Number of skipped lines.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Skips an incomplete last line.
    ///
    /// # Errors
    /// Returns the position and the reason of the error if invalid lines are errors.
    pub fn skip_last(
        &mut self,
        position: InputPosition,
        reason: &str,
        notices: &mut NoticeCollector,
    ) -> Result<(), (InputPosition, String)> {
        let what = format!("the last line is incomplete and was skipped: {reason}");
        if self.is_strict {
            return Err((position, what));
        }
        self.count += 1;
        notices.add(position, what);
        Ok(())
    }

    /// Skips an invalid line after `records` valid ones.
    ///
    /// # Errors
    /// Returns the position and the reason of the error if invalid lines are errors, or if there
    /// are too many of them.
    pub fn skip(
        &mut self,
        position: InputPosition,
        reason: String,
        records: u64,
        notices: &mut NoticeCollector,
    ) -> Result<(), (InputPosition, String)> {
        if self.is_strict {
            return Err((position, reason));
        }
        self.count += 1;
        if self.count <= REPORTED_MAX {
            notices.add(position, format!("this line was skipped: {reason}"));
        }
        let first = self.first.get_or_insert((position, reason));
        if records == 0 && self.count >= FIRST_LINES {
            return Err((first.0, format!("{}. None of the first {FIRST_LINES} lines can be read", first.1)));
        }
        let lines = records.saturating_add(self.count);
        if self.count > SKIPPED_MAX && self.count.saturating_mul(100) > lines.saturating_mul(SHARE_MAX_PERCENT) {
            let what = format!(
                "{} of {lines} lines up to here cannot be read: more than {SKIPPED_MAX}, and more than \
                 {SHARE_MAX_PERCENT} % of the lines. The first{}: {}",
                self.count, first.0, first.1
            );
            return Err((position, what));
        }
        Ok(())
    }

    /// Ends an input with `records` valid lines: reports the number of skipped lines.
    ///
    /// # Errors
    /// Returns the position and the reason of the first skipped line if more lines were skipped
    /// than read.
    pub fn end(&mut self, records: u64, notices: &mut NoticeCollector) -> Result<(), (InputPosition, String)> {
        let lines = records.saturating_add(self.count);
        match self.first.take() {
            Some((position, reason)) if self.count > records => {
                let others = if self.count == 1 {
                    String::new()
                } else {
                    format!(". {} of {lines} lines cannot be read", self.count)
                };
                Err((position, format!("{reason}{others}")))
            }
            Some(_) => {
                let what = format!(
                    "{} of {lines} lines could not be read and were skipped; --strict makes the first an error",
                    self.count
                );
                notices.add(InputPosition::All, what);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
