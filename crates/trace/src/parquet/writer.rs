//! Writes a trace as one Parquet file or as a set of files.

use std::fs::{self, File};
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use hoistway_columnar::TableWriter;
use rustc_hash::FxHasher;

use super::rows::Rows;
use super::{EXTENSION, LAST, PART, SET, schema};
use crate::batch::Batch;
use crate::blktrace::CreateFile;
use crate::event::Event;
use crate::writer::EventWriter;

/// Rows of a row group. It is held in memory, about 25 MB, until it is written.
const ROWS_A_GROUP: usize = 1 << 17;
/// Name and version of this library in the metadata of each file.
const CREATOR: &str = concat!("hoistway ", env!("CARGO_PKG_VERSION"));

/// Where a set of files is divided. A file begins with an event that is later than all before it,
/// so that the files are intervals of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of events after which the next file begins.
    pub events: u64,
    /// Length of the intervals in ns, counted from the first event: each has a file of its own, or
    /// several if it has more events. None has no intervals.
    pub interval_ns: Option<u64>,
}

impl Default for Partition {
    /// 8,388,608 events a file, which take 50 to 300 MB.
    fn default() -> Partition {
        Partition { events: 1 << 23, interval_ns: None }
    }
}

/// Writes events as Parquet files.
pub struct Writer {
    target: Target,
    rows: Rows,
    file: Option<OpenFile>,
    /// Number of the next file.
    part: u64,
    /// Identifier of the set: a hash of the first events.
    set: String,
    /// Time of the first event with a moment, in ns.
    begin_ns: Option<u64>,
    /// Latest time of an event with a moment, in ns.
    last_ns: u64,
}

/// Where the files are.
enum Target {
    File(PathBuf, CreateFile),
    Folder(PathBuf, Partition),
}

/// A file that is being written.
struct OpenFile {
    table: TableWriter<BufWriter<File>>,
    /// Number of events, those in [`Writer::rows`] included.
    events: u64,
    /// Number of the interval of its first event.
    interval: u64,
    /// Present name and final name, if they differ.
    rename: Option<(PathBuf, PathBuf)>,
}

impl Writer {
    /// Creates a writer of one file, which `create` creates.
    pub fn file(path: &Path, create: CreateFile) -> Writer {
        Writer::new(Target::File(path.to_owned(), create))
    }

    /// Creates a writer of a set of files, `events-00000.parquet` and so on, in a folder, which is
    /// created if it does not exist. A file has its name when it is complete.
    ///
    /// # Errors
    /// Fails if the folder is not empty or cannot be created.
    pub fn folder(path: &Path, partition: Partition) -> io::Result<Writer> {
        fs::create_dir_all(path)?;
        if fs::read_dir(path)?.next().is_some() {
            return Err(io::Error::other("it is not empty: name a new or an empty folder"));
        }
        Ok(Writer::new(Target::Folder(path.to_owned(), partition)))
    }

    fn new(target: Target) -> Writer {
        let (set, rows) = (String::new(), Rows::default());
        Writer { target, rows, file: None, part: 0, set, begin_ns: None, last_ns: 0 }
    }

    fn event(&mut self, event: &Event, payload: &[u8]) -> io::Result<()> {
        let interval = self.interval_of(event);
        if self.is_border(event, interval) {
            self.close(false)?;
        }
        if self.file.is_none() {
            self.file = Some(self.open(interval)?);
        }
        if event.has_moment() {
            self.last_ns = self.last_ns.max(event.time_ns);
        }
        self.rows.push(event, payload);
        if let Some(file) = &mut self.file {
            file.events += 1;
        }
        if self.rows.len() >= ROWS_A_GROUP { self.write_rows() } else { Ok(()) }
    }

    /// Returns the number of the interval of an event.
    fn interval_of(&mut self, event: &Event) -> u64 {
        let Target::Folder(_, Partition { interval_ns: Some(interval_ns), .. }) = self.target else { return 0 };
        let begin_ns = if event.has_moment() { *self.begin_ns.get_or_insert(event.time_ns) } else { event.time_ns };
        event.time_ns.saturating_sub(begin_ns) / interval_ns.max(1)
    }

    /// Returns true if the next file begins with this event.
    fn is_border(&self, event: &Event, interval: u64) -> bool {
        let (Target::Folder(_, partition), Some(file)) = (&self.target, &self.file) else { return false };
        let is_due = file.events >= partition.events || interval > file.interval;
        is_due && event.has_moment() && event.time_ns > self.last_ns
    }

    fn open(&self, interval: u64) -> io::Result<OpenFile> {
        let (file, rename) = match &self.target {
            Target::File(path, create) => (create(path)?, None),
            Target::Folder(folder, _) => {
                let name = format!("events-{:05}.{EXTENSION}", self.part);
                let unfinished = folder.join(format!(".{name}.unfinished"));
                (File::create_new(&unfinished)?, Some((unfinished, folder.join(name))))
            }
        };
        let mut table = TableWriter::new(BufWriter::new(file), &schema(), CREATOR)?;
        table.set_metadata(SET, &self.set);
        table.set_metadata(PART, &self.part.to_string());
        Ok(OpenFile { table, events: 0, interval, rename })
    }

    fn write_rows(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.as_mut().filter(|_| self.rows.len() > 0) {
            file.table.write(&self.rows.take())?;
        }
        Ok(())
    }

    /// Writes the footer of the open file. The last file of the set says so.
    fn close(&mut self, is_last: bool) -> io::Result<()> {
        self.write_rows()?;
        let Some(OpenFile { mut table, rename, .. }) = self.file.take() else { return Ok(()) };
        if is_last {
            table.set_metadata(LAST, "true");
        }
        self.part += 1;
        let mut finished = table.finish().map_err(io::Error::from).and_then(|mut out| out.flush());
        if let Some((unfinished, name)) = rename {
            finished = finished.and_then(|()| fs::rename(&unfinished, name));
            if finished.is_err() {
                discard(&unfinished);
            }
        }
        finished
    }
}

impl EventWriter for Writer {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        if self.set.is_empty() {
            self.set = identifier(batch);
        }
        batch.events().iter().try_for_each(|event| self.event(event, batch.payload(event)))
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.open(0)?);
        }
        self.close(true)
    }
}

/// Removes a file that could not be completed. A second failure would hide the first.
fn discard(unfinished: &Path) {
    let _ = fs::remove_file(unfinished);
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(OpenFile { rename: Some((unfinished, _)), .. }) = &self.file {
            discard(unfinished);
        }
    }
}

/// Returns the identifier of the set whose first events are those of a batch.
fn identifier(batch: &Batch) -> String {
    let mut hash = FxHasher::default();
    for event in batch.events() {
        (event.time_ns, event.action, event.sector, event.bytes, event.pid, event.device).hash(&mut hash);
    }
    format!("{:016x}", hash.finish())
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer of file {}", self.part)
    }
}
