//! A device: a backend, perhaps with the model of a drive before it, under one request queue that all its exports share.

use crate::backend::Shared;
use crate::buffer::Buffer;
use crate::engine::Allocation;
use hoistway_nbd::wire::Errno;

/// Something to be done on a device.
#[derive(Debug)]
pub struct Work {
    /// The asker's name for it.
    pub ticket: u64,
    /// What.
    pub op: WorkOp,
    /// The first byte, on the device.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// Durable before it is done.
    pub durable: bool,
    /// Of writes: the data, in the first `length` bytes.
    pub data: Option<Buffer>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOp {
    /// Reads.
    Read,
    /// Reads, and tells nobody.
    Cache,
    /// Writes.
    Write,
    /// Makes a range read as zeroes.
    Zero {
        /// A hole will do.
        punch: bool,
    },
    /// Gives a range back.
    Trim,
    /// Makes everything durable that was done (answered) before.
    Flush,
    /// Tells what is allocated.
    Status,
}

/// Something that was done.
#[derive(Debug)]
pub struct Done {
    /// Whose.
    pub ticket: u64,
    /// The answer, or the error.
    pub result: Result<Answer, Errno>,
}

/// What there is to tell.
#[derive(Debug)]
pub enum Answer {
    /// That it was done.
    Nothing,
    /// Data, in the first bytes of a buffer, as many as were asked for.
    Buffer(Buffer),
    /// Data, in the backend's own memory.
    Shared(Shared),
    /// All zeroes: nothing was ever written there.
    Zeroes,
    /// Extents.
    Extents(Vec<Allocation>),
}
