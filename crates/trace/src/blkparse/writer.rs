//! Text, written.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, Write};

use super::line::{Heads, padded, remapped_to, tail, time};
use super::summary::Summary;
use crate::batch::Batch;
use crate::event::{Action, Event};
use crate::sink::Sink;

/// What stands for the name of a process of which none is known.
const NAMELESS: &[u8] = b"[(null)]\n";
/// So many names are kept; with more, those of before are forgotten.
const NAMES_MAX: usize = 1 << 20;

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
    names: HashMap<u32, Vec<u8>, BuildHasherDefault<PidHasher>>,
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
            names: HashMap::default(),
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
            Action::Process => return self.rename(event.pid, payload),
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
        let name = self.names.get(&event.pid).map_or(NAMELESS, Vec::as_slice);
        tail(out, event, payload, name);
    }

    fn rename(&mut self, pid: u32, name: &[u8]) {
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        self.names.insert(pid, [b"[", name, b"]\n"].concat());
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

/// Spreads the numbers of processes, which are no secret that somebody could abuse: memory is bounded by their number.
#[derive(Debug, Default)]
struct PidHasher(u64);

impl Hasher for PidHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }

    #[inline]
    fn write_u32(&mut self, pid: u32) {
        self.0 = u64::from(pid).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
