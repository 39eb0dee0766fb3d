//! Where commands write traces: a file or standard output, in one of the formats.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, bail};
use hoistway_trace::iolog::LogVersion;
use hoistway_trace::{Batch, EventWriter, Source, blkparse, blktrace, csv, iolog, perfetto};

use super::input;
use crate::cli::trace::{TraceOutput, WriteFormat};
use crate::failure::{Exit, OutputError, UsageError, tell};

/// Bytes that wait for the output, at most.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes all of a trace, and tells what was noticed of it. `name` is what the trace is called, `read` the files that it is read from.
pub fn write(source: &mut dyn Source, args: &TraceOutput, name: &str, read: &[PathBuf]) -> Result<Exit> {
    let format = format_of(args);
    let mut output = Output::new(args, format, read)?;
    let mut batch = Batch::new();
    let mut failed = None;
    let mut is_empty = true;
    loop {
        match source.next(&mut batch) {
            Ok(()) if batch.is_empty() => break,
            Ok(()) => {
                // Names of processes are written even where nothing of them is.
                is_empty &= batch.start_ns().is_none();
                output.write(&batch, name)?;
            }
            // What was read before is worth having: it is written to its end.
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    output.finish(name)?;
    input::tell_notices(source);
    if let Some(error) = failed {
        return Err(error.into());
    }
    if is_empty {
        bail!("{name}: no event is left of this trace, or there never was one");
    }
    Ok(Exit::Success)
}

fn format_of(args: &TraceOutput) -> WriteFormat {
    let by_name = || match args.output.as_deref()?.extension()?.to_str()? {
        "csv" => Some(WriteFormat::Csv),
        "json" => Some(WriteFormat::Perfetto),
        "iolog" => Some(WriteFormat::Iolog),
        "bin" => Some(WriteFormat::Blktrace),
        _ => None,
    };
    args.format_as.or_else(by_name).unwrap_or(WriteFormat::Blkparse)
}

/// What is written to. The writer is made with the first batch, when it is known whether the trace counts its records.
struct Output<'a> {
    args: &'a TraceOutput,
    format: WriteFormat,
    /// The file; none for standard output.
    file: Option<&'a Path>,
    writer: Option<Writer>,
}

/// A writer of a format.
enum Writer {
    /// It leaves notes out, which is told.
    Text(Box<blkparse::Writer<Box<dyn Write>>>),
    Other(Box<dyn EventWriter>),
}

impl<'a> Output<'a> {
    fn new(args: &'a TraceOutput, format: WriteFormat, read: &[PathBuf]) -> Result<Output<'a>> {
        let file = args.output.as_deref().filter(|file| *file != Path::new("-"));
        let is_binary = matches!(format, WriteFormat::Blktrace | WriteFormat::BlktraceCpus);
        match file {
            None if format == WriteFormat::BlktraceCpus => {
                return Err(UsageError("several files cannot go to standard output: name them with -o".into()).into());
            }
            None if is_binary && io::stdout().is_terminal() => {
                return Err(UsageError("binary records are nothing for a terminal: name a file with -o".into()).into());
            }
            None => {}
            Some(file) => {
                let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
                if matches!(ending, "gz" | "zst" | "xz") {
                    let name = file.display();
                    let what = format!(
                        "{name}: what is written is not compressed: write to a pipe, as in `... | zstd > {name}`"
                    );
                    return Err(UsageError(what).into());
                }
                if let Some(same) = read.iter().find(|read| is_same(read, file, format)) {
                    bail!("{}: it is being read and would be written over: write to another file", same.display());
                }
            }
        }
        Ok(Output { args, format, file, writer: None })
    }

    fn write(&mut self, batch: &Batch, name: &str) -> Result<()> {
        if self.writer.is_none() {
            let is_counted = batch.events().iter().any(|event| event.sequence != 0);
            self.writer = Some(self.open(name, is_counted)?);
        }
        let wrote = match &mut self.writer {
            Some(Writer::Text(writer)) => writer.write(batch),
            Some(Writer::Other(writer)) => writer.write(batch),
            None => Ok(()),
        };
        wrote.map_err(|error| self.failed(error))
    }

    fn finish(&mut self, name: &str) -> Result<()> {
        if self.writer.is_none() {
            self.writer = Some(self.open(name, true)?);
        }
        let finished = match &mut self.writer {
            Some(Writer::Text(writer)) => writer.finish(),
            Some(Writer::Other(writer)) => writer.finish(),
            None => Ok(()),
        };
        finished.map_err(|error| self.failed(error))?;
        if let Some(Writer::Text(writer)) = &self.writer
            && writer.left_out() > 0
        {
            let count = writer.left_out();
            tell(&format!(
                "note: {name}: {count} notes of control groups are left out, as blkparse does; --all-messages writes them"
            ));
        }
        Ok(())
    }

    fn open(&self, name: &str, is_counted: bool) -> Result<Writer> {
        if let (WriteFormat::BlktraceCpus, Some(file)) = (self.format, self.file) {
            return Ok(Writer::Other(Box::new(blktrace::CpuFiles::new(file, blktrace::Version::V7, !is_counted))));
        }
        let out: Box<dyn Write> = match self.file {
            Some(file) => {
                let created = File::create(file).with_context(|| file.display().to_string())?;
                Box::new(BufWriter::with_capacity(BUFFER_BYTES, created))
            }
            None => Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())),
        };
        Ok(match self.format {
            WriteFormat::Blkparse => {
                let mut writer = blkparse::Writer::new(out, name);
                if self.args.quiet {
                    writer = writer.quiet();
                }
                Writer::Text(Box::new(if self.args.all_messages { writer.with_all_messages() } else { writer }))
            }
            WriteFormat::Blktrace | WriteFormat::BlktraceCpus => {
                let writer = blktrace::Writer::new(out);
                Writer::Other(Box::new(if is_counted { writer } else { writer.counting() }))
            }
            WriteFormat::Iolog => Writer::Other(Box::new(iolog::Writer::new(out, LogVersion::Three))),
            WriteFormat::Iolog2 => Writer::Other(Box::new(iolog::Writer::new(out, LogVersion::Two))),
            WriteFormat::Csv => Writer::Other(Box::new(csv::Writer::new(out))),
            WriteFormat::Perfetto => Writer::Other(Box::new(perfetto::Writer::new(out))),
        })
    }

    fn failed(&self, error: io::Error) -> Error {
        match self.file {
            Some(file) => Error::new(error).context(file.display().to_string()),
            None => OutputError(error).into(),
        }
    }
}

/// Whether writing a file would write over one that is read.
fn is_same(read: &Path, file: &Path, format: WriteFormat) -> bool {
    let same =
        |file: &Path| matches!((fs::canonicalize(read), fs::canonicalize(file)), (Ok(read), Ok(file)) if read == file);
    if format == WriteFormat::BlktraceCpus {
        // Any of NAME.blktrace.N.
        let mut beginning = file.as_os_str().to_owned();
        beginning.push(".blktrace.");
        let name = read.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem =
            Path::new(&beginning).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return name.starts_with(&stem) && same(&file.with_file_name(&name));
    }
    same(file)
}
