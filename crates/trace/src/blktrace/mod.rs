//! blktrace's binary format, version 7: what `blkparse -i NAME` reads from files called `NAME.blktrace.CPU`.
//!
//! A file is a sequence of records: 48 bytes, little-endian, and a payload. Their layout, the numbers of actions and the bits of categories are those of the
//! kernel's user interface, checked against captures of Linux 6.1 and against `blkparse` 1.2:
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0 | magic | 0x65617400, plus the version 7 |
//! | 4 | sequence | counts the records of a CPU; 0 for notes |
//! | 8 | time | ns |
//! | 16 | sector | 512 bytes each |
//! | 24 | bytes | the length |
//! | 28 | action | in the low half; the bits of categories in the high one |
//! | 32 | pid | |
//! | 36 | device | major << 20, and minor |
//! | 40 | cpu | |
//! | 44 | error | 16 bits |
//! | 46 | payload | its length, 16 bits |

mod writer;

pub use writer::{Request, Writer};

/// What begins every record.
pub const MAGIC: u32 = 0x6561_7400 | VERSION;
/// The version of the format.
pub const VERSION: u32 = 7;
/// The length of a record without its payload, in bytes.
pub const RECORD_BYTES: usize = 48;
/// The longest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// What happened to a request. The numbers are the format's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Action {
    /// Q: a bio was submitted.
    Queue = 1,
    /// M: it was merged to the end of a request.
    BackMerge = 2,
    /// F: it was merged to the front of one.
    FrontMerge = 3,
    /// G: a request was allocated.
    Get = 4,
    /// S: its process sleeps until one is free.
    Sleep = 5,
    /// R: the driver gave it back.
    Requeue = 6,
    /// D: the driver took it.
    Issue = 7,
    /// C: it completed.
    Complete = 8,
    /// I: it went to the elevator.
    Insert = 12,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Gives sectors back.
    Discard,
    /// Makes the device write its cache out.
    Flush,
}

/// A device number as the format has it.
pub const fn device_number(major: u32, minor: u32) -> u32 {
    major << 20 | minor & 0xF_FFFF
}
