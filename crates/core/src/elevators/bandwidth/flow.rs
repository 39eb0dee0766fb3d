//! What is kept of a reserving process or group, and of each of its requests.

use crate::bucket::TokenBucket;
use crate::collections::{List, Slot, Tree};
use crate::elevator::reservation::Reservation;
use crate::request::Arrivals;

/// A process or group with a reservation. The entry of one without has the inner elevator's count only.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// Without a reservation, its rate is 0.
    pub bucket: TokenBucket,
    /// The declared size of its requests.
    pub request_bytes: u64,
    /// Its requests that are not within the reservation yet, in order of arrival ...
    pub pending: List<Arrivals>,
    /// ... and by sector, for merges.
    pub sorted: Tree,
    /// How many of them there are.
    pub queued: u32,
    /// Whether it is filed among those with pending requests.
    pub filed: bool,
    /// Sectors that it was served beyond its reservation.
    pub excess_served: u64,
    /// The bytes that it has put in a sweep, and the number of that sweep.
    quota: Counted,
    /// The same for the sweep after that one.
    next_quota: Counted,
    /// A context's best-effort requests in the inner elevator.
    pub inner_queued: u32,
    /// The context's weight there, while it has some.
    pub inner_weight: u32,
}

/// A number of bytes that counts for one sweep.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    bytes: u64,
    sweep: u64,
}

impl Counted {
    fn of(self, sweep: u64) -> u64 {
        if self.sweep == sweep { self.bytes } else { 0 }
    }

    fn add(&mut self, bytes: u64, sweep: u64) {
        *self = Counted { bytes: self.of(sweep).saturating_add(bytes), sweep };
    }
}

impl Flow {
    /// Whether it has a reservation.
    pub fn is_reserved(&self) -> bool {
        self.bucket.rate() > 0
    }

    /// It has a reservation from now on. Nothing of one before counts, its own or that of whoever had the entry.
    pub fn begin(&mut self, bucket: TokenBucket) {
        debug_assert!(!self.is_reserved() && self.queued == 0, "nobody without a reservation waits for tokens");
        self.bucket = bucket;
        self.excess_served = 0;
        (self.quota, self.next_quota) = (Counted::default(), Counted::default());
    }

    /// What it has reserved.
    pub fn reservation(&self) -> Option<Reservation> {
        self.is_reserved().then_some(Reservation {
            bytes_per_second: self.bucket.rate(),
            depth_bytes: Some(self.bucket.depth()),
            request_bytes: self.request_bytes,
        })
    }

    /// How many requests of the declared size its bucket holds, at least one.
    pub fn burst_requests(&self) -> u64 {
        self.bucket.depth().div_ceil(self.request_bytes.max(1)).max(1)
    }

    /// The bytes that it has put in this sweep so far.
    pub fn in_sweep(&self, sweep: u64) -> u64 {
        // What was put in the next sweep counts for it once it has begun.
        self.quota.of(sweep).saturating_add(self.next_quota.of(sweep))
    }

    /// It puts so many bytes in this sweep.
    pub fn put_in_sweep(&mut self, bytes: u64, sweep: u64) {
        self.quota.add(bytes, sweep);
    }

    /// It puts so many bytes in the sweep after this one.
    pub fn put_in_next(&mut self, bytes: u64, sweep: u64) {
        let next = sweep.wrapping_add(1);
        if self.next_quota.sweep == sweep {
            // It has become this sweep's.
            self.quota.add(self.next_quota.bytes, sweep);
        }
        self.next_quota.add(bytes, next);
    }
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// The inner elevator has it, or nobody yet.
    #[default]
    Inner,
    /// It is a flow's, and neither pending nor in a sweep: not inserted yet, dispatched, or absorbed.
    Ours,
    /// Not within the reservation yet.
    Pending,
    /// In the present sweep or in the next.
    Swept,
}

/// What is kept of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub stage: Stage,
    /// The flow that it belongs to, unless it is the inner elevator's.
    pub flow: Slot,
    /// Counts arrivals.
    pub order: u64,
    /// When it came within the reservation, in ns; `None` for one that was served without.
    pub conformed_ns: Option<u64>,
}
