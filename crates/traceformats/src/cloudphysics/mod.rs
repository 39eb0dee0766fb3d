//! Reads the traces of CloudPhysics: binary records of VMware's virtual SCSI layer (`vscsi`,
//! versions 1 and 2), and tables (CSV) of the same records.
//!
//! | bytes | version 1: 32 bytes | | bytes | version 2: 40 bytes |
//! |---|---|---|---|---|
//! | 0-3 | serial number | | 0-1 | SCSI command |
//! | 4-7 | length in bytes | | 2-3 | version: 2 in the upper byte |
//! | 8-11 | number of segments | | 4-7 | serial number |
//! | 12-13 | SCSI command | | 8-11 | length in bytes |
//! | 14-15 | version: 1 in the upper byte | | 12-15 | number of segments |
//! | 16-23 | block of 512 bytes | | 16-23 | block of 512 bytes |
//! | 24-31 | time in us | | 24-31 | time in us |
//! | | | | 32-39 | response time in us |
//!
//! Numbers are little-endian. The columns of a table are found by their titles. A table without
//! titles has the columns of a record, in its order, or version, time, SCSI command, length and
//! block (the order of the tables with cache simulators).

mod table;
mod vscsi;

use crate::event::Rwbs;

pub use table::{Table, has_order_of_records, is_titles, is_untitled};
pub use vscsi::{Records, Version};

/// Returns the operation of a SCSI command; None for a command without data on the disk.
pub(crate) fn operation(command: u16) -> Option<Rwbs> {
    match command {
        // READ and WRITE of 6, 10, 12 and 16 bytes.
        0x08 | 0x28 | 0xA8 | 0x88 => Some(Rwbs::READ),
        0x0A | 0x2A | 0xAA | 0x8A => Some(Rwbs::WRITE),
        // UNMAP, WRITE SAME (10, 16).
        0x42 | 0x41 | 0x93 => Some(Rwbs::DISCARD),
        _ => None,
    }
}
