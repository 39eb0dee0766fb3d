//! The state of the stream of replies: the bytes between two complete items.

use crate::frame_buffer::FrameBuffer;

/// A violation of the protocol by the server. The connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A magic number is wrong, or not valid for the negotiated replies.
    #[error("a reply begins with {found:#x}")]
    Magic {
        /// The received number.
        found: u32,
    },
    /// A reply without a pending request.
    #[error("a reply to request {cookie}, which is unknown or already answered")]
    Cookie {
        /// Cookie of the reply.
        cookie: u64,
    },
    /// An invalid chunk.
    #[error("request {cookie}: chunk of type {kind:#x} and {bytes} bytes: {what}")]
    Chunk {
        /// Cookie of the request.
        cookie: u64,
        /// Type of the chunk.
        kind: u16,
        /// Length of the chunk.
        bytes: u64,
        /// Description of the violation.
        what: &'static str,
    },
    /// The reply ended without error before it was complete.
    #[error("request {cookie}: success with an incomplete reply")]
    Incomplete {
        /// Cookie of the request.
        cookie: u64,
    },
}

/// State of the stream of replies.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub stage: Stage,
    /// The incomplete header or payload.
    pub unit: FrameBuffer,
    /// A request whose last chunk was returned.
    pub finished: Option<u64>,
    /// The error that ended the stream; every further call returns it.
    pub broken: Option<ProtocolError>,
}

/// The part of a reply that the next bytes belong to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Stage {
    #[default]
    Magic,
    Header(u32),
    Payload(ChunkHeader),
    Data {
        cookie: u64,
        offset: u64,
        left: u64,
        last: bool,
    },
}

/// The header of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkHeader {
    pub cookie: u64,
    pub kind: u16,
    pub last: bool,
    pub bytes: u64,
}

impl ChunkHeader {
    /// Returns the error of an invalid chunk.
    pub fn wrong<T>(&self, what: &'static str) -> Result<T, ProtocolError> {
        Err(ProtocolError::Chunk { cookie: self.cookie, kind: self.kind, bytes: self.bytes, what })
    }
}
