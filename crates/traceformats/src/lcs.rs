//! Reads lcs, the format of libCacheSim with a header and a version.
//!
//! | | until 2024 | later |
//! |---|---|---|
//! | header | 1024 bytes | 8192 bytes |
//! | byte 8 | a format of the record: `<` and a letter for each field | the version, 1 to 8 |
//! | record | packed fields; bytes 248 to 256 hold the numbers of the fields, counted from 1 | by version |
//!
//! Both begin and end their header with the same number of 8 bytes. Times are seconds, sizes bytes.
//! The tenant is the volume of a block trace, which becomes the device.

use crate::event::{DeviceId, Rwbs};
use crate::offset_unit::OffsetUnit;
use crate::oracle_general::Addresses;
use crate::places::ObjectPlaces;
use crate::records::{RecordFormat, u16_at, u32_at, u64_at};
use crate::text::{LineError, LineOutput, NamedDevices, Request, SharedNames, shown};

/// The number at the start and the end of a header.
const MAGIC: u64 = 0x1234_5678_9abc_def0;
/// Length of the header until 2024 in bytes.
const OLD_HEADER_BYTES: usize = 1024;
/// Length of the later header in bytes.
const HEADER_BYTES: usize = 8192;
/// Maximum number of fields of a record.
const FIELDS_MAX: usize = 64;

/// A field of a record: its position and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    at: usize,
    bytes: usize,
}

/// Layout of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    header_bytes: usize,
    record_bytes: usize,
    time: Field,
    object: Field,
    size: Field,
    op: Option<Field>,
    tenant: Option<Field>,
}

/// Parser of the records.
#[derive(Debug)]
pub struct Lcs {
    layout: Layout,
    addresses: Addresses,
    volumes: NamedDevices,
}

/// Returns the version of a header, or 0 for one until 2024; None if `head` begins with none.
pub fn version_of(head: &[u8]) -> Option<u64> {
    let is_magic = |at: usize| u64_at(head, at) == Some(MAGIC);
    if !is_magic(0) {
        return None;
    }
    if head.get(8) == Some(&b'<') && is_magic(OLD_HEADER_BYTES - 8) {
        return Some(0);
    }
    u64_at(head, 8).filter(|version| (1..=8).contains(version) && is_magic(HEADER_BYTES - 8))
}

impl Lcs {
    /// Creates a parser for an input with this beginning, with a remark.
    ///
    /// # Errors
    /// Fails if the header is invalid.
    pub fn new(
        head: &[u8],
        unit: Option<OffsetUnit>,
        places: &ObjectPlaces,
        names: &SharedNames,
    ) -> Result<(Lcs, Option<String>), String> {
        let layout = match version_of(head) {
            Some(0) => Layout::old(head)?,
            Some(version) => Layout::of_version(version),
            None => return Err("it has no header of lcs with a version from 1 to 8".to_owned()),
        };
        let records = head.get(layout.header_bytes..).unwrap_or_default().chunks_exact(layout.record_bytes);
        let objects: Vec<u64> = records.filter_map(|record| layout.object.of(record)).collect();
        let (addresses, remark) = Addresses::new(&objects, unit, places);
        let mut remarks = vec!["times are whole seconds: requests of one second have the same time".to_owned()];
        if layout.op.is_none() {
            remarks.push("the records have no operations: all requests count as reads".to_owned());
        }
        remarks.push(remark);
        Ok((Lcs { layout, addresses, volumes: NamedDevices::new(names) }, Some(remarks.join(". "))))
    }
}

impl Field {
    const fn new(at: usize, bytes: usize) -> Field {
        Field { at, bytes }
    }

    fn of(self, record: &[u8]) -> Option<u64> {
        match self.bytes {
            1 => record.get(self.at).map(|byte| u64::from(*byte)),
            2 => u16_at(record, self.at).map(u64::from),
            3 => u32_at(record, self.at - 1).map(|word| u64::from(word >> 8)),
            4 => u32_at(record, self.at).map(u64::from),
            _ => u64_at(record, self.at),
        }
    }
}

impl Layout {
    /// Layout of a version of the later header.
    fn of_version(version: u64) -> Layout {
        let (size_bytes, record_bytes) = match version {
            1 => (4, 24),
            2 => (4, 28),
            3 => (8, 36),
            4 => (8, 40),
            5 => (8, 44),
            6 => (8, 52),
            7 => (8, 68),
            _ => (8, 100),
        };
        let op_at = 12 + size_bytes;
        Layout {
            header_bytes: HEADER_BYTES,
            record_bytes,
            time: Field::new(0, 4),
            object: Field::new(4, 8),
            size: Field::new(12, size_bytes),
            // The lower 8 bits of a word are the operation, the upper 24 the tenant.
            op: (version > 1).then_some(Field::new(op_at, 1)),
            tenant: (version > 1).then_some(Field::new(op_at + 1, 3)),
        }
    }

    /// Layout of a header until 2024.
    fn old(head: &[u8]) -> Result<Layout, String> {
        let format = head.get(9..248).unwrap_or_default();
        let format = format.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut fields = Vec::new();
        let mut at = 0;
        for letter in format.iter().take(FIELDS_MAX) {
            let bytes = match letter {
                b'c' | b'b' | b'B' => 1,
                b'h' | b'H' => 2,
                b'i' | b'I' | b'f' => 4,
                b'q' | b'Q' | b'd' => 8,
                _ => return Err(format!("the format {} of its records is not known", shown(format))),
            };
            fields.push(Field::new(at, bytes));
            at += bytes;
        }
        let field = |byte: usize| {
            let number = usize::from(head.get(byte).copied().unwrap_or(0));
            number.checked_sub(1).and_then(|index| fields.get(index).copied())
        };
        let want = |byte: usize, what: &str| {
            field(byte).ok_or_else(|| format!("its records have no field for {what} (format {})", shown(format)))
        };
        let record_bytes = u32_at(head, 1004).map_or(0, |bytes| bytes as usize);
        if record_bytes != at {
            return Err(format!("its records have {record_bytes} bytes, but the fields {} take {at}", shown(format)));
        }
        Ok(Layout {
            header_bytes: OLD_HEADER_BYTES,
            record_bytes,
            object: want(248, "the object")?,
            size: want(249, "the size")?,
            time: want(250, "the time")?,
            op: field(253),
            tenant: field(255),
        })
    }
}

/// Returns the direction of an operation of libCacheSim; None for an unknown one.
fn operation(number: u64) -> Option<Rwbs> {
    match number {
        // nop stands where the source of the trace has no operations; get, gets, read.
        0 | 1 | 2 | 12 => Some(Rwbs::READ),
        // set, add, cas, replace, append, prepend, incr, decr, write, update.
        3..=8 | 10 | 11 | 13 | 14 => Some(Rwbs::WRITE),
        9 => Some(Rwbs::DISCARD),
        _ => None,
    }
}

impl RecordFormat for Lcs {
    fn header_bytes(&self) -> usize {
        self.layout.header_bytes
    }

    fn record_bytes(&self) -> usize {
        self.layout.record_bytes
    }

    fn record(&mut self, bytes: &[u8], out: &mut LineOutput<'_>) -> Result<Option<Request>, LineError> {
        let Layout { time, object, size, op, tenant, .. } = self.layout;
        let want = |field: Field| field.of(bytes).ok_or("the record is too short");
        let code = op.map_or(Ok(0), want)?;
        let op = operation(code).ok_or_else(|| format!("the operation {code} is not known: 0 to 14 are"))?;
        let device = match tenant.map_or(Ok(0), want)? {
            0 => DeviceId(0),
            volume @ 1..=0xF_FFFF => DeviceId::new(0, volume as u32),
            volume => self.volumes.device(volume.to_string().as_bytes(), out)?,
        };
        let length = want(size)?;
        let offset = self.addresses.address(device, want(object)?, length, out);
        let time_ns = want(time)?.saturating_mul(1_000_000_000);
        Ok(Some(Request { time_ns, device, op, offset, bytes: length, ..Request::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::oracle_general::tests::records;
    use crate::records::RecordSource;
    use crate::source::Source as _;
    use crate::stream::Stream;

    fn header(version: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&version.to_le_bytes());
        bytes[HEADER_BYTES - 8..].copy_from_slice(&MAGIC.to_le_bytes());
        bytes
    }

    fn old_header(format: &[u8], numbers: [u8; 9], record_bytes: u32) -> Vec<u8> {
        let mut bytes = vec![0; OLD_HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..8 + format.len()].copy_from_slice(format);
        bytes[248..257].copy_from_slice(&numbers);
        bytes[1004..1008].copy_from_slice(&record_bytes.to_le_bytes());
        bytes[OLD_HEADER_BYTES - 8..].copy_from_slice(&MAGIC.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Batch {
        let places = ObjectPlaces::default();
        let (lcs, _) = Lcs::new(bytes, Some(OffsetUnit::Sectors), &places, &SharedNames::default()).unwrap();
        let stream = Stream { name: "a".to_owned(), read: Box::new(std::io::Cursor::new(bytes.to_vec())) };
        let mut batch = Batch::new();
        RecordSource::new(stream, lcs).next(&mut batch).unwrap();
        batch
    }

    #[test]
    fn each_version_has_its_length_and_its_position_of_the_operation() {
        for (version, record_bytes) in [(2u64, 28), (3, 36), (4, 40), (5, 44), (6, 52), (7, 68), (8, 100)] {
            let mut bytes = header(version);
            for (at, op) in [(0u32, 12u32), (1, 13)] {
                let mut record = vec![0; record_bytes];
                record[..4].copy_from_slice(&(100 + at).to_le_bytes());
                record[4..12].copy_from_slice(&u64::from(8 * (at + 1)).to_le_bytes());
                record[12..16].copy_from_slice(&4096u32.to_le_bytes());
                let op_at = if version == 2 { 16 } else { 20 };
                record[op_at..op_at + 4].copy_from_slice(&(op | 7 << 8).to_le_bytes());
                bytes.extend(record);
            }
            assert_eq!(version_of(&bytes), Some(version));
            let batch = read(&bytes);
            let seen: Vec<_> = batch
                .events()
                .iter()
                .map(|event| (event.time_ns / 1_000_000_000, event.sector, event.bytes, event.op, event.device.minor()))
                .collect();
            assert_eq!(seen, [(100, 8, 4096, Rwbs::READ, 7), (101, 16, 4096, Rwbs::WRITE, 7)], "version {version}");
        }
    }

    #[test]
    fn version_1_and_the_old_header_have_records_of_oracle_general() {
        let records = records(4, 2, |object| 8 * object);
        let old = old_header(b"<IQIQ", [2, 3, 1, 0, 4, 0, 0, 0, 0], 24);
        assert_eq!(version_of(&old), Some(0));
        for head in [header(1), old] {
            let batch = read(&[head, records.clone()].concat());
            let sectors: Vec<u64> = batch.events().iter().map(|event| event.sector).collect();
            assert_eq!(sectors, [0, 8, 0, 8]);
        }
    }

    #[test]
    fn an_invalid_header_names_the_field() {
        let new = |bytes: &[u8]| Lcs::new(bytes, None, &ObjectPlaces::default(), &SharedNames::default()).unwrap_err();
        assert!(new(&header(9)).contains("a version from 1 to 8"));
        assert!(new(&old_header(b"<IX", [1; 9], 24)).contains("the format \"IX\""));
        assert!(new(&old_header(b"<IQI", [2, 3, 0, 0, 0, 0, 0, 0, 0], 16)).contains("no field for the time"));
        assert!(new(&old_header(b"<IQI", [2, 3, 1, 0, 0, 0, 0, 0, 0], 17)).contains("have 17 bytes"));
    }
}
