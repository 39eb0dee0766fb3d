//! Writes iologs.

use std::collections::HashSet;
use std::io::{self, Write};

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event, Rwbs};
use crate::writer::EventWriter;

/// Smallest wait in us. According to fio's manual, a player of version 2 discards shorter waits;
/// these are added to the next wait.
const WAIT_US_MIN: u64 = 100;

/// Versions that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogVersion {
    /// Version 2: waits between requests.
    Two,
    /// Version 3: a time for each request; fio reads it since 3.31.
    Three,
}

/// Writes the reads, writes, discards and flushes of a trace as an iolog. The requests are the
/// submissions (Q), or the issues (D) or completions (C) of a trace without submissions. A device
/// becomes the file `/dev/block/MAJOR:MINOR`, which exists on Linux.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    version: LogVersion,
    line: Vec<u8>,
    /// The action that represents a request, determined by the first batch with any.
    written: Option<Action>,
    added: HashSet<DeviceId>,
    /// Time of the first request in ns.
    start_ns: Option<u64>,
    /// Sum of the waits so far, in us.
    waited_us: u64,
    last_us: u64,
    is_begun: bool,
}

impl<W: Write> Writer<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W, version: LogVersion) -> Writer<W> {
        Writer {
            out,
            version,
            line: Vec::new(),
            written: None,
            added: HashSet::new(),
            start_ns: None,
            waited_us: 0,
            last_us: 0,
            is_begun: false,
        }
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let version = match self.version {
            LogVersion::Two => 2,
            LogVersion::Three => 3,
        };
        writeln!(self.out, "fio version {version} iolog")
    }

    fn request(&mut self, event: &Event) -> io::Result<()> {
        let start_ns = *self.start_ns.get_or_insert(event.time_ns);
        // The format cannot represent a clock that runs backwards: times never decrease.
        self.last_us = (event.time_ns.saturating_sub(start_ns) / 1000).max(self.last_us);
        if self.added.insert(event.device) {
            self.put(event.device, "add", None)?;
            self.put(event.device, "open", None)?;
        }
        let wait_us = self.last_us - self.waited_us;
        if self.version == LogVersion::Two && wait_us >= WAIT_US_MIN {
            self.put(event.device, "wait", Some((wait_us, 0)))?;
            self.waited_us = self.last_us;
        }
        if event.op.has(Rwbs::FLUSH) {
            self.put(event.device, "sync", Some((0, 0)))?;
        }
        let action = match event.op {
            op if op.has(Rwbs::DISCARD) => "trim",
            op if op.has(Rwbs::READ) => "read",
            op if op.has(Rwbs::WRITE) => "write",
            _ => return Ok(()),
        };
        if let (1.., Some(offset)) = (event.bytes, event.sector.checked_mul(512)) {
            self.put(event.device, action, Some((offset, u64::from(event.bytes))))?;
        }
        // The format has no FUA: the data are synced after the write.
        if event.op.has(Rwbs::FUA) { self.put(event.device, "datasync", Some((0, 0))) } else { Ok(()) }
    }

    fn put(&mut self, device: DeviceId, action: &str, range: Option<(u64, u64)>) -> io::Result<()> {
        let mut digits = itoa::Buffer::new();
        self.line.clear();
        if self.version == LogVersion::Three {
            self.line.extend_from_slice(digits.format(self.last_us).as_bytes());
            self.line.push(b' ');
        }
        self.line.extend_from_slice(b"/dev/block/");
        self.line.extend_from_slice(digits.format(device.major()).as_bytes());
        self.line.push(b':');
        self.line.extend_from_slice(digits.format(device.minor()).as_bytes());
        self.line.push(b' ');
        self.line.extend_from_slice(action.as_bytes());
        for number in range.into_iter().flat_map(|(offset, bytes)| [offset, bytes]) {
            self.line.push(b' ');
            self.line.extend_from_slice(digits.format(number).as_bytes());
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }
}

impl<W: Write> EventWriter for Writer<W> {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        self.begin()?;
        if self.written.is_none() {
            let choices = [Action::Queue, Action::Issue, Action::Complete];
            self.written =
                choices.into_iter().find(|action| batch.events().iter().any(|event| event.action == *action));
        }
        let Some(written) = self.written else { return Ok(()) };
        batch.events().iter().filter(|event| event.action == written).try_for_each(|event| self.request(event))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin()?;
        let mut devices: Vec<DeviceId> = self.added.drain().collect();
        devices.sort();
        devices.into_iter().try_for_each(|device| self.put(device, "close", None))?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: LogVersion, requests: &[(u64, Rwbs, u64, u32)]) -> String {
        let mut batch = Batch::new();
        for &(time_ns, op, sector, bytes) in requests {
            let event = Event { op, sector, bytes, device: DeviceId::new(8, 1), ..Event::new(time_ns, Action::Queue) };
            batch.push(event);
            batch.push(Event { action: Action::Issue, ..event });
        }
        let mut writer = Writer::new(Vec::new(), version);
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        String::from_utf8(writer.into_inner()).unwrap()
    }

    #[test]
    fn version_3_has_us_since_the_first_request() {
        let requests = [
            (5_000_000, Rwbs::READ, 8, 4096),
            (5_150_999, Rwbs::FLUSH.with(Rwbs::WRITE), 0, 0),
            (5_151_000, Rwbs::DISCARD, 0, 512),
            (5_160_000, Rwbs::FLUSH.with(Rwbs::WRITE).with(Rwbs::FUA), 8, 512),
        ];
        let expected = "fio version 3 iolog\n0 /dev/block/8:1 add\n0 /dev/block/8:1 open\n0 /dev/block/8:1 read 4096 4096\n\
                        150 /dev/block/8:1 sync 0 0\n151 /dev/block/8:1 trim 0 512\n160 /dev/block/8:1 sync 0 0\n\
                        160 /dev/block/8:1 write 4096 512\n160 /dev/block/8:1 datasync 0 0\n160 /dev/block/8:1 close\n";
        assert_eq!(written(LogVersion::Three, &requests), expected);
    }

    #[test]
    fn short_waits_of_version_2_are_added_to_the_next() {
        let requests = [(0, Rwbs::WRITE, 8, 512), (60_000, Rwbs::WRITE, 9, 512), (130_000, Rwbs::WRITE, 10, 512)];
        let expected = "fio version 2 iolog\n/dev/block/8:1 add\n/dev/block/8:1 open\n/dev/block/8:1 write 4096 512\n\
                        /dev/block/8:1 write 4608 512\n/dev/block/8:1 wait 130 0\n/dev/block/8:1 write 5120 512\n/dev/block/8:1 close\n";
        assert_eq!(written(LogVersion::Two, &requests), expected);
    }
}
