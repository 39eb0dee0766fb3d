//! Records, written.

use std::io::{self, Write};

use super::{Action, MAGIC, MESSAGE_BYTES_MAX, Op, RECORD_BYTES};

/// The actions that have no request.
const PLUG: u16 = 9;
const UNPLUG: u16 = 10;
const UNPLUG_TIMER: u16 = 11;
/// Kinds of notes.
const NOTE_PROCESS: u16 = 0;
const NOTE_TIME: u16 = 1;
const NOTE_MESSAGE: u16 = 2;

/// Bits of categories.
const READ: u16 = 1 << 0;
const WRITE: u16 = 1 << 1;
const FLUSH: u16 = 1 << 2;
const QUEUE: u16 = 1 << 4;
const REQUEUE: u16 = 1 << 5;
const ISSUE: u16 = 1 << 6;
const COMPLETE: u16 = 1 << 7;
const FILE_SYSTEM: u16 = 1 << 8;
const NOTIFY: u16 = 1 << 10;
const DISCARD: u16 = 1 << 13;

/// The length of a process's name, with the 0 behind it.
const COMM_BYTES: usize = 16;

/// A request, or a bio, in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whose it is.
    pub pid: u32,
    /// What it does.
    pub op: Op,
    /// Its first sector, of 512 bytes.
    pub sector: u64,
    /// Its length in sectors.
    pub sectors: u32,
}

/// Writes the records of one device and CPU.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    device: u32,
    cpu: u32,
    sequence: u32,
}

impl<W: Write> Writer<W> {
    /// Writes to `out` what happens on a device ([`device_number`](super::device_number)) and a CPU.
    pub fn new(out: W, device: u32, cpu: u32) -> Writer<W> {
        Writer { out, device, cpu, sequence: 0 }
    }

    /// Notes that `time_ns` of the trace was this time of the day, in ns since 1970.
    ///
    /// # Errors
    /// Those of the output; so it is with all that follow.
    pub fn start(&mut self, time_ns: u64, since_1970_ns: u64) -> io::Result<()> {
        let mut payload = [0; 8];
        let seconds = u32::try_from(since_1970_ns / 1_000_000_000).unwrap_or(u32::MAX);
        let (head, tail) = payload.split_at_mut(4);
        head.copy_from_slice(&seconds.to_le_bytes());
        tail.copy_from_slice(&((since_1970_ns % 1_000_000_000) as u32).to_le_bytes());
        self.note(time_ns, 0, NOTE_TIME, &payload)
    }

    /// Notes what a process is called; the first 15 bytes count.
    pub fn process(&mut self, time_ns: u64, pid: u32, name: &str) -> io::Result<()> {
        let mut payload = [0; COMM_BYTES];
        for (to, from) in payload.iter_mut().take(COMM_BYTES - 1).zip(beginning(name, COMM_BYTES - 1).bytes()) {
            *to = from;
        }
        self.note(time_ns, pid, NOTE_PROCESS, &payload)
    }

    /// Notes a text; the first [`MESSAGE_BYTES_MAX`] bytes count.
    pub fn message(&mut self, time_ns: u64, pid: u32, text: &str) -> io::Result<()> {
        self.note(time_ns, pid, NOTE_MESSAGE, beginning(text, MESSAGE_BYTES_MAX).as_bytes())
    }

    /// Tells what happened to a request, and with which error (0: none).
    pub fn request(&mut self, time_ns: u64, action: Action, request: Request, error: u16) -> io::Result<()> {
        let category = stage(action) | direction(request.op);
        self.counted(Record {
            time_ns,
            sector: request.sector,
            bytes: request.sectors.saturating_mul(512),
            action: action as u16,
            category,
            pid: request.pid,
            error,
            payload: &[],
        })
    }

    /// P: the queue was plugged.
    pub fn plug(&mut self, time_ns: u64, pid: u32) -> io::Result<()> {
        self.plugging(time_ns, pid, PLUG, &[])
    }

    /// U, or UT by the timer: it was unplugged, with so many requests waiting.
    pub fn unplug(&mut self, time_ns: u64, pid: u32, waiting: u32, by_timer: bool) -> io::Result<()> {
        let action = if by_timer { UNPLUG_TIMER } else { UNPLUG };
        // The one payload that is big-endian.
        self.plugging(time_ns, pid, action, &u64::from(waiting).to_be_bytes())
    }

    /// Writes out what the output may still hold.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The output: what was written may not have reached it yet.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Ends it and gives the output back.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn plugging(&mut self, time_ns: u64, pid: u32, action: u16, payload: &[u8]) -> io::Result<()> {
        self.counted(Record { time_ns, sector: 0, bytes: 0, action, category: QUEUE | READ, pid, error: 0, payload })
    }

    fn note(&mut self, time_ns: u64, pid: u32, kind: u16, payload: &[u8]) -> io::Result<()> {
        let record = Record { time_ns, sector: 0, bytes: 0, action: kind, category: NOTIFY, pid, error: 0, payload };
        self.write(&record, 0)
    }

    fn counted(&mut self, record: Record<'_>) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.write(&record, self.sequence)
    }

    fn write(&mut self, record: &Record<'_>, sequence: u32) -> io::Result<()> {
        let mut bytes = [0u8; RECORD_BYTES];
        let payload_bytes = u16::try_from(record.payload.len()).unwrap_or(u16::MAX);
        let action = u32::from(record.category) << 16 | u32::from(record.action);
        let fields: [(usize, &[u8]); 11] = [
            (0, &MAGIC.to_le_bytes()),
            (4, &sequence.to_le_bytes()),
            (8, &record.time_ns.to_le_bytes()),
            (16, &record.sector.to_le_bytes()),
            (24, &record.bytes.to_le_bytes()),
            (28, &action.to_le_bytes()),
            (32, &record.pid.to_le_bytes()),
            (36, &self.device.to_le_bytes()),
            (40, &self.cpu.to_le_bytes()),
            (44, &record.error.to_le_bytes()),
            (46, &payload_bytes.to_le_bytes()),
        ];
        for (at, field) in fields {
            bytes[at..at + field.len()].copy_from_slice(field);
        }
        self.out.write_all(&bytes)?;
        self.out.write_all(&record.payload[..usize::from(payload_bytes)])
    }
}

/// A record before it is bytes.
struct Record<'a> {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u16,
    category: u16,
    pid: u32,
    error: u16,
    payload: &'a [u8],
}

/// The categories that an action belongs to, as captures of Linux 6.1 show them.
const fn stage(action: Action) -> u16 {
    match action {
        Action::Queue | Action::BackMerge | Action::FrontMerge | Action::Get | Action::Sleep => QUEUE,
        Action::Insert => QUEUE | FILE_SYSTEM,
        Action::Requeue => REQUEUE | FILE_SYSTEM,
        Action::Issue => ISSUE | FILE_SYSTEM,
        Action::Complete => COMPLETE | FILE_SYSTEM,
    }
}

const fn direction(op: Op) -> u16 {
    match op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Discard => WRITE | DISCARD,
        Op::Flush => WRITE | FLUSH,
    }
}

/// As much of a text as fits, without half a character.
fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blktrace::device_number;

    fn writer() -> Writer<Vec<u8>> {
        Writer::new(Vec::new(), device_number(254, 0), 0)
    }

    const READ_8: Request = Request { pid: 113, op: Op::Read, sector: 30_880, sectors: 8 };

    #[test]
    fn a_record_is_byte_for_byte_what_linux_writes() {
        // A read of 4 KiB at sector 30,880 as Linux 6.1 recorded its arrival: action 0x110001 without its sync bit, device 254:0.
        let mut writer = writer();
        writer.request(2_981_925_575, Action::Queue, READ_8, 0).unwrap();
        let expected: Vec<u8> = [
            &[0x07, 0x74, 0x61, 0x65, 1, 0, 0, 0][..],
            &2_981_925_575u64.to_le_bytes(),
            &[0xa0, 0x78, 0, 0, 0, 0, 0, 0],
            &[0, 0x10, 0, 0, 0x01, 0, 0x11, 0],
            &[113, 0, 0, 0, 0, 0, 0xe0, 0x0f],
            &[0, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(writer.into_inner(), expected);
    }

    #[test]
    fn categories_are_those_of_captures() {
        // What captures of Linux 6.1 have, without the sync bit 8 in the high half.
        for (action, op, expected) in [
            (Action::Get, Op::Write, 0x12_0004),
            (Action::BackMerge, Op::Write, 0x12_0002),
            (Action::Insert, Op::Write, 0x112_000c),
            (Action::Issue, Op::Read, 0x141_0007),
            (Action::Complete, Op::Write, 0x182_0008),
            (Action::Queue, Op::Flush, 0x16_0001),
            (Action::Queue, Op::Discard, 0x2012_0001),
        ] {
            let mut writer = writer();
            writer.request(0, action, Request { op, ..READ_8 }, 0).unwrap();
            let bytes = writer.into_inner();
            assert_eq!(u32::from_le_bytes(bytes[28..32].try_into().unwrap()), expected, "{action:?} {op:?}");
        }
    }

    #[test]
    fn notes_do_not_count_and_payloads_follow() {
        let mut writer = writer();
        writer.process(1, 7, "a name that is too long").unwrap();
        writer.plug(2, 7).unwrap();
        writer.unplug(3, 7, 12, false).unwrap();
        writer.message(4, 7, "ö".repeat(600).as_str()).unwrap();
        let bytes = writer.into_inner();
        let payload = |at: usize| usize::from(u16::from_le_bytes([bytes[at + 46], bytes[at + 47]]));
        let sequence = |at: usize| bytes[at + 4];
        assert_eq!((payload(0), sequence(0), &bytes[48..64]), (16, 0, &b"a name that is \0"[..]));
        let (plug, unplug) = (64, 64 + 48);
        assert_eq!((payload(plug), sequence(plug), payload(unplug), sequence(unplug)), (0, 1, 8, 2));
        assert_eq!(bytes[unplug + 48..unplug + 56], [0, 0, 0, 0, 0, 0, 0, 12]);
        let message = unplug + 56;
        assert_eq!((payload(message), bytes.len()), (1024, message + 48 + 1024));
        assert_eq!(beginning("aö", 2), "a");
    }
}
