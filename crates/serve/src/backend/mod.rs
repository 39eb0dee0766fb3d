//! Where the bytes of a device lie: memory, nothing, a file or a block device.

use std::sync::Arc;

/// Memory that a backend shares with a message on its way out, so that it is copied once only, into the socket. A write to the same
/// range meanwhile may be seen, wholly or in part, as the protocol allows of requests that overlap.
#[derive(Clone, Debug)]
pub struct Shared {
    start: *const u8,
    len: usize,
    /// What keeps the memory mapped.
    _region: Arc<Region>,
}

/// A mapping.
#[derive(Debug)]
pub struct Region {}

impl Shared {
    /// Where it begins.
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
