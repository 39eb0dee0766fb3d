//! Writes CSV files.

use std::io::{self, Write};

use super::HEADER;
use super::reader::op_of;
use crate::batch::Batch;
use crate::event::{Action, Event, Rwbs};
use crate::process_names::ProcessNames;
use crate::writer::EventWriter;

/// Writes events as hoistway's CSV.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    line: Vec<u8>,
    names: ProcessNames,
    is_begun: bool,
}

impl<W: Write> Writer<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, line: Vec::new(), names: ProcessNames::default(), is_begun: false }
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) { Ok(()) } else { writeln!(self.out, "{HEADER}") }
    }

    fn event(&mut self, event: &Event, payload: &[u8]) -> io::Result<()> {
        if event.action == Action::Process {
            self.names.set(event.pid, payload);
        }
        self.line.clear();
        self.number(event.time_ns);
        self.line.extend_from_slice(event.action.letters().as_bytes());
        self.line.push(b',');
        let mut digits = itoa::Buffer::new();
        self.line.extend_from_slice(digits.format(event.device.major()).as_bytes());
        self.line.push(b':');
        self.number(u64::from(event.device.minor()));
        [event.cpu, event.pid, event.sequence].into_iter().for_each(|number| self.number(u64::from(number)));
        put_rwbs(&mut self.line, event.op);
        self.line.push(b',');
        [event.sector, u64::from(event.bytes), u64::from(event.error), event.cgroup]
            .into_iter()
            .for_each(|number| self.number(number));
        if let Some(name) = self.names.get(event.pid) {
            put_text(&mut self.line, name);
        }
        self.line.push(b',');
        if matches!(event.action, Action::Process | Action::Message) {
            put_text(&mut self.line, payload);
        } else {
            payload.iter().for_each(|byte| self.line.extend(hexadecimal(*byte)));
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Appends a number and a comma.
    fn number(&mut self, number: u64) {
        self.line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.line.push(b',');
    }
}

impl<W: Write> EventWriter for Writer<W> {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        self.begin()?;
        batch.events().iter().try_for_each(|event| self.event(event, batch.payload(event)))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin()?;
        self.out.flush()
    }
}

/// Returns the letters of an operation, or its bits as in `0x010` for a set that has no letters of
/// its own.
pub(crate) fn rwbs_text(op: Rwbs) -> String {
    let mut letters = Vec::new();
    put_rwbs(&mut letters, op);
    match String::from_utf8(letters) {
        Ok(letters) if op_of(letters.as_bytes()) == Ok(op) => letters,
        _ => format!("{:#05x}", op.0),
    }
}

/// Appends the letters of an operation, in an order that can be parsed again.
fn put_rwbs(line: &mut Vec<u8>, op: Rwbs) {
    let letters = [
        (Rwbs::FLUSH, b'F'),
        (Rwbs::READ, b'R'),
        (Rwbs::WRITE, b'W'),
        (Rwbs::DISCARD, b'D'),
        (Rwbs::NONE, b'N'),
        (Rwbs::FUA, b'F'),
        (Rwbs::AHEAD, b'A'),
        (Rwbs::SYNC, b'S'),
        (Rwbs::META, b'M'),
        (Rwbs::PASS_THROUGH, b'P'),
    ];
    line.extend(letters.iter().filter(|(bit, _)| op.has(*bit)).map(|(_, letter)| *letter));
}

/// Appends a text field, quoted if necessary.
fn put_text(line: &mut Vec<u8>, text: &[u8]) {
    let quoted = text.iter().any(|byte| matches!(byte, b',' | b'"')) || text.trim_ascii().len() < text.len();
    if quoted {
        line.push(b'"');
    }
    for &byte in text {
        match byte {
            b'"' => line.extend_from_slice(b"\"\""),
            b'\\' => line.extend_from_slice(b"\\\\"),
            0..=0x1f | 0x7f..=0xff => {
                line.extend_from_slice(b"\\x");
                line.extend(hexadecimal(byte));
            }
            _ => line.push(byte),
        }
    }
    if quoted {
        line.push(b'"');
    }
}

fn hexadecimal(byte: u8) -> [u8; 2] {
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    [digit(byte >> 4), digit(byte & 0xf)]
}
