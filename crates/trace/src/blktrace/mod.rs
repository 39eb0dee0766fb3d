//! blktrace's binary format, versions 7 and 8: what `blkparse -i NAME` reads from files called `NAME.blktrace.CPU`. The binary stream of the tracefs `blk` tracer
//! is the same, with the records of all CPUs in one.
//!
//! A file is a sequence of records, each with a payload behind it, in the byte order of the machine that recorded it. The layout of version 7, the numbers of
//! actions and the bits of categories are those of the kernel's user interface, checked against captures of Linux 6.1 and 6.18 and against `blkparse` 1.2; no
//! capture of version 8 was at hand: what is read of it was tried against files that [`Writer`] wrote, and against nothing else.
//!
//! | version 7 | version 8 | field | |
//! |---|---|---|---|
//! | 0 | 0 | magic | 0x65617400, plus the version |
//! | 4 | 4 | sequence | counts the records of a CPU; 0 for notes |
//! | 8 | 8 | time | ns |
//! | 16 | 16 | sector | 512 bytes each |
//! | 24 | 24 | bytes | the length |
//! | 28 | 32 (64 bits) | action | in the low 16 bits; the bits of categories above them |
//! | 32 | 28 | pid | |
//! | 36 | 40 | device | major << 20, and minor |
//! | 40 | 44 | cpu | |
//! | 44 | 48 | error | 16 bits |
//! | 46 | 50 | payload | its length, 16 bits |
//!
//! The payload begins with 8 bytes of the control group's number if the action's bit 8 is set. What [`Batch::payload`](crate::Batch::payload) holds is what comes
//! behind: of `Process` the name without zeros, of `Timestamp` the ns since 1970 (64 bits, big-endian), of `Message` the text, of `Unplug`, `UnplugTimer` and
//! `Split` a number (64 bits, big-endian), of `Remap` the device from which and that to which (32 bits each) and the sector from which (64), all big-endian; of
//! `Zone` the number of the action (64 bits, big-endian).

mod files;
mod lane;
mod order;
mod reader;
mod record;
#[cfg(test)]
mod tests;
mod writer;

pub use files::Files;
pub use reader::Reader;
pub use record::{NAME_BYTES_MAX, Version};
pub use writer::Writer;

/// What begins every record of version 7.
pub const MAGIC: u32 = 0x6561_7400 | 7;
/// The longest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// The highest number of a CPU that is believed: Linux has at most 8,192.
pub const CPU_MAX: u32 = 65_535;
