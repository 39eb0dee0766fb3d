//! blktrace's binary format, versions 7 and 8, which `blkparse -i NAME` reads from files named
//! `NAME.blktrace.CPU`. The binary stream of the tracefs `blk` tracer has the same format, with the
//! records of all CPUs in one stream.
//!
//! A file is a sequence of records, each followed by a payload, in the byte order of the recording
//! machine. The layout of version 7, the action numbers and the category bits are those of the
//! kernel's user interface, verified with captures of Linux 6.1 and 6.18 and with `blkparse` 1.2.
//! No capture of version 8 was available: its reader was tested only with files that [`Writer`]
//! wrote.
//!
//! | version 7 | version 8 | field | |
//! |---|---|---|---|
//! | 0 | 0 | magic | 0x65617400, plus the version |
//! | 4 | 4 | sequence | record number of the CPU; 0 for notes |
//! | 8 | 8 | time | ns |
//! | 16 | 16 | sector | in units of 512 bytes |
//! | 24 | 24 | bytes | the length |
//! | 28 | 32 (64 bits) | action | number in the low 16 bits, category bits above |
//! | 32 | 28 | pid | |
//! | 36 | 40 | device | major << 20, and minor |
//! | 40 | 44 | cpu | |
//! | 44 | 48 | error | 16 bits |
//! | 46 | 50 | payload | its length, 16 bits |
//!
//! If bit 8 of the action is set, the payload begins with 8 bytes of the control group id.
//! [`Batch::payload`](crate::Batch::payload) holds the rest:
//!
//! - `Process`: the name without zeros
//! - `Timestamp`: ns since 1970 (64 bits)
//! - `Message`: the text
//! - `Unplug`, `UnplugTimer`, `Split`: a number (64 bits)
//! - `Remap`: the original device, the target device (32 bits each) and the original sector (64
//!   bits)
//! - `Zone`: the number of the action (64 bits)
//!
//! Numbers are big-endian.

mod files;
mod order;
mod reader;
mod record;
mod record_reader;
mod writer;

pub use files::{CpuFiles, CreateFile};
pub use reader::Reader;
pub use record::{NAME_BYTES_MAX, Version};
pub use writer::Writer;

/// Magic number of the records of version 7.
pub const MAGIC: u32 = 0x6561_7400 | 7;
/// Maximum length of a message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// Largest accepted CPU number. Linux has at most 8,192 CPUs.
pub const CPU_MAX: u32 = 65_535;
