//! Tables of the records. The first line has the titles of the columns, or a record in a known
//! order of columns.

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

/// The columns of tables without titles: those of a record of version 1 and of version 2, and of
/// tables that name the version first. The version distinguishes them.
const ORDERS: [(&[Column], &[u32]); 3] = {
    use Column::{Block, Command, Length, Other, Response, Time, Version};
    [
        (&[Other, Length, Other, Command, Version, Block, Time], &[1]),
        (&[Command, Version, Other, Length, Other, Block, Time, Response], &[2]),
        (&[Version, Time, Command, Length, Block], &[1, 2]),
    ]
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Time,
    Block,
    Length,
    Command,
    Response,
    /// The version of the record, which is in the upper byte of its field or alone.
    Version,
    /// A column that is not read.
    Other,
}

/// Parser of the lines.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    units: Units,
    is_begun: bool,
    requests: RequestSorter,
}

impl Table {
    /// Creates a parser for a table with this beginning.
    ///
    /// # Errors
    /// Fails if the first line lacks a title and is no record in a known order of columns.
    pub fn new(head: &[u8], specified: Option<TimeUnit>, sector_bytes: u32) -> Result<Table, String> {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let (columns, is_begun) = match (titled_columns(first), lines_of_records(head).find_map(order_of)) {
            (Err(_), Some(order)) => (order.to_vec(), true),
            (titled, _) => (titled?, false),
        };
        Ok(Table {
            columns,
            units: Units::new(specified.unwrap_or(TimeUnit::Microsecond), sector_bytes),
            is_begun,
            requests: RequestSorter::default(),
        })
    }
}

/// Returns the lines of a text that are neither empty nor comments.
fn lines_of_records(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

/// Returns the columns that a line of titles names.
///
/// # Errors
/// Fails if a title is missing.
fn titled_columns(line: &[u8]) -> Result<Vec<Column>, String> {
    let columns = columns_of(line);
    let missing = TITLES.iter().take(REQUIRED).find(|(column, _)| !columns.contains(column));
    let Some((_, titles)) = missing else { return Ok(columns) };
    let one_of = titles.join(", ");
    if !is_untitled(line) {
        return Err(format!("the titles {} have no column of {one_of}", shown(line)));
    }
    Err(format!(
        "the first line {} has no titles, and its order of columns is not known: put a line above it that names the \
         columns, as in \"ts,lbn,len,cmd\", with any word for a column that is not needed",
        shown(line)
    ))
}

/// Returns true for a line of four or more numbers, decimal or hexadecimal.
pub(crate) fn is_untitled(line: &[u8]) -> bool {
    let is_number = |field: &[u8]| {
        let digits = field.strip_prefix(b"0x").unwrap_or(field);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit)
    };
    Fields::split(line, b',').all(is_number) && Fields::split(line, b',').nth(3).is_some()
}

/// Returns true if a line without titles is a record whose columns are known by their number, the
/// version, the SCSI command and the length.
pub(crate) fn has_order_of_records(line: &[u8]) -> bool {
    order_of(line).is_some()
}

fn order_of(line: &[u8]) -> Option<&'static [Column]> {
    let fields: Vec<&[u8]> = Fields::split(line, b',').take(9).collect();
    let fits = |column: Column, field: &[u8], versions: &[u32]| match column {
        Column::Command => code_of(field).is_some_and(|code| operation(code).is_some()),
        Column::Version => code_of(field).is_some_and(|code| {
            let version = if code < 0x100 { code } else { code >> 8 };
            versions.contains(&version.into())
        }),
        Column::Length => number::<u32>(field, "").is_ok_and(|bytes| bytes > 0 && bytes.is_multiple_of(512)),
        Column::Time | Column::Block | Column::Response | Column::Other => number::<u64>(field, "").is_ok(),
    };
    let is_record = |(columns, versions): &&(&[Column], &[u32])| {
        columns.len() == fields.len()
            && columns.iter().zip(&fields).all(|(column, field)| fits(*column, field, versions))
    };
    ORDERS.iter().find(is_record).map(|(columns, _)| *columns)
}

/// Returns true if a line has the titles of all required columns and the name of a block column of
/// these traces.
pub(crate) fn is_titles(line: &[u8]) -> bool {
    let columns = columns_of(line);
    TITLES.iter().take(REQUIRED).all(|(column, _)| columns.contains(column))
        && Fields::split(line, b',').any(|title| [&b"lbn"[..], b"lba", b"obj_id"].contains(&title))
}

fn columns_of(line: &[u8]) -> Vec<Column> {
    let column = |title: &[u8]| {
        let title = String::from_utf8_lossy(title).trim_matches('"').to_ascii_lowercase();
        let known = TITLES.iter().find(|(_, titles)| titles.contains(&title.as_str()));
        known.map_or(Column::Other, |(column, _)| *column)
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
    let code = code_of(field).ok_or_else(|| {
        format!("{} is no SCSI command: 0x28 or 40 (a read), 0x2a or 42 (a write), R or W would be right", shown(field))
    })?;
    Ok(operation(code))
}

/// Parses a number, decimal or hexadecimal after `0x`.
fn code_of(field: &[u8]) -> Option<u16> {
    let digits = field.strip_prefix(b"0x").or_else(|| field.strip_prefix(b"0X"));
    match digits {
        Some(digits) => u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok(),
        None => number(field, "").ok(),
    }
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
                Column::Time => request.time_ns = self.units.ns(field, "the time")?,
                Column::Block => request.offset = self.units.bytes(field, "the block")?,
                Column::Length => request.bytes = number(field, "the length")?,
                Column::Command => op = command(field)?,
                Column::Response if !field.is_empty() => {
                    request.response_ns = Some(self.units.ns(field, "the response time")?);
                }
                Column::Response | Column::Version | Column::Other => {}
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
    fn records_without_titles_are_read_in_the_order_of_a_record() {
        for text in [
            "1,4096,1,0x28,0x100,8,100\n2,512,1,42,256,16,200\n",
            "# comment\n40,512,1,4096,1,8,100,\n42,0x200,2,512,1,16,200,\n".replace(",\n", ",30\n").as_str(),
            "1,100,53,0,0\n1,100,40,4096,8\n1,200,42,512,16\n",
        ] {
            let batch = read(Table::new(text.as_bytes(), None, 512).expect("records"), text);
            let queued = batch.events().iter().filter(|event| event.action == crate::event::Action::Queue);
            let seen: Vec<_> = queued.map(|event| (event.time_ns, event.sector, event.bytes, event.op)).collect();
            assert_eq!(seen, [(100_000, 8, 4096, Rwbs::READ), (200_000, 16, 512, Rwbs::WRITE)], "{text}");
        }
    }

    #[test]
    fn an_unknown_order_of_columns_is_refused_with_the_titles_that_would_be_right() {
        // No version, a wrong version, no command, and a length that is not whole sectors.
        for line in ["100,8,4096,40", "3,100,40,4096,8", "1,100,99,4096,8", "1,100,40,4000,8"] {
            let error = Table::new(line.as_bytes(), None, 512).expect_err("unknown");
            assert!(error.contains(line) && error.contains("ts,lbn,len,cmd"), "{error}");
        }
    }

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
