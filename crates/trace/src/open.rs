//! Opens traces from files or streams, of any format, compressed or not.

mod compression;
mod detect;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::alibaba::Alibaba;
use crate::batch::Batch;
use crate::blkparse;
use crate::blkreplay::Blkreplay;
use crate::blktrace;
use crate::csv::Csv;
use crate::ftrace::Ftrace;
use crate::iolog::{self, Iolog};
use crate::merge::Merge;
use crate::mqsim::Mqsim;
use crate::msr::{self, Msr};
use crate::source::{Format, InputPosition, Notice, ReadError, Source};
use crate::stream::{Input, Stream};
use crate::text::{LineFormat, TextSource, TimeUnit};
use compression::Compression;

/// Number of bytes at the start of an input that format detection examines.
const HEAD_BYTES: usize = 64 << 10;

/// Properties of inputs that override detection.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Format of the inputs; None detects it.
    pub format: Option<Format>,
    /// Unit of the times in a text; None uses the unit of the format.
    pub time_unit: Option<TimeUnit>,
    /// Sector size of a text in bytes: a power of two from 512 to 65,536; None means 512.
    pub sector_bytes: Option<u32>,
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
    let mut opened = Opened::default();
    let mut found: Option<(Format, String)> = None;
    let mut heads = Vec::new();
    let mut last_name = String::from("-");
    for input in inputs {
        let stream = stream_of(input)?;
        last_name.clone_from(&stream.name);
        let Some((stream, head)) = opened.unpack(stream)? else { continue };
        let format = match options.format {
            Some(format) => format,
            None => detect::detect(&head).map_err(|what| ReadError::Unknown { file: stream.name.clone(), what })?,
        };
        match &found {
            Some((other, file)) if *other != format => {
                let what =
                    format!("this is {}, but {file} is {}: one trace has one format", format.title(), other.title());
                return Err(ReadError::Bad { file: stream.name, position: InputPosition::All, what });
            }
            Some(_) => {}
            None => found = Some((format, stream.name.clone())),
        }
        heads.push((stream, head));
    }
    let Some((format, _)) = found else {
        return Err(ReadError::Unknown { file: last_name, what: "it is empty".to_owned() });
    };
    opened.source = Some(source_of(format, heads, options)?);
    Ok(Box::new(opened))
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
    mut heads: Vec<(Stream, Vec<u8>)>,
    options: &OpenOptions,
) -> Result<Box<dyn Source + Send>, ReadError> {
    if format == Format::Blktrace {
        return Ok(Box::new(blktrace::Reader::new(heads.into_iter().map(|(stream, _)| stream).collect())));
    }
    let shared = Shared::default();
    if heads.len() == 1
        && let Some((stream, head)) = heads.pop()
    {
        return reader_of(format, stream, &head, options, &shared);
    }
    let sources = heads.into_iter().map(|(stream, head)| Ok((reader_of(format, stream, &head, options, &shared)?, 0)));
    Ok(Box::new(Merge::new(sources.collect::<Result<_, ReadError>>()?)))
}

/// Names that the readers of related inputs share, so that a name means the same device in all of
/// them.
#[derive(Default)]
struct Shared {
    files: iolog::DeviceNames,
    servers: msr::Servers,
}

/// Creates the reader of one input.
fn reader_of(
    format: Format,
    stream: Stream,
    head: &[u8],
    options: &OpenOptions,
    shared: &Shared,
) -> Result<Box<dyn Source + Send>, ReadError> {
    let unit = options.time_unit;
    let sector_bytes = options.sector_bytes.unwrap_or(512);
    let file = stream.name.clone();
    let invalid = |what| ReadError::Bad { file, position: InputPosition::All, what };
    if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
        return Err(invalid(format!(
            "sectors of {sector_bytes} bytes: a power of two from 512 to 65536 would be right"
        )));
    }
    match format {
        Format::Blktrace => Ok(Box::new(blktrace::Reader::new(vec![stream]))),
        Format::Blkparse => Ok(Box::new(blkparse::Reader::new(stream))),
        Format::Ftrace => Ok(text(stream, (Ftrace::default(), None))),
        Format::Iolog => Ok(text(stream, Iolog::new(head, &shared.files, unit).map_err(invalid)?)),
        Format::Msr => Ok(text(stream, Msr::new(head, &shared.servers, unit).map_err(invalid)?)),
        Format::Alibaba => Ok(text(stream, Alibaba::new(head, unit).map_err(invalid)?)),
        Format::Mqsim => Ok(text(stream, Mqsim::new(head, unit, sector_bytes).map_err(invalid)?)),
        Format::Blkreplay => Ok(text(stream, (Blkreplay::new(unit, sector_bytes), None))),
        Format::Csv => Ok(text(stream, (Csv::default(), None))),
    }
}

/// Creates the reader of a text, with a notice of its assumptions.
fn text<F: LineFormat + Send + 'static>(
    stream: Stream,
    (format, remark): (F, Option<String>),
) -> Box<dyn Source + Send> {
    let mut text = TextSource::new(stream, format);
    if let Some(remark) = remark {
        text.add_notice(remark);
    }
    Box::new(text)
}

/// An opened trace: its source, and notices about the inputs.
#[derive(Default)]
struct Opened {
    source: Option<Box<dyn Source + Send>>,
    notices: Vec<Notice>,
    /// For each compressed input: its name, and a flag that is set when the input ends early.
    cuts: VecDeque<(String, Arc<AtomicBool>)>,
}

impl Opened {
    /// Removes the compression. An empty input only causes a notice.
    fn unpack(&mut self, stream: Stream) -> Result<Option<(Stream, Vec<u8>)>, ReadError> {
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
        Ok(Some((Stream { name, read }, head)))
    }
}

impl Source for Opened {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        match &mut self.source {
            Some(source) => source.next(batch),
            None => {
                batch.clear();
                Ok(())
            }
        }
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
