//! Writes blkparse's text.

use std::borrow::Cow;
use std::io::{self, Write};

use hoistway_units::printable;

use super::line::{Heads, padded, remapped_to, tail, time};
use super::summary::Summary;
use crate::batch::Batch;
use crate::event::{Action, Event};
use crate::process_names::ProcessNames;
use crate::writer::EventWriter;

/// Placeholder for an unknown process name.
const NAMELESS: &[u8] = b"(null)";

/// Writes events as blkparse does. Times count from the first event.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// Name of the trace for the summary; None omits the summary.
    name: Option<String>,
    has_all_messages: bool,
    left_out: u64,
    text: Vec<u8>,
    heads: Heads,
    summary: Summary,
    names: ProcessNames,
}

impl<W: Write> Writer<W> {
    /// Creates a writer of lines, followed by a summary of the trace with this name.
    pub fn new(out: W, name: &str) -> Writer<W> {
        Writer {
            out,
            name: Some(name.to_owned()),
            has_all_messages: false,
            left_out: 0,
            text: Vec::new(),
            heads: Heads::new(),
            summary: Summary::default(),
            names: ProcessNames::default(),
        }
    }

    /// Omits the summary.
    #[must_use]
    pub fn quiet(self) -> Writer<W> {
        Writer { name: None, ..self }
    }

    /// Also writes messages that belong to a control group. blkparse 1.2 omits them, but all
    /// messages of BFQ and CFQ belong to a control group since Linux 4.14.
    #[must_use]
    pub fn with_all_messages(self) -> Writer<W> {
        Writer { has_all_messages: true, ..self }
    }

    /// Number of messages that were omitted because they belong to a control group.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn event(&mut self, event: &Event, payload: &[u8]) {
        match event.action {
            Action::Process => {
                self.names.set(event.pid, &one_line(payload));
                return;
            }
            Action::Timestamp => return,
            Action::Message if event.cgroup != 0 && !self.has_all_messages => {
                self.left_out += 1;
                return;
            }
            _ => {}
        }
        self.summary.count(event);
        let is_printed = match event.action {
            Action::Message => !payload.is_empty(),
            action => action != Action::DriverData,
        };
        if is_printed {
            let message = if event.action == Action::Message { one_line(payload) } else { Cow::Borrowed(payload) };
            self.line(event, &message);
        }
    }

    #[inline]
    fn line(&mut self, event: &Event, payload: &[u8]) {
        let out = &mut self.text;
        let device = if event.action == Action::Remap { remapped_to(payload) } else { event.device };
        out.extend_from_slice(self.heads.device(device, event.cpu));
        let is_message = event.action == Action::Message;
        match i32::try_from(event.sequence) {
            Ok(sequence) => padded::<8>(out, if is_message { 0 } else { sequence as u64 }),
            // The sequence number is printed with a sign.
            Err(_) => drop(write!(out, "{:8}", event.sequence as i32)),
        }
        out.push(b' ');
        time(out, event.time_ns.wrapping_sub(self.summary.begin_ns().unwrap_or(0)));
        padded::<5>(out, if is_message { 0 } else { u64::from(event.pid) });
        let op = if is_message { crate::Rwbs::NONE } else { event.op };
        out.extend_from_slice(self.heads.what(event.action, op));
        tail(out, event, payload, self.names.get(event.pid).unwrap_or(NAMELESS));
    }
}

/// Returns a name or message as one printable line: a newline in it would begin another event.
fn one_line(text: &[u8]) -> Cow<'_, [u8]> {
    if text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(printable::bytes(text).into_bytes())
}

impl<W: Write> EventWriter for Writer<W> {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        for event in batch.events() {
            self.event(event, batch.payload(event));
        }
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(name) = self.name.take() {
            self.summary.write(&printable::one_line(&name).to_string(), &mut self.text);
            self.out.write_all(&self.text)?;
            self.text.clear();
        }
        self.out.flush()
    }
}
