//! Reads the files of trace-cmd (`trace.dat`), versions 6 and 7: records of kernel events in order
//! of time.
//!
//! The layout of the file is that of the manual pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).
//! The layout of the pages and of the events is described by the texts in the file itself
//! (`header_page`, `header_event` and the `format` of each event).
//!
//! ```text
//!  file ─▶ header (v6: in sequence; v7: options that point to sections) ─▶ Layout
//!  Layout ─▶ CpuData (pages of one CPU) ─▶ merged by time ─▶ Record
//! ```
//!
//! Memory does not grow with the file: each CPU needs one page, or one chunk of compressed pages.
//!
//! # Where to change what
//!
//! - A new version of the file: `header.rs` (version 6, and what both share), `sections.rs` (7).
//! - The text that describes an event: `event_format.rs`.
//! - Records in a page of the ring buffer: `pages.rs`.

mod compression;
mod event_format;
mod fields;
mod header;
mod layout;
mod options;
mod pages;
mod sections;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io::{self, Read, Seek};

pub use event_format::{EventFormat, Field};
use layout::Layout;
use pages::CpuData;

/// First bytes of a file.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// A file that can be read at any position.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Errors of reading a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system reported an error.
    #[error(": {0}")]
    Io(#[from] io::Error),
    /// The file violates its format.
    #[error(" at byte {position}: {what}")]
    Bad {
        /// Position in the file.
        position: u64,
        /// The violation, and what would be right.
        what: String,
    },
}

/// Damage and limits that were met while reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Pages that were skipped because their contents are inconsistent, and the position of the
    /// first.
    pub damaged_pages: u64,
    /// Position of the first damaged page.
    pub first_damaged: u64,
    /// Number of pages before which the kernel dropped events because the buffer was full.
    pub overruns: u64,
    /// True if the file ends before its last page.
    pub is_cut: bool,
}

/// A record: one event on one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Time in ns of the clock of the recording.
    pub time_ns: u64,
    /// CPU of the event.
    pub cpu: u32,
    /// Format of the event; None if the file does not describe it.
    pub format: Option<&'a EventFormat>,
    /// Contents, including the common fields.
    pub data: &'a [u8],
    /// True if numbers in the contents are big-endian.
    pub is_big_endian: bool,
}

/// An open file.
pub struct TraceDat {
    file: Box<dyn ReadSeek + Send>,
    layout: Layout,
    cpus: Vec<CpuData>,
    /// Time of the next record and index of the CPU.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    losses: Losses,
    /// Index of the CPU whose record was returned last.
    current: Option<usize>,
}

impl TraceDat {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// Fails if the file is no `trace.dat` of version 6 or 7, or if its header is damaged.
    pub fn open(mut file: Box<dyn ReadSeek + Send>) -> Result<TraceDat, Error> {
        let layout = header::read(&mut *file)?;
        let cpus = layout.cpus.iter().map(|place| CpuData::new(place, &layout)).collect();
        let mut dat =
            TraceDat { file, layout, cpus, next: BinaryHeap::new(), losses: Losses::default(), current: None };
        (0..dat.cpus.len()).try_for_each(|index| dat.advance(index))?;
        Ok(dat)
    }

    /// Returns the next record of all CPUs in order of time; None at the end.
    ///
    /// # Errors
    /// Returns the errors of the operating system, and of compressed data that cannot be unpacked.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        if let Some(index) = self.current.take() {
            self.advance(index)?;
        }
        let Some(Reverse((_, index))) = self.next.pop() else { return Ok(None) };
        self.current = Some(index);
        let Some(cpu) = self.cpus.get(index) else { return Ok(None) };
        let data = cpu.record();
        let format = self.layout.type_of(data).and_then(|id| self.layout.formats.get(&id));
        Ok(Some(Record {
            time_ns: self.layout.time_ns(cpu.time()),
            cpu: cpu.number(),
            format,
            data,
            is_big_endian: self.layout.is_big_endian,
        }))
    }

    /// Version of the file format: 6 or 7.
    pub fn version(&self) -> u32 {
        self.layout.version
    }

    /// Name of the clock of the recording, such as `local` or `mono`; empty if it is unknown.
    pub fn clock(&self) -> &str {
        &self.layout.clock
    }

    /// Returns true if times are in ns. Otherwise they are readings of the clock.
    pub fn has_ns(&self) -> bool {
        self.layout.has_ns()
    }

    /// Formats of the events in the file, by the number of the event.
    pub fn formats(&self) -> &HashMap<u16, EventFormat> {
        &self.layout.formats
    }

    /// Names of processes by process id.
    pub fn process_names(&self) -> &BTreeMap<u32, Vec<u8>> {
        &self.layout.process_names
    }

    /// Remarks about parts of the file that are not read.
    pub fn remarks(&self) -> &[String] {
        &self.layout.remarks
    }

    /// Damage and lost events up to now.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    fn advance(&mut self, index: usize) -> Result<(), Error> {
        let Some(cpu) = self.cpus.get_mut(index) else { return Ok(()) };
        if cpu.advance(&mut *self.file, &mut self.losses)? {
            self.next.push(Reverse((cpu.time(), index)));
        }
        Ok(())
    }
}

impl std::fmt::Debug for TraceDat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TraceDat of version {}, {} CPUs", self.layout.version, self.cpus.len())
    }
}
