//! Opens the traces that commands read: files, globs, names of blktrace, standard input, and the
//! sample in the program.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use hoistway_trace::files::{self, ResolveError};
use hoistway_trace::{Batch, Detection, Input, Notice, OpenOptions, OpenTrace, ReadError, Source, Stream};

use crate::cli::trace::TraceInput;
use crate::failure::{UsageError, print_message};

/// Name of the sample in the program.
pub const SAMPLE: &str = "sample:two-readers";
/// Recording of `examples/two-readers`: 743 requests of two processes, 17 kB.
const SAMPLE_BYTES: &[u8] = include_bytes!("../../../../../examples/two-readers/disk.blktrace.0.xz");

/// An open trace.
pub struct Opened {
    source: OpenTrace,
    /// Name of the trace: that of its folder, or of its first file without the suffix of blktrace.
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
            if input.files.iter().filter(|other| *other == named).count() > 1 {
                return Err(UsageError("standard input (-) can be read only once".into()).into());
            }
            inputs.push(Input::Stream(Stream { name: "standard input".into(), read: Box::new(io::stdin()) }));
            continue;
        }
        if let Some(name) = named.to_str().filter(|name| name.starts_with("sample:")) {
            if name != SAMPLE {
                return Err(UsageError(format!("there is no {name}: {SAMPLE} is the sample")).into());
            }
            inputs.push(Input::Stream(Stream { name: SAMPLE.into(), read: Box::new(SAMPLE_BYTES) }));
            continue;
        }
        let found = files::resolve(named).map_err(unresolved)?;
        inputs.extend(found.iter().cloned().map(Input::Path));
        files.extend(found);
    }
    let unnamed = || if input.files.iter().any(|named| named == Path::new(SAMPLE)) { "two-readers" } else { "-" };
    let folder = input.files.first().filter(|named| named.is_dir()).and_then(|folder| folder.file_name());
    let name = match folder {
        Some(folder) => folder.to_string_lossy().into_owned(),
        None => files.first().map_or_else(|| unnamed().to_owned(), |file| files::trace_name(file)),
    };
    note_siblings(&input.files);
    Ok(Opened { source: hoistway_trace::open_detected(inputs, &options)?, name, files })
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
