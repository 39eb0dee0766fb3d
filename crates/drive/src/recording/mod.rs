//! Recordings of real drives: requests with their service times.
//!
//! The format is that of the validation traces of DiskSim (J. S. Bucy et al., "The DiskSim
//! simulation environment version 4.0 reference manual", CMU-PDL-08-101): one line for each
//! request, `R|W Hit|Miss sector sectors service_us gap_us`. The next request is issued when this
//! one has completed and the gap has passed.

mod csv;
mod load;

use crate::command::{Access, Op};
pub use csv::{HEADER, parse_any, parse_csv};
pub use load::{LoadError, load};

/// One recorded request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Time of issue in ns since the first request.
    pub issue_ns: u64,
    /// Operation and sectors.
    pub access: Access,
    /// Service time in ns.
    pub service_ns: u64,
}

/// An invalid field of a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: field {field} is `{value}`: {expected}")]
pub struct RecordingError {
    /// The file name as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Field, from 1.
    pub field: usize,
    /// The content of the field; empty if the line ends before it.
    pub value: String,
    /// The valid values.
    pub expected: &'static str,
}

/// Parses a recording. Errors quote `file_name`. Empty lines are skipped.
///
/// # Errors
/// [`RecordingError`] for the first field that is missing, superfluous or invalid.
pub fn parse(text: &str, file_name: &str) -> Result<Vec<Record>, RecordingError> {
    let mut records = Vec::new();
    let mut issue_ns = 0u64;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let line = Line { file: file_name, number: index + 1, fields: &fields };
        let op = match line.field(1) {
            "R" => Op::Read,
            "W" => Op::Write,
            _ => return Err(line.error(1, "R or W")),
        };
        if !matches!(line.field(2), "Hit" | "Miss") {
            return Err(line.error(2, "Hit or Miss"));
        }
        let (sector, sectors) = (line.sector(3)?, line.sectors(4)?);
        let service_ns = line.time_ns(5)?;
        let gap_ns = line.time_ns(6)?;
        if fields.len() > 6 {
            return Err(line.error(7, "the end of the line after six fields"));
        }
        records.push(Record { issue_ns, access: Access { op, sector, sectors }, service_ns });
        issue_ns = issue_ns.saturating_add(service_ns).saturating_add(gap_ns);
    }
    Ok(records)
}

/// Returns the index of the first request that was issued before the previous one completed; `None`
/// if at most one request in a hundred was.
pub fn first_overlap(records: &[Record]) -> Option<usize> {
    // Times in whole microseconds may overlap by the rounding of the last digit.
    let overlaps = |pair: &[Record]| pair[0].issue_ns.saturating_add(pair[0].service_ns) > pair[1].issue_ns + 2000;
    let mut overlapping = records.windows(2).enumerate().filter(|(_, pair)| overlaps(pair)).map(|(index, _)| index + 1);
    let first = overlapping.next()?;
    let others = overlapping.count();
    ((others + 1) * 100 > records.len()).then_some(first)
}

struct Line<'a> {
    file: &'a str,
    number: usize,
    fields: &'a [&'a str],
}

impl<'a> Line<'a> {
    fn field(&self, number: usize) -> &'a str {
        self.fields.get(number - 1).copied().unwrap_or("")
    }

    fn sector(&self, number: usize) -> Result<u64, RecordingError> {
        self.field(number).parse().map_err(|_| self.error(number, "a sector number"))
    }

    fn sectors(&self, number: usize) -> Result<u32, RecordingError> {
        match self.field(number).parse() {
            Ok(sectors) if sectors > 0 => Ok(sectors),
            _ => Err(self.error(number, "a number of sectors, at least 1")),
        }
    }

    /// A time in microseconds, up to a day, in ns.
    fn time_ns(&self, number: usize) -> Result<u64, RecordingError> {
        match self.field(number).parse::<f64>() {
            Ok(us) if (0.0..=86_400e6).contains(&us) => Ok((us * 1000.0).round() as u64),
            _ => Err(self.error(number, "a time in microseconds, 0 to 86400000000")),
        }
    }

    fn error(&self, field: usize, expected: &'static str) -> RecordingError {
        let value = self.field(field).to_string();
        RecordingError { file: self.file.to_string(), line: self.number, field, value, expected }
    }
}
