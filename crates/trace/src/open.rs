//! Opens traces from files or streams, of any format, compressed or not.

mod compression;
mod detect;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::alibaba::Alibaba;
use crate::batch::Batch;
use crate::biosnoop::Biosnoop;
use crate::blkparse;
use crate::blkreplay::Blkreplay;
use crate::blktrace;
use crate::cloudphysics;
use crate::columns::{ColumnSpec, Table};
use crate::csv::Csv;
use crate::disksim::Disksim;
use crate::fio_log::FioLog;
use crate::fiu::Fiu;
use crate::ftrace::Ftrace;
use crate::io_tracer::IoTracer;
use crate::iolog::Iolog;
use crate::k5cloud::K5cloud;
use crate::lcs::Lcs;
use crate::merge::Merge;
use crate::mqsim::Mqsim;
use crate::msr::{self, Msr};
use crate::offset_unit::OffsetUnit;
use crate::oracle_general::OracleGeneral;
use crate::parquet;
use crate::places::ObjectPlaces;
use crate::records::{RecordFormat, RecordSource};
use crate::source::{Format, InputPosition, Notice, ReadError, Source};
use crate::spc::Spc;
use crate::stream::{Input, Stream};
use crate::systor::Systor;
use crate::tectonic::{self, Tectonic};
use crate::tencent::Tencent;
use crate::text::{LineFormat, SharedNames, TextOptions, TextSource, TimeUnit};
use crate::thesios::Thesios;
use crate::trace_dat;
use compression::Compression;

/// Number of bytes at the start of an input that format detection examines.
const HEAD_BYTES: usize = 64 << 10;

/// Properties of inputs that override detection.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Format of the inputs; None detects it.
    pub format: Option<Format>,
    /// Unit of the times in a text; None uses the unit of the format.
    pub time_unit: Option<TimeUnit>,
    /// Sector size of a text in bytes: a power of two from 512 to 65,536; None means 512.
    pub sector_bytes: Option<u32>,
    /// Makes each line of a text that cannot be read an error; otherwise such lines are skipped up
    /// to a limit ([`TextOptions::is_strict`]).
    pub is_strict: bool,
    /// Unit of the offsets in formats that exist with more than one; None detects it.
    pub offset_unit: Option<OffsetUnit>,
    /// Columns of a table of another format; the format is [`Format::Columns`] then.
    pub columns: Option<ColumnSpec>,
}

/// The detected format of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// Name of the input.
    pub file: String,
    /// Tool whose compression was removed: `gzip`, `xz` or `zstd`.
    pub compression: Option<&'static str>,
    /// The format.
    pub format: Format,
    /// The evidence for the format, in words.
    pub reason: String,
}

/// An input without its compression.
struct UnpackedInput {
    stream: Stream,
    /// The first bytes.
    head: Vec<u8>,
    /// Path of an uncompressed regular file.
    path: Option<PathBuf>,
    /// Set when the compressed input ends early; None for an uncompressed input.
    cut: Option<Arc<AtomicBool>>,
}

/// Opens a trace that consists of one or more inputs of one format: files of several CPUs, disks or
/// servers, which are merged by time.
///
/// Memory is bounded for any input: compressed zeros fail after the first 64 KiB.
///
/// # Errors
/// Fails if an input cannot be read, has an unknown format or another format than the others, or
/// has times of an undetermined unit.
pub fn open(inputs: Vec<Input>, options: &OpenOptions) -> Result<Box<dyn Source + Send>, ReadError> {
    Ok(Box::new(open_detected(inputs, options)?))
}

/// Opens a trace as [`open`] does; the result also has the format of each input.
///
/// # Errors
/// As [`open`].
pub fn open_detected(inputs: Vec<Input>, options: &OpenOptions) -> Result<OpenTrace, ReadError> {
    let mut opened = OpenTrace::default();
    let mut unpacked = Vec::new();
    let mut last_name = String::from("-");
    for input in inputs {
        let path = match &input {
            Input::Path(path) => Some(path.clone()),
            Input::Stream(_) => None,
        };
        let stream = stream_of(input)?;
        last_name.clone_from(&stream.name);
        let Some((stream, head, compression)) = opened.unpack(stream)? else { continue };
        let cut = compression.and(opened.cuts.back()).map(|(_, cut)| Arc::clone(cut));
        let found = match (options.format, &options.columns) {
            (None | Some(Format::Columns), Some(_)) => Ok((Format::Columns, "its columns were described".to_owned())),
            (Some(format), Some(_)) => Err(format!("{} has its own columns: describe none", format.title())),
            (Some(format), None) => Ok((format, "it was specified".to_owned())),
            (None, None) => detect::detect(&head),
        };
        let (format, reason) = found.map_err(|what| ReadError::Unknown { file: stream.name.clone(), what })?;
        if let Some(other) = opened.detections.first().filter(|other| other.format != format) {
            let (title, other_title) = (format.title(), other.format.title());
            let what = format!("this is {title}, but {} is {other_title}: one trace has one format", other.file);
            return Err(ReadError::Bad { file: stream.name, position: InputPosition::All, what });
        }
        opened.detections.push(Detection { file: stream.name.clone(), compression, format, reason });
        let path = path.filter(|path| compression.is_none() && is_regular(path));
        // A trace can have thousands of Parquet files, which are opened again one after the other.
        let stream = match path {
            Some(_) if format == Format::Parquet => Stream { name: stream.name, read: Box::new(io::empty()) },
            _ => stream,
        };
        unpacked.push(UnpackedInput { stream, head, path, cut });
    }
    let Some(format) = opened.detections.first().map(|first| first.format) else {
        return Err(ReadError::Unknown { file: last_name, what: "it is empty".to_owned() });
    };
    opened.source = Some(source_of(format, unpacked, options)?);
    Ok(opened)
}

fn is_regular(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

fn stream_of(input: Input) -> Result<Stream, ReadError> {
    match input {
        Input::Stream(stream) => Ok(stream),
        Input::Path(path) => {
            let name = path.display().to_string();
            match File::open(&path) {
                Ok(file) => Ok(Stream { name, read: Box::new(file) }),
                Err(source) => Err(ReadError::Io { file: name, source }),
            }
        }
    }
}

/// Creates the reader of a format for all inputs.
fn source_of(
    format: Format,
    mut inputs: Vec<UnpackedInput>,
    options: &OpenOptions,
) -> Result<Box<dyn Source + Send>, ReadError> {
    if format == Format::Blktrace {
        return Ok(Box::new(blktrace::Reader::new(inputs.into_iter().map(|input| input.stream).collect())));
    }
    if format == Format::Parquet {
        return parquet::open_set(inputs.into_iter().map(parquet_input).collect::<Result<_, _>>()?);
    }
    let shared = Shared::default();
    if inputs.len() == 1
        && let Some(input) = inputs.pop()
    {
        return reader_of(format, input, options, &shared);
    }
    let sources = inputs.into_iter().map(|input| Ok((reader_of(format, input, options, &shared)?, 0)));
    Ok(Box::new(Merge::new(sources.collect::<Result<_, ReadError>>()?)))
}

/// Returns the name and the contents of a Parquet file; those of a stream are read into memory.
fn parquet_input(
    UnpackedInput { stream, head, path, .. }: UnpackedInput,
) -> Result<(String, parquet::Contents), ReadError> {
    let name = stream.name.clone();
    Ok((
        name,
        match path {
            Some(path) => parquet::Contents::Path(path),
            None if !head.starts_with(hoistway_columnar::MAGIC) => parquet::Contents::Bytes(Some(head)),
            None => parquet::Contents::Bytes(Some(stream.read_whole()?)),
        },
    ))
}

/// Names that the readers of related inputs share, so that a name means the same device in all of
/// them.
#[derive(Default)]
struct Shared {
    names: SharedNames,
    servers: msr::Servers,
    processes: SharedNames,
    places: ObjectPlaces,
}

impl Shared {
    fn tectonic(&self) -> tectonic::SharedState {
        tectonic::SharedState { hosts: self.names.clone(), users: self.processes.clone(), places: self.places.clone() }
    }
}

/// Creates the reader of one input.
fn reader_of(
    format: Format,
    input: UnpackedInput,
    options: &OpenOptions,
    shared: &Shared,
) -> Result<Box<dyn Source + Send>, ReadError> {
    let UnpackedInput { stream, head, path, cut } = input;
    let file = stream.name.clone();
    let invalid = |what: String| ReadError::Bad { file: file.clone(), position: InputPosition::All, what };
    let sector_bytes = options.sector_bytes.unwrap_or(512);
    if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
        return Err(invalid(format!(
            "sectors of {sector_bytes} bytes: a power of two from 512 to 65536 would be right"
        )));
    }
    let reading = TextOptions { is_strict: options.is_strict, cut };
    match format {
        Format::Blktrace => Ok(Box::new(blktrace::Reader::new(vec![stream]))),
        Format::Blkparse => Ok(Box::new(blkparse::Reader::new(stream).with_options(&reading))),
        Format::TraceDat => Ok(Box::new(match path.map(File::open) {
            Some(Ok(seekable)) => trace_dat::Reader::new(&file, Box::new(seekable))?,
            Some(Err(source)) => return Err(ReadError::Io { file, source }),
            None => trace_dat::Reader::of_stream(stream)?,
        })),
        Format::Vscsi => {
            let version = cloudphysics::Version::of(&head).ok_or_else(|| {
                invalid("it has no vscsi records: 1 or 2 in the upper byte of the version would be right".to_owned())
            })?;
            Ok(Box::new(RecordSource::new(stream, cloudphysics::Records::new(version))))
        }
        Format::OracleGeneral => Ok(records(stream, OracleGeneral::new(&head, options.offset_unit, &shared.places))),
        Format::Lcs => {
            let lcs = Lcs::new(&head, options.offset_unit, &shared.places, &shared.names).map_err(invalid)?;
            Ok(records(stream, lcs))
        }
        format => text_reader_of(format, stream, &head, options, (shared, &reading)).map_err(invalid),
    }
}

/// Creates the reader of one text.
fn text_reader_of(
    format: Format,
    stream: Stream,
    head: &[u8],
    options: &OpenOptions,
    (shared, reading): (&Shared, &TextOptions),
) -> Result<Box<dyn Source + Send>, String> {
    let (unit, sector_bytes) = (options.time_unit, options.sector_bytes.unwrap_or(512));
    Ok(match format {
        Format::Ftrace | Format::Perf => text(stream, reading, (Ftrace::default(), None)),
        Format::Biosnoop => text(stream, reading, Biosnoop::new(head, &shared.names)?),
        Format::Iolog => text(stream, reading, Iolog::new(head, &shared.names, unit)?),
        Format::FioLog => {
            let log = FioLog::new(&stream.name, head, unit)?;
            text(stream, reading, log)
        }
        Format::Msr => text(stream, reading, Msr::new(head, &shared.servers, unit)?),
        Format::Alibaba => text(stream, reading, Alibaba::new(head, unit)?),
        Format::Spc => text(stream, reading, (Spc::new(unit, sector_bytes), None)),
        Format::Tencent => text(stream, reading, Tencent::new(head, unit, sector_bytes, options.offset_unit)?),
        Format::Systor => text(stream, reading, (Systor::new(unit), None)),
        Format::Fiu => text(stream, reading, Fiu::new(head, unit, sector_bytes)?),
        Format::CloudPhysics => text(stream, reading, cloudphysics::Table::new(head, unit, sector_bytes)?),
        Format::Disksim => text(stream, reading, (Disksim::new(unit, sector_bytes), None)),
        Format::Mqsim => text(stream, reading, Mqsim::new(head, unit, sector_bytes)?),
        Format::Blkreplay => text(stream, reading, (Blkreplay::new(unit, sector_bytes), None)),
        Format::Csv => text(stream, reading, (Csv::default(), None)),
        Format::Thesios => text(stream, reading, Thesios::new(head, &shared.places, &shared.processes)?),
        Format::Tectonic => text(stream, reading, Tectonic::new(head, &shared.tectonic())?),
        Format::Baleen => text(stream, reading, Tectonic::baleen(&shared.tectonic())),
        Format::K5cloud => text(stream, reading, (K5cloud::new(unit, &shared.names), None)),
        Format::IoTracer => text(stream, reading, IoTracer::new(head, &shared.names)?),
        Format::Columns => {
            let spec = options.columns.as_ref();
            let spec = spec
                .ok_or("its columns must be described, as in --columns time=1:s,op=2,offset=3:sectors,size=4:bytes")?;
            text(stream, reading, Table::new(spec, head, sector_bytes, (&shared.names, &shared.processes))?)
        }
        Format::Blktrace
        | Format::Blkparse
        | Format::TraceDat
        | Format::Vscsi
        | Format::Parquet
        | Format::OracleGeneral
        | Format::Lcs => {
            return Err(format!("{} has a reader of its own", format.title()));
        }
    })
}

/// Creates the reader of a text, with a notice of its assumptions.
fn text<F: LineFormat + Send + 'static>(
    stream: Stream,
    reading: &TextOptions,
    (format, remark): (F, Option<String>),
) -> Box<dyn Source + Send> {
    let mut text = TextSource::new(stream, format).with_options(reading);
    if let Some(remark) = remark {
        text.add_notice(remark);
    }
    Box::new(text)
}

/// Creates the reader of binary records, with a notice of its assumptions.
fn records<F: RecordFormat + Send + 'static>(
    stream: Stream,
    (format, remark): (F, Option<String>),
) -> Box<dyn Source + Send> {
    let mut records = RecordSource::new(stream, format);
    if let Some(remark) = remark {
        records.add_notice(remark);
    }
    Box::new(records)
}

/// An opened trace: its source, the formats of its inputs, and notices about them.
#[derive(Default)]
pub struct OpenTrace {
    source: Option<Box<dyn Source + Send>>,
    detections: Vec<Detection>,
    notices: Vec<Notice>,
    /// For each compressed input: its name, and a flag that is set when the input ends early.
    cuts: VecDeque<(String, Arc<AtomicBool>)>,
}

/// An input, its first bytes and the tool of its compression.
type Unpacked = (Stream, Vec<u8>, Option<&'static str>);

impl OpenTrace {
    /// The formats of the inputs that are not empty, in their order.
    pub fn detections(&self) -> &[Detection] {
        &self.detections
    }

    /// Removes the compression. An empty input only causes a notice.
    fn unpack(&mut self, stream: Stream) -> Result<Option<Unpacked>, ReadError> {
        let Stream { name, read } = stream;
        let failed = |source: io::Error| ReadError::Io { file: name.clone(), source };
        let (head, mut read) = compression::peek(read, 6).map_err(failed)?;
        let compression = Compression::of(&head);
        if let Compression::Other(tool) = compression {
            let what = format!("it is compressed in a way that is not read: unpack it first ({tool})");
            return Err(ReadError::Unknown { file: name, what });
        }
        let cut = Arc::default();
        read = compression.decode(read, &cut).map_err(failed)?;
        let (head, read) = compression::peek(read, HEAD_BYTES).map_err(failed)?;
        if compression != Compression::None {
            if Compression::of(&head) != Compression::None {
                let what = "it is compressed twice: unpack it once".to_owned();
                return Err(ReadError::Unknown { file: name, what });
            }
            self.cuts.push_back((name.clone(), cut));
        }
        if head.is_empty() {
            let what = "it is empty: nothing was recorded here".to_owned();
            self.notices.push(Notice { file: name, position: InputPosition::All, what });
            return Ok(None);
        }
        Ok(Some((Stream { name, read }, head, compression.tool())))
    }
}

impl std::fmt::Debug for OpenTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenTrace of {:?}", self.detections)
    }
}

impl Source for OpenTrace {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        match &mut self.source {
            Some(source) => source.next(batch),
            None => {
                batch.clear();
                Ok(())
            }
        }
    }

    fn skipped_lines(&self) -> u64 {
        self.source.as_ref().map_or(0, |source| source.skipped_lines())
    }

    fn notices(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.notices);
        notices.extend(self.source.iter_mut().flat_map(|source| source.notices()));
        self.cuts.retain(|(name, cut)| {
            let is_cut = cut.load(Ordering::Relaxed);
            if is_cut {
                let what = "the compressed file ends too early: what could be unpacked was read".to_owned();
                notices.push(Notice { file: name.clone(), position: InputPosition::All, what });
            }
            !is_cut
        });
        notices
    }
}
