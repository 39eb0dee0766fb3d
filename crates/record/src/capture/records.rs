//! Splits the kernel's bytes into whole records and the text between them.

/// The beginning of every record, without its version.
const MAGIC: u32 = 0x6561_7400;
/// The bit of notes among the categories of an action.
const NOTIFY: u32 = 1 << (16 + 10);
/// A message, among notes.
const NOTE_MESSAGE: u32 = 2;
/// The longest line that tracefs writes, in bytes.
const LINE_BYTES_MAX: usize = 256;

/// The used fields of a record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub time_ns: u64,
    pub pid: u32,
    pub cpu: u32,
    pub device: u32,
    pub sector: u64,
    /// The length of the request in bytes.
    pub bytes: u32,
    /// The action number and the categories.
    pub action: u32,
    /// The length of the record with its payload, in bytes.
    pub len: usize,
}

/// The next item of the byte stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A complete record.
    Record(Head),
    /// Bytes that are no record; tracefs reports lost events in this way.
    Other {
        /// The number of bytes.
        bytes: usize,
        /// The number of lost events.
        lost: u64,
    },
    /// The bytes are a part of a record.
    Incomplete,
}

impl Head {
    /// Returns true for a note: about a process, the clock, or a message.
    pub fn is_note(&self) -> bool {
        self.action & NOTIFY != 0
    }

    /// Returns true if the record belongs to a device: messages and requests do, process names and
    /// the wall-clock time do not.
    pub fn has_device(&self) -> bool {
        !self.is_note() || self.action & 0xff == NOTE_MESSAGE
    }
}

/// Finds the next item at the beginning of the bytes.
pub(super) fn next(bytes: &[u8]) -> Next {
    let Some(magic) = u32_at(bytes, 0) else {
        return Next::Incomplete;
    };
    let head = match magic {
        _ if magic == MAGIC | 7 => head_7(bytes),
        _ if magic == MAGIC | 8 => head_8(bytes),
        _ => return between(bytes),
    };
    match head {
        Some(head) if head.len <= bytes.len() => Next::Record(head),
        _ => Next::Incomplete,
    }
}

/// Parses a header of version 7: 48 bytes.
fn head_7(bytes: &[u8]) -> Option<Head> {
    Some(Head {
        time_ns: u64_at(bytes, 8)?,
        sector: u64_at(bytes, 16)?,
        bytes: u32_at(bytes, 24)?,
        action: u32_at(bytes, 28)?,
        pid: u32_at(bytes, 32)?,
        device: u32_at(bytes, 36)?,
        cpu: u32_at(bytes, 40)?,
        len: 48 + usize::from(u16_at(bytes, 46)?),
    })
}

/// Parses a header of version 8: 64 bytes, the action number in the lower half of 64 bits.
fn head_8(bytes: &[u8]) -> Option<Head> {
    Some(Head {
        time_ns: u64_at(bytes, 8)?,
        sector: u64_at(bytes, 16)?,
        bytes: u32_at(bytes, 24)?,
        pid: u32_at(bytes, 28)?,
        action: u64_at(bytes, 32)? as u32,
        device: u32_at(bytes, 40)?,
        cpu: u32_at(bytes, 44)?,
        len: 64 + usize::from(u16_at(bytes, 50)?),
    })
}

/// Returns the bytes up to the next record: a line such as `CPU:1 [LOST 4 EVENTS]`, or unknown
/// bytes.
fn between(bytes: &[u8]) -> Next {
    if bytes.starts_with(b"CPU:") {
        return match bytes.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') {
            Some(end) => Next::Other { bytes: end + 1, lost: lost_in(&bytes[..end]) },
            None if bytes.len() < LINE_BYTES_MAX => Next::Incomplete,
            None => Next::Other { bytes: LINE_BYTES_MAX, lost: 0 },
        };
    }
    let is_magic = |at: usize| u32_at(bytes, at).is_some_and(|word| word == MAGIC | 7 || word == MAGIC | 8);
    let is_line = |at: usize| bytes[at..].starts_with(b"CPU:");
    let end = (1..bytes.len().saturating_sub(3)).find(|at| is_magic(*at) || is_line(*at));
    match end.unwrap_or(bytes.len().saturating_sub(3)) {
        0 => Next::Incomplete,
        bytes => Next::Other { bytes, lost: 0 },
    }
}

fn lost_in(line: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(line);
    let number = text.split_once("[LOST ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    // The kernel does not always report the number.
    number.unwrap_or(1)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record of version 7 as the kernel of this machine would write it.
    pub fn record(time_ns: u64, action: u32, pid: u32, device: u32, cpu: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 48];
        bytes[0..4].copy_from_slice(&(MAGIC | 7).to_ne_bytes());
        bytes[8..16].copy_from_slice(&time_ns.to_ne_bytes());
        bytes[28..32].copy_from_slice(&action.to_ne_bytes());
        bytes[32..36].copy_from_slice(&pid.to_ne_bytes());
        bytes[36..40].copy_from_slice(&device.to_ne_bytes());
        bytes[40..44].copy_from_slice(&cpu.to_ne_bytes());
        bytes[46..48].copy_from_slice(&(payload.len() as u16).to_ne_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn records_are_complete_or_absent() {
        let bytes = record(5, 0x11_0001, 9, 0x70_0000, 1, b"abc");
        let head =
            Head { time_ns: 5, pid: 9, cpu: 1, device: 0x70_0000, sector: 0, bytes: 0, action: 0x11_0001, len: 51 };
        assert_eq!(next(&bytes), Next::Record(head));
        for len in 0..bytes.len() {
            assert_eq!(next(&bytes[..len]), Next::Incomplete, "{len} bytes");
        }
    }

    #[test]
    fn the_line_of_lost_events_is_removed_and_counted() {
        let mut bytes = b"CPU:1 [LOST 412 EVENTS]\n".to_vec();
        assert_eq!(next(&bytes[..10]), Next::Incomplete);
        bytes.extend(record(5, 1, 9, 0, 1, b""));
        assert_eq!(next(&bytes), Next::Other { bytes: 24, lost: 412 });
        assert!(matches!(next(&bytes[24..]), Next::Record(_)));
        assert_eq!(next(b"CPU:0 [LOST EVENTS]\nx"), Next::Other { bytes: 20, lost: 1 });
    }

    #[test]
    fn bytes_without_a_record_are_skipped() {
        let mut bytes = vec![0x55; 7];
        assert_eq!(next(&bytes), Next::Other { bytes: 4, lost: 0 });
        bytes.extend(record(5, 1, 9, 0, 1, b""));
        assert_eq!(next(&bytes), Next::Other { bytes: 7, lost: 0 });
    }
}
