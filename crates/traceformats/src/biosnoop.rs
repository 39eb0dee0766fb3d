//! Reads the output of biosnoop, of bcc and of bpftrace. The line of titles tells the columns:
//!
//! ```text
//! TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)   bcc -Q
//! TIME(ms)     DISK             COMM             PID    LAT(ms)                     bpftrace 0.17
//! TIME(ms)     DISK ID        COMM             PID    LAT(ms)                       bpftrace 0.23
//!              MAJOR MINOR
//! ```
//!
//! A time is that of the completion, LAT the time from the issue to the device to the completion,
//! QUE the time from the submission to the issue. bcc counts sectors of 512 bytes and sizes in
//! bytes. bpftrace has neither these nor the direction. The name of a process may contain blanks.

use crate::event::{Action, Event, Rwbs};
use crate::process_names::ProcessNames;
use crate::text::{
    CompletionClock, Fields, InventedOffsets, LineError, LineFormat, LineOutput, NamedDevices, Request, RequestSorter,
    SharedNames, TimeUnit, decimal_ns, device_of_numbers, number, parse_rwbs, shown,
};

/// A column of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// A time in units of this number of ps.
    Time(u64),
    Name,
    Pid,
    Disk,
    /// The device number, in two columns under one title.
    Major,
    Minor,
    Operation,
    Sector,
    Bytes,
    Queued(u64),
    Latency(u64),
    Other,
}

/// Parser of the lines.
#[derive(Debug)]
pub struct Biosnoop {
    columns: Vec<Column>,
    is_begun: bool,
    clock: CompletionClock,
    offsets: InventedOffsets,
    devices: NamedDevices,
    /// The disk of the last line that has one.
    disk: Vec<u8>,
    names: ProcessNames,
    requests: RequestSorter,
}

impl Biosnoop {
    /// Creates a parser for a text with this beginning, which has the line of titles. Also returns
    /// a remark about missing columns.
    ///
    /// # Errors
    /// Fails if the beginning has no line of titles.
    pub fn new(head: &[u8], names: &SharedNames) -> Result<(Biosnoop, Option<String>), String> {
        let columns = head.split(|byte| *byte == b'\n').find(|line| is_titles(line)).map(columns_of);
        let columns = columns.ok_or(
            "there is no line of titles: \"TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\" (bcc) or \
             \"TIME(ms) DISK COMM PID LAT(ms)\" (bpftrace) would be right",
        )?;
        let times = |line: &[u8]| {
            let row = Row::parse(line, &columns).ok()?;
            Some((row.completed_ns, row.latency_ns.saturating_add(row.queued_ns.unwrap_or(0))))
        };
        let has_place = columns.contains(&Column::Sector) && columns.contains(&Column::Bytes);
        let what = "the text of bpftrace has no directions and sizes: all requests count as reads of 0 bytes";
        let remark = (!has_place).then(|| format!("{what}; {}", InventedOffsets::REMARK));
        let end = memchr::memrchr(b'\n', head).unwrap_or(0);
        let mut lines = head.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
        let disk = lines
            .find_map(|line| Some(Row::parse(line.trim_ascii(), &columns).ok()?.disk).filter(|disk| !disk.is_empty()));
        let biosnoop = Biosnoop {
            disk: disk.unwrap_or(b"(none)").to_owned(),
            clock: CompletionClock::new(head, times),
            columns,
            is_begun: false,
            offsets: InventedOffsets::default(),
            devices: NamedDevices::new(names),
            names: ProcessNames::default(),
            requests: RequestSorter::default(),
        };
        Ok((biosnoop, remark))
    }
}

impl Biosnoop {
    /// Remembers the disk of a line. A line without one is a command without data, a flush, of the
    /// disk of the line before it.
    fn note_disk(&mut self, row: &mut Row<'_>, out: &mut LineOutput<'_>) {
        if !row.disk.is_empty() {
            if self.disk != row.disk {
                self.disk = row.disk.to_owned();
            }
            return;
        }
        let kind = "lines without a disk count for the disk of the line before, and as flushes if they have no data";
        out.notices.count(kind, out.position, || format!("here {}", shown(&self.disk)));
        if row.bytes == 0 {
            row.op = Rwbs::FLUSH;
        }
    }
}

/// Returns true for the line of titles.
pub fn is_titles(line: &[u8]) -> bool {
    let starts = Fields::blanks(line).next().is_some_and(|word| word.starts_with(b"TIME("));
    starts && Fields::blanks(line).any(|word| word.starts_with(b"LAT("))
}

fn columns_of(line: &[u8]) -> Vec<Column> {
    let unit = |title: &[u8]| {
        let open = memchr::memchr(b'(', title).map_or(title.len(), |at| at + 1);
        let name = std::str::from_utf8(title.get(open..).unwrap_or_default()).unwrap_or_default();
        TimeUnit::from_name(name.trim_end_matches(')')).unwrap_or(TimeUnit::Millisecond).ps()
    };
    let column = |title: &[u8]| match title {
        b"COMM" => Column::Name,
        b"PID" | b"TID" => Column::Pid,
        b"DISK" => Column::Disk,
        b"T" => Column::Operation,
        b"SECTOR" => Column::Sector,
        b"BYTES" => Column::Bytes,
        title if title.starts_with(b"TIME(") => Column::Time(unit(title)),
        title if title.starts_with(b"QUE(") => Column::Queued(unit(title)),
        title if title.starts_with(b"LAT(") => Column::Latency(unit(title)),
        _ => Column::Other,
    };
    let mut columns = Vec::new();
    for title in Fields::blanks(line) {
        match (columns.last(), title) {
            (Some(Column::Disk), b"ID") => {
                columns.pop();
                columns.extend([Column::Major, Column::Minor]);
            }
            _ => columns.push(column(title)),
        }
    }
    columns
}

/// Returns true for the second line of titles, which names the parts of the device number.
fn is_subtitles(line: &[u8]) -> bool {
    Fields::blanks(line).eq([&b"MAJOR"[..], b"MINOR"])
}

/// The values of a line.
#[derive(Debug, Default)]
struct Row<'a> {
    completed_ns: u64,
    latency_ns: u64,
    queued_ns: Option<u64>,
    name: Vec<u8>,
    pid: u32,
    disk: &'a [u8],
    numbers: [&'a [u8]; 2],
    op: Rwbs,
    sector: u64,
    bytes: u64,
}

impl<'a> Row<'a> {
    /// Parses a line, whose disk may be missing.
    fn parse(line: &'a [u8], columns: &[Column]) -> Result<Row<'a>, String> {
        let row = Row::parse_columns(line, columns);
        let without_disk = columns.iter().copied().filter(|column| *column != Column::Disk);
        match row {
            Err(what) if columns.contains(&Column::Disk) => {
                Row::parse_columns(line, &without_disk.collect::<Vec<_>>()).map_err(|_| what)
            }
            row => row,
        }
    }

    fn parse_columns(line: &'a [u8], columns: &[Column]) -> Result<Row<'a>, String> {
        let fields: Vec<&[u8]> = Fields::blanks(line).collect();
        // The name has all words that no other column has.
        let extra = fields.len().checked_sub(columns.len()).ok_or_else(|| {
            format!("the line has {} columns, the titles have {}: {}", fields.len(), columns.len(), shown(line))
        })?;
        let mut row = Row { op: Rwbs::READ, ..Row::default() };
        let mut rest = fields.as_slice();
        for column in columns {
            let words = if *column == Column::Name { extra + 1 } else { 1 };
            let (now, after) = rest.split_at_checked(words).unwrap_or((rest, &[]));
            rest = after;
            let field = now.first().copied().unwrap_or_default();
            match *column {
                Column::Time(ps) => row.completed_ns = decimal_ns(field, ps, "the time")?,
                Column::Queued(ps) => row.queued_ns = Some(decimal_ns(field, ps, "the time in the queue")?),
                Column::Latency(ps) => row.latency_ns = decimal_ns(field, ps, "the latency")?,
                Column::Name => row.name = now.join(&b' '),
                Column::Pid => row.pid = number(field, "the process id")?,
                Column::Disk => row.disk = field,
                Column::Major => row.numbers[0] = field,
                Column::Minor => row.numbers[1] = field,
                Column::Operation => row.op = parse_rwbs(field)?,
                Column::Sector => row.sector = number(field, "the sector")?,
                Column::Bytes => row.bytes = number(field, "the size")?,
                Column::Other => {}
            }
        }
        Ok(row)
    }
}

impl LineFormat for Biosnoop {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let line = line.trim_ascii();
        if is_titles(line) {
            self.is_begun = true;
            return Ok(false);
        }
        if line.is_empty() || line.starts_with(b"#") || !self.is_begun || is_subtitles(line) {
            return Ok(false);
        }
        let mut row = Row::parse(line, &self.columns)?;
        if self.columns.contains(&Column::Disk) {
            self.note_disk(&mut row, out);
        }
        let waited_ns = row.queued_ns.unwrap_or(0);
        let time_ns = self.clock.submission_ns(row.completed_ns, row.latency_ns.saturating_add(waited_ns), out);
        if self.names.set(row.pid, &row.name) {
            out.batch.push_with(Event { pid: row.pid, ..Event::new(time_ns, Action::Process) }, &row.name);
        }
        let has_place = self.columns.contains(&Column::Sector);
        let request = Request {
            time_ns,
            is_unqueued: row.queued_ns.is_none(),
            issue_ns: row.queued_ns,
            response_ns: Some(row.latency_ns.saturating_add(waited_ns)),
            device: match self.columns.contains(&Column::Major) {
                true => device_of_numbers(row.numbers[0], row.numbers[1])?,
                false => self.devices.device(&self.disk, out)?,
            },
            op: row.op,
            offset: if has_place { row.sector.saturating_mul(512) } else { self.offsets.next(row.bytes) },
            bytes: row.bytes,
            pid: row.pid,
        };
        self.requests.take(&request, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::{events, read};

    #[test]
    fn a_line_without_a_disk_is_a_flush_of_the_disk_before_it() {
        let text = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
                    7.001455    ?              0              R 0          0         7.39\n\
                    7.002256    my db          10292  nvme2n1 W 438637416  4096      3.21\n\
                    7.003       my db          10292          W 8          4096      0.5\n";
        let new = || Biosnoop::new(text.as_bytes(), &SharedNames::default()).unwrap().0;
        let batch = read(new(), text);
        let issued = batch.events().iter().filter(|event| event.action == Action::Issue);
        let seen: Vec<_> = issued.map(|event| (event.device.minor(), event.pid, event.op, event.sector)).collect();
        assert_eq!(seen, [(0, 0, Rwbs::FLUSH, 0), (0, 10_292, Rwbs::WRITE, 438_637_416), (0, 10_292, Rwbs::WRITE, 8)]);
        let (_, notices) = events(new(), text);
        assert!(notices.iter().any(|notice| notice.contains("2 times in all")), "{notices:?}");
    }
}
