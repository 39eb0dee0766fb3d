//! A record: its bytes, its words and its text.

use std::fmt;

use super::call::{Call, Field, Form, Word};
use super::error::RecordError;

/// The size of a record and of the header, in bytes.
pub const RECORD_SIZE: usize = 64;

/// The flags of bios that the core knows.
const FLAGS: [(u16, &str); 6] = [(1, "sync"), (2, "meta"), (4, "idle"), (8, "unplug"), (16, "fua"), (32, "barrier")];
const KNOWN_FLAGS: u16 = 63;
const OPS: [&str; 4] = ["read", "write", "flush", "discard"];
/// The hardware queue of a `next` call that is not for one.
pub(super) const NO_HW_QUEUE: u64 = u64::MAX;

/// A call of the core with its arguments and its answer. The meaning of the words depends on the
/// call: see `kernel/record.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of the record in its file; the header has number 0.
    pub number: u64,
    /// The time of the call in ns since boot. Calls without a time have that of the call before.
    pub time_ns: u64,
    /// The call.
    pub call: Call,
    /// The return value of the C function; 0 for those that return a number.
    pub status: i16,
    /// The operation of the bio or request, 0 to 3.
    pub op: u8,
    /// The flags of the bio or request.
    pub flags: u16,
    /// Four words.
    pub a: [u64; 4],
    /// The token of the bio or request, changed by a number that the module keeps secret.
    pub token: u64,
    /// Two short words.
    pub n: [u32; 2],
}

impl Record {
    /// Creates a record whose words are 0.
    pub const fn new(number: u64, time_ns: u64, call: Call) -> Record {
        Record { number, time_ns, call, status: 0, op: 0, flags: 0, a: [0; 4], token: 0, n: [0; 2] }
    }

    /// Reads the record with this number.
    ///
    /// # Errors
    /// [`RecordError`] if a byte has no meaning, or the record is not the one with this number.
    pub fn from_bytes(number: u64, bytes: &[u8; RECORD_SIZE]) -> Result<Record, RecordError> {
        let call = Call::of_number(bytes[12]).ok_or(RecordError::Call { number: bytes[12] })?;
        let (sequence, right) = (u16::from_le_bytes(part(bytes, 10)), number as u16);
        if sequence != right {
            return Err(RecordError::Sequence { sequence, right });
        }
        let long = |at: usize| u64::from_le_bytes(part(bytes, at));
        let record = Record {
            number,
            time_ns: long(0),
            status: i16::from_le_bytes(part(bytes, 8)),
            call,
            op: bytes[13],
            flags: u16::from_le_bytes(part(bytes, 14)),
            a: [long(16), long(24), long(32), long(40)],
            token: long(48),
            n: [u32::from_le_bytes(part(bytes, 56)), u32::from_le_bytes(part(bytes, 60))],
        };
        record.check().map(|()| record)
    }

    fn check(&self) -> Result<(), RecordError> {
        let invalid = |field, value, right| Err(RecordError::Value { call: self.call, field, value, right });
        // Only this call lets its caller search itself.
        let (most, right) = if self.call == Call::PrepareMerge { (4, "-11 to 4") } else { (3, "-11 to 3") };
        if !(-11..=most).contains(&self.status) {
            return invalid("the status", i64::from(self.status), right);
        }
        if usize::from(self.op) >= OPS.len() {
            return invalid("the operation", i64::from(self.op), "0 to 3");
        }
        if self.flags & !KNOWN_FLAGS != 0 {
            return invalid("the flags", i64::from(self.flags), "0 to 63");
        }
        Ok(())
    }

    /// The bytes of the record.
    pub fn to_bytes(&self) -> [u8; RECORD_SIZE] {
        let mut bytes = [0; RECORD_SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.time_ns.to_le_bytes());
        put(8, &self.status.to_le_bytes());
        put(10, &(self.number as u16).to_le_bytes());
        put(12, &[self.call as u8, self.op]);
        put(14, &self.flags.to_le_bytes());
        for (word, at) in self.a.iter().zip([16, 24, 32, 40]) {
            put(at, &word.to_le_bytes());
        }
        put(48, &self.token.to_le_bytes());
        put(56, &self.n[0].to_le_bytes());
        put(60, &self.n[1].to_le_bytes());
        bytes
    }

    /// The record without its answer, to which the replay adds its own.
    pub(super) fn question(&self) -> Record {
        let mut question = Record { status: 0, ..*self };
        for field in self.call.fields().iter().filter(|field| field.is_answer) {
            match field.word {
                Word::A(index) => question.a[index] = 0,
                Word::N(index) => question.n[index] = 0,
                Word::Token => question.token = 0,
                Word::Op => question.op = 0,
                Word::Flags => question.flags = 0,
            }
        }
        question
    }

    fn word(&self, word: Word) -> u64 {
        match word {
            Word::A(index) => self.a[index],
            Word::N(index) => u64::from(self.n[index]),
            Word::Token => self.token,
            Word::Op => u64::from(self.op),
            Word::Flags => u64::from(self.flags),
        }
    }

    /// The bytes of a name in two or four of the words.
    pub(super) fn text(&self, words: std::ops::Range<usize>) -> String {
        let bytes: Vec<u8> = self.a[words].iter().flat_map(|word| word.to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// The call with its arguments, as text.
    pub fn arguments(&self) -> String {
        let mut text = self.call.name().to_owned();
        match self.call {
            Call::Queue => text += &self.capacity_text(),
            Call::Config => text += &self.config_text(),
            Call::Name => text += &format!(" elevator={} module={}", self.text(0..2), self.text(2..4)),
            Call::Tunable => text += &format!(" {}={}", self.text(0..4), self.token as i64),
            _ => self.append(&mut text, false),
        }
        text
    }

    /// The answer, as text.
    pub fn answer(&self) -> String {
        let mut text = status_name(self.call, self.status).to_owned();
        // Only successful calls and lists have more than a status.
        if self.status == 0 || self.call == Call::Submit || self.call == Call::Complete {
            self.append(&mut text, true);
        }
        text
    }

    fn append(&self, text: &mut String, answers: bool) {
        for field in self.call.fields().iter().filter(|field| field.is_answer == answers) {
            text.push(' ');
            text.push_str(&format!("{}={}", field.name, self.field_text(field)));
        }
    }

    fn field_text(&self, field: &Field) -> String {
        let value = self.word(field.word);
        match field.form {
            Form::Number => value.to_string(),
            Form::Signed => (value as i64).to_string(),
            Form::Handle => format!("{value:#x}"),
            Form::Time => seconds(value),
            Form::Side => ["back", "front"].get(value as usize).map_or_else(|| value.to_string(), ToString::to_string),
            Form::Work => ["run", "wake"].get(value as usize).map_or_else(|| value.to_string(), ToString::to_string),
            Form::HwQueue if value == NO_HW_QUEUE => "any".to_owned(),
            Form::HwQueue => value.to_string(),
            Form::Op => OPS.get(value as usize).map_or_else(|| value.to_string(), ToString::to_string),
            Form::Flags => flags_text(self.flags),
        }
    }

    fn capacity_text(&self) -> String {
        let [requests, contexts, merged_bios, events, groups, elevator] = self.halves();
        format!(
            " requests={requests} contexts={contexts} merged_bios={merged_bios} events={events} groups={groups} \
             elevator={elevator:#x} root={:#x} tunables={}",
            self.a[3], self.n[0]
        )
    }

    fn config_text(&self) -> String {
        let [layer, hz, nr_requests, max_sectors, ..] = self.halves();
        let names = ["plugging", "merging", "refusal_ends_merging", "ordered", "flush", "fua", "rotational"];
        let switches: Vec<String> =
            names.iter().zip(self.a[3].to_le_bytes()).map(|(name, value)| format!("{name}={value}")).collect();
        format!(
            " layer={layer} hz={hz} nr_requests={nr_requests} max_sectors={max_sectors} uptime_ns={} hw_queues={} {}",
            self.a[2],
            self.n[0],
            switches.join(" ")
        )
    }

    /// The low and high halves of the first three words.
    pub(super) fn halves(&self) -> [u32; 6] {
        let [a, b, c, _] = self.a;
        [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32, c as u32, (c >> 32) as u32]
    }
}

/// The bytes at a place of a record.
fn part<const LEN: usize>(bytes: &[u8; RECORD_SIZE], at: usize) -> [u8; LEN] {
    let mut part = [0; LEN];
    part.copy_from_slice(&bytes[at..at + LEN]);
    part
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.number, seconds(self.time_ns), self.arguments())?;
        if self.call.is_start() || self.call == Call::End {
            return Ok(());
        }
        write!(f, " -> {}", self.answer())
    }
}

/// A time in s.
pub(super) fn seconds(ns: u64) -> String {
    format!("{}.{:09}s", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn flags_text(flags: u16) -> String {
    let names: Vec<&str> = FLAGS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}

fn status_name(call: Call, status: i16) -> &'static str {
    match (call, status) {
        (Call::AllowsMerge, 0) => "no",
        (Call::AllowsMerge, 1) => "yes",
        (_, 0) => "ok",
        (_, 1) => "run",
        (_, 2) => "wait",
        (_, 3) => "empty",
        (Call::PrepareMerge, 4) => "search",
        (_, -1) => "invalid",
        (_, -2) => "too small",
        (_, -3) => "full",
        (_, -4) => "stale",
        (_, -5) => "bad extent",
        (_, -6) => "not supported",
        (_, -7) => "unknown",
        (_, -8) => "out of range",
        (_, -9) => "busy",
        (_, -10) => "not awake",
        (_, -11) => "no capacity",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_records_convert_both_ways() {
        for call in Call::ALL {
            let record = Record {
                status: -3,
                op: 3,
                flags: 33,
                a: [1, u64::MAX, 3, 1 << 63],
                token: 77,
                n: [5, u32::MAX],
                ..Record::new(65_536 + 9, 123_456_789_012, *call)
            };
            let bytes = record.to_bytes();
            assert_eq!(Record::from_bytes(record.number, &bytes), Ok(record));
            assert!(!record.to_string().is_empty());
            assert!(matches!(Record::from_bytes(10, &bytes), Err(RecordError::Sequence { sequence: 9, right: 10 })));
        }
    }

    #[test]
    fn bytes_without_meaning_are_errors() {
        let bytes = Record::new(1, 1, Call::Next).to_bytes();
        let changed = |at: usize, value: u8| {
            let mut bytes = bytes;
            bytes[at] = value;
            Record::from_bytes(1, &bytes).unwrap_err().to_string()
        };
        assert!(changed(12, 99).contains("99"));
        assert!(changed(8, 4).contains("status"));
        assert!(changed(13, 4).contains("operation"));
        assert!(changed(14, 64).contains("flags"));
    }

    #[test]
    fn a_question_has_the_arguments_only() {
        let record = Record {
            status: 1,
            a: [1, 2, 3, 4],
            token: 5,
            n: [6, 7],
            op: 1,
            flags: 2,
            ..Record::new(1, 9, Call::FindMerge)
        };
        let question = record.question();
        assert_eq!((question.status, question.a, question.token, question.n), (0, [0, 2, 3, 4], 0, [6, 0]));
        assert_eq!((question.op, question.flags, question.time_ns), (1, 2, 9));
    }

    #[test]
    fn records_are_printed_with_names() {
        let record = Record { a: [7, 800, 5, NO_HW_QUEUE], n: [8, 42], flags: 5, ..Record::new(3, 17, Call::Next) };
        let text = "3 0.000000017s next hw_queue=any -> ok request=0x7 sector=800 sectors=8 op=read \
                    flags=sync+idle pid=42 submitted_ns=5 token=0x0";
        assert_eq!(record.to_string(), text);
        assert_eq!(Record { status: 1, ..Record::new(1, 0, Call::AllowsMerge) }.answer(), "yes");
        assert_eq!(Record { status: 2, ..Record::new(1, 0, Call::Next) }.answer(), "wait");
    }
}
