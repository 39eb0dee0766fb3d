//! The binary records.

use super::operation;
use crate::event::DeviceId;
use crate::records::{RecordFormat, u16_at, u32_at, u64_at};
use crate::text::{LineError, LineOutput, Request};

/// Number of records that are examined to detect the format.
const RECORDS_EXAMINED: usize = 64;

/// Version of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Without response times.
    One,
    /// With response times.
    Two,
}

/// The fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    version: u16,
    command: u16,
    bytes: u32,
    block: u64,
    time_us: u64,
    response_us: Option<u64>,
}

impl Version {
    /// Detects the version: all records at the beginning have its number, and the first is a read
    /// or write.
    pub fn of(head: &[u8]) -> Option<Version> {
        [Version::One, Version::Two].into_iter().find(|version| {
            let records: Vec<Record> = head
                .chunks_exact(version.bytes())
                .take(RECORDS_EXAMINED)
                .filter_map(|bytes| version.record(bytes))
                .collect();
            let is_right = |record: &Record| record.version >> 8 == version.number();
            records.first().is_some_and(|first| operation(first.command).is_some()) && records.iter().all(is_right)
        })
    }

    /// Length of a record in bytes.
    const fn bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// Number of the version in the records.
    pub const fn number(self) -> u16 {
        match self {
            Version::One => 1,
            Version::Two => 2,
        }
    }

    fn record(self, bytes: &[u8]) -> Option<Record> {
        let (command, version, length, response_us) = match self {
            Version::One => (u16_at(bytes, 12)?, u16_at(bytes, 14)?, u32_at(bytes, 4)?, None),
            Version::Two => (u16_at(bytes, 0)?, u16_at(bytes, 2)?, u32_at(bytes, 8)?, Some(u64_at(bytes, 32)?)),
        };
        Some(Record {
            version,
            command,
            bytes: length,
            block: u64_at(bytes, 16)?,
            time_us: u64_at(bytes, 24)?,
            response_us,
        })
    }
}

/// Parser of binary records.
#[derive(Debug)]
pub struct Records {
    version: Version,
}

impl Records {
    /// Creates a parser for records of a version.
    pub fn new(version: Version) -> Records {
        Records { version }
    }
}

impl RecordFormat for Records {
    fn record_bytes(&self) -> usize {
        self.version.bytes()
    }

    fn record(&mut self, bytes: &[u8], out: &mut LineOutput<'_>) -> Result<Option<Request>, LineError> {
        let record = self.version.record(bytes).ok_or("the record is too short")?;
        if record.version >> 8 != self.version.number() {
            return Err(format!("version {:#06x} instead of {:#04x}xx", record.version, self.version.number()).into());
        }
        let Some(op) = operation(record.command) else {
            let kind = "SCSI commands other than reads, writes and unmaps are left out";
            out.notices.count(kind, out.position, || format!("command {:#04x}", record.command));
            return Ok(None);
        };
        Ok(Some(Request {
            time_ns: record.time_us.saturating_mul(1000),
            response_ns: record.response_us.map(|us| us.saturating_mul(1000)),
            device: DeviceId(0),
            op,
            offset: record.block.saturating_mul(512),
            bytes: u64::from(record.bytes),
            ..Request::default()
        }))
    }
}
