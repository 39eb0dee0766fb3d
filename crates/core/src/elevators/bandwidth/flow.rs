//! The state of a reserving process or group, and of each of its requests.

use crate::bucket::TokenBucket;
use crate::collections::{List, Slot, Tree};
use crate::elevator::reservation::Reservation;
use crate::request::Arrivals;

/// The state of a process or group. Without a reservation only the inner elevator's counts are
/// used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// The token bucket; the rate is 0 without a reservation.
    pub bucket: TokenBucket,
    /// The declared request size, in bytes.
    pub request_bytes: u64,
    /// Requests that wait for tokens, in order of arrival.
    pub pending: List<Arrivals>,
    /// The same requests by sector, for merges.
    pub sorted: Tree,
    /// The number of those requests.
    pub queued: u32,
    /// Whether the flow is in the trees of flows with pending requests.
    pub filed: bool,
    /// Sectors served beyond its reservation.
    pub excess_served: u64,
    /// The bytes that it has put into a sweep, and the number of that sweep.
    quota: Counted,
    /// The same for the sweep after that one.
    next_quota: Counted,
    /// A context's best-effort requests in the inner elevator.
    pub inner_queued: u32,
    /// The context's weight there, while it has such requests.
    pub inner_weight: u32,
}

/// A number of bytes that is valid for one sweep.
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
    /// Returns true if it has a reservation.
    pub fn is_reserved(&self) -> bool {
        self.bucket.rate() > 0
    }

    /// Starts a reservation. Earlier state of the entry is discarded.
    pub fn begin(&mut self, bucket: TokenBucket) {
        debug_assert!(
            !self.is_reserved() && self.queued == 0,
            "flows without a reservation have no pending \
                                                                requests"
        );
        self.bucket = bucket;
        self.excess_served = 0;
        (self.quota, self.next_quota) = (Counted::default(), Counted::default());
    }

    /// Its reservation.
    pub fn reservation(&self) -> Option<Reservation> {
        self.is_reserved().then_some(Reservation {
            bytes_per_second: self.bucket.rate(),
            depth_bytes: Some(self.bucket.depth()),
            request_bytes: self.request_bytes,
        })
    }

    /// The number of declared-size requests that its bucket holds, at least one.
    pub fn burst_requests(&self) -> u64 {
        self.bucket.depth().div_ceil(self.request_bytes.max(1)).max(1)
    }

    /// The bytes that it has put into this sweep so far.
    pub fn in_sweep(&self, sweep: u64) -> u64 {
        // Bytes put into the next sweep count for that sweep once it has begun.
        self.quota.of(sweep).saturating_add(self.next_quota.of(sweep))
    }

    /// Adds bytes to its part of this sweep.
    pub fn put_in_sweep(&mut self, bytes: u64, sweep: u64) {
        self.quota.add(bytes, sweep);
    }

    /// Adds bytes to its part of the next sweep.
    pub fn put_in_next(&mut self, bytes: u64, sweep: u64) {
        let next = sweep.wrapping_add(1);
        if self.next_quota.sweep == sweep {
            // The next sweep has become this one.
            self.quota.add(self.next_quota.bytes, sweep);
        }
        self.next_quota.add(bytes, next);
    }
}

/// The position of a request in the layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the inner elevator, or not inserted yet.
    #[default]
    Inner,
    /// The flow's, but neither pending nor in a sweep: not inserted yet, dispatched, or absorbed.
    Layer,
    /// Waiting for tokens.
    Pending,
    /// In the current or the next sweep.
    Swept,
}

/// The layer's state of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub stage: Stage,
    /// Its flow, unless it is the inner elevator's.
    pub flow: Slot,
    /// The arrival count.
    pub order: u64,
    /// The time from which it was within the reservation, in ns; `None` for a request served as
    /// excess.
    pub conformed_ns: Option<u64>,
}
