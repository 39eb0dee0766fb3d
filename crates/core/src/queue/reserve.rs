//! Reserved bandwidth: what a process asks for and is told, in elevators that have a bandwidth class.

use super::{Kick, RequestQueue, Stale};
use crate::context::ContextId;
use crate::storage::Home;

/// The bandwidth that a process reserves.
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
    pub const RATE_MAX: u64 = 10_000_000_000;
    /// The greatest depth: 1 PiB.
    pub const DEPTH_MAX: u64 = 1 << 50;
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
    /// The context is not one of this queue's, or has exited.
    Stale,
    /// This elevator has no bandwidth class.
    NotSupported,
    /// The rate, the depth or the size of requests is out of its range.
    BadRate,
    /// The device cannot keep one more promise of this size.
    NoCapacity {
        /// How much more a process with requests of this size could reserve, in bytes a second.
        headroom_bytes_per_second: u64,
    },
}

impl core::fmt::Display for ReserveError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ReserveError::Stale => f.write_str("no such context, or it has exited"),
            ReserveError::NotSupported => f.write_str("this elevator has no bandwidth class"),
            ReserveError::BadRate => f.write_str("a rate, depth or size of requests out of range"),
            ReserveError::NoCapacity { headroom_bytes_per_second } => {
                write!(f, "no capacity: {headroom_bytes_per_second} bytes a second are left")
            }
        }
    }
}

impl core::error::Error for ReserveError {}

/// How much of a device is reserved, and what follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Processes with a reservation.
    pub contexts: u32,
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

impl<H: Home> RequestQueue<H> {
    /// Reserves bandwidth for a process, or changes what it has reserved. A lower load on the device is always granted; of a higher one
    /// the difference must fit. The reservation ends with [`release`](Self::release), with the process, or with a switch of the elevator.
    pub fn reserve(&mut self, id: ContextId, reservation: Reservation, now_ns: u64) -> Result<Kick, ReserveError> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(ReserveError::Stale)?;
        self.elevator.reserve(&mut self.block, slot, reservation)?;
        Ok(self.end())
    }

    /// Gives a process's reservation back: what it asks for is best effort again. Without one, nothing happens.
    pub fn release(&mut self, id: ContextId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.elevator.release(&mut self.block, slot);
        Ok(self.end())
    }

    /// What a process has reserved, its depth told.
    pub fn reservation(&self, id: ContextId) -> Option<Reservation> {
        self.running_context(id).and_then(|slot| self.elevator.reservation(slot))
    }

    /// How much of the device is reserved; `None` if the elevator has no bandwidth class.
    pub fn reserved(&self) -> Option<Reserved> {
        self.elevator.reserved(&self.block)
    }
}
