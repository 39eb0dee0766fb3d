//! Reads oracleGeneral, the format of traces with the cache simulator libCacheSim: records of 24
//! bytes without a header, `{u32 seconds, u64 object, u32 bytes, i64 next}`, little-endian.
//!
//! `next` is the number of the next record with the same object, counted from 1; -1 or the largest
//! number stand for none. Of block traces, the object is the address, in sectors or bytes. The
//! format has no operations and no volumes.

use crate::event::{DeviceId, Rwbs};
use crate::offset_unit::{self, OffsetUnit};
use crate::places::ObjectPlaces;
use crate::records::{RecordFormat, u32_at, u64_at};
use crate::text::{LineError, LineOutput, Request};

/// Length of a record in bytes.
pub const RECORD_BYTES: usize = 24;
/// Number of records that the detection needs.
const RECORDS_MIN: usize = 200;
/// Largest plausible address in sectors: that of 1 PiB.
const SECTORS_MAX: u64 = 1 << 41;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    seconds: u32,
    object: u64,
    bytes: u32,
    next: i64,
}

impl Record {
    fn of(bytes: &[u8]) -> Option<Record> {
        Some(Record {
            seconds: u32_at(bytes, 0)?,
            object: u64_at(bytes, 4)?,
            bytes: u32_at(bytes, 12)?,
            next: u64_at(bytes, 16)?.cast_signed(),
        })
    }

    /// Number of the next record with the same object, counted from 0.
    fn next(&self) -> Option<u64> {
        match self.next {
            i64::MAX => None,
            next => u64::try_from(next).ok()?.checked_sub(1),
        }
    }
}

/// Parser of the records.
#[derive(Debug)]
pub struct OracleGeneral {
    addresses: Addresses,
    /// Number of the next record.
    count: u64,
}

/// Conversion of objects to addresses, for formats of libCacheSim.
#[derive(Debug)]
pub struct Addresses {
    unit: OffsetUnit,
    places: ObjectPlaces,
}

impl Addresses {
    /// Creates the conversion for a trace that begins with these objects, with a remark about the
    /// unit. `specified` is the unit; None detects it.
    pub fn new(objects: &[u64], specified: Option<OffsetUnit>, places: &ObjectPlaces) -> (Addresses, String) {
        let (unit, remark) = match specified {
            Some(OffsetUnit::Objects) => (OffsetUnit::Objects, ObjectPlaces::REMARK.to_owned()),
            Some(unit) => (unit, format!("offsets count {}", unit.name())),
            None => match offset_unit::detect(objects) {
                (OffsetUnit::Bytes, why) if objects.iter().any(|object| object / 512 > SECTORS_MAX) => {
                    let what = format!("the numbers are no addresses ({why})");
                    (OffsetUnit::Objects, format!("{what}: {}", ObjectPlaces::REMARK))
                }
                (unit, why) => (unit, offset_unit::remark(unit, &why)),
            },
        };
        (Addresses { unit, places: places.clone() }, remark)
    }

    /// Returns the address of an object on a device in bytes.
    pub fn address(&self, device: DeviceId, object: u64, bytes: u64, out: &mut LineOutput<'_>) -> u64 {
        match self.unit {
            // Some collections add the number of the volume to the address.
            OffsetUnit::Bytes => object & !511,
            OffsetUnit::Sectors => object.saturating_mul(512),
            OffsetUnit::Objects => self.places.address(device, object, 0, bytes, out),
        }
    }
}

impl OracleGeneral {
    /// Creates a parser for an input with this beginning, with a remark.
    pub fn new(head: &[u8], unit: Option<OffsetUnit>, places: &ObjectPlaces) -> (OracleGeneral, Option<String>) {
        let objects: Vec<u64> =
            head.chunks_exact(RECORD_BYTES).filter_map(|bytes| Some(Record::of(bytes)?.object)).collect();
        let (addresses, remark) = Addresses::new(&objects, unit, places);
        let what = "the format has no operations: all requests count as reads. Times are whole seconds: requests of one \
                    second have the same time";
        (OracleGeneral { addresses, count: 0 }, Some(format!("{what}. {remark}")))
    }
}

/// Returns true if an input with this beginning has the format: times do not decrease, sizes are
/// not 0, and the numbers of next records lead to the same object, at least once and always.
pub fn is_oracle_general(head: &[u8]) -> bool {
    let records: Vec<Record> = head.chunks_exact(RECORD_BYTES).filter_map(Record::of).collect();
    let in_order = records.windows(2).all(|pair| matches!(pair, [a, b] if a.seconds <= b.seconds));
    if records.len() < RECORDS_MIN || !in_order || records.iter().any(|record| record.bytes == 0) {
        return false;
    }
    let mut repeated = 0;
    for (number, record) in (0u64..).zip(&records) {
        let Some(next) = record.next() else {
            if record.next == -1 || record.next == i64::MAX {
                continue;
            }
            return false;
        };
        if next <= number {
            return false;
        }
        match usize::try_from(next).ok().and_then(|next| records.get(next)) {
            Some(other) if other.object == record.object => repeated += 1,
            Some(_) => return false,
            None => {}
        }
    }
    repeated > 0
}

impl RecordFormat for OracleGeneral {
    fn record_bytes(&self) -> usize {
        RECORD_BYTES
    }

    fn record(&mut self, bytes: &[u8], out: &mut LineOutput<'_>) -> Result<Option<Request>, LineError> {
        let record = Record::of(bytes).ok_or("the record is too short")?;
        let number = self.count;
        self.count += 1;
        if record.next().is_some_and(|next| next <= number) {
            return Err(format!("the next request of record {} has the number {}", number + 1, record.next).into());
        }
        let (device, bytes) = (DeviceId(0), u64::from(record.bytes));
        let offset = self.addresses.address(device, record.object, bytes, out);
        let time_ns = u64::from(record.seconds) * 1_000_000_000;
        Ok(Some(Request { time_ns, device, op: Rwbs::READ, offset, bytes, ..Request::default() }))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::records::RecordSource;
    use crate::source::Source as _;
    use crate::stream::Stream;

    /// Returns records: each object is used twice, `distance` records apart.
    pub fn records(count: u64, distance: u64, object: impl Fn(u64) -> u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for at in 0..count {
            let (round, within) = (at / distance, at % distance);
            let next = if round % 2 == 0 && at + distance < count { (at + distance + 1) as i64 } else { -1 };
            bytes.extend((at as u32 / 10).to_le_bytes());
            bytes.extend(object(round / 2 * distance + within).to_le_bytes());
            bytes.extend(4096u32.to_le_bytes());
            bytes.extend(next.to_le_bytes());
        }
        bytes
    }

    fn read(bytes: Vec<u8>, unit: Option<OffsetUnit>) -> (Batch, Vec<String>) {
        let (format, remark) = OracleGeneral::new(&bytes, unit, &ObjectPlaces::default());
        let stream = Stream { name: "a".to_owned(), read: Box::new(std::io::Cursor::new(bytes)) };
        let mut source = RecordSource::new(stream, format);
        source.add_notice(remark.unwrap());
        let mut batch = Batch::new();
        source.next(&mut batch).unwrap();
        (batch, source.notices().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn records_are_detected_by_their_next_requests() {
        let bytes = records(400, 20, |object| 100 + object * 9);
        assert!(is_oracle_general(&bytes));
        assert!(!is_oracle_general(&bytes[..199 * 24]), "too few");
        assert!(!is_oracle_general(&records(400, 1000, |object| object)), "no object returns");
        assert!(!is_oracle_general(&bytes[4..]), "shifted");
        for (at, value) in [(13, 0), (16, 1), (24 * 20 + 4, 99)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            assert!(!is_oracle_general(&wrong), "byte {at} is {value}");
        }
    }

    #[test]
    fn objects_are_sectors_bytes_or_neither() {
        let sector = |object: u64| 1000 + object * 9;
        let (batch, notices) = read(records(1200, 100, sector), None);
        assert_eq!((batch.events()[1].sector, batch.events()[1].time_ns), (1009, 0));
        assert!(notices[0].contains("assuming offsets in sectors"), "{notices:?}");
        let (batch, notices) = read(records(1200, 100, |object| object * 4096 + 7), None);
        assert_eq!(batch.events()[1].sector, 8);
        assert!(notices[0].contains("assuming offsets in bytes"), "{notices:?}");
        let hash = |object: u64| (object + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (batch, notices) = read(records(1200, 100, hash), None);
        assert_eq!((batch.events()[0].sector, batch.events()[1].sector), (0, 2048));
        assert!(notices[0].contains("the trace has objects and no addresses"), "{notices:?}");
        assert_eq!(read(records(1200, 100, sector), Some(OffsetUnit::Objects)).0.events()[1].sector, 2048);
    }

    #[test]
    fn a_record_whose_next_request_is_before_it_is_skipped() {
        let mut bytes = records(400, 20, |object| object);
        bytes[24 * 50 + 16..24 * 50 + 24].copy_from_slice(&3i64.to_le_bytes());
        let (batch, notices) = read(bytes, None);
        assert_eq!(batch.len(), 399);
        assert!(notices[1].starts_with("a at byte 1200: damaged records were skipped"), "{notices:?}");
    }
}
