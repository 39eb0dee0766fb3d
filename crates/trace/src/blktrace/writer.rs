//! Records, written.

use std::io::{self, Write};

use super::record::{Version, encode};
use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event};
use crate::sink::Sink;

/// Writes events as records, in the order in which they come: one file of one CPU, or of all as `blkparse -d` writes it.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    version: Version,
    /// How many records each CPU has, if they are counted here.
    counts: Option<Vec<(u32, u32)>>,
    bytes: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes version 7, with the sequence numbers that the events have.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, version: Version::V7, counts: None, bytes: Vec::new() }
    }

    /// Writes this version.
    #[must_use]
    pub fn version(self, version: Version) -> Writer<W> {
        Writer { version, ..self }
    }

    /// Counts the records of each CPU itself: for events whose recorder did not.
    #[must_use]
    pub fn counting(self) -> Writer<W> {
        Writer { counts: Some(Vec::new()), ..self }
    }

    /// Writes one event. What of its payload is longer than the format takes is cut off: 15 bytes of a name, 1,024 of a message, 65,535 of anything.
    ///
    /// # Errors
    /// Those of the output.
    pub fn event(&mut self, event: &Event, payload: &[u8]) -> io::Result<()> {
        self.bytes.clear();
        self.encode(event, payload);
        self.out.write_all(&self.bytes)
    }

    /// Notes that `time_ns` of the trace was this time of the day, in ns since 1970.
    ///
    /// # Errors
    /// Those of the output.
    pub fn start(&mut self, device: DeviceId, time_ns: u64, since_1970_ns: u64) -> io::Result<()> {
        let event = Event { device, ..Event::new(time_ns, Action::Timestamp) };
        self.event(&event, &since_1970_ns.to_be_bytes())
    }

    /// The output: what was written may not have reached it yet.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Ends it and gives the output back.
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

impl<W: Write> Sink for Writer<W> {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        self.bytes.clear();
        batch.events().iter().for_each(|event| self.encode(event, batch.payload(event)));
        self.out.write_all(&self.bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The next number of a CPU. The CPU that was asked for last stands first.
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
