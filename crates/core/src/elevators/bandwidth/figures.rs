//! What is promised of a device, and what it can keep: the one arithmetic of admission.
//!
//! A reservation of r bytes a second in requests of s bytes costs the device r / X + r * t_pos / s of its time: X is its rate at its
//! slowest, t_pos what positioning takes. The stroke back at the end of a sweep costs t_ret once in a sweep's horizon T.

use super::tunables::{ROWS, Tunables};
use crate::elevator::reservation::{Reservation, ReserveError};

const SECOND_NS: u64 = 1_000_000_000;

/// What a device can do, as the admission of reservations reckons with it. Whoever has to know before there is a queue whether promises can be
/// kept asks this, and gets the queue's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFigures {
    /// What it sustains at its slowest, in bytes a second.
    pub bytes_per_second: u64,
    /// What positioning costs a request, in ns.
    pub position_ns: u64,
    /// The stroke back at the end of a sweep, in ns.
    pub return_ns: u64,
    /// How often a sweep is reckoned with, in ns.
    pub horizon_ns: u64,
    /// How much of the device's time may be promised, in ns a second.
    pub load_ns_max: u64,
}

impl Tunables {
    /// What the admission reckons with.
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
    /// The figures that follow from values of [`Reservation::TUNABLES`], by name, the later of two; those that are not named have their defaults.
    /// Other names change nothing, and a value out of its range counts as the nearest in it.
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

    /// The device time of several reservations together and of the strokes back that they cost, in ns a second; 0 without any.
    pub fn load_ns(&self, reservations: impl IntoIterator<Item = Reservation>) -> u64 {
        let costs = reservations.into_iter().map(|reservation| self.cost_ns(&reservation));
        let sum = costs.fold(0u64, u64::saturating_add);
        if sum == 0 { 0 } else { sum.saturating_add(self.return_cost_ns()) }
    }

    /// Whether a reservation can be promised where `load_ns` of each second are (as [`load_ns`](Self::load_ns) has it); `old`, which is part of
    /// that, is what the same process or group has so far. A lower load is always granted; of a higher one the difference must fit.
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

    /// How long the device takes for so many bytes, in ns.
    pub(super) fn transfer_ns(&self, bytes: u64) -> u64 {
        let rate = self.bytes_per_second.max(1);
        let part = (bytes % rate).saturating_mul(SECOND_NS).div_ceil(rate);
        (bytes / rate).saturating_mul(SECOND_NS).saturating_add(part)
    }

    /// The strokes back, in ns a second.
    fn return_cost_ns(&self) -> u64 {
        self.return_ns.saturating_mul(SECOND_NS) / self.horizon_ns.max(1)
    }

    /// The greatest rate that costs no more than `free_ns`, in bytes a second.
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
    /// Those of a disk of 2008: the defaults of the tunables.
    fn default() -> DeviceFigures {
        Tunables::defaults().figures()
    }
}
