//! The types of bandwidth reservations.

use crate::bucket::TokenBucket;
use crate::collections::Slot;

/// The bandwidth reserved by a process, or by a group for its processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The rate, in bytes a second: 1 to [`Reservation::RATE_MAX`].
    pub bytes_per_second: u64,
    /// The depth of the token bucket in bytes, the burst after a pause: 1 to
    /// [`Reservation::DEPTH_MAX`]. The default is the volume of one sweep's horizon (half a
    /// second), or two requests if that is more.
    pub depth_bytes: Option<u64>,
    /// The request size in bytes: 512 to [`Reservation::REQUEST_MAX`]. Small requests cost more
    /// positioning per byte, and admission takes this into account; requests of other sizes are
    /// served all the same.
    pub request_bytes: u64,
}

impl Reservation {
    /// The greatest rate: 10 GB/s.
    pub const RATE_MAX: u64 = TokenBucket::RATE_MAX;
    /// The greatest depth: 1 PiB.
    pub const DEPTH_MAX: u64 = TokenBucket::DEPTH_MAX;
    /// The greatest size of requests: 1 GiB.
    pub const REQUEST_MAX: u64 = 1 << 30;
    /// The default request size: 128 KiB.
    pub const REQUEST_DEFAULT: u64 = 128 << 10;

    /// Creates a reservation with the default depth and a request size of 128 KiB.
    pub const fn of(bytes_per_second: u64) -> Reservation {
        Reservation { bytes_per_second, depth_bytes: None, request_bytes: Reservation::REQUEST_DEFAULT }
    }

    /// Returns true if all values are within their range.
    pub(crate) const fn is_valid(&self) -> bool {
        let depth = match self.depth_bytes {
            Some(depth) => depth >= 1 && depth <= Reservation::DEPTH_MAX,
            None => true,
        };
        let rate = self.bytes_per_second >= 1 && self.bytes_per_second <= Reservation::RATE_MAX;
        depth && rate && self.request_bytes >= 512 && self.request_bytes <= Reservation::REQUEST_MAX
    }
}

/// Errors of reserving bandwidth. On an error nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// The context or group does not belong to this queue or no longer exists.
    Stale,
    /// The elevator has no reservation layer.
    NotSupported,
    /// The rate, the depth or the size of requests is out of its range.
    BadRate,
    /// The device has no capacity for the reservation.
    NoCapacity {
        /// The bandwidth still available for requests of this size, in bytes a second.
        headroom_bytes_per_second: u64,
    },
}

impl core::fmt::Display for ReserveError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ReserveError::Stale => f.write_str("no such process or group, or it has ended"),
            ReserveError::NotSupported => {
                f.write_str("nothing can be reserved: there is no bandwidth class over this elevator")
            }
            ReserveError::BadRate => f.write_str("the rate, depth or request size is out of range"),
            ReserveError::NoCapacity { headroom_bytes_per_second } => {
                write!(f, "no capacity: {headroom_bytes_per_second} bytes a second are left")
            }
        }
    }
}

impl core::error::Error for ReserveError {}

/// The holder of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReservationHolder {
    /// A process.
    Context(Slot),
    /// All processes in a group, excluding its child groups.
    Group(Slot),
}

/// The reservations on a device and the bounds that follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationSummary {
    /// Processes with reservations of their own.
    pub contexts: u32,
    /// Groups with reservations.
    pub groups: u32,
    /// The device time that the reservations need, in ns a second.
    pub load_ns: u64,
    /// The device time that can be reserved, in ns a second.
    pub load_ns_max: u64,
    /// The maximum duration of a sweep over reserved requests, in ns.
    pub sweep_ns_max: u64,
    /// The maximum time in ns from eligibility to completion of a reserved request, if the device
    /// performs as configured and real-time processes stay within their share.
    pub delay_ns_max: u64,
}
