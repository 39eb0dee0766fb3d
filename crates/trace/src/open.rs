//! Opens traces: files or streams, compressed or not, of any format.

mod compression;
mod detect;

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
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
use crate::source::{Format, Notice, Place, ReadError, Source};
use crate::text::{LineFormat, Text, TimeUnit};
use compression::Compression;

/// So much of an input is looked at to tell what it is, in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// Something to read.
#[derive(Debug)]
pub enum Input {
    /// A file.
    Path(PathBuf),
    /// Bytes that come from somewhere else.
    Stream(Stream),
}

/// Bytes with a name.
pub struct Stream {
    /// What it is called in errors.
    pub name: String,
    /// The bytes.
    pub read: Box<dyn Read + Send>,
}

/// What is told of inputs, as far as they do not tell themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The format, where it should not be found out.
    pub format: Option<Format>,
    /// What the times of a text count.
    pub time_unit: Option<TimeUnit>,
    /// The size of the sectors in which a text counts, in bytes; 512 unless told, a power of two from 512 to 65,536.
    pub sector_bytes: Option<u32>,
}

/// Opens a trace that lies in one or more inputs of one format: files of several CPUs, disks or servers, which are merged by time.
///
/// Memory is bounded whatever the inputs hold: an input that only unpacks to zeros is an error after its first 64 KiB.
///
/// # Errors
/// When an input cannot be read, is of no known format or of another than the others, or leaves its unit of time open.
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
                return Err(ReadError::Bad { file: stream.name, place: Place::All, what });
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

/// The reader of a format over all inputs.
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

/// What readers of inputs that belong together share, so that the same name means the same device in all of them.
#[derive(Default)]
struct Shared {
    files: iolog::Files,
    servers: msr::Servers,
}

/// The reader of one input.
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
    let unclear = |what| ReadError::Bad { file, place: Place::All, what };
    if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
        return Err(unclear(format!(
            "sectors of {sector_bytes} bytes: a power of two from 512 to 65536 would be right"
        )));
    }
    match format {
        Format::Blktrace => Ok(Box::new(blktrace::Reader::new(vec![stream]))),
        Format::Blkparse => Ok(Box::new(blkparse::Reader::new(stream))),
        Format::Ftrace => Ok(text(stream, (Ftrace::default(), None))),
        Format::Iolog => Ok(text(stream, Iolog::new(head, &shared.files, unit).map_err(unclear)?)),
        Format::Msr => Ok(text(stream, Msr::new(head, &shared.servers, unit).map_err(unclear)?)),
        Format::Alibaba => Ok(text(stream, Alibaba::new(head, unit).map_err(unclear)?)),
        Format::Mqsim => Ok(text(stream, Mqsim::new(head, unit, sector_bytes).map_err(unclear)?)),
        Format::Blkreplay => Ok(text(stream, (Blkreplay::new(unit, sector_bytes), None))),
        Format::Csv => Ok(text(stream, (Csv::default(), None))),
    }
}

/// A text, with what its reader assumes of it.
fn text<F: LineFormat + Send + 'static>(
    stream: Stream,
    (format, remark): (F, Option<String>),
) -> Box<dyn Source + Send> {
    let mut text = Text::new(stream, format);
    if let Some(remark) = remark {
        text.tell(remark);
    }
    Box::new(text)
}

/// What was opened: the source, and what was noticed of the inputs themselves.
#[derive(Default)]
struct Opened {
    source: Option<Box<dyn Source + Send>>,
    notices: Vec<Notice>,
    /// Of each compressed input: its name, and whether it turned out to end too early.
    cuts: VecDeque<(String, Arc<AtomicBool>)>,
}

impl Opened {
    /// Takes the compression away; an input without a byte is only noticed.
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
            self.notices.push(Notice { file: name, place: Place::All, what });
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
                notices.push(Notice { file: name.clone(), place: Place::All, what });
            }
            !is_cut
        });
        notices
    }
}

impl Stream {
    /// Reads what there is now, at most as much as the buffer holds; 0 at the end.
    ///
    /// # Errors
    /// The system's, with the name.
    pub(crate) fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            match self.read.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::Io { file: self.name.clone(), source }),
                Ok(read) => return Ok(read),
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.name)
    }
}
