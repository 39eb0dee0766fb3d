//! Writes traces to a file or standard output, in the format that the arguments select.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, bail};
use hoistway_machine::{InUse, OpenUnusedError, Root, create_unused, find_use};
use hoistway_trace::Source;
use hoistway_trace::convert::{Destination, OutputError as TraceError, OutputFormat, OutputOptions, write_trace};
use hoistway_trace::parquet::Partition;

use super::input;
use crate::cli::trace::TraceOutput;
use crate::failure::{Exit, OutputError, UsageError, print_message};

/// Size of the output buffer in bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes a trace and prints its notices. `name` is the name of the trace, `read` are the files
/// that it is read from.
pub fn write(source: &mut dyn Source, args: &TraceOutput, name: &str, read: &[PathBuf]) -> Result<Exit> {
    let by_name = || args.output.as_deref().and_then(OutputFormat::of_file);
    let format = args.format_as.map(OutputFormat::from).or_else(by_name).unwrap_or(OutputFormat::Blkparse);
    let file = args.output.as_deref().filter(|file| *file != Path::new("-"));
    let parquet_folder = parquet_folder(format, file, args)?;
    match file {
        Some(file) => check_file(file, format, read)?,
        None => check_standard_output(format)?,
    }
    let options = OutputOptions { format, name, quiet: args.quiet, all_messages: args.all_messages };
    let destination = match file {
        Some(file) if format == OutputFormat::BlktraceCpus => Destination::CpuFiles(file, create),
        Some(file) if format == OutputFormat::Parquet => match parquet_folder {
            Some(partition) => Destination::ParquetFolder(file, partition),
            None => Destination::ParquetFile(file, create),
        },
        Some(file) => Destination::Stream(Box::new(move || Ok(buffered(create(file)?)))),
        None => Destination::Stream(Box::new(|| Ok(buffered(io::stdout())))),
    };
    let (summary, result) = write_trace(source, destination, &options);
    match result {
        Err(TraceError::Write(error)) => return Err(output_failed(error, file)),
        result => {
            if summary.messages_omitted > 0 {
                let count = summary.messages_omitted;
                print_message(&format!(
                    "note: {name}: {count} messages of control groups are omitted, as in blkparse; --all-messages includes them"
                ));
            }
            input::print_notices(source);
            result?;
        }
    }
    if !summary.has_events {
        bail!("{name}: the result has no events");
    }
    Ok(Exit::Success)
}

fn buffered(out: impl Write + 'static) -> Box<dyn Write> {
    Box::new(BufWriter::with_capacity(BUFFER_BYTES, out))
}

/// Creates the output; an output that came into use since the check is an error of the system call.
fn create(file: &Path) -> io::Result<File> {
    create_unused(file).map_err(|error| match error {
        OpenUnusedError::InUse(in_use) => io::Error::other(in_use),
        OpenUnusedError::System(error) => error,
    })
}

/// Returns how a set of Parquet files is divided, if the output is a folder for one.
fn parquet_folder(
    format: OutputFormat,
    file: Option<&Path>,
    args: &TraceOutput,
) -> Result<Option<Partition>, UsageError> {
    let is_one_file = |file: &Path| OutputFormat::of_file(file) == Some(OutputFormat::Parquet) && !file.is_dir();
    if format == OutputFormat::Parquet && file.is_some_and(|file| !is_one_file(file)) {
        let events = args.file_events.unwrap_or(Partition::default().events);
        return Ok(Some(Partition { events, interval_ns: args.file_interval }));
    }
    if args.file_events.is_some() || args.file_interval.is_some() {
        let what = "--file-events and --file-interval divide a set of Parquet files: use --as parquet -o FOLDER";
        return Err(UsageError(what.into()));
    }
    Ok(None)
}

fn check_standard_output(format: OutputFormat) -> Result<(), UsageError> {
    if format == OutputFormat::Parquet {
        return Err(UsageError("Parquet files cannot go to standard output: name a file or a folder with -o".into()));
    }
    if format == OutputFormat::BlktraceCpus {
        return Err(UsageError("several files cannot go to standard output: name them with -o".into()));
    }
    if format.is_binary() && io::stdout().is_terminal() {
        return Err(UsageError("binary records are not for a terminal: name a file with -o".into()));
    }
    Ok(())
}

fn check_file(file: &Path, format: OutputFormat, read: &[PathBuf]) -> Result<()> {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if matches!(extension, "gz" | "zst" | "xz") {
        let name = file.display();
        let what = format!("{name}: the output is not compressed: write to a pipe, as in `... | zstd > {name}`");
        return Err(UsageError(what).into());
    }
    if let Some(same) = read.iter().find(|read| is_same(read, file, format)) {
        bail!("{}: it is an input and would be overwritten: write to another file", same.display());
    }
    refuse_in_use(file)
}

/// Fails if a file or block device is in use, before a trace is read for it.
///
/// # Errors
/// [`InUse`] with the use.
pub fn refuse_in_use(file: &Path) -> Result<()> {
    match find_use(&Root::machine(), file) {
        Some(found) => Err(InUse { path: file.to_owned(), found: Box::new(found) }.into()),
        None => Ok(()),
    }
}

/// Writes a whole file, or to a block device that is not in use.
///
/// # Errors
/// The failed operation with the file's name.
pub fn write_file(file: &Path, contents: &[u8]) -> Result<()> {
    let written = create(file).and_then(|mut output| output.write_all(contents));
    written.with_context(|| format!("{} cannot be written", file.display()))
}

fn output_failed(error: io::Error, file: Option<&Path>) -> Error {
    match file {
        Some(file) => Error::new(error).context(file.display().to_string()),
        None => OutputError(error).into(),
    }
}

/// Returns true if writing `file` would overwrite the input `read`.
fn is_same(read: &Path, file: &Path, format: OutputFormat) -> bool {
    let same =
        |file: &Path| matches!((fs::canonicalize(read), fs::canonicalize(file)), (Ok(read), Ok(file)) if read == file);
    if format == OutputFormat::BlktraceCpus {
        // Any file NAME.blktrace.N.
        let mut beginning = file.as_os_str().to_owned();
        beginning.push(".blktrace.");
        let name = read.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem =
            Path::new(&beginning).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return name.starts_with(&stem) && same(&file.with_file_name(&name));
    }
    same(file)
}
