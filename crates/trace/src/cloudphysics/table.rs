//! Tables of the records. The first line has the titles of the columns.

use super::operation;
use crate::event::{DeviceId, Rwbs};
use crate::text::{Fields, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, Units, number, shown};

/// The columns that are read, with their usual titles in lower case.
const TITLES: [(Column, &[&str]); 5] = [
    (Column::Time, &["ts", "time", "timestamp", "time_us", "timestamp_us"]),
    (Column::Block, &["lbn", "lba", "block", "blockno", "obj_id", "sector"]),
    (Column::Length, &["len", "length", "size", "obj_size", "bytes"]),
    (Column::Command, &["cmd", "command", "op", "opcode", "type"]),
    (Column::Response, &["rt", "response", "response_time", "latency"]),
];
/// Number of the columns in [`TITLES`] that a table must have.
const REQUIRED: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Time,
    Block,
    Length,
    Command,
    Response,
}

/// Parser of the lines.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Option<Column>>,
    units: Units,
    is_begun: bool,
    requests: RequestSorter,
}

impl Table {
    /// Creates a parser for a table with this beginning.
    ///
    /// # Errors
    /// Fails if the first line lacks a title.
    pub fn new(head: &[u8], specified: Option<TimeUnit>, sector_bytes: u32) -> Result<Table, String> {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let columns = columns_of(first);
        let missing = TITLES.iter().take(REQUIRED).find(|(column, _)| !columns.contains(&Some(*column)));
        if let Some((_, titles)) = missing {
            let one_of = titles.join(", ");
            return Err(format!("the titles {} have no column of {one_of}", shown(first)));
        }
        Ok(Table {
            columns,
            units: Units::new(specified.unwrap_or(TimeUnit::Microsecond), sector_bytes),
            is_begun: false,
            requests: RequestSorter::default(),
        })
    }
}

/// Returns true if a line has the titles of all required columns and the name of a block column of
/// these traces.
pub(crate) fn is_titles(line: &[u8]) -> bool {
    let columns = columns_of(line);
    TITLES.iter().take(REQUIRED).all(|(column, _)| columns.contains(&Some(*column)))
        && Fields::split(line, b',').any(|title| [&b"lbn"[..], b"lba", b"obj_id"].contains(&title))
}

fn columns_of(line: &[u8]) -> Vec<Option<Column>> {
    let column = |title: &[u8]| {
        let title = String::from_utf8_lossy(title).trim_matches('"').to_ascii_lowercase();
        TITLES.iter().find(|(_, titles)| titles.contains(&title.as_str())).map(|(column, _)| *column)
    };
    Fields::split(line, b',').map(column).collect()
}

/// Parses a command: a SCSI command (decimal, or hexadecimal after `0x`), or a word.
fn command(field: &[u8]) -> Result<Option<Rwbs>, String> {
    match field.to_ascii_lowercase().as_slice() {
        b"r" | b"read" => return Ok(Some(Rwbs::READ)),
        b"w" | b"write" => return Ok(Some(Rwbs::WRITE)),
        _ => {}
    }
    let digits = field.strip_prefix(b"0x").and_then(|digits| std::str::from_utf8(digits).ok());
    let code = match digits {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => number(field, "").ok(),
    };
    let code = code.ok_or_else(|| {
        format!("{} is no SCSI command: 0x28 or 40 (a read), 0x2a or 42 (a write), R or W would be right", shown(field))
    })?;
    Ok(operation(code))
}

impl LineFormat for Table {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, String> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(false);
        }
        // The first line has the titles, also behind a `#`.
        if !std::mem::replace(&mut self.is_begun, true) || line.starts_with(b"#") {
            return Ok(false);
        }
        let mut request = Request { device: DeviceId(0), ..Request::default() };
        let mut op = None;
        let mut fields = Fields::split(line, b',');
        for column in &self.columns {
            let field = fields.want("a column of the titles")?;
            match column {
                Some(Column::Time) => request.time_ns = self.units.ns(field, "the time")?,
                Some(Column::Block) => request.offset = self.units.bytes(field, "the block")?,
                Some(Column::Length) => request.bytes = number(field, "the length")?,
                Some(Column::Command) => op = command(field)?,
                Some(Column::Response) if !field.is_empty() => {
                    request.response_ns = Some(self.units.ns(field, "the response time")?);
                }
                Some(Column::Response) | None => {}
            }
        }
        let Some(op) = op else {
            let kind = "SCSI commands other than reads, writes and unmaps are left out";
            out.notices.count(kind, out.position, || shown(line));
            return Ok(true);
        };
        self.requests.take(&Request { op, ..request }, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::read;

    #[test]
    fn titles_behind_a_hash_do_not_hide_the_first_record() {
        for titles in ["#ver,ts,cmd,size,lbn", "ver,ts,cmd,size,lbn"] {
            let text = format!("{titles}\n1,100,40,4096,8\n# a comment\n1,200,42,512,16\n");
            let batch = read(Table::new(text.as_bytes(), None, 512).expect("titles"), &text);
            let seen: Vec<_> = batch.events().iter().map(|event| (event.time_ns, event.sector, event.op)).collect();
            assert_eq!(seen, [(100_000, 8, Rwbs::READ), (200_000, 16, Rwbs::WRITE)], "{titles}");
        }
    }
}
