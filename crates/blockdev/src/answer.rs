//! The output of a request to a block device.

use hoistway_qos::Output;
use hoistway_reactor::{Allocation, Buffer, Shared};

/// The output of a request.
#[derive(Debug)]
pub enum Answer {
    /// No output: the operation was executed.
    Nothing,
    /// Data, in the first bytes of a buffer, as many as were requested.
    Buffer(Buffer),
    /// Data in memory that is shared with the backend.
    Shared(Shared),
    /// Zeroes: the range was never written.
    Zeroes,
    /// The allocated parts and the holes of a range.
    Extents(Vec<Allocation>),
    /// The data of a split read: the length of each piece in bytes and its data, in order of
    /// offset. No piece is `Pieces` or `Extents`.
    Pieces(Vec<(u64, Answer)>),
}

impl Output for Answer {
    fn none() -> Self {
        Answer::Nothing
    }

    fn from_pieces(pieces: Vec<(u64, Answer)>) -> Self {
        Answer::Pieces(pieces)
    }
}
