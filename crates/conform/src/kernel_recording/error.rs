//! Errors in recordings.

use std::io;

use super::call::Call;

/// Reason why a recording was not replayed to its end. Offsets are in bytes of the uncompressed
/// recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The recording could not be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The compressed data is damaged or cut off.
    #[error("offset {offset}: the gzip data is damaged or cut off: {error}")]
    Compressed {
        /// The length of what could be uncompressed.
        offset: u64,
        /// The error of the decompressor.
        error: io::Error,
    },
    /// The header is not that of a recording.
    #[error("offset {offset}: {message}")]
    Header {
        /// The place of the field.
        offset: u64,
        /// The invalid value and valid ones.
        message: String,
    },
    /// The recording ends in the middle of a record.
    #[error("offset {offset}: the recording ends after {length} of the 64 bytes of record {number}")]
    CutOff {
        /// The start of the record.
        offset: u64,
        /// The number of bytes.
        length: usize,
        /// The number of the record.
        number: u64,
    },
    /// A record is invalid.
    #[error("offset {offset}: record {number}: {error}")]
    Record {
        /// The start of the record.
        offset: u64,
        /// The number of the record.
        number: u64,
        /// The error in the record.
        error: RecordError,
    },
}

/// Errors in a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The number of the call is unknown.
    #[error("there is no call {number}")]
    Call {
        /// The number in the record.
        number: u8,
    },
    /// Records are missing, or belong to another recording.
    #[error("its sequence number is {sequence}, {right} would be right: records are missing before it")]
    Sequence {
        /// The number in the record.
        sequence: u16,
        /// The number of a record at this place.
        right: u16,
    },
    /// A number is out of its range.
    #[error("{field} of {} is {value}; {right} would be right", call.name())]
    Value {
        /// The call.
        call: Call,
        /// The name of the field.
        field: &'static str,
        /// The invalid number.
        value: i64,
        /// The range of valid numbers.
        right: &'static str,
    },
    /// The time is before that of the record before.
    #[error("its time is {time_ns} ns, before that of the record before ({before_ns} ns)")]
    Time {
        /// The time of the record.
        time_ns: u64,
        /// The time of the record before.
        before_ns: u64,
    },
    /// The record is not possible at this place.
    #[error("{} is out of place; {right}", call.name())]
    Place {
        /// The call.
        call: Call,
        /// The records that are possible.
        right: &'static str,
    },
    /// The elevator is unknown.
    #[error("there is no elevator {name:?}")]
    Elevator {
        /// The name in the record.
        name: String,
    },
    /// The elevator has no such tunable, or the value is out of its range.
    #[error("elevator {elevator} does not take the tunable {tunable}={value}")]
    Tunable {
        /// The name of the elevator.
        elevator: &'static str,
        /// The name of the tunable.
        tunable: String,
        /// The value.
        value: i64,
    },
    /// The module had no room for further records.
    #[error(
        "{lost} records were lost after record {last}, because the buffer was full: enlarge buffer_records, or read the recording while it is made"
    )]
    Lost {
        /// The number of lost records.
        lost: u64,
        /// The number of the last record before them.
        last: u64,
    },
    /// The count in the last record is not that of the records before it.
    #[error("the recording counts {counted} records, {found} are there")]
    Count {
        /// The number in the record.
        counted: u64,
        /// The number of records before it.
        found: u64,
    },
    /// A bit of the configuration is not supported by the replay.
    #[error("{what} is {value}; {right} would be right")]
    Start {
        /// The name of the field.
        what: &'static str,
        /// The value.
        value: u64,
        /// The valid values.
        right: String,
    },
}
