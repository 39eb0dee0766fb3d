//! Tables of the records. The first line has the titles of the columns, or a record in a known
//! order of columns.

use super::operation;
use crate::event::{DeviceId, Rwbs};
use crate::text::{
    Fields, LineError, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, Units, decimal_ns, number, shown,
};

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

/// Largest plausible rate of a virtual disk of these traces, in requests a second.
const RATE_MAX: u64 = 200_000;
/// Rate above which times in us may also be times in s.
const RATE_USUAL: u64 = 10_000;
/// Number of requests that cannot have begun in the same us.
const AT_ONCE_MAX: u64 = 10;
/// Largest plausible mean time between requests, in s.
const PAUSE_MAX_S: u64 = 100;

/// Base of the numbers of SCSI commands without `0x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandBase {
    Decimal,
    Hexadecimal,
}

/// Parser of the lines.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    base: CommandBase,
    units: Units,
    is_begun: bool,
    requests: RequestSorter,
}

impl Table {
    /// Creates a parser for a table with this beginning, with the assumptions that it makes.
    ///
    /// # Errors
    /// Fails if the first line lacks a title and is no record in a known order of columns.
    pub fn new(head: &[u8], specified: Option<TimeUnit>, sector_bytes: u32) -> Result<(Table, Option<String>), String> {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let (columns, is_begun) = match (titled_columns(first), lines_of_records(head).find_map(order_of)) {
            (Err(_), Some(order)) => (order.to_vec(), true),
            (titled, _) => (titled?, false),
        };
        let base = CommandBase::of(head, &columns);
        let (unit, remark) = time_unit(head, &columns, specified);
        let remarks: Vec<String> = [base.remark(), remark].into_iter().flatten().collect();
        let table = Table {
            columns,
            base,
            units: Units::new(unit, sector_bytes),
            is_begun,
            requests: RequestSorter::default(),
        };
        Ok((table, (!remarks.is_empty()).then(|| remarks.join(". "))))
    }
}

impl CommandBase {
    /// Returns the base in which more commands of the lines are reads, writes and unmaps. A digit
    /// from a to f decides.
    fn of(head: &[u8], columns: &[Column]) -> CommandBase {
        let commands: Vec<&[u8]> = fields_of(head, columns, Column::Command).collect();
        let is_hexadecimal =
            |field: &&[u8]| field.iter().all(u8::is_ascii_hexdigit) && field.iter().any(|byte| !byte.is_ascii_digit());
        let known = |base: CommandBase| {
            commands.iter().filter(|field| base.code_of(field).is_some_and(|code| operation(code).is_some())).count()
        };
        if commands.iter().any(is_hexadecimal) || known(CommandBase::Hexadecimal) > known(CommandBase::Decimal) {
            return CommandBase::Hexadecimal;
        }
        CommandBase::Decimal
    }

    fn remark(self) -> Option<String> {
        (self == CommandBase::Hexadecimal)
            .then(|| "assuming hexadecimal SCSI commands (28 is a read, 2a a write)".to_owned())
    }

    /// Parses a number, which is hexadecimal after `0x`.
    fn code_of(self, field: &[u8]) -> Option<u16> {
        let digits = field.strip_prefix(b"0x").or_else(|| field.strip_prefix(b"0X"));
        match (digits, self) {
            (None, CommandBase::Decimal) => number(field, "").ok(),
            (digits, _) => u16::from_str_radix(std::str::from_utf8(digits.unwrap_or(field)).ok()?, 16).ok(),
        }
    }
}

/// Returns the fields of a column of the whole lines at the beginning of a table.
fn fields_of<'a>(head: &'a [u8], columns: &[Column], wanted: Column) -> impl Iterator<Item = &'a [u8]> {
    let index = columns.iter().position(|column| *column == wanted).unwrap_or(usize::MAX);
    let end = memchr::memrchr(b'\n', head).unwrap_or(0);
    lines_of_records(head.get(..end).unwrap_or_default()).filter_map(move |line| Fields::split(line, b',').nth(index))
}

/// Returns the unit of the times: the specified one, us, or s if the times have a fraction or the
/// rate in us is impossible. The remark states a choice that the times do not prove.
fn time_unit(head: &[u8], columns: &[Column], specified: Option<TimeUnit>) -> (TimeUnit, Option<String>) {
    if let Some(unit) = specified {
        return (unit, None);
    }
    // The title proves the unit.
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let titles = lines.find(|line| !line.is_empty()).unwrap_or_default();
    if Fields::split(titles, b',').any(|title| plain(title).ends_with("_us")) {
        return (TimeUnit::Microsecond, None);
    }
    // Whole units.
    let times: Vec<u64> =
        fields_of(head, columns, Column::Time).filter_map(|field| decimal_ns(field, 1000, "").ok()).collect();
    let has_fraction = fields_of(head, columns, Column::Time).any(|field| field.contains(&b'.'));
    let (requests, least) = (times.len() as u64, times.iter().copied().min().unwrap_or(0));
    let span = times.iter().copied().max().unwrap_or(0) - least;
    let remark = |unit: TimeUnit, reason: String| {
        (unit, Some(format!("assuming times in {}: {reason}; --time-unit overrides this", unit.name())))
    };
    let in_us = format!("in us, the first {requests} requests would take {span} us");
    if has_fraction && span <= requests.saturating_mul(PAUSE_MAX_S) {
        return remark(TimeUnit::Second, "they have a fraction".to_owned());
    }
    if has_fraction {
        return remark(TimeUnit::Microsecond, format!("in s, the first {requests} requests would take {span} s"));
    }
    match (requests, span) {
        (0, _) => (TimeUnit::Microsecond, None),
        (..AT_ONCE_MAX, 0) => remark(TimeUnit::Microsecond, "all of the few that were read are equal".to_owned()),
        // At RATE_MAX, this number of requests takes at least as many us.
        _ if span < requests.saturating_mul(1_000_000) / RATE_MAX => {
            remark(TimeUnit::Second, format!("{in_us}, more than {RATE_MAX} a second"))
        }
        _ if span < requests.saturating_mul(1_000_000) / RATE_USUAL => {
            remark(TimeUnit::Microsecond, format!("the first {requests} requests take {span} us"))
        }
        _ => (TimeUnit::Microsecond, None),
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

/// Returns true for a line of four or more numbers, decimal with a fraction or without, or
/// hexadecimal.
pub fn is_untitled(line: &[u8]) -> bool {
    let is_number = |field: &[u8]| {
        let digits = field.strip_prefix(b"0x").unwrap_or(field);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit) || decimal_ns(field, 1000, "").is_ok()
    };
    Fields::split(line, b',').all(is_number) && Fields::split(line, b',').nth(3).is_some()
}

/// Returns true if a line without titles is a record whose columns are known by their number, the
/// version, the SCSI command and the length.
pub fn has_order_of_records(line: &[u8]) -> bool {
    order_of(line).is_some()
}

fn order_of(line: &[u8]) -> Option<&'static [Column]> {
    let fields: Vec<&[u8]> = Fields::split(line, b',').take(9).collect();
    let fits = |column: Column, field: &[u8], versions: &[u32]| match column {
        Column::Command => [CommandBase::Decimal, CommandBase::Hexadecimal]
            .into_iter()
            .any(|base| base.code_of(field).is_some_and(|code| operation(code).is_some())),
        Column::Version => CommandBase::Decimal.code_of(field).is_some_and(|code| {
            let version = if code < 0x100 { code } else { code >> 8 };
            versions.contains(&version.into())
        }),
        Column::Length => number::<u32>(field, "").is_ok_and(|bytes| bytes > 0 && bytes.is_multiple_of(512)),
        Column::Time | Column::Response => decimal_ns(field, 1000, "").is_ok(),
        Column::Block | Column::Other => number::<u64>(field, "").is_ok(),
    };
    let is_record = |(columns, versions): &&(&[Column], &[u32])| {
        columns.len() == fields.len()
            && columns.iter().zip(&fields).all(|(column, field)| fits(*column, field, versions))
    };
    ORDERS.iter().find(is_record).map(|(columns, _)| *columns)
}

/// Returns true if a line has the titles of all required columns and the name of a block column of
/// these traces.
pub fn is_titles(line: &[u8]) -> bool {
    let columns = columns_of(line);
    TITLES.iter().take(REQUIRED).all(|(column, _)| columns.contains(column))
        && Fields::split(line, b',').any(|title| [&b"lbn"[..], b"lba", b"obj_id"].contains(&title))
}

/// Returns a title without quotes, in lower case.
fn plain(title: &[u8]) -> String {
    String::from_utf8_lossy(title).trim_matches('"').to_ascii_lowercase()
}

fn columns_of(line: &[u8]) -> Vec<Column> {
    let column = |title: &[u8]| {
        let title = plain(title);
        let known = TITLES.iter().find(|(_, titles)| titles.contains(&title.as_str()));
        known.map_or(Column::Other, |(column, _)| *column)
    };
    Fields::split(line, b',').map(column).collect()
}

/// Parses a command: a SCSI command (decimal, or hexadecimal after `0x`), or a word.
fn command(field: &[u8], base: CommandBase) -> Result<Option<Rwbs>, String> {
    match field.to_ascii_lowercase().as_slice() {
        b"r" | b"read" => return Ok(Some(Rwbs::READ)),
        b"w" | b"write" => return Ok(Some(Rwbs::WRITE)),
        _ => {}
    }
    let code = base.code_of(field).ok_or_else(|| {
        format!("{} is no SCSI command: 0x28 or 40 (a read), 0x2a or 42 (a write), R or W would be right", shown(field))
    })?;
    Ok(operation(code))
}

impl LineFormat for Table {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
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
                Column::Command => op = command(field, self.base)?,
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
            let batch = read(Table::new(text.as_bytes(), None, 512).expect("records").0, text);
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
            let batch = read(Table::new(text.as_bytes(), None, 512).expect("titles").0, &text);
            let seen: Vec<_> = batch.events().iter().map(|event| (event.time_ns, event.sector, event.op)).collect();
            assert_eq!(seen, [(100_000, 8, Rwbs::READ), (200_000, 16, Rwbs::WRITE)], "{titles}");
        }
    }

    #[test]
    fn bare_hexadecimal_commands_and_whole_seconds_are_recognised() {
        for titles in ["", "version,time,op,size,lbn\n", "#version,time,op,size,lbn\n"] {
            let line = |at: u64| {
                let (time, op) = (5_633_898 + at / 10, if at.is_multiple_of(2) { "28" } else { "2a" });
                format!("1,{time},{op},512,{}\n", 8 * at)
            };
            let text: String = std::iter::once(titles.to_owned()).chain((0..100).map(line)).collect();
            let (table, remark) = Table::new(text.as_bytes(), None, 512).unwrap();
            let batch = read(table, &text);
            let seen: Vec<_> =
                batch.events().iter().take(2).map(|event| (event.time_ns, event.sector, event.op)).collect();
            let time_ns = 5_633_898_000_000_000;
            assert_eq!(seen, [(time_ns, 0, Rwbs::READ), (time_ns, 8, Rwbs::WRITE)], "{text}");
            let remark = remark.unwrap();
            assert!(remark.contains("hexadecimal SCSI commands") && remark.contains("assuming times in s"), "{remark}");
        }
    }

    /// The time of the last of some records, in ns, and the remark on the table.
    fn last_time(times: impl Iterator<Item = String>, titles: &str) -> (u64, Option<String>) {
        let line = |(at, time): (usize, String)| format!("1,{time},28,4096,{}\n", 8 * at);
        let text: String = std::iter::once(titles.to_owned()).chain(times.enumerate().map(line)).collect();
        let (table, remark) = Table::new(text.as_bytes(), None, 512).unwrap();
        (read(table, &text).events().last().unwrap().time_ns, remark)
    }

    #[test]
    fn times_with_a_fraction_are_seconds() {
        for titles in ["", "version,time,op,size,lbn\n"] {
            let times = (0..50).map(|at| format!("{}.{}", 100 + at, at % 10));
            let (time_ns, remark) = last_time(times, titles);
            assert_eq!(time_ns, 149_900_000_000);
            let remark = remark.unwrap();
            assert!(remark.contains("assuming times in s: they have a fraction; --time-unit"), "{remark}");
        }
        // In s, the mean pause would be 1000 s.
        let (time_ns, remark) = last_time((0..50).map(|at| format!("{}.5", 1000 * at)), "version,time,op,size,lbn\n");
        assert_eq!(time_ns, 49_000_500);
        assert!(remark.unwrap().contains("assuming times in us: in s, the first 50 requests would take 49000 s"));
    }

    #[test]
    fn many_equal_times_are_seconds_and_few_are_us_with_a_remark() {
        let titles = "version,time,op,size,lbn\n";
        let (time_ns, remark) = last_time((0..3000).map(|_| "100".to_owned()), titles);
        assert_eq!(time_ns, 100_000_000_000);
        let remark = remark.unwrap();
        assert!(remark.contains("in us, the first 3000 requests would take 0 us, more than 200000"), "{remark}");
        let (time_ns, remark) = last_time((0..9).map(|_| "100".to_owned()), titles);
        assert_eq!(time_ns, 100_000);
        let remark = remark.unwrap();
        assert!(remark.contains("assuming times in us") && remark.contains("--time-unit"), "{remark}");
    }

    #[test]
    fn the_remark_on_us_depends_on_the_rate_and_the_title() {
        let remark = |step: usize, titles: &str| last_time((0..50).map(|at| (at * step).to_string()), titles).1;
        let assumed = |remark: Option<String>| remark.is_some_and(|remark| remark.contains("assuming times in us"));
        // 100,000 and 5,000 requests a second.
        assert!(assumed(remark(10, "version,time,op,size,lbn\n")));
        assert!(!assumed(remark(200, "version,time,op,size,lbn\n")));
        assert!(!assumed(remark(10, "version,time_us,op,size,lbn\n")));
    }
}
