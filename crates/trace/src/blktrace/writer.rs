//! Writes binary records.

use std::io::{self, Write};

use super::record::{Version, encode};
use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event};
use crate::writer::EventWriter;

/// Writes events as records in the order of insertion: a file of one CPU, or of all CPUs as with
/// `blkparse -d`.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    version: Version,
    /// Number of records of each CPU, if this writer assigns the sequence numbers.
    counts: Option<Vec<(u32, u32)>>,
    bytes: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Creates a writer of version 7 that keeps the sequence numbers of the events.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, version: Version::V7, counts: None, bytes: Vec::new() }
    }

    /// Sets the version of the format.
    #[must_use]
    pub fn version(self, version: Version) -> Writer<W> {
        Writer { version, ..self }
    }

    /// Assigns sequence numbers for each CPU, for events of a recorder without them.
    #[must_use]
    pub fn counting(self) -> Writer<W> {
        Writer { counts: Some(Vec::new()), ..self }
    }

    /// Writes one event. Payloads are cut off at the limits of the format: 15 bytes of a name,
    /// 1,024 bytes of a message, 65,535 bytes of other payloads.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn event(&mut self, event: &Event, payload: &[u8]) -> io::Result<()> {
        self.bytes.clear();
        self.encode(event, payload);
        self.out.write_all(&self.bytes)
    }

    /// Writes a record that relates `time_ns` of the trace to the wall-clock time, in ns since
    /// 1970.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn start(&mut self, device: DeviceId, time_ns: u64, since_1970_ns: u64) -> io::Result<()> {
        let event = Event { device, ..Event::new(time_ns, Action::Timestamp) };
        self.event(&event, &since_1970_ns.to_be_bytes())
    }

    /// Returns the output, which may lack buffered data.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn encode(&mut self, event: &Event, payload: &[u8]) {
        let sequence = match &mut self.counts {
            _ if event.action.is_note() => 0,
            None => event.sequence,
            Some(counts) => next_of(counts, event.cpu),
        };
        encode(event, payload, sequence, self.version, &mut self.bytes);
    }
}

impl<W: Write> EventWriter for Writer<W> {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        self.bytes.clear();
        batch.events().iter().for_each(|event| self.encode(event, batch.payload(event)));
        self.out.write_all(&self.bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the next sequence number of a CPU. The last used CPU is first in the list.
fn next_of(counts: &mut Vec<(u32, u32)>, cpu: u32) -> u32 {
    match counts.iter().position(|(known, _)| *known == cpu) {
        Some(at) => counts.swap(0, at),
        None => counts.insert(0, (cpu, 0)),
    }
    counts.first_mut().map_or(0, |(_, count)| {
        *count = count.wrapping_add(1);
        *count
    })
}
