//! Text, written.

use std::io::{self, Write};

use super::line::{Heads, padded, remapped_to, tail, time};
use super::summary::Summary;
use crate::batch::Batch;
use crate::event::{Action, Event};
use crate::names::Names;
use crate::sink::Sink;

/// What stands for the name of a process of which none is known.
const NAMELESS: &[u8] = b"(null)";

/// Writes events as blkparse does. Times are told from the first event on.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// The trace's name, if there is to be a summary.
    name: Option<String>,
    has_all_messages: bool,
    left_out: u64,
    text: Vec<u8>,
    heads: Heads,
    summary: Summary,
    names: Names,
}

impl<W: Write> Writer<W> {
    /// Writes lines, and at the end the summary of the trace of this name.
    pub fn new(out: W, name: &str) -> Writer<W> {
        Writer {
            out,
            name: Some(name.to_owned()),
            has_all_messages: false,
            left_out: 0,
            text: Vec::new(),
            heads: Heads::new(),
            summary: Summary::default(),
            names: Names::default(),
        }
    }

    /// Writes no summary.
    #[must_use]
    pub fn quiet(self) -> Writer<W> {
        Writer { name: None, ..self }
    }

    /// Writes messages that belong to a control group, too: blkparse 1.2 leaves them out, and Linux since 4.14 writes no others of BFQ and CFQ.
    #[must_use]
    pub fn with_all_messages(self) -> Writer<W> {
        Writer { has_all_messages: true, ..self }
    }

    /// How many messages were left out because they belong to a control group.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Ends it and gives the output back.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn event(&mut self, event: &Event, payload: &[u8]) {
        match event.action {
            Action::Process => {
                self.names.tell(event.pid, payload);
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
        let is_told = match event.action {
            Action::Message => !payload.is_empty(),
            action => action != Action::DriverData,
        };
        if is_told {
            self.line(event, payload);
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
            // It is a number with a sign there.
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

impl<W: Write> Sink for Writer<W> {
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
            self.summary.write(&name, &mut self.text);
            self.out.write_all(&self.text)?;
            self.text.clear();
        }
        self.out.flush()
    }
}
