//! Reads trace-cmd's `trace.dat`: the events of the `block` subsystem.

use std::io::Cursor;

use crate::trace_cmd::{self, EventFormat, ReadSeek, Record, TraceDat};

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::block_event;
use crate::event::{Action, DeviceId, Event, Rwbs};
use crate::notices::NoticeCollector;
use crate::payload::Payload;
use crate::process_names::ProcessNames;
use crate::source::{DeferredError, InputPosition, Notice, ReadError, Source};
use crate::stream::Stream;
use crate::text::LineOutput;

/// Reads a file of trace-cmd.
#[derive(Debug)]
pub(crate) struct Reader {
    dat: TraceDat,
    file: String,
    notices: NoticeCollector,
    names: ProcessNames,
    /// Names of the processes that were not emitted yet.
    first_names: Vec<(u32, Vec<u8>)>,
    is_over: bool,
    /// The error of the file, returned after the events before it.
    failed: DeferredError,
}

impl Reader {
    /// Opens a file that can be read at any position.
    ///
    /// # Errors
    /// Fails if the header of the file is damaged.
    pub fn new(file: &str, read: Box<dyn ReadSeek + Send>) -> Result<Reader, ReadError> {
        let dat = TraceDat::open(read).map_err(|error| failed(file, error))?;
        let mut notices = NoticeCollector::new(file);
        dat.remarks().iter().for_each(|remark| notices.add(InputPosition::All, remark.clone()));
        if !dat.has_ns() {
            let what = format!("the clock {} does not count ns: its readings are taken as ns", dat.clock());
            notices.add(InputPosition::All, what);
        }
        let known = dat.formats().values().any(|format| block_event::action_of(format.name.as_bytes()).is_some());
        if !known {
            let what = "no event of the block subsystem was recorded: `trace-cmd record -e block` would be right";
            notices.add(InputPosition::All, what);
        }
        let first_names = dat.process_names().iter().map(|(pid, name)| (*pid, name.clone())).collect();
        Ok(Reader {
            dat,
            file: file.to_owned(),
            notices,
            names: ProcessNames::default(),
            first_names,
            is_over: false,
            failed: DeferredError::default(),
        })
    }

    /// Opens a stream, which is read into memory.
    ///
    /// # Errors
    /// Fails if the stream is longer than 1 GiB, or as [`Reader::new`].
    pub fn of_stream(stream: Stream) -> Result<Reader, ReadError> {
        let name = stream.name.clone();
        let bytes = stream.read_whole()?;
        Reader::new(&name, Box::new(Cursor::new(bytes)))
    }

    /// Reports damage at the end of the file.
    fn end(&mut self) {
        self.is_over = true;
        self.notices.end();
        let losses = self.dat.losses().clone();
        if losses.is_cut {
            self.notices.add(InputPosition::All, "the file ends too early: what it has was read");
        }
        if losses.damaged_pages > 0 {
            let what = format!("damaged pages of the ring buffer were skipped ({} in all)", losses.damaged_pages);
            self.notices.add(InputPosition::Byte(losses.first_damaged), what);
        }
        if losses.overruns > 0 {
            let what = format!("the kernel's buffer was full and events were lost ({} times)", losses.overruns);
            self.notices.add(InputPosition::All, what);
        }
    }
}

fn emit_names(first: Vec<(u32, Vec<u8>)>, names: &mut ProcessNames, time_ns: u64, batch: &mut Batch) {
    for (pid, name) in first {
        if pid != 0 && names.set(pid, &name) {
            batch.push_with(Event { pid, ..Event::new(time_ns, Action::Process) }, &name);
        }
    }
}

impl Source for Reader {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        while batch.len() < EVENTS_A_BATCH && !self.is_over {
            let record = match self.dat.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.end();
                    break;
                }
                Err(error) => {
                    self.failed.set(failed(&self.file, error));
                    self.end();
                    break;
                }
            };
            let mut out = LineOutput { batch, notices: &mut self.notices, position: InputPosition::All };
            let Some((event, payload)) = event_of(&record, &mut out) else { continue };
            if !self.first_names.is_empty() {
                emit_names(std::mem::take(&mut self.first_names), &mut self.names, event.time_ns, batch);
            }
            if let Some(name) = name_of(&record).filter(|_| event.action != Action::Complete && event.pid != 0)
                && self.names.get(event.pid).is_none()
            {
                self.names.set(event.pid, name);
                batch.push_with(Event { pid: event.pid, ..Event::new(event.time_ns, Action::Process) }, name);
            }
            batch.push_with(event, payload.bytes());
        }
        self.failed.report_after(batch)
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }
}

fn failed(file: &str, error: trace_cmd::Error) -> ReadError {
    match error {
        trace_cmd::Error::Io(source) => ReadError::Io { file: file.to_owned(), source },
        trace_cmd::Error::Bad { position, what } => {
            ReadError::Bad { file: file.to_owned(), position: InputPosition::Byte(position), what }
        }
    }
}

/// Converts a record; None for a record that is no event of a request.
fn event_of(record: &Record<'_>, out: &mut LineOutput<'_>) -> Option<(Event, Payload)> {
    let Some(format) = record.format else {
        out.notices.count("records whose format is not in the file are left out", out.position, String::new);
        return None;
    };
    let Some(action) = block_event::action_of(format.name.as_bytes()) else {
        block_event::note_left_out(format.name.as_bytes(), out);
        return None;
    };
    let number = |name: &str| field_number(format, record, name);
    let fields = (number("dev"), number("sector"), format.field("rwbs"));
    let (Some(device), Some(sector), Some(rwbs)) = fields else {
        out.notices
            .count("events without a device, sector or operation are left out", out.position, || format.name.clone());
        return None;
    };
    let mut event = Event {
        cpu: record.cpu,
        pid: number("common_pid").and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0),
        device: DeviceId(device as u32),
        op: block_event::operation(rwbs.text(record.data, record.is_big_endian).unwrap_or_default(), out),
        ..Event::new(record.time_ns, action)
    };
    let sectors = number("nr_sector").or_else(|| number("nr_sectors")).unwrap_or(0);
    if let Err(what) = block_event::set_range(&mut event, sector, sectors) {
        out.notices.count("events with an invalid length are left out", out.position, || what);
        return None;
    }
    let command = format.field("cmd").and_then(|field| field.text(record.data, record.is_big_endian));
    if command.is_some_and(|command| !command.is_empty()) {
        event.op = event.op.with(Rwbs::PASS_THROUGH);
    }
    let mut payload = Payload::default();
    match action {
        // Errors are negative numbers of 32 bits.
        Action::Complete => {
            let error = number("error").or_else(|| number("errors")).unwrap_or(0) as u32 as i32;
            event.error = u16::try_from(error.unsigned_abs()).unwrap_or(u16::MAX);
        }
        Action::Split => payload = Payload::number(number("new_sector").unwrap_or(0)),
        Action::Remap => {
            let from = DeviceId(number("old_dev").unwrap_or(0) as u32);
            payload = Payload::remap(from, event.device, number("old_sector").unwrap_or(0));
        }
        _ => {}
    }
    Some((event, payload))
}

/// Returns the name of the process of a record.
fn name_of<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    let name = record.format?.field("comm")?.text(record.data, record.is_big_endian)?;
    (!name.is_empty() && name != b"<...>").then_some(name)
}

fn field_number(format: &EventFormat, record: &Record<'_>, name: &str) -> Option<u64> {
    format.field(name)?.number(record.data, record.is_big_endian)
}
