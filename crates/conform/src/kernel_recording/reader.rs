//! Converts the bytes of a recording to records.

use std::io::{self, Read};

use super::call::Call;
use super::error::{RecordError, RecordingError};
use super::record::{RECORD_SIZE, Record};

/// The first bytes of a recording.
pub(super) const MAGIC: &[u8; 8] = b"HWYCALLS";
/// The version of the format.
const VERSION: u16 = 1;
const DISK_AT: usize = 24;
const DISK_LEN: usize = 32;

/// The header of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Ticks a second of the kernel.
    pub hz: u32,
    /// The time of day at which the recording began, in ns since 1970.
    pub realtime_ns: u64,
    /// The name of the disk.
    pub disk: String,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`RecordingError::Header`] if it is not that of a recording of this version.
    pub fn from_bytes(bytes: &[u8; RECORD_SIZE]) -> Result<Header, RecordingError> {
        let invalid = |offset, message: String| Err(RecordingError::Header { offset, message });
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if !bytes.starts_with(MAGIC) {
            return invalid(0, "a recording begins with HWYCALLS".to_owned());
        }
        if short(8) != VERSION {
            return invalid(8, format!("version {} of the format; this program reads version {VERSION}", short(8)));
        }
        if usize::from(short(10)) != RECORD_SIZE {
            return invalid(10, format!("records of {} bytes; {RECORD_SIZE} would be right", short(10)));
        }
        let mut hz = [0; 4];
        hz.copy_from_slice(&bytes[12..16]);
        let mut realtime = [0; 8];
        realtime.copy_from_slice(&bytes[16..24]);
        let disk = bytes[DISK_AT..DISK_AT + DISK_LEN].split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Header {
            hz: u32::from_le_bytes(hz),
            realtime_ns: u64::from_le_bytes(realtime),
            disk: String::from_utf8_lossy(disk).into_owned(),
        })
    }

    /// The bytes of the header. A long name of the disk is cut.
    pub fn to_bytes(&self) -> [u8; RECORD_SIZE] {
        let mut bytes = [0; RECORD_SIZE];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(RECORD_SIZE as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.hz.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.realtime_ns.to_le_bytes());
        let len = self.disk.len().min(DISK_LEN - 1);
        bytes[DISK_AT..DISK_AT + len].copy_from_slice(&self.disk.as_bytes()[..len]);
        bytes
    }
}

/// Reads the records of a recording, one at a time, and checks their order.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    header: Header,
    compressed: bool,
    /// The number of the next record.
    number: u64,
    before_ns: u64,
    started: bool,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header. `compressed` says that `source` uncompresses data, for errors.
    ///
    /// # Errors
    /// [`RecordingError`] if the header is cut off or not that of a recording.
    pub fn new(mut source: R, compressed: bool) -> Result<Self, RecordingError> {
        let mut bytes = [0; RECORD_SIZE];
        let length = read_all(&mut source, &mut bytes).map_err(|error| failed(compressed, 0, error))?;
        if length < RECORD_SIZE {
            return Err(RecordingError::CutOff { offset: 0, length, number: 0 });
        }
        let header = Header::from_bytes(&bytes)?;
        Ok(Reader { source, header, compressed, number: 1, before_ns: 0, started: false, ended: false })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns true if the last record that was read is the end of the recording.
    pub fn is_complete(&self) -> bool {
        self.ended
    }

    /// Reads the next record; `None` at the end.
    ///
    /// # Errors
    /// [`RecordingError`] if the record is cut off, invalid or out of place.
    pub fn next_record(&mut self) -> Result<Option<Record>, RecordingError> {
        let (number, offset) = (self.number, self.number.saturating_mul(RECORD_SIZE as u64));
        let mut bytes = [0; RECORD_SIZE];
        let length = read_all(&mut self.source, &mut bytes).map_err(|error| failed(self.compressed, offset, error))?;
        match length {
            0 => return Ok(None),
            RECORD_SIZE => {}
            _ => return Err(RecordingError::CutOff { offset, length, number }),
        }
        let record = Record::from_bytes(number, &bytes).and_then(|record| self.check(&record).map(|()| record));
        let record = record.map_err(|error| RecordingError::Record { offset, number, error })?;
        self.number = self.number.saturating_add(1);
        Ok(Some(record))
    }

    fn check(&mut self, record: &Record) -> Result<(), RecordError> {
        let call = record.call;
        if self.ended {
            return Err(RecordError::Place { call, right: "the recording has ended" });
        }
        if !self.started && call != Call::Queue {
            return Err(RecordError::Place { call, right: "a recording begins with a queue" });
        }
        if call == Call::End {
            self.check_end(record)?;
        }
        if call != Call::Queue && record.time_ns < self.before_ns {
            return Err(RecordError::Time { time_ns: record.time_ns, before_ns: self.before_ns });
        }
        self.started = true;
        self.ended = call == Call::End;
        self.before_ns = record.time_ns;
        Ok(())
    }

    fn check_end(&self, record: &Record) -> Result<(), RecordError> {
        let [lost, counted, ..] = record.a;
        let found = self.number.saturating_sub(1);
        if lost > 0 {
            return Err(RecordError::Lost { lost, last: found });
        }
        if counted != found {
            return Err(RecordError::Count { counted, found });
        }
        Ok(())
    }
}

fn failed(compressed: bool, offset: u64, error: io::Error) -> RecordingError {
    if compressed { RecordingError::Compressed { offset, error } } else { RecordingError::Io(error) }
}

/// Fills the buffer as far as there are bytes; returns their number.
fn read_all(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match source.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header { hz: 250, realtime_ns: 5, disk: "vda".to_owned() }
    }

    fn bytes(records: &[Record]) -> Vec<u8> {
        let mut bytes = header().to_bytes().to_vec();
        bytes.extend(records.iter().flat_map(Record::to_bytes));
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Record>, RecordingError> {
        let mut reader = Reader::new(bytes, false)?;
        assert_eq!(*reader.header(), header());
        std::iter::from_fn(|| reader.next_record().transpose()).collect()
    }

    fn end(number: u64, lost: u64) -> Record {
        Record { a: [lost, number - 1, 0, 0], ..Record::new(number, 9, Call::End) }
    }

    #[test]
    fn records_are_read_in_order() {
        let records = [Record::new(1, 7, Call::Queue), Record::new(2, 9, Call::Next), end(3, 0)];
        assert_eq!(read(&bytes(&records)).unwrap(), records);
    }

    #[test]
    fn a_cut_recording_is_an_error_at_every_length_but_whole_records() {
        let whole = bytes(&[Record::new(1, 7, Call::Queue), Record::new(2, 9, Call::Next)]);
        for length in 0..whole.len() {
            let result = read(&whole[..length]);
            if length > 0 && length % RECORD_SIZE == 0 {
                assert_eq!(result.unwrap().len(), length / RECORD_SIZE - 1);
            } else {
                let error = result.unwrap_err().to_string();
                let offset = length / RECORD_SIZE * RECORD_SIZE;
                assert!(error.starts_with(&format!("offset {offset}: the recording ends after ")), "{error}");
            }
        }
    }

    #[test]
    fn a_header_of_something_else_is_an_error() {
        for (at, value, part) in [(0, b'x', "HWYCALLS"), (8, 2, "version 2"), (10, 32, "records of 32 bytes")] {
            let mut bytes = bytes(&[]);
            bytes[at] = value;
            let error = read(&bytes).unwrap_err().to_string();
            assert!(error.starts_with(&format!("offset {at}: ")) && error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_order_of_records_is_checked() {
        let queue = Record::new(1, 7, Call::Queue);
        let cases: [(&[Record], &str); 6] = [
            (&[Record::new(1, 7, Call::Next)], "offset 64: record 1: next is out of place"),
            (&[queue, Record::new(2, 6, Call::Next)], "offset 128: record 2: its time is 6 ns"),
            (&[queue, Record::new(3, 8, Call::Next)], "its sequence number is 3, 2 would be right"),
            (&[queue, end(2, 0), Record::new(3, 10, Call::Next)], "the recording has ended"),
            (&[queue, end(2, 4)], "4 records were lost after record 1"),
            (&[queue, Record { a: [0, 9, 0, 0], ..Record::new(2, 9, Call::End) }], "counts 9 records, 1 are there"),
        ];
        for (records, part) in cases {
            let error = read(&bytes(records)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        // A new queue may have been created before the last call of the old one.
        assert!(read(&bytes(&[queue, Record::new(2, 9, Call::Timer), Record::new(3, 8, Call::Queue)])).is_ok());
    }
}
