//! Opens the traces that commands read: files, globs, names of blktrace and standard input.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use hoistway_trace::files::{self, ResolveError};
use hoistway_trace::{Batch, Input, Notice, OpenOptions, ReadError, Source, Stream};

use crate::cli::trace::TraceInput;
use crate::failure::{UsageError, print_message};

/// An open trace.
pub struct Opened {
    source: Box<dyn Source + Send>,
    /// Name of the trace: that of its first file without the suffix of blktrace.
    pub name: String,
    /// Files of the trace; empty for standard input.
    pub files: Vec<PathBuf>,
}

/// Opens the trace that the arguments name.
pub fn open(input: &TraceInput) -> Result<Opened> {
    let options = OpenOptions { format: input.format, time_unit: input.time_unit, sector_bytes: input.sector_bytes };
    let mut inputs = Vec::new();
    let mut files = Vec::new();
    for named in &input.files {
        if named == Path::new("-") {
            if inputs.iter().any(|input| matches!(input, Input::Stream(_))) {
                return Err(UsageError("standard input (-) can be read only once".into()).into());
            }
            inputs.push(Input::Stream(Stream { name: "standard input".into(), read: Box::new(io::stdin()) }));
            continue;
        }
        let found = files::resolve(named).map_err(unresolved)?;
        inputs.extend(found.iter().cloned().map(Input::Path));
        files.extend(found);
    }
    let name = files.first().map_or_else(|| "-".to_owned(), |file| files::trace_name(file));
    note_siblings(&input.files);
    Ok(Opened { source: hoistway_trace::open(inputs, &options)?, name, files })
}

impl Source for Opened {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.source.next(batch)
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }
}

/// Prints the notices about a trace on standard error; to be called after the trace was read.
pub fn print_notices(source: &mut dyn Source) {
    source.notices().iter().for_each(|notice| print_message(&format!("note: {notice}")));
}

fn unresolved(error: ResolveError) -> Error {
    match error {
        ResolveError::Directory { .. } | ResolveError::Pattern { .. } => UsageError(error.to_string()).into(),
        error => error.into(),
    }
}

/// Prints a note if a single file of one CPU is named, because the others may have been forgotten.
fn note_siblings(named: &[PathBuf]) {
    if let [file] = named
        && let Some((count @ 2.., all)) = files::siblings(file)
    {
        print_message(&format!("note: {}: one of {count} CPUs; `{}` reads them all", file.display(), all.display()));
    }
}
