//! A request of a process, and the part of a file that a process works on.

use hoistway_fio::Direction;

/// A request of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoUnit {
    /// The direction.
    pub direction: Direction,
    /// Index of the file among the process's files.
    pub file: usize,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Class and level of the I/O priority, if they are not those of the process.
    pub priority: Option<(u8, u8)>,
}

impl IoUnit {
    /// A request with the priority of its process.
    pub fn new(direction: Direction, file: usize, offset: u64, bytes: u64) -> IoUnit {
        IoUnit { direction, file, offset, bytes, priority: None }
    }
}

/// The part of a file that a process works on, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// The first byte.
    pub start: u64,
    /// The number of bytes.
    pub len: u64,
}
