//! Opens the traces that commands read, and prints notes about them.

use std::path::PathBuf;

use anyhow::{Error, Result};
use hoistway_trace::files::{self, NamedTrace, ResolveError};
use hoistway_trace::{Batch, Detection, Notice, OpenOptions, OpenTrace, ReadError, Source};

use crate::cli::trace::TraceInput;
use crate::failure::{UsageError, print_message};

/// An open trace.
pub struct Opened {
    source: OpenTrace,
    /// Name of the trace: that of its folder, or of its first file without the suffix of blktrace.
    pub name: String,
    /// Files of the trace; empty for standard input and the sample.
    pub files: Vec<PathBuf>,
}

/// Opens the trace that the arguments name.
pub fn open(TraceInput { files, reading }: &TraceInput) -> Result<Opened> {
    let options = OpenOptions {
        format: reading.format,
        time_unit: reading.time_unit,
        sector_bytes: reading.sector_bytes,
        is_strict: reading.strict,
        offset_unit: reading.offset_unit,
        columns: reading.columns.clone(),
    };
    let trace = NamedTrace::resolve(files).map_err(unresolved)?;
    note_siblings(files);
    let source = hoistway_trace::open_detected(trace.inputs(), &options)?;
    Ok(Opened { source, files: trace.files(), name: trace.name })
}

impl Opened {
    /// The format of each input, and what it was detected from.
    pub fn detections(&self) -> &[Detection] {
        self.source.detections()
    }
}

impl Source for Opened {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.source.next(batch)
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }

    fn skipped_lines(&self) -> u64 {
        self.source.skipped_lines()
    }
}

/// Prints the notices about a trace on standard error; to be called after the trace was read.
pub fn print_notices(source: &mut dyn Source) {
    source.notices().iter().for_each(|notice| print_message(&format!("note: {notice}")));
}

fn unresolved(error: ResolveError) -> Error {
    if error.is_usage_error() { UsageError(error.to_string()).into() } else { error.into() }
}

/// Prints a note if a single file of one CPU is named, because the others may have been forgotten.
fn note_siblings(named: &[PathBuf]) {
    if let [file] = named
        && let Some((count @ 2.., all)) = files::siblings(file)
    {
        print_message(&format!("note: {}: one of {count} CPUs; `{}` reads them all", file.display(), all.display()));
    }
}
