//! Reads tables of which a [`ColumnSpec`] describes the columns.

use super::spec::{Clock, Column, ColumnSpec, OpCode, Place, Role, SizeUnit};
use crate::cloudphysics;
use crate::event::{Action, DeviceId, Event, Rwbs};
use crate::lines::{BYTE_ORDER_MARK, LINE_BYTES_MAX};
use crate::process_names::ProcessNames;
use crate::text::{
    CompletionClock, InventedOffsets, LineError, LineFormat, LineOutput, NamedDevices, NamedProcesses, Request,
    RequestSorter, Separator, SharedNames, date_ns, decimal_ns, device_of, number, parse_rwbs, shown, ticks_ns,
};

/// Separators in the order in which they are tried.
const SEPARATORS: [Separator; 5] =
    [Separator::Byte(b','), Separator::Byte(b';'), Separator::Byte(b'\t'), Separator::Byte(b'|'), Separator::Blanks];
/// Number of lines that are examined to detect the separator.
const LINES_EXAMINED: usize = 100;

/// Parser of the lines.
#[derive(Debug)]
pub struct Table {
    /// Role and index of each column.
    columns: Vec<(Role, usize)>,
    separator: Separator,
    sector_bytes: u64,
    /// The line of titles, which is skipped where it is repeated.
    titles: Option<Vec<u8>>,
    is_begun: bool,
    clock: CompletionClock,
    offsets: InventedOffsets,
    devices: NamedDevices,
    names: ProcessNames,
    processes: NamedProcesses,
    requests: RequestSorter,
}

/// The values of a line.
#[derive(Debug, Default)]
struct Row<'a> {
    time_ns: u64,
    is_completion: bool,
    /// None for a command without data.
    op: Option<Rwbs>,
    offset: Option<u64>,
    bytes: u64,
    latency_ns: Option<u64>,
    device: &'a [u8],
    pid: Option<u32>,
    process: &'a [u8],
}

impl Table {
    /// Creates a parser for a table with this beginning, with a remark about columns that are not
    /// described. `names` are those of devices and of processes.
    ///
    /// # Errors
    /// Fails if no separator gives the columns, or if a title is missing.
    pub fn new(
        spec: &ColumnSpec,
        head: &[u8],
        sector_bytes: u32,
        names: (&SharedNames, &SharedNames),
    ) -> Result<(Table, Option<String>), String> {
        let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let (separator, columns, titles) = match spec.separator {
            Some(separator) => {
                let (columns, titles) = locate(spec, text, separator)?;
                (separator, columns, titles)
            }
            None => detect_separator(spec, text)?,
        };
        let mut remarks = Vec::new();
        if spec.find("op").is_none() {
            remarks.push("no column of operations is described: all requests count as reads");
        }
        if spec.find("offset").is_none() {
            remarks.push(InventedOffsets::REMARK);
        }
        let mut table = Table {
            columns,
            separator,
            sector_bytes: u64::from(sector_bytes),
            titles,
            is_begun: false,
            clock: CompletionClock::default(),
            offsets: InventedOffsets::default(),
            devices: NamedDevices::new(names.0),
            names: ProcessNames::default(),
            processes: NamedProcesses::new(names.1),
            requests: RequestSorter::default(),
        };
        table.clock = CompletionClock::new(text, |line| {
            let row = table.row(&separator.fields(line)).ok().filter(|row| row.is_completion)?;
            Some((row.time_ns, row.latency_ns?))
        });
        Ok((table, (!remarks.is_empty()).then(|| remarks.join("; "))))
    }

    fn row<'a>(&self, fields: &[&'a [u8]]) -> Result<Row<'a>, String> {
        let mut row = Row { op: Some(Rwbs::READ), ..Row::default() };
        for (role, index) in &self.columns {
            let field = fields.get(*index).copied().ok_or_else(|| {
                format!("the line has {} columns, and {} is column {}", fields.len(), role.name(), index + 1)
            })?;
            match *role {
                Role::Time(clock) => row.time_ns = clock_ns(clock, field)?,
                Role::Completed(clock) => (row.time_ns, row.is_completion) = (clock_ns(clock, field)?, true),
                Role::Op(code) => row.op = operation(code, field)?,
                Role::Offset(unit) => row.offset = Some(self.bytes(unit, field, "the offset")?),
                Role::Size(unit) => row.bytes = self.bytes(unit, field, "the size")?,
                Role::Latency(_) if field.is_empty() && !row.is_completion => {}
                Role::Latency(unit) => row.latency_ns = Some(decimal_ns(field, unit.ps(), "the latency")?),
                Role::Device => row.device = field,
                Role::Pid => row.pid = Some(number(field, "the process id")?),
                Role::Process => row.process = field,
            }
        }
        Ok(row)
    }

    fn bytes(&self, unit: SizeUnit, field: &[u8], what: &str) -> Result<u64, String> {
        let count = hexadecimal(field).map_or_else(|| number(field, what), Ok)?;
        let unit_bytes = match unit {
            SizeUnit::Bytes(bytes) => bytes,
            SizeUnit::Sectors => self.sector_bytes,
        };
        count.checked_mul(unit_bytes).ok_or_else(|| format!("{what} {} is too large", shown(field)))
    }

    fn take(&mut self, row: &Row<'_>, out: &mut LineOutput<'_>) -> Result<(), LineError> {
        let Some(op) = row.op else {
            let kind = "SCSI commands other than reads, writes and unmaps are left out";
            out.notices.count(kind, out.position, || format!("time {} ns", row.time_ns));
            return Ok(());
        };
        let time_ns = match row.latency_ns.filter(|_| row.is_completion) {
            Some(latency_ns) => self.clock.submission_ns(row.time_ns, latency_ns, out),
            None => row.time_ns,
        };
        let device = self.device(row.device, out)?;
        let pid = match row.pid {
            Some(pid) => {
                if !row.process.is_empty() && self.names.set(pid, row.process) {
                    out.batch.push_with(Event { pid, ..Event::new(time_ns, Action::Process) }, row.process);
                }
                pid
            }
            None if row.process.is_empty() => 0,
            None => self.processes.pid(row.process, time_ns, out),
        };
        let offset = row.offset.unwrap_or_else(|| self.offsets.next(row.bytes));
        let request = Request {
            time_ns,
            response_ns: row.latency_ns,
            device,
            op,
            offset,
            bytes: row.bytes,
            pid,
            ..Request::default()
        };
        self.requests.take(&request, out)
    }

    /// Returns the device of a field: a number, two numbers, or a name.
    fn device(&mut self, field: &[u8], out: &mut LineOutput<'_>) -> Result<DeviceId, String> {
        if field.is_empty() {
            return Ok(DeviceId(0));
        }
        if let Ok(minor @ 0..=0xF_FFFF) = number::<u32>(field, "") {
            return Ok(DeviceId::new(0, minor));
        }
        match device_of(field, b':').or_else(|_| device_of(field, b',')) {
            Ok(device) => Ok(device),
            Err(_) => self.devices.device(field, out),
        }
    }
}

/// Returns the fields of the lines at the beginning that are neither empty nor comments.
fn lines(text: &[u8], separator: Separator) -> Vec<Vec<&[u8]>> {
    let end = memchr::memrchr(b'\n', text).unwrap_or(text.len());
    let lines = text.get(..end).unwrap_or_default().split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#") && line.len() < LINE_BYTES_MAX);
    lines.take(LINES_EXAMINED).map(|line| separator.fields(line)).collect()
}

/// The columns with their indices, and the line of titles.
type Located = (Vec<(Role, usize)>, Option<Vec<u8>>);

/// Finds the columns of a table.
fn locate(spec: &ColumnSpec, text: &[u8], separator: Separator) -> Result<Located, String> {
    let first = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
    let line = first.unwrap_or_default();
    let titles = separator.fields(line.strip_prefix(b"#").unwrap_or(line));
    let index = |Column { role, place }: &Column| match place {
        Place::Number(number) => Ok((*role, number - 1)),
        Place::Title(wanted) => {
            let index = titles.iter().position(|title| title.eq_ignore_ascii_case(wanted.as_bytes()));
            index.map(|index| (*role, index)).ok_or_else(|| {
                format!(
                    "the first line {} has no title `{wanted}` for {}; columns can be numbered from 1",
                    shown(line),
                    role.name()
                )
            })
        }
    };
    let columns = spec.columns.iter().map(index).collect::<Result<Vec<_>, _>>()?;
    let has_titles = spec.columns.iter().any(|column| matches!(column.place, Place::Title(_)));
    Ok((columns, has_titles.then(|| line.to_owned())))
}

/// The separator, the field of each column, and the line of titles if there is one.
type Layout = (Separator, Vec<(Role, usize)>, Option<Vec<u8>>);

/// Returns the separator that gives most of the lines all columns and the most fields.
fn detect_separator(spec: &ColumnSpec, text: &[u8]) -> Result<Layout, String> {
    let mut best = None;
    let mut failed = None;
    for separator in SEPARATORS {
        let (columns, titles) = match locate(spec, text, separator) {
            Ok(located) => located,
            Err(what) => {
                failed.get_or_insert(what);
                continue;
            }
        };
        let last = columns.iter().map(|(_, index)| *index).max().unwrap_or(0);
        let lines = lines(text, separator);
        let complete = lines.iter().filter(|fields| fields.len() > last).count();
        let fields = lines.iter().map(Vec::len).max().unwrap_or(0);
        if complete * 2 > lines.len() && best.as_ref().is_none_or(|(_, most)| fields > *most) {
            best = Some(((separator, columns, titles), fields));
        }
    }
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    best.map(|(found, _)| found).ok_or_else(|| {
        failed.unwrap_or_else(|| {
            let last = spec.columns.iter().filter_map(|column| match column.place {
                Place::Number(number) => Some(number),
                Place::Title(_) => None,
            });
            format!(
                "the lines do not have {} columns between commas, semicolons, tabs, | or blanks; the first is {}. \
                 separator=comma, semicolon, tab, pipe or blanks selects one",
                last.max().unwrap_or(1),
                shown(first)
            )
        })
    })
}

fn clock_ns(clock: Clock, field: &[u8]) -> Result<u64, String> {
    match clock {
        Clock::Date => date_ns(field),
        Clock::Unit(unit) => ticks_ns(field, unit),
    }
}

/// Parses an operation; None for a command without data.
fn operation(code: OpCode, field: &[u8]) -> Result<Option<Rwbs>, String> {
    let wrong = |right: &str| format!("the operation {} is not known: {right} would be right", shown(field));
    match code {
        OpCode::Words => words(field).map(Some),
        OpCode::ReadIs0 | OpCode::ReadIs1 => match (field, code == OpCode::ReadIs0) {
            (b"0", true) | (b"1", false) => Ok(Some(Rwbs::READ)),
            (b"1", true) | (b"0", false) => Ok(Some(Rwbs::WRITE)),
            _ => Err(wrong("0 or 1")),
        },
        OpCode::Scsi => {
            let code = number(field, "").map_err(|_| wrong("a SCSI command such as 40 (a read) or 42 (a write)"))?;
            Ok(cloudphysics::operation(code))
        }
        OpCode::Hex => {
            let digits = field.strip_prefix(b"0x").or_else(|| field.strip_prefix(b"0X")).unwrap_or(field);
            let code = std::str::from_utf8(digits).ok().and_then(|digits| u16::from_str_radix(digits, 16).ok());
            let code = code.ok_or_else(|| wrong("a SCSI command such as 28 (a read) or 2a (a write)"))?;
            Ok(cloudphysics::operation(code))
        }
    }
}

fn words(field: &[u8]) -> Result<Rwbs, String> {
    match field.to_ascii_lowercase().as_slice() {
        b"r" | b"rd" | b"read" | b"reads" | b"diskread" => Ok(Rwbs::READ),
        b"w" | b"wr" | b"write" | b"writes" | b"diskwrite" => Ok(Rwbs::WRITE),
        b"d" | b"discard" | b"trim" | b"unmap" | b"deallocate" => Ok(Rwbs::DISCARD),
        b"f" | b"flush" | b"sync" | b"fsync" | b"fdatasync" => Ok(Rwbs::FLUSH),
        _ => parse_rwbs(field).ok().filter(|op| *op != Rwbs::default()).ok_or_else(|| {
            format!(
                "the operation {} is not known: R, W, read, write, discard, trim, flush, or blkparse's letters would be \
                 right. op=N:01 stands for 0 (a read) and 1 (a write), op=N:10 for the opposite, op=N:hex and op=N:scsi \
                 for SCSI commands",
                shown(field)
            )
        }),
    }
}

/// Parses a hexadecimal number that begins with `0x`.
fn hexadecimal(field: &[u8]) -> Option<u64> {
    let digits = field.strip_prefix(b"0x").or_else(|| field.strip_prefix(b"0X"))?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl LineFormat for Table {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let line = line.trim_ascii();
        if line.is_empty() || self.titles.as_deref() == Some(line) || line.starts_with(b"#") {
            return Ok(false);
        }
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let fields = self.separator.fields(line);
        let row = match self.row(&fields) {
            // The first line can have titles, also where columns are numbered.
            Err(_) if is_first && is_title_line(&self.columns, &fields) => {
                self.titles = Some(line.to_owned());
                return Ok(false);
            }
            row => row?,
        };
        self.take(&row, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}

/// Returns true if the columns of time and size begin with no digit.
fn is_title_line(columns: &[(Role, usize)], fields: &[&[u8]]) -> bool {
    columns
        .iter()
        .filter(|(role, _)| matches!(role, Role::Time(_) | Role::Completed(_) | Role::Size(_)))
        .all(|(_, index)| fields.get(*index).is_some_and(|field| !field.first().is_some_and(u8::is_ascii_digit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::{events, failure, read};

    fn new(spec: &str, text: &str) -> Result<(Table, Option<String>), String> {
        let names = SharedNames::default();
        Table::new(&spec.parse().unwrap(), text.as_bytes(), 512, (&names, &names))
    }

    fn table(spec: &str, text: &str) -> Table {
        new(spec, text).unwrap().0
    }

    /// Returns time in ns, action, sector, bytes and operation of each event on the disk.
    fn seen(spec: &str, text: &str) -> Vec<(u64, Action, u64, u32, Rwbs)> {
        let batch = read(table(spec, text), text);
        let events = batch.events().iter().filter(|event| !event.action.is_note());
        events.map(|event| (event.time_ns, event.action, event.sector, event.bytes, event.op)).collect()
    }

    #[test]
    fn one_table_is_read_with_each_separator_with_and_without_titles() {
        const SPEC: &str = "time=2:s,op=3:hex,size=4:bytes,offset=5:sectors";
        let expected = [
            (7_000_000_000, Action::Queue, 64, 4096, Rwbs::READ),
            (8_000_000_000, Action::Queue, 128, 512, Rwbs::WRITE),
        ];
        for titles in ["", "version,time,op,size,lbn\n", "# version,time,op,size,lbn\n"] {
            for separator in [",", ";", "\t", "|", "  ", ", "] {
                let text = format!("{titles}1,7,28,4096,64\n1,8,2a,512,128\n").replace(',', separator);
                assert_eq!(seen(SPEC, &text), expected, "{text}");
            }
        }
        let by_title = "time=time:s,op=op:hex,size=size:bytes,offset=lbn:sectors";
        let titled = "version,time,op,size,lbn\n1,7,28,4096,64\nversion,time,op,size,lbn\n1,8,2a,512,128\n";
        assert_eq!(seen(by_title, titled), expected, "titles that stand twice");
        assert_eq!(seen(by_title, &titled.replace("op,size", "\"op\",\"size\"").replacen("28", "\"28\"", 1)), expected);
    }

    #[test]
    fn latencies_become_completions_and_completed_times_begin_before_them() {
        let text = "10.5,R,0x200,8,2.5\n";
        let submitted = "time=1:ms,op=2,offset=3:bytes,size=4:sectors,latency=5:us";
        assert_eq!(
            seen(submitted, text),
            [(10_500_000, Action::Queue, 1, 4096, Rwbs::READ), (10_502_500, Action::Complete, 1, 4096, Rwbs::READ),]
        );
        let completed = submitted.replace("time=", "completed=");
        assert_eq!(seen(&completed, text)[0].0, 10_497_500);
    }

    #[test]
    fn operations_have_several_forms() {
        for (form, read, write) in
            [("", "read", "WRITE"), (":01", "0", "1"), (":10", "1", "0"), (":scsi", "40", "42"), ("", "RA", "FWS")]
        {
            let text = format!("1,{read},0,512\n2,{write},0,512\n");
            let all = seen(&format!("time=1:s,op=2{form},offset=3:bytes,size=4:bytes"), &text);
            assert!(all[0].4.has(Rwbs::READ) && all[1].4.has(Rwbs::WRITE), "{form}: {all:?}");
        }
        let all = seen("time=1:s,op=2,offset=3:4096,size=4:KiB", "1,trim,1,4\n2,flush,0,0\n");
        assert_eq!((all[0].2, all[0].3, all[0].4, all[1].4), (8, 4096, Rwbs::DISCARD, Rwbs::FLUSH));
    }

    #[test]
    fn devices_and_processes_are_numbers_or_names() {
        let spec = "time=1:s,size=2:bytes,offset=3:bytes,device=4,process=5,pid=6";
        let text = "1,512,0,8:16,fio,77\n2,512,0,7,fio,77\n3,512,0,nvme0n1,dd,78\n";
        let batch = read(table(spec, text), text);
        let queued = batch.events().iter().filter(|event| event.action == Action::Queue);
        let devices: Vec<_> = queued.map(|event| (event.device.major(), event.device.minor(), event.pid)).collect();
        assert_eq!(devices, [(8, 16, 77), (0, 7, 77), (0, 0, 78)]);
        let without_pid = "time=1:s,size=2:bytes,offset=3:bytes,process=5";
        let batch = read(table(without_pid, text), text);
        let pids: Vec<u32> =
            batch.events().iter().filter(|event| event.action == Action::Queue).map(|event| event.pid).collect();
        assert_eq!(pids, [1, 1, 2]);
    }

    #[test]
    fn columns_that_are_not_described_are_remarked() {
        let (_, remark) = new("time=1:s,size=2:bytes", "1,512\n2,512\n").unwrap();
        let remark = remark.unwrap();
        assert!(
            remark.contains("all requests count as reads") && remark.contains("no positions on the disk"),
            "{remark}"
        );
    }

    #[test]
    fn a_missing_column_or_title_is_an_error_at_once() {
        let error = new("time=1:s,size=9:bytes", "1,512\n2,512\n").unwrap_err();
        assert!(error.starts_with("the lines do not have 9 columns"), "{error}");
        let error = new("time=ts:s,size=2:bytes", "time,size\n1,512\n").unwrap_err();
        assert!(error.contains("\"time,size\" has no title `ts` for time"), "{error}");
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        let spec = "time=1:s,op=2,offset=3:bytes,size=4:bytes";
        for (wrong, message) in [
            ("1,0,0,512", "a:2: the operation \"0\" is not known: R, W, read"),
            ("x,R,0,512", "a:2: the time \"x\" is no time"),
            ("1,R,0", "a:2: the line has 3 columns, and size is column 4"),
            ("1,R,-8,512", "a:2: the offset \"-8\" is no whole number"),
        ] {
            let text = format!("1,R,0,512\n{wrong}\n3,R,0,512\n");
            let failed = failure(table(spec, &text), &text);
            assert!(failed.starts_with(message), "{failed}");
            let (count, notices) = events(table(spec, &text), &text);
            assert_eq!(count, Ok(2), "{wrong}");
            assert!(notices[1].contains("1 of 3 lines could not be read"), "{notices:?}");
        }
    }
}
