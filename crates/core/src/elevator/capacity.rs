//! The capacity of a queue, from which the sizes of its tables follow.

/// The maximum number of objects in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Requests that are queued, dispatched or in the device: 1 to about 2^24.
    pub requests: u32,
    /// I/O contexts, including exited ones with pending requests.
    pub contexts: u32,
    /// Bios merged into requests, not counting the bio for which each request was made.
    pub merged_bios: u32,
    /// Groups including the root; 0 and 1 both mean the root only.
    pub groups: u32,
}

impl Default for Capacity {
    /// The classic pool (1.5 times 128 per direction), 256 processes, well merged requests, 16
    /// groups.
    fn default() -> Self {
        Capacity { requests: 384, contexts: 256, merged_bios: 4096, groups: 16 }
    }
}

/// Requests reserved for the queue: a flush before and after a barrier, and the barrier's proxy.
pub const RESERVED_REQUESTS: u32 = 3;

impl Capacity {
    /// The capacity that both have.
    pub(crate) fn common(self, other: Capacity) -> Capacity {
        Capacity {
            requests: self.requests.min(other.requests),
            contexts: self.contexts.min(other.contexts),
            merged_bios: self.merged_bios.min(other.merged_bios),
            groups: self.groups.min(other.groups),
        }
    }

    /// The maximum number of queues in an elevator with one sync and one async queue per process.
    pub const fn queues(self) -> u32 {
        self.contexts.saturating_mul(2).saturating_add(self.requests)
    }

    /// The length of the request table.
    pub const fn request_slots(self) -> u32 {
        self.requests.saturating_add(RESERVED_REQUESTS)
    }

    /// The length of the group table, including the root.
    pub const fn group_slots(self) -> u32 {
        if self.groups == 0 { 1 } else { self.groups }
    }

    /// The length of the ring of deferred work.
    pub const fn work_slots(self) -> u32 {
        self.contexts.saturating_add(3)
    }
}
