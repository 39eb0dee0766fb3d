//! Reads one Parquet file.

use std::fs::File;
use std::path::PathBuf;

use hoistway_columnar::{Kind, ReadCells, TableError, TableReader, Wanted};

use super::{COLUMNS, Declared, LAST, PART, PROGRAM, SET, Use};
use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::csv;
use crate::event::{DeviceId, Event, Rwbs};
use crate::notices::NoticeCollector;
use crate::source::{DeferredError, InputPosition, Notice, ReadError, Source};
use crate::text::device_of;

/// The contents of an input.
pub(crate) enum Contents {
    /// A file, which is opened when its first event is needed.
    Path(PathBuf),
    /// A file in memory; None after it was opened.
    Bytes(Option<Vec<u8>>),
}

/// The place of a file in a trace, from its footer.
pub(super) struct Footer {
    /// Identifier of the set and number of the file in it, if hoistway wrote the file.
    pub part: Option<(String, u64)>,
    /// True if the file is the last of its set.
    pub is_last: bool,
    /// Smallest and largest time; None without statistics.
    pub times_ns: Option<(u64, u64)>,
}

/// Source of the events of one file.
pub(super) struct Reader {
    name: String,
    contents: Contents,
    table: Option<TableReader>,
    /// Index in the selected columns, for each column of the schema that the file has.
    selected: [Option<usize>; COLUMNS.len()],
    notices: NoticeCollector,
    /// The error of the file, returned after the events before it.
    failed: DeferredError,
    is_over: bool,
}

impl Reader {
    /// Creates a reader of a file, and reads its footer. Columns that are no part of a trace cause
    /// a notice if `notes_columns` is set.
    ///
    /// # Errors
    /// Fails if the file cannot be read, has no footer, or lacks a column.
    pub fn new(name: String, contents: Contents, notes_columns: bool) -> Result<(Reader, Footer), ReadError> {
        let notices = NoticeCollector::new(&name);
        let (failed, selected) = (DeferredError::default(), [None; COLUMNS.len()]);
        let mut reader = Reader { name, contents, table: None, selected, notices, failed, is_over: false };
        let mut table = reader.open()?;
        // Some programs copy the metadata of a file that they read.
        let is_ours = table.creator().is_some_and(|creator| creator.starts_with(PROGRAM));
        let part = table.metadata(PART).and_then(|part| part.parse().ok()).filter(|_| is_ours);
        let footer = Footer {
            part: table.metadata(SET).map(str::to_owned).zip(part),
            is_last: table.metadata(LAST).is_some(),
            times_ns: table.range(COLUMNS[0].name),
        };
        if notes_columns {
            reader.note_unknown_columns(&table);
        }
        reader.select(&mut table)?;
        // A set can have thousands of files: only those in memory stay open.
        if let Contents::Bytes(_) = reader.contents {
            reader.table = Some(table);
        }
        Ok((reader, footer))
    }

    /// Name of the input.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self) -> Result<TableReader, ReadError> {
        let opened = match &mut self.contents {
            Contents::Path(path) => File::open(path).map_err(TableError::from).and_then(TableReader::open_file),
            Contents::Bytes(bytes) => TableReader::open_bytes(bytes.take().unwrap_or_default()),
        };
        opened.map_err(|error| self.error(error))
    }

    fn error(&self, error: TableError) -> ReadError {
        let file = self.name.clone();
        match error {
            TableError::Io(source) => ReadError::Io { file, source },
            TableError::Bad(what) => ReadError::Bad { file, position: InputPosition::All, what },
        }
    }

    /// Selects the columns that are read.
    fn select(&mut self, table: &mut TableReader) -> Result<(), ReadError> {
        let is_read = |column: &Declared| match column.usage {
            Use::Needed => true,
            Use::Optional => table.has(column.name),
            Use::Derived => false,
        };
        let mut wanted = Vec::new();
        for (selected, column) in self.selected.iter_mut().zip(&COLUMNS) {
            *selected = is_read(column).then(|| {
                let is_number = matches!(column.kind, Kind::U16 | Kind::U32 | Kind::U64);
                wanted.push((column.name, if is_number { Wanted::Numbers } else { Wanted::Bytes }));
                wanted.len() - 1
            });
        }
        table.select(&wanted).map_err(|error| {
            let needed = COLUMNS.iter().filter(|column| column.usage == Use::Needed).map(|column| column.name);
            match self.error(error) {
                ReadError::Bad { file, position, what } => {
                    let needed = needed.collect::<Vec<_>>().join(", ");
                    let what = format!("{what}; a trace needs {needed} (docs/trace-parquet.md)");
                    ReadError::Bad { file, position, what }
                }
                error => error,
            }
        })
    }

    fn note_unknown_columns(&mut self, table: &TableReader) {
        let names = table.column_names();
        let is_unknown = |name: &&String| COLUMNS.iter().all(|column| column.name != **name);
        let unknown: Vec<&str> = names.iter().filter(is_unknown).map(String::as_str).collect();
        if !unknown.is_empty() {
            let what = format!("columns that are no part of a trace are not read: {}", unknown.join(", "));
            self.notices.add(InputPosition::All, what);
        }
    }

    fn read(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut table = match self.table.take() {
            Some(table) => table,
            None => {
                let mut table = self.open()?;
                self.select(&mut table)?;
                table
            }
        };
        let first_row = table.rows() + 1;
        let rows = table.read(EVENTS_A_BATCH).map_err(|error| self.error(error))?;
        let result = push_rows(rows, &Columns { cells: table.cells(), selected: &self.selected }, batch);
        result.map_err(|what| {
            let row = first_row + batch.len() as u64;
            let (file, position) = (self.name.clone(), InputPosition::All);
            ReadError::Bad { file, position, what: format!("row {row}: {what}") }
        })?;
        if rows == 0 {
            self.is_over = true;
        } else {
            self.table = Some(table);
        }
        Ok(())
    }
}

impl Source for Reader {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if !self.is_over
            && let Err(error) = self.read(batch)
        {
            self.is_over = true;
            self.failed.set(error);
        }
        self.failed.report_after(batch)
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }
}

/// The columns of some rows.
struct Columns<'a> {
    cells: &'a [ReadCells],
    selected: &'a [Option<usize>; COLUMNS.len()],
}

impl<'a> Columns<'a> {
    fn cells(&self, name: &'static str) -> Option<&'a ReadCells> {
        let at = COLUMNS.iter().position(|column| column.name == name)?;
        self.cells.get((*self.selected.get(at)?)?)
    }

    /// Returns the numbers of a column. A column that the file lacks is 0 in all rows.
    fn numbers(&self, name: &'static str) -> Numbers<impl Iterator<Item = Option<u64>> + use<'a>> {
        Numbers { name, values: self.cells(name).map(ReadCells::numbers) }
    }

    /// Returns the bytes of a column. A column that the file lacks is null in all rows.
    fn bytes(&self, name: &'static str) -> Bytes<impl Iterator<Item = Option<&'a [u8]>> + use<'a>> {
        Bytes { name, values: self.cells(name).map(ReadCells::bytes) }
    }
}

/// Numbers of a column.
struct Numbers<I> {
    name: &'static str,
    values: Option<I>,
}

impl<I: Iterator<Item = Option<u64>>> Numbers<I> {
    fn next<T: TryFrom<u64>>(&mut self) -> Result<T, String> {
        let value = match &mut self.values {
            Some(values) => values.next().flatten().ok_or_else(|| is_null(self.name))?,
            None => 0,
        };
        let bits = 8 * size_of::<T>();
        T::try_from(value).map_err(|_| format!("`{}` is {value}: a number of {bits} bits would be right", self.name))
    }
}

/// Texts of a column.
struct Bytes<I> {
    name: &'static str,
    values: Option<I>,
}

impl<'a, I: Iterator<Item = Option<&'a [u8]>>> Bytes<I> {
    /// Returns the next bytes, or None for a null.
    fn next(&mut self) -> Option<&'a [u8]> {
        self.values.as_mut()?.next()?
    }

    fn needed(&mut self) -> Result<&'a [u8], String> {
        self.next().ok_or_else(|| is_null(self.name))
    }
}

fn is_null(name: &str) -> String {
    format!("`{name}` is null: a value in every row would be right")
}

/// Adds rows to a batch.
fn push_rows(rows: usize, columns: &Columns<'_>, batch: &mut Batch) -> Result<(), String> {
    let (mut time_ns, mut action, mut device) =
        (columns.numbers("time_ns"), columns.bytes("action"), columns.bytes("device"));
    let (mut cpu, mut pid, mut sequence) =
        (columns.numbers("cpu"), columns.numbers("pid"), columns.numbers("sequence"));
    let (mut rwbs, mut sector, mut bytes) =
        (columns.bytes("rwbs"), columns.numbers("sector"), columns.numbers("bytes"));
    let (mut error, mut cgroup, mut payload) =
        (columns.numbers("error"), columns.numbers("cgroup"), columns.bytes("payload"));
    let mut devices = Last { text: &b""[..], value: DeviceId(0) };
    let mut operations = Last { text: &b""[..], value: Rwbs(0) };
    for _ in 0..rows {
        let event = Event {
            sector: sector.next()?,
            bytes: bytes.next()?,
            pid: pid.next()?,
            sequence: sequence.next()?,
            cpu: cpu.next()?,
            device: match &device.values {
                Some(_) => devices.parse(device.needed()?, |text| device_of(text, b':'))?,
                None => DeviceId(0),
            },
            error: error.next()?,
            op: operations.parse(rwbs.needed()?, csv::op_of)?,
            cgroup: cgroup.next()?,
            ..Event::new(time_ns.next()?, csv::action_of(action.needed()?)?)
        };
        batch.push_with(event, payload.next().unwrap_or_default());
    }
    Ok(())
}

/// The text that was parsed last: neighbours are often equal.
struct Last<'a, T> {
    text: &'a [u8],
    value: T,
}

impl<'a, T: Copy> Last<'a, T> {
    fn parse(&mut self, text: &'a [u8], parse: fn(&[u8]) -> Result<T, String>) -> Result<T, String> {
        if text != self.text {
            self.value = parse(text)?;
            self.text = text;
        }
        Ok(self.value)
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader of {}", self.name)
    }
}
