//! Reads blkparse's text.

use std::fmt;

use crate::batch::Batch;
use crate::event::{Action, Event, Rwbs};
use crate::process_names::ProcessNames;
use crate::source::{Notice, ReadError, Source};
use crate::stream::Stream;
use crate::text::{
    LineError, LineFormat, LineOutput, TextOptions, TextSource, decimal_ns, device_of, number, parse_rwbs, shown,
};

/// One second in ps.
const SECOND_PS: u64 = 1_000_000_000_000;

/// Reads blkparse's text in its default format. Process names become events of [`Action::Process`].
/// The summary is skipped.
///
/// The text is incomplete: times count from its first event, lengths below a sector are missing,
/// flushes without data have no sector, messages have no process id, and a split has only the lower
/// half of its sector.
pub struct Reader(TextSource<Lines>);

impl Reader {
    /// Creates a reader of an input.
    pub fn new(stream: Stream) -> Reader {
        Reader(TextSource::new(stream, Lines::default()))
    }

    /// Sets how the text is read.
    #[must_use]
    pub(crate) fn with_options(self, options: &TextOptions) -> Reader {
        Reader(self.0.with_options(options))
    }
}

impl Source for Reader {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.0.next(batch)
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.0.notices()
    }

    fn skipped_lines(&self) -> u64 {
        self.0.skipped_lines()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Default)]
struct Lines {
    names: ProcessNames,
}

impl LineFormat for Lines {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let mut fields = Cursor(line);
        let device = fields.field();
        if !device.first().is_some_and(u8::is_ascii_digit) || !device.contains(&b',') {
            if !is_of_summary(line) {
                out.notices.count("lines without an event were skipped", out.position, || shown(line));
            }
            return Ok(false);
        }
        let mut event = Event { device: device_of(device, b',')?, ..Event::new(0, Action::Queue) };
        event.cpu = number(fields.want("the CPU")?, "the CPU")?;
        event.sequence = sequence_of(fields.want("the sequence number")?)?;
        event.time_ns = time_of(fields.want("the time")?)?;
        event.pid = number(fields.want("the process")?, "the process")?;
        event.action = action_of(fields.want("the action")?)?;
        event.op = parse_rwbs(fields.want("the operation")?)?;
        let tail = LineTail::of(&mut event, fields.rest())?;
        if let Some(name) = tail.name.filter(|name| *name != b"(null)") {
            self.name(&event, name, out.batch);
        }
        out.batch.push_with(event, tail.payload.as_slice());
        Ok(true)
    }
}

impl Lines {
    /// Emits the name of a process if it is new.
    fn name(&mut self, event: &Event, name: &[u8], batch: &mut Batch) {
        if self.names.set(event.pid, name) {
            let Event { time_ns, pid, cpu, device, .. } = *event;
            batch.push_with(Event { pid, cpu, device, ..Event::new(time_ns, Action::Process) }, name);
        }
    }
}

/// The part of a line after its head.
#[derive(Default)]
struct LineTail<'a> {
    name: Option<&'a [u8]>,
    payload: Payload<'a>,
}

/// A payload, borrowed from the line or built from its fields.
#[derive(Default)]
enum Payload<'a> {
    #[default]
    None,
    Text(&'a [u8]),
    Number([u8; 8]),
    Remap([u8; 16]),
    Command(Vec<u8>),
}

impl Payload<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Payload::None => &[],
            Payload::Text(text) => text,
            Payload::Number(number) => number,
            Payload::Remap(remap) => remap,
            Payload::Command(bytes) => bytes,
        }
    }
}

impl<'a> LineTail<'a> {
    fn of(event: &mut Event, rest: &'a [u8]) -> Result<LineTail<'a>, String> {
        let mut fields = Cursor(rest);
        match event.action {
            // The first blank is a separator; further blanks belong to the message.
            Action::Message => {
                Ok(LineTail { name: None, payload: Payload::Text(rest.strip_prefix(b" ").unwrap_or(rest)) })
            }
            Action::Remap => Ok(LineTail { name: None, payload: remap_of(event, &mut fields)? }),
            Action::Complete | Action::Requeue => {
                let payload = extent_of(event, &mut fields)?;
                event.error = number(in_brackets(fields.rest())?, "the error")?;
                Ok(LineTail { name: None, payload })
            }
            Action::Unplug | Action::UnplugTimer => {
                let rest = rest.trim_ascii();
                let at = memchr::memmem::rfind(rest, b"] ").ok_or("expected a name in brackets and a number")?;
                let count: u64 = number(rest.get(at + 2..).unwrap_or_default(), "the number of requests")?;
                let name = in_brackets(rest.get(..=at).unwrap_or_default())?;
                Ok(LineTail { name: Some(name), payload: Payload::Number(count.to_be_bytes()) })
            }
            Action::Split => {
                event.sector = number(fields.want("the sector")?, "the sector")?;
                fields.literal("/")?;
                let at: u64 = number(fields.want("the sector of the split")?, "the sector of the split")?;
                let name = in_brackets(fields.rest())?;
                Ok(LineTail { name: Some(name), payload: Payload::Number(at.to_be_bytes()) })
            }
            _ => {
                let payload = extent_of(event, &mut fields)?;
                Ok(LineTail { name: Some(in_brackets(fields.rest())?), payload })
            }
        }
    }
}

/// Parses `sector + sectors`, `sector` alone, the length of a command in bytes with its bytes in
/// parentheses, or nothing.
fn extent_of<'a>(event: &mut Event, fields: &mut Cursor<'a>) -> Result<Payload<'a>, String> {
    if !fields.starts_with(b"[") && !fields.starts_with(b"(") {
        let first: u64 = number(fields.want("the sector")?, "the sector")?;
        if fields.starts_with(b"+") {
            fields.literal("+")?;
            event.sector = first;
            event.bytes = bytes_of(fields.want("the length")?)?;
        } else if matches!(event.action, Action::Complete | Action::Requeue) {
            event.sector = first;
        } else {
            event.bytes = u32::try_from(first).map_err(|_| format!("a command of {first} bytes is too long"))?;
            event.op = event.op.with(Rwbs::PASS_THROUGH);
        }
    } else if event.action == Action::Complete || event.action == Action::Requeue {
        event.op = event.op.with(Rwbs::PASS_THROUGH);
    }
    if !fields.starts_with(b"(") {
        return Ok(Payload::None);
    }
    let rest = fields.rest().trim_ascii_start();
    let end = memchr::memchr(b')', rest).ok_or("the parenthesis is not closed")?;
    let (inside, behind) = rest.split_at(end);
    fields.0 = behind.get(1..).unwrap_or_default();
    if !event.op.has(Rwbs::PASS_THROUGH) {
        // The time since the submission or issue, of `blkparse -t`; the events already contain it.
        return Ok(Payload::None);
    }
    let inside = inside.get(1..).unwrap_or_default();
    let bytes = inside.split(|byte| *byte == b' ').filter(|part| *part != b"..").map(|part| {
        let text = std::str::from_utf8(part).ok().filter(|part| part.len() == 2);
        let byte = text.and_then(|text| u8::from_str_radix(text, 16).ok());
        byte.ok_or_else(|| format!("{} is no byte of a command: expected two hexadecimal digits", shown(part)))
    });
    Ok(Payload::Command(bytes.collect::<Result<_, _>>()?))
}

/// Parses `sector + sectors <- (major,minor) sector`.
fn remap_of<'a>(event: &mut Event, fields: &mut Cursor<'a>) -> Result<Payload<'a>, String> {
    event.sector = number(fields.want("the sector")?, "the sector")?;
    fields.literal("+")?;
    event.bytes = bytes_of(fields.want("the length")?)?;
    fields.literal("<-")?;
    let from = fields.want("the device from which it was mapped")?;
    let inside = from.strip_prefix(b"(").and_then(|from| from.strip_suffix(b")"));
    let from = device_of(inside.ok_or_else(|| format!("{} is no device in parentheses", shown(from)))?, b',')?;
    let sector: u64 = number(fields.want("the sector there")?, "the sector there")?;
    let mut payload = [0; 16];
    payload[..4].copy_from_slice(&from.0.to_be_bytes());
    payload[4..8].copy_from_slice(&event.device.0.to_be_bytes());
    payload[8..].copy_from_slice(&sector.to_be_bytes());
    Ok(Payload::Remap(payload))
}

fn bytes_of(field: &[u8]) -> Result<u32, String> {
    let sectors: u32 = number(field, "the length in sectors")?;
    sectors.checked_mul(512).ok_or_else(|| format!("{sectors} sectors exceed the maximum of a request, 8388607"))
}

/// Returns the text between the first and the last bracket.
fn in_brackets(rest: &[u8]) -> Result<&[u8], String> {
    let rest = rest.trim_ascii();
    let inside = rest.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    inside.ok_or_else(|| format!("found {} instead of a name or an error in brackets", shown(rest)))
}

/// Parses a sequence number, which blkparse prints with a sign.
fn sequence_of(field: &[u8]) -> Result<u32, String> {
    match field.strip_prefix(b"-") {
        Some(digits) => Ok(number::<u32>(digits, "the sequence number")?.wrapping_neg()),
        None => number(field, "the sequence number"),
    }
}

/// Parses seconds with a fraction. The usual form with 9 decimals has a fast path.
fn time_of(field: &[u8]) -> Result<u64, String> {
    if let Some((seconds, rest)) = field.split_at_checked(field.len().saturating_sub(10))
        && let (Some((b'.', digits)), true) = (rest.split_first(), seconds.len() < 10)
        && let (Ok(seconds), Ok(ns)) = (number::<u64>(seconds, ""), number::<u64>(digits, ""))
    {
        return Ok(seconds * 1_000_000_000 + ns);
    }
    decimal_ns(field, SECOND_PS, "the time")
}

fn action_of(field: &[u8]) -> Result<Action, String> {
    let is_printed = |action: &Action| !matches!(action, Action::Process | Action::Timestamp | Action::DriverData);
    let found = Action::ALL.into_iter().filter(is_printed).find(|action| action.letters().as_bytes() == field);
    // Some versions of the manual page list T for UT.
    let found = found.or((field == b"T").then_some(Action::UnplugTimer));
    found.ok_or_else(|| format!("{} is no action: expected one of Q M F G S R D C P U UT I X B A m", shown(field)))
}

/// Returns true if a line belongs to the summary.
fn is_of_summary(line: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 16] = [
        b"CPU",
        b"Total (",
        b"Throughput",
        b"Events",
        b"Skips",
        b"Input file",
        b"Reads ",
        b"Read ",
        b"Writes ",
        b"Write ",
        b"PC Read",
        b"PC Write",
        b"IO unplugs",
        b"Timer unplugs",
        b"cpu ",
        b"discarded traces",
    ];
    let line = line.trim_ascii();
    line.is_empty() || BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
}

/// The unparsed part of a line.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// Returns the next field between blanks; empty at the end.
    fn field(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let rest = rest.get(rest.iter().take_while(|byte| **byte == b' ').count()..).unwrap_or_default();
        let len = rest.iter().take_while(|byte| **byte != b' ').count();
        let (field, rest) = rest.split_at_checked(len).unwrap_or_default();
        self.0 = rest;
        field
    }

    fn want(&mut self, what: &str) -> Result<&'a [u8], String> {
        match self.field() {
            b"" => Err(format!("the line ends where {what} should be")),
            field => Ok(field),
        }
    }

    fn literal(&mut self, what: &str) -> Result<(), String> {
        match self.field() {
            field if field == what.as_bytes() => Ok(()),
            field => Err(format!("found {} instead of {what}", shown(field))),
        }
    }

    fn starts_with(&self, what: &[u8]) -> bool {
        self.0.trim_ascii_start().starts_with(what)
    }

    fn rest(&self) -> &'a [u8] {
        self.0
    }
}
