//! Writes a whole trace in another format: the result of `cut`, `merge`, `reorder` and `convert`.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use crate::batch::Batch;
use crate::iolog::LogVersion;
use crate::source::{ReadError, Source};
use crate::writer::EventWriter;
use crate::{blkparse, blktrace, csv, iolog, parquet, perfetto};

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// Text as blkparse prints it.
    Blkparse,
    /// blktrace's binary format, all CPUs in one file.
    Blktrace,
    /// blktrace's binary format, one file for each CPU.
    BlktraceCpus,
    /// fio's iolog, version 3: requests with their times.
    Iolog,
    /// fio's iolog, version 2: waits between requests.
    Iolog2,
    /// hoistway's own CSV with all fields of all events.
    Csv,
    /// Parquet with all fields of all events.
    Parquet,
    /// Chrome's JSON for ui.perfetto.dev.
    Perfetto,
}

/// Options of writing a trace.
#[derive(Clone, Debug)]
pub struct OutputOptions<'a> {
    /// Output format.
    pub format: OutputFormat,
    /// Name of the trace in blkparse's summary.
    pub name: &'a str,
    /// Omits the summary of blkparse's text.
    pub quiet: bool,
    /// Includes messages of control groups in blkparse's text, which blkparse omits.
    pub all_messages: bool,
}

/// Where a trace is written to.
pub enum Destination<'a> {
    /// A byte stream; all formats except [`OutputFormat::BlktraceCpus`] and
    /// [`OutputFormat::Parquet`]. The function opens the
    /// stream when the first batch was read.
    Stream(Box<dyn FnOnce() -> io::Result<Box<dyn Write>> + 'a>),
    /// The common part of the names of files, for [`OutputFormat::BlktraceCpus`], and the function
    /// that creates them.
    CpuFiles(&'a Path, blktrace::CreateFile),
    /// One Parquet file, and the function that creates it.
    ParquetFile(&'a Path, blktrace::CreateFile),
    /// A folder for a set of Parquet files.
    ParquetFolder(&'a Path, parquet::Partition),
}

/// Summary of a written trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutputSummary {
    /// Number of events read from the source, including process names and clocks.
    pub events: u64,
    /// True if any event other than process names and clocks was written.
    pub has_events: bool,
    /// Number of messages of control groups that blkparse's text omits.
    pub messages_omitted: u64,
}

/// Error of writing a trace.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The source failed. The events before the error were written and the output was completed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output failed.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// A writer of any format.
enum AnyWriter {
    /// Counts omitted messages.
    Text(Box<blkparse::Writer<Box<dyn Write>>>),
    Other(Box<dyn EventWriter>),
}

impl OutputFormat {
    /// Returns the format that the extension of a file name implies: `.csv`, `.json`, `.iolog`,
    /// `.bin` or `.parquet`.
    pub fn of_file(file: &Path) -> Option<OutputFormat> {
        match file.extension()?.to_str()? {
            "csv" => Some(OutputFormat::Csv),
            "json" => Some(OutputFormat::Perfetto),
            "iolog" => Some(OutputFormat::Iolog),
            "bin" => Some(OutputFormat::Blktrace),
            parquet::EXTENSION => Some(OutputFormat::Parquet),
            _ => None,
        }
    }

    /// Returns true for formats that are no text.
    pub const fn is_binary(self) -> bool {
        matches!(self, OutputFormat::Blktrace | OutputFormat::BlktraceCpus | OutputFormat::Parquet)
    }
}

/// Writes all events of a source. The summary is also returned with a read error, because the
/// events before it are written.
pub fn write_trace(
    source: &mut dyn Source,
    destination: Destination<'_>,
    options: &OutputOptions<'_>,
) -> (OutputSummary, Result<(), OutputError>) {
    let mut summary = OutputSummary::default();
    let result = write_all(source, destination, options, &mut summary);
    (summary, result)
}

fn write_all(
    source: &mut dyn Source,
    destination: Destination<'_>,
    options: &OutputOptions<'_>,
    summary: &mut OutputSummary,
) -> Result<(), OutputError> {
    let mut batch = Batch::new();
    let mut read = source.next(&mut batch);
    // An empty trace counts as a trace with sequence numbers.
    let is_counted = batch.is_empty() || batch.events().iter().any(|event| event.sequence != 0);
    let mut writer = AnyWriter::open(destination, options, is_counted)?;
    while read.is_ok() && !batch.is_empty() {
        summary.events += batch.len() as u64;
        summary.has_events |= batch.start_ns().is_some();
        writer.get().write(&batch)?;
        read = source.next(&mut batch);
    }
    writer.get().finish()?;
    if let AnyWriter::Text(writer) = &writer {
        summary.messages_omitted = writer.left_out();
    }
    Ok(read?)
}

impl AnyWriter {
    /// Opens a writer. `is_counted` is true if the events have sequence numbers.
    fn open(destination: Destination<'_>, options: &OutputOptions<'_>, is_counted: bool) -> io::Result<AnyWriter> {
        let out = match destination {
            Destination::CpuFiles(name, create) => {
                let files = blktrace::CpuFiles::new(name, blktrace::Version::V7, !is_counted).created_by(create);
                return Ok(AnyWriter::Other(Box::new(files)));
            }
            Destination::ParquetFile(name, create) => {
                return Ok(AnyWriter::Other(Box::new(parquet::Writer::file(name, create))));
            }
            Destination::ParquetFolder(name, partition) => {
                return Ok(AnyWriter::Other(Box::new(parquet::Writer::folder(name, partition)?)));
            }
            Destination::Stream(open) => open()?,
        };
        Ok(match options.format {
            OutputFormat::Blkparse => {
                let mut writer = blkparse::Writer::new(out, options.name);
                if options.quiet {
                    writer = writer.quiet();
                }
                AnyWriter::Text(Box::new(if options.all_messages { writer.with_all_messages() } else { writer }))
            }
            OutputFormat::Blktrace | OutputFormat::BlktraceCpus => {
                let writer = blktrace::Writer::new(out);
                AnyWriter::Other(Box::new(if is_counted { writer } else { writer.counting() }))
            }
            OutputFormat::Iolog => AnyWriter::Other(Box::new(iolog::Writer::new(out, LogVersion::Three))),
            OutputFormat::Iolog2 => AnyWriter::Other(Box::new(iolog::Writer::new(out, LogVersion::Two))),
            OutputFormat::Parquet => return Err(io::Error::other("Parquet files are written by name")),
            OutputFormat::Csv => AnyWriter::Other(Box::new(csv::Writer::new(out))),
            OutputFormat::Perfetto => AnyWriter::Other(Box::new(perfetto::Writer::new(out))),
        })
    }

    fn get(&mut self) -> &mut dyn EventWriter {
        match self {
            AnyWriter::Text(writer) => writer.as_mut(),
            AnyWriter::Other(writer) => writer.as_mut(),
        }
    }
}
