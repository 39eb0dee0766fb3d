//! A request of a replay.

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads a range.
    Read,
    /// Writes a range.
    Write,
    /// Discards a range.
    Discard,
    /// Flushes the cache of the target.
    Flush,
}

/// A request of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRequest {
    /// The submission time in ns since the first request.
    pub at_ns: u64,
    /// The recorded latency in ns; `u64::MAX` if the trace does not show it.
    pub recorded_ns: u64,
    /// The first byte.
    pub offset: u64,
    /// The length in bytes; 0 for flushes.
    pub bytes: u32,
    /// The index of the process in [`ReplayPlan::processes`](super::ReplayPlan::processes).
    pub process: u32,
    /// The kind of the request.
    pub kind: RequestKind,
    /// The write is durable when it completes (FUA).
    pub durable: bool,
    /// The target is flushed before the write.
    pub preflush: bool,
}

impl PlannedRequest {
    /// Returns the flush before the data of a write with a preflush.
    pub(super) fn flush_step(&self) -> PlannedRequest {
        PlannedRequest { kind: RequestKind::Flush, offset: 0, bytes: 0, durable: false, preflush: false, ..*self }
    }
}

impl RequestKind {
    /// Returns true if the request changes the target, or needs write access to it.
    pub fn changes(self) -> bool {
        self != RequestKind::Read
    }
}
