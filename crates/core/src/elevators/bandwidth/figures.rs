//! The performance figures of a device and the load of reservations on it: the arithmetic of
//! admission.
//!
//! A reservation of r bytes a second in requests of s bytes costs the device r / X + r * t_pos / s
//! of its time. X is its lowest rate, t_pos the positioning time. The return stroke at the end of a
//! sweep costs t_ret once in a sweep's horizon T.

use super::tunables::{ROWS, Tunables};
use crate::elevator::reservation::{Reservation, ReserveError};

const SECOND_NS: u64 = 1_000_000_000;

/// The performance of a device, as used by the admission of reservations. It answers before a queue
/// exists whether reservations can be admitted, with the same result as the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFigures {
    /// The sustained rate at the slowest place, in bytes a second.
    pub bytes_per_second: u64,
    /// The positioning time per request, in ns.
    pub position_ns: u64,
    /// The return stroke at the end of a sweep, in ns.
    pub return_ns: u64,
    /// The assumed period of sweeps, in ns.
    pub horizon_ns: u64,
    /// The device time that can be reserved, in ns a second.
    pub load_ns_max: u64,
}

impl Tunables {
    /// The device's figures for admission.
    pub fn figures(&self) -> DeviceFigures {
        DeviceFigures {
            bytes_per_second: self.bytes_per_second,
            position_ns: self.position_ns,
            return_ns: self.return_ns,
            horizon_ns: self.horizon_ns,
            load_ns_max: self.load_ns_max(),
        }
    }
}

impl DeviceFigures {
    /// Computes the figures from named values of [`Reservation::TUNABLES`]; the last value of a
    /// name counts. Missing names have their defaults, other names are ignored, and values out of
    /// range are clamped.
    pub fn of_tunables<'a>(values: impl IntoIterator<Item = (&'a str, i64)>) -> DeviceFigures {
        let mut tunables = Tunables::defaults();
        for (name, value) in values {
            let mut rows = ROWS.iter().zip(0..usize::MAX);
            if let Some((row, index)) = rows.find(|(row, _)| row.name == name) {
                tunables.set(index, value.max(row.min).min(row.max));
            }
        }
        tunables.figures()
    }

    /// The device time of a reservation, in ns a second.
    pub fn cost_ns(&self, reservation: &Reservation) -> u64 {
        self.cost_of_ns(reservation.bytes_per_second, reservation.request_bytes)
    }

    /// The device time of several reservations including their return strokes, in ns a second; 0
    /// without any.
    pub fn load_ns(&self, reservations: impl IntoIterator<Item = Reservation>) -> u64 {
        let costs = reservations.into_iter().map(|reservation| self.cost_ns(&reservation));
        let sum = costs.fold(0u64, u64::saturating_add);
        if sum == 0 { 0 } else { sum.saturating_add(self.return_cost_ns()) }
    }

    /// Admits a reservation on a device of which `load_ns` of each second are reserved (as computed
    /// by [`load_ns`](Self::load_ns)). `old` is the current reservation of the same holder,
    /// included in `load_ns`. A reduction of the load is always admitted; an increase must fit.
    pub fn admit(&self, load_ns: u64, old: Option<Reservation>, wanted: Reservation) -> Result<(), ReserveError> {
        if !wanted.is_valid() {
            return Err(ReserveError::BadRate);
        }
        let old = old.map_or(0, |old| self.cost_ns(&old));
        let new = self.cost_ns(&wanted);
        let load = if load_ns == 0 { self.return_cost_ns() } else { load_ns };
        if new > old && load.saturating_sub(old).saturating_add(new) > self.load_ns_max {
            let free_ns = self.load_ns_max.saturating_sub(load);
            let headroom_bytes_per_second = self.rate_for(free_ns, wanted.request_bytes);
            return Err(ReserveError::NoCapacity { headroom_bytes_per_second });
        }
        Ok(())
    }

    fn cost_of_ns(&self, rate: u64, request_bytes: u64) -> u64 {
        // At most 10^10 bytes/s * 10^9 ns: below 2^64.
        let transfer = rate.saturating_mul(SECOND_NS).div_ceil(self.bytes_per_second.max(1));
        let positioning = rate.saturating_mul(self.position_ns).div_ceil(request_bytes.max(1));
        transfer.saturating_add(positioning)
    }

    /// The transfer time of this many bytes, in ns.
    pub(super) fn transfer_ns(&self, bytes: u64) -> u64 {
        let rate = self.bytes_per_second.max(1);
        let part = (bytes % rate).saturating_mul(SECOND_NS).div_ceil(rate);
        (bytes / rate).saturating_mul(SECOND_NS).saturating_add(part)
    }

    /// The return strokes, in ns a second.
    fn return_cost_ns(&self) -> u64 {
        self.return_ns.saturating_mul(SECOND_NS) / self.horizon_ns.max(1)
    }

    /// The maximum rate that costs at most `free_ns`, in bytes a second.
    fn rate_for(&self, free_ns: u64, request_bytes: u64) -> u64 {
        let (mut fits, mut too_much) = (0u64, Reservation::RATE_MAX.saturating_add(1));
        while too_much.saturating_sub(fits) > 1 {
            let middle = fits.saturating_add(too_much.saturating_sub(fits) / 2);
            if self.cost_of_ns(middle, request_bytes) <= free_ns {
                fits = middle;
            } else {
                too_much = middle;
            }
        }
        fits
    }
}

impl Default for DeviceFigures {
    /// The figures of a disk of 2008: the defaults of the tunables.
    fn default() -> DeviceFigures {
        Tunables::defaults().figures()
    }
}
