//! Converts one record between bytes and an event.

use super::MESSAGE_BYTES_MAX;
use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event, Rwbs};

/// Magic number of all versions, without the version.
pub(super) const MAGIC_BASE: u32 = 0x6561_7400;
/// Maximum length of a process name in bytes.
pub const NAME_BYTES_MAX: usize = 15;

/// Bit of an action that marks a control group id before the payload.
const WITH_CGROUP: u64 = 1 << 8;
/// Number of bits below the categories of an action.
const CATEGORY_SHIFT: u32 = 16;

/// Category bits.
const READ: u64 = 1 << 0;
const WRITE: u64 = 1 << 1;
const FLUSH: u64 = 1 << 2;
const SYNC: u64 = 1 << 3;
const QUEUE: u64 = 1 << 4;
const REQUEUE: u64 = 1 << 5;
const ISSUE: u64 = 1 << 6;
const COMPLETE: u64 = 1 << 7;
const FILE_SYSTEM: u64 = 1 << 8;
const PASS_THROUGH: u64 = 1 << 9;
const NOTIFY: u64 = 1 << 10;
const AHEAD: u64 = 1 << 11;
const META: u64 = 1 << 12;
const DISCARD: u64 = 1 << 13;
const DRIVER_DATA: u64 = 1 << 14;
const FUA: u64 = 1 << 15;

/// Actions by number.
const ACTIONS: [Option<Action>; 18] = [
    None,
    Some(Action::Queue),
    Some(Action::BackMerge),
    Some(Action::FrontMerge),
    Some(Action::Get),
    Some(Action::Sleep),
    Some(Action::Requeue),
    Some(Action::Issue),
    Some(Action::Complete),
    Some(Action::Plug),
    Some(Action::Unplug),
    Some(Action::UnplugTimer),
    Some(Action::Insert),
    Some(Action::Split),
    Some(Action::Bounce),
    Some(Action::Remap),
    None,
    Some(Action::DriverData),
];
/// Numbers of notes.
const NOTE_PROCESS: u64 = 0;
const NOTE_TIME: u64 = 1;
const NOTE_MESSAGE: u64 = 2;
/// First number of the zone actions of version 8.
const ZONE_FIRST: u64 = 18;

/// A version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 48 bytes for each record. All kernels before 6.19 write it, and all tools read it.
    #[default]
    V7,
    /// 64 bytes for each record.
    V8,
}

/// The fields of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    sequence: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    pid: u32,
    /// Number and categories of the action.
    pub action: u64,
    device: u32,
    pub cpu: u32,
    error: u16,
    pub payload_bytes: u16,
    version: Version,
}

/// Result of decoding a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// An event was added to the batch.
    Event,
    /// The number of the action or note is unknown.
    Unknown,
}

impl Version {
    /// Number of the version.
    pub const fn number(self) -> u32 {
        match self {
            Version::V7 => 7,
            Version::V8 => 8,
        }
    }

    /// Length of a record without its payload, in bytes.
    pub const fn record_bytes(self) -> usize {
        match self {
            Version::V7 => 48,
            Version::V8 => 64,
        }
    }
}

fn u16_at<const BIG: bool, const N: usize>(record: &[u8; N], at: usize) -> u16 {
    let bytes = [record[at], record[at + 1]];
    if BIG { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
}

fn u32_at<const BIG: bool, const N: usize>(record: &[u8; N], at: usize) -> u32 {
    let bytes = [record[at], record[at + 1], record[at + 2], record[at + 3]];
    if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

fn u64_at<const BIG: bool, const N: usize>(record: &[u8; N], at: usize) -> u64 {
    let (first, second) = (u32_at::<BIG, N>(record, at), u32_at::<BIG, N>(record, at + 4));
    let (high, low) = if BIG { (first, second) } else { (second, first) };
    u64::from(high) << 32 | u64::from(low)
}

impl Fields {
    /// Decodes a record of version 7.
    #[inline]
    pub fn of_v7<const BIG: bool>(record: &[u8; 48]) -> Fields {
        Fields {
            sequence: u32_at::<BIG, 48>(record, 4),
            time_ns: u64_at::<BIG, 48>(record, 8),
            sector: u64_at::<BIG, 48>(record, 16),
            bytes: u32_at::<BIG, 48>(record, 24),
            action: u64::from(u32_at::<BIG, 48>(record, 28)),
            pid: u32_at::<BIG, 48>(record, 32),
            device: u32_at::<BIG, 48>(record, 36),
            cpu: u32_at::<BIG, 48>(record, 40),
            error: u16_at::<BIG, 48>(record, 44),
            payload_bytes: u16_at::<BIG, 48>(record, 46),
            version: Version::V7,
        }
    }

    /// Decodes a record of version 8.
    #[inline]
    pub fn of_v8<const BIG: bool>(record: &[u8; 64]) -> Fields {
        Fields {
            sequence: u32_at::<BIG, 64>(record, 4),
            time_ns: u64_at::<BIG, 64>(record, 8),
            sector: u64_at::<BIG, 64>(record, 16),
            bytes: u32_at::<BIG, 64>(record, 24),
            pid: u32_at::<BIG, 64>(record, 28),
            action: u64_at::<BIG, 64>(record, 32),
            device: u32_at::<BIG, 64>(record, 40),
            cpu: u32_at::<BIG, 64>(record, 44),
            error: u16_at::<BIG, 64>(record, 48),
            payload_bytes: u16_at::<BIG, 64>(record, 50),
            version: Version::V8,
        }
    }

    /// Time of the record in ns.
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Returns true if the time is that of an event. Process names and wall-clock times are
    /// recorded when the recorder learns them.
    pub const fn has_moment(&self) -> bool {
        (self.action >> CATEGORY_SHIFT) & NOTIFY == 0 || self.number() == NOTE_MESSAGE
    }

    /// Number of the action or note, without flags.
    pub const fn number(&self) -> u64 {
        self.action & 0xFFFF & !WITH_CGROUP
    }

    /// Returns true if the record has categories that [`Rwbs`] cannot represent: those of zones, in
    /// version 8.
    pub const fn has_zone_categories(&self) -> bool {
        self.action >> (CATEGORY_SHIFT + 16) != 0
    }

    /// Adds the event of the record to a batch.
    #[inline]
    pub fn decode<const BIG: bool>(&self, payload: &[u8], batch: &mut Batch) -> Decoded {
        let category = self.action >> CATEGORY_SHIFT;
        let (cgroup, payload) = match payload.first_chunk::<8>() {
            Some(id) if self.action & WITH_CGROUP != 0 => {
                (if BIG { u64::from_be_bytes(*id) } else { u64::from_le_bytes(*id) }, &payload[8..])
            }
            _ => (0, payload),
        };
        let mut event = Event {
            time_ns: self.time_ns,
            sector: self.sector,
            bytes: self.bytes,
            pid: self.pid,
            sequence: self.sequence,
            cpu: self.cpu,
            device: DeviceId(self.device),
            error: self.error,
            cgroup,
            ..Event::new(0, Action::Queue)
        };
        if category & NOTIFY != 0 {
            return note::<BIG>(self.number(), event, payload, batch);
        }
        let number = self.number();
        event.op = op_of(category, self.bytes);
        match ACTIONS.get(number as usize).copied().flatten() {
            Some(action) => event.action = action,
            None if number >= ZONE_FIRST && self.version == Version::V8 => {
                event.action = Action::Zone;
                batch.push_with(event, &number.to_be_bytes());
                return Decoded::Event;
            }
            None => return Decoded::Unknown,
        }
        if payload.is_empty() {
            batch.push(event);
        } else {
            batch.push_with(event, payload);
        }
        Decoded::Event
    }
}

/// Decodes a note. The fields for sector, length and error of a note contain arbitrary data.
fn note<const BIG: bool>(number: u64, event: Event, payload: &[u8], batch: &mut Batch) -> Decoded {
    let event = Event { sector: 0, bytes: 0, error: 0, ..event };
    match (number, payload.first_chunk::<8>()) {
        (NOTE_PROCESS, _) => batch.push_with(Event { action: Action::Process, ..event }, until_zero(payload)),
        (NOTE_TIME, Some(time)) => {
            let (seconds, ns) = (u32_at::<BIG, 8>(time, 0), u32_at::<BIG, 8>(time, 4));
            let since_1970_ns = u64::from(seconds) * 1_000_000_000 + u64::from(ns);
            batch.push_with(Event { action: Action::Timestamp, ..event }, &since_1970_ns.to_be_bytes());
        }
        (NOTE_MESSAGE, _) => batch.push_with(Event { action: Action::Message, ..event }, until_zero(payload)),
        _ => return Decoded::Unknown,
    }
    Decoded::Event
}

fn until_zero(text: &[u8]) -> &[u8] {
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}

/// Returns the operation as blkparse does: a request that is neither a write nor a discard is a
/// read if it has a length.
#[inline]
fn op_of(category: u64, bytes: u32) -> Rwbs {
    let mut op = if category & DISCARD != 0 {
        Rwbs::DISCARD
    } else if category & WRITE != 0 {
        Rwbs::WRITE
    } else if bytes != 0 {
        Rwbs::READ
    } else {
        Rwbs::NONE
    };
    for (bit, flag) in FLAGS {
        if category & bit != 0 {
            op = op.with(flag);
        }
    }
    op
}

/// Flags of requests, as categories and as [`Rwbs`].
const FLAGS: [(u64, Rwbs); 6] = [
    (FLUSH, Rwbs::FLUSH),
    (FUA, Rwbs::FUA),
    (AHEAD, Rwbs::AHEAD),
    (SYNC, Rwbs::SYNC),
    (META, Rwbs::META),
    (PASS_THROUGH, Rwbs::PASS_THROUGH),
];

/// Writes an event as a little-endian record. A payload that is too long is cut off.
pub(super) fn encode(event: &Event, payload: &[u8], sequence: u32, version: Version, out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + version.record_bytes(), 0);
    if event.cgroup != 0 {
        out.extend_from_slice(&event.cgroup.to_le_bytes());
    }
    let number = encode_payload(event, payload, out) | if event.cgroup != 0 { WITH_CGROUP } else { 0 };
    let payload_at = begin + version.record_bytes();
    out.truncate(payload_at + usize::from(u16::MAX));
    let payload_bytes = (out.len() - payload_at) as u16;
    let action = category_of(event) << CATEGORY_SHIFT | number;
    let error = event.error;
    let head: [(usize, &[u8]); 5] = [
        (0, &(MAGIC_BASE | version.number()).to_le_bytes()),
        (4, &sequence.to_le_bytes()),
        (8, &event.time_ns.to_le_bytes()),
        (16, &event.sector.to_le_bytes()),
        (24, &event.bytes.to_le_bytes()),
    ];
    let (pid, device, cpu) = (event.pid.to_le_bytes(), event.device.0.to_le_bytes(), event.cpu.to_le_bytes());
    let (error, payload_bytes) = (error.to_le_bytes(), payload_bytes.to_le_bytes());
    let tail: [(usize, &[u8]); 6] = match version {
        Version::V7 => [
            (28, &action.to_le_bytes()[..4]),
            (32, &pid),
            (36, &device),
            (40, &cpu),
            (44, &error),
            (46, &payload_bytes),
        ],
        Version::V8 => {
            [(28, &pid), (32, &action.to_le_bytes()), (40, &device), (44, &cpu), (48, &error), (50, &payload_bytes)]
        }
    };
    for (at, field) in head.into_iter().chain(tail) {
        out[begin + at..begin + at + field.len()].copy_from_slice(field);
    }
}

/// Writes the payload after the record and returns the number of the action.
fn encode_payload(event: &Event, payload: &[u8], out: &mut Vec<u8>) -> u64 {
    match event.action {
        Action::Process => {
            let name = beginning(payload, NAME_BYTES_MAX);
            out.extend_from_slice(name);
            out.resize(out.len() + NAME_BYTES_MAX + 1 - name.len(), 0);
            NOTE_PROCESS
        }
        Action::Timestamp => {
            let since_1970_ns = number_of(payload);
            let seconds = u32::try_from(since_1970_ns / 1_000_000_000).unwrap_or(u32::MAX);
            out.extend_from_slice(&seconds.to_le_bytes());
            out.extend_from_slice(&((since_1970_ns % 1_000_000_000) as u32).to_le_bytes());
            NOTE_TIME
        }
        Action::Message => {
            out.extend_from_slice(beginning(payload, MESSAGE_BYTES_MAX));
            NOTE_MESSAGE
        }
        Action::Zone => number_of(payload) & 0xFFFF & !WITH_CGROUP,
        action => {
            out.extend_from_slice(payload);
            ACTIONS.iter().position(|known| *known == Some(action)).unwrap_or(0) as u64
        }
    }
}

/// Returns the number in a payload: 64 bits, big-endian; 0 if the payload is shorter.
fn number_of(payload: &[u8]) -> u64 {
    payload.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Returns the categories of an event, as in captures of Linux 6.1.
fn category_of(event: &Event) -> u64 {
    let of_request = if event.op.has(Rwbs::PASS_THROUGH) { 0 } else { FILE_SYSTEM };
    let stage = match event.action {
        action if action.is_note() => return NOTIFY,
        Action::Insert => QUEUE | of_request,
        Action::Requeue => REQUEUE | of_request,
        Action::Issue => ISSUE | of_request,
        Action::Complete => COMPLETE | of_request,
        Action::DriverData => DRIVER_DATA,
        _ => QUEUE,
    };
    let direction = if event.op.has(Rwbs::DISCARD) {
        WRITE | DISCARD
    } else if event.op.has(Rwbs::WRITE) {
        WRITE
    } else {
        READ
    };
    let flags = FLAGS.iter().filter(|(_, flag)| event.op.has(*flag)).map(|(bit, _)| bit);
    flags.fold(stage | direction, |category, bit| category | bit)
}

/// Returns the beginning of a text that fits, without a partial UTF-8 character.
fn beginning(text: &[u8], bytes_max: usize) -> &[u8] {
    let mut end = text.len().min(bytes_max);
    // The cut must not be inside a character.
    while end > 0 && text.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(event: Event, payload: &[u8], version: Version) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&event, payload, 1, version, &mut out);
        out
    }

    fn read(action: Action) -> Event {
        Event {
            sector: 30_880,
            bytes: 4096,
            pid: 113,
            device: DeviceId::new(254, 0),
            op: Rwbs::READ,
            ..Event::new(2_981_925_575, action)
        }
    }

    #[test]
    fn a_record_has_the_bytes_that_linux_writes() {
        // The submission of a 4 KiB read at sector 30,880 as recorded by Linux 6.1: action 0x110001
        // without its sync bit, device 254:0.
        let expected: Vec<u8> = [
            &[0x07, 0x74, 0x61, 0x65, 1, 0, 0, 0][..],
            &2_981_925_575u64.to_le_bytes(),
            &[0xa0, 0x78, 0, 0, 0, 0, 0, 0],
            &[0, 0x10, 0, 0, 0x01, 0, 0x11, 0],
            &[113, 0, 0, 0, 0, 0, 0xe0, 0x0f],
            &[0, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(encoded(read(Action::Queue), &[], Version::V7), expected);
    }

    #[test]
    fn categories_are_those_of_captures() {
        let sync_write = Rwbs::WRITE.with(Rwbs::SYNC);
        for (action, op, expected) in [
            (Action::Get, Rwbs::WRITE, 0x12_0004),
            (Action::BackMerge, sync_write, 0x1a_0002),
            (Action::Insert, Rwbs::WRITE, 0x112_000c),
            (Action::Issue, Rwbs::READ, 0x141_0007),
            (Action::Issue, Rwbs::READ.with(Rwbs::PASS_THROUGH), 0x241_0007),
            (Action::Complete, Rwbs::READ.with(Rwbs::AHEAD), 0x981_0008),
            (Action::Queue, Rwbs::WRITE.with(Rwbs::FLUSH), 0x16_0001),
            (Action::Queue, Rwbs::DISCARD, 0x2012_0001),
            (Action::Plug, Rwbs::NONE, 0x11_0009),
            (Action::Remap, Rwbs::READ.with(Rwbs::AHEAD), 0x811_000f),
        ] {
            let bytes = encoded(Event { op, ..read(action) }, &[], Version::V7);
            assert_eq!(u32::from_le_bytes(bytes[28..32].try_into().unwrap()), expected, "{action:?} {op:?}");
        }
    }

    #[test]
    fn a_record_of_version_8_has_the_layout_of_version_8() {
        let bytes = encoded(Event { cgroup: 9, error: 5, cpu: 3, ..read(Action::Complete) }, &[], Version::V8);
        assert_eq!(bytes.len(), 64 + 8);
        assert_eq!(bytes[..4], [0x08, 0x74, 0x61, 0x65]);
        assert_eq!((bytes[28], bytes[44], bytes[48], bytes[50], bytes[64]), (113, 3, 5, 8, 9));
        assert_eq!(u64::from_le_bytes(bytes[32..40].try_into().unwrap()), 0x181_0108);
    }

    #[test]
    fn names_and_messages_are_cut_off_between_characters() {
        let name = encoded(read(Action::Process), b"a name that is too long", Version::V7);
        assert_eq!((name[46], &name[48..]), (16, &b"a name that is \0"[..]));
        assert_eq!(encoded(read(Action::Message), "ö".repeat(600).as_bytes(), Version::V7).len(), 48 + 1024);
        assert_eq!(beginning("aö".as_bytes(), 2), b"a");
        assert_eq!(beginning(b"\x80\x80", 1), b"");
    }

    #[test]
    fn a_payload_is_cut_to_the_maximum_of_its_length_field() {
        let bytes = encoded(Event { cgroup: 1, ..read(Action::Issue) }, &[7; 70_000], Version::V7);
        assert_eq!((bytes.len(), &bytes[46..48]), (48 + 65_535, &[0xff, 0xff][..]));
    }
}
