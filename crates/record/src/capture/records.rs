//! Whole records in what the kernel gives, and what lies between them.

/// What begins every record, without its version.
const MAGIC: u32 = 0x6561_7400;
/// The bit of notes among the categories of an action.
const NOTIFY: u32 = 1 << (16 + 10);
/// A message, among notes.
const NOTE_MESSAGE: u32 = 2;
/// A line that tracefs writes is no longer than this, in bytes.
const LINE_BYTES_MAX: usize = 256;

/// The part of a record's head that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub time_ns: u64,
    pub pid: u32,
    pub cpu: u32,
    pub device: u32,
    pub sector: u64,
    /// The length of the request in bytes.
    pub bytes: u32,
    /// The number and the categories.
    pub action: u32,
    /// The length with its payload, in bytes.
    pub len: usize,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A record, as long as its head says.
    Record(Head),
    /// So many bytes that are no record; the kernel tells with them that it lost so many events.
    Else {
        /// How many bytes.
        bytes: usize,
        /// Events that were lost.
        lost: u64,
    },
    /// What is there is not all of a record.
    Part,
}

impl Head {
    /// Whether it tells of a process, the clock or a text.
    pub fn is_note(&self) -> bool {
        self.action & NOTIFY != 0
    }

    /// Whether it belongs to a device: messages and requests do, names of processes and the time of
    /// the day do not.
    pub fn has_device(&self) -> bool {
        !self.is_note() || self.action & 0xff == NOTE_MESSAGE
    }
}

/// Looks at the beginning of some bytes.
pub(super) fn next(bytes: &[u8]) -> Next {
    let Some(magic) = u32_at(bytes, 0) else {
        return Next::Part;
    };
    let head = match magic {
        _ if magic == MAGIC | 7 => head_7(bytes),
        _ if magic == MAGIC | 8 => head_8(bytes),
        _ => return between(bytes),
    };
    match head {
        Some(head) if head.len <= bytes.len() => Next::Record(head),
        _ => Next::Part,
    }
}

/// Version 7: 48 bytes.
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

/// Version 8: 64 bytes, the number of the action in the lower half of 64 bits.
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

/// Bytes up to the next record: a line as in `CPU:1 [LOST 4 EVENTS]`, or nothing that is known.
fn between(bytes: &[u8]) -> Next {
    if bytes.starts_with(b"CPU:") {
        return match bytes.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') {
            Some(end) => Next::Else { bytes: end + 1, lost: lost_in(&bytes[..end]) },
            None if bytes.len() < LINE_BYTES_MAX => Next::Part,
            None => Next::Else { bytes: LINE_BYTES_MAX, lost: 0 },
        };
    }
    let is_magic = |at: usize| u32_at(bytes, at).is_some_and(|word| word == MAGIC | 7 || word == MAGIC | 8);
    let is_line = |at: usize| bytes[at..].starts_with(b"CPU:");
    let end = (1..bytes.len().saturating_sub(3)).find(|at| is_magic(*at) || is_line(*at));
    match end.unwrap_or(bytes.len().saturating_sub(3)) {
        0 => Next::Part,
        bytes => Next::Else { bytes, lost: 0 },
    }
}

fn lost_in(line: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(line);
    let number = text.split_once("[LOST ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    // The kernel does not always know how many.
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
    fn records_come_out_whole_or_not_at_all() {
        let bytes = record(5, 0x11_0001, 9, 0x70_0000, 1, b"abc");
        let head =
            Head { time_ns: 5, pid: 9, cpu: 1, device: 0x70_0000, sector: 0, bytes: 0, action: 0x11_0001, len: 51 };
        assert_eq!(next(&bytes), Next::Record(head));
        for len in 0..bytes.len() {
            assert_eq!(next(&bytes[..len]), Next::Part, "{len} bytes");
        }
    }

    #[test]
    fn the_line_that_tells_of_lost_events_is_taken_out_and_counted() {
        let mut bytes = b"CPU:1 [LOST 412 EVENTS]\n".to_vec();
        assert_eq!(next(&bytes[..10]), Next::Part);
        bytes.extend(record(5, 1, 9, 0, 1, b""));
        assert_eq!(next(&bytes), Next::Else { bytes: 24, lost: 412 });
        assert!(matches!(next(&bytes[24..]), Next::Record(_)));
        assert_eq!(next(b"CPU:0 [LOST EVENTS]\nx"), Next::Else { bytes: 20, lost: 1 });
    }

    #[test]
    fn what_is_no_record_is_passed_over_to_the_next_one() {
        let mut bytes = vec![0x55; 7];
        assert_eq!(next(&bytes), Next::Else { bytes: 4, lost: 0 });
        bytes.extend(record(5, 1, 9, 0, 1, b""));
        assert_eq!(next(&bytes), Next::Else { bytes: 7, lost: 0 });
    }
}
