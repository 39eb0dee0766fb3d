//! Operations on a backend.

use hoistway_qos::{Begin, RequestOp};
use hoistway_reactor::Buffer;

use crate::output::IoOutput;

/// How an operation began: ended within the call, or pending until the engine's `Event::Done` with
/// its tag.
pub type Started = Begin<IoOutput>;

/// An operation on a backend.
#[derive(Debug)]
pub struct Operation {
    /// The tag of the operation in the engine, unique among the operations in progress.
    pub tag: u64,
    /// The operation.
    pub op: RequestOp,
    /// The first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// Whether a write must be durable before it ends.
    pub durable: bool,
    /// The data of a write, in the first `length` bytes.
    pub data: Option<Buffer>,
}

impl Operation {
    /// Creates an operation without data and without durability.
    pub fn plain(tag: u64, op: RequestOp, offset: u64, length: u64) -> Operation {
        Operation { tag, op, offset, length, durable: false, data: None }
    }
}
