//! Reserved bandwidth: the types in which it is asked for and answered.

use crate::bucket::TokenBucket;
use crate::collections::Slot;

/// The bandwidth that a process reserves, or a group for all its processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The rate, in bytes a second: 1 to [`Reservation::RATE_MAX`].
    pub bytes_per_second: u64,
    /// The depth of its token bucket, in bytes: how much it may have at once after a pause. 1 to [`Reservation::DEPTH_MAX`]; without
    /// one, what the rate comes to in one sweep's horizon (half a second), or two requests if that is more.
    pub depth_bytes: Option<u64>,
    /// The size of its requests, in bytes: 512 to [`Reservation::REQUEST_MAX`]. Small ones cost the device more positioning a byte, and
    /// the admission reckons with that; requests of another size are served all the same.
    pub request_bytes: u64,
}

impl Reservation {
    /// The greatest rate: 10 GB/s.
    pub const RATE_MAX: u64 = TokenBucket::RATE_MAX;
    /// The greatest depth: 1 PiB.
    pub const DEPTH_MAX: u64 = TokenBucket::DEPTH_MAX;
    /// The greatest size of requests: 1 GiB.
    pub const REQUEST_MAX: u64 = 1 << 30;
    /// The size of requests if nothing else is known: 128 KiB.
    pub const REQUEST_DEFAULT: u64 = 128 << 10;

    /// A rate, with the default depth and requests of 128 KiB.
    pub const fn of(bytes_per_second: u64) -> Reservation {
        Reservation { bytes_per_second, depth_bytes: None, request_bytes: Reservation::REQUEST_DEFAULT }
    }

    /// Whether all figures lie in their range.
    pub(crate) const fn is_valid(&self) -> bool {
        let depth = match self.depth_bytes {
            Some(depth) => depth >= 1 && depth <= Reservation::DEPTH_MAX,
            None => true,
        };
        let rate = self.bytes_per_second >= 1 && self.bytes_per_second <= Reservation::RATE_MAX;
        depth && rate && self.request_bytes >= 512 && self.request_bytes <= Reservation::REQUEST_MAX
    }
}

/// Why bandwidth was not reserved. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// The context or group is not one of this queue's, or is gone.
    Stale,
    /// There is no layer of reserved bandwidth over this elevator.
    NotSupported,
    /// The rate, the depth or the size of requests is out of its range.
    BadRate,
    /// The device cannot keep one more promise of this size.
    NoCapacity {
        /// How much more a process or group with requests of this size could reserve, in bytes a second.
        headroom_bytes_per_second: u64,
    },
}

impl core::fmt::Display for ReserveError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ReserveError::Stale => f.write_str("no such process or group, or it is gone"),
            ReserveError::NotSupported => {
                f.write_str("nothing can be reserved: there is no bandwidth class over this elevator")
            }
            ReserveError::BadRate => f.write_str("a rate, depth or size of requests out of range"),
            ReserveError::NoCapacity { headroom_bytes_per_second } => {
                write!(f, "no capacity: {headroom_bytes_per_second} bytes a second are left")
            }
        }
    }
}

impl core::error::Error for ReserveError {}

/// Whose a reservation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReservationHolder {
    /// A process's.
    Context(Slot),
    /// That of all processes in a group, but not in its child groups.
    Group(Slot),
}

/// How much of a device is reserved, and what follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationSummary {
    /// Processes with a reservation of their own.
    pub contexts: u32,
    /// Groups with one.
    pub groups: u32,
    /// The device time that their reservations come to, in ns a second.
    pub load_ns: u64,
    /// How much of it may be reserved, in ns a second.
    pub load_ns_max: u64,
    /// How long a sweep over their requests takes at most, in ns.
    pub sweep_ns_max: u64,
    /// How long after it is within its reservation a request is done at the latest, in ns, as long as the device keeps what was measured
    /// and real-time processes take no more than is left to them.
    pub delay_ns_max: u64,
}
