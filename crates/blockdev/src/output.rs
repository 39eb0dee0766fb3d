//! The output of a request to a block device.

use hoistway_qos::{Begin, Output};
use hoistway_reactor::{Allocation, Buffer, Shared};

/// How an I/O began: ended within the call, or pending until the engine's `Event::Done` with its
/// tag.
pub type Started = Begin<IoOutput>;

/// The output of a request.
#[derive(Debug)]
pub enum IoOutput {
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
    Pieces(Vec<(u64, IoOutput)>),
}

impl Output for IoOutput {
    fn none() -> Self {
        IoOutput::Nothing
    }

    fn from_pieces(pieces: Vec<(u64, IoOutput)>) -> Self {
        IoOutput::Pieces(pieces)
    }
}
