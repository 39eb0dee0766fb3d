//! Formats with one request in each line.

use super::{Fields, LineError, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, decimal_ns, number, shown};
use crate::event::Rwbs;

/// Parser of the requests of one format.
pub trait RequestFormat {
    /// Parses a line that is neither empty nor a comment.
    ///
    /// # Errors
    /// Fails on an invalid line; the message contains the value and the expected form.
    fn request(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<Request, String>;

    /// Returns true if the line has the titles of the columns.
    fn is_titles(&self, _line: &[u8]) -> bool {
        false
    }
}

/// Reads the lines of a format with one request in each line. Empty lines, comments behind `#` and
/// titles are skipped.
#[derive(Debug)]
pub struct RequestLines<F> {
    format: F,
    requests: RequestSorter,
}

impl<F> RequestLines<F> {
    /// Creates the reader of a format.
    pub fn new(format: F) -> RequestLines<F> {
        RequestLines { format, requests: RequestSorter::default() }
    }
}

impl<F: RequestFormat> LineFormat for RequestLines<F> {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") || self.format.is_titles(line) {
            return Ok(false);
        }
        let request = self.format.request(line, out)?;
        self.requests.take(&request, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}

/// The units of a format: that of its times, and the sectors that addresses and sizes count.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    unit_ps: u64,
    sector_bytes: u64,
}

impl Units {
    /// Creates the units.
    pub fn new(time: TimeUnit, sector_bytes: u32) -> Units {
        Units { unit_ps: time.ps(), sector_bytes: u64::from(sector_bytes) }
    }

    /// Parses a time or a duration and converts it to ns.
    ///
    /// # Errors
    /// Fails as [`decimal_ns`].
    pub fn ns(&self, field: &[u8], what: &str) -> Result<u64, String> {
        decimal_ns(field, self.unit_ps, what)
    }

    /// Parses a number of sectors and converts it to bytes.
    ///
    /// # Errors
    /// Fails if the field is no number or too large; `what` names the field.
    pub fn bytes(&self, field: &[u8], what: &str) -> Result<u64, String> {
        let count: u64 = number(field, what)?;
        count.checked_mul(self.sector_bytes).ok_or_else(|| format!("{what} {} is too large", shown(field)))
    }
}

/// Parses the operation from the next field, which is `read` or `write` in letters of any case;
/// `valid` names both in errors.
///
/// # Errors
/// Fails on another value, or at the end of the line.
pub fn read_or_write(fields: &mut Fields<'_>, read: &str, write: &str, valid: &str) -> Result<Rwbs, String> {
    match fields.want(valid)? {
        field if field.eq_ignore_ascii_case(read.as_bytes()) => Ok(Rwbs::READ),
        field if field.eq_ignore_ascii_case(write.as_bytes()) => Ok(Rwbs::WRITE),
        other => Err(format!("{} stands where {valid} should be", shown(other))),
    }
}
