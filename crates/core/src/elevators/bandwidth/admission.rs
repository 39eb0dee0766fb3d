//! How much of the device may be reserved, and what can be promised then.
//!
//! A reservation of r bytes a second in requests of s bytes costs the device r / X + r * t_pos / s of its time: X is its rate at its
//! slowest, t_pos what positioning takes. The stroke back at the end of a sweep costs t_ret once in a sweep's horizon T.

use super::Bandwidth;
use super::flow::Flow;
use super::tunables::Tunables;
use crate::bucket::TokenBucket;
use crate::elevators::Elevator;
use crate::parts::Slot;
use crate::queue::block::Block;
use crate::queue::reserve::{Reservation, ReserveError, Reserved};
use crate::storage::Home;

const SECOND_NS: u64 = 1_000_000_000;

/// The device time of a reservation, in ns a second.
fn cost_ns(tunables: &Tunables, rate: u64, request_bytes: u64) -> u64 {
    // At most 10^10 bytes/s * 10^9 ns: below 2^64.
    let transfer = rate.saturating_mul(SECOND_NS).div_ceil(tunables.bytes_per_second.max(1));
    let positioning = rate.saturating_mul(tunables.position_ns).div_ceil(request_bytes.max(1));
    transfer.saturating_add(positioning)
}

/// How long the device takes for so many bytes, in ns.
fn transfer_ns(tunables: &Tunables, bytes: u64) -> u64 {
    let rate = tunables.bytes_per_second.max(1);
    let part = (bytes % rate).saturating_mul(SECOND_NS).div_ceil(rate);
    (bytes / rate).saturating_mul(SECOND_NS).saturating_add(part)
}

/// The strokes back, in ns a second.
fn return_cost_ns(tunables: &Tunables) -> u64 {
    tunables.return_ns.saturating_mul(SECOND_NS) / tunables.horizon_ns.max(1)
}

/// The greatest rate that costs no more than `free_ns`, in bytes a second.
fn rate_for(tunables: &Tunables, free_ns: u64, request_bytes: u64) -> u64 {
    let (mut fits, mut too_much) = (0u64, Reservation::RATE_MAX.saturating_add(1));
    while too_much.saturating_sub(fits) > 1 {
        let middle = fits.saturating_add(too_much.saturating_sub(fits) / 2);
        if cost_ns(tunables, middle, request_bytes) <= free_ns {
            fits = middle;
        } else {
            too_much = middle;
        }
    }
    fits
}

impl<H: Home, E: Elevator<H>> Bandwidth<H, E> {
    /// Takes a reservation in, or refuses it.
    pub(super) fn admit(&mut self, block: &Block<H>, flow: Slot, wanted: Reservation) -> Result<(), ReserveError> {
        if !wanted.is_valid() {
            return Err(ReserveError::BadRate);
        }
        let Reservation { bytes_per_second: rate, depth_bytes, request_bytes } = wanted;
        let now_ns = block.clock.now_ns();
        let tunables = &self.tunables;
        let load = self.load_ns();
        let entry = &self.flows[flow];
        let old = if entry.is_reserved() { cost_ns(tunables, entry.bucket.rate(), entry.request_bytes) } else { 0 };
        let new = cost_ns(tunables, rate, request_bytes);
        let load = if load == 0 { return_cost_ns(tunables) } else { load };
        let limit = tunables.load_ns_max();
        if new > old && load.saturating_sub(old).saturating_add(new) > limit {
            let headroom_bytes_per_second = rate_for(tunables, limit.saturating_sub(load), request_bytes);
            return Err(ReserveError::NoCapacity { headroom_bytes_per_second });
        }
        // What comes in within a horizon: rate * T; 10^10 * 10^4 ms stays far below 2^64.
        let in_horizon = rate.saturating_mul(tunables.horizon_ns / 1_000_000) / 1000;
        let depth = depth_bytes.unwrap_or(in_horizon.max(request_bytes.saturating_mul(2)));
        let entry = &mut self.flows[flow];
        if entry.is_reserved() {
            entry.bucket.change(rate, depth, now_ns);
        } else {
            self.reservations = self.reservations.saturating_add(1);
            entry.begin(TokenBucket::full(rate, depth, now_ns));
        }
        entry.request_bytes = request_bytes;
        self.refile(block, flow, now_ns);
        self.set_bounds();
        Ok(())
    }

    /// The device time of all reservations, in ns a second; 0 without any.
    fn load_ns(&self) -> u64 {
        let cost = |flow: &Flow| cost_ns(&self.tunables, flow.bucket.rate(), flow.request_bytes);
        let flows = self.reserving().map(|(_, flow)| cost(flow)).fold(0u64, u64::saturating_add);
        if flows == 0 { 0 } else { flows.saturating_add(return_cost_ns(&self.tunables)) }
    }

    /// The processes and groups that have reserved something.
    fn reserving(&self) -> impl Iterator<Item = (Slot, &Flow)> {
        (0..self.flows.capacity()).map(|slot| (slot, &self.flows[slot])).filter(|(_, flow)| flow.is_reserved())
    }

    /// Reckons anew what can be promised: reservations or the device's figures have changed.
    pub(super) fn set_bounds(&mut self) {
        let (mut bytes, mut requests) = (0u64, 0u64);
        for (_, flow) in self.reserving() {
            bytes = bytes.saturating_add(flow.bucket.depth());
            requests = requests.saturating_add(flow.burst_requests());
        }
        let tunables = &self.tunables;
        let positioning = requests.saturating_mul(tunables.position_ns);
        self.sweep_ns_max = transfer_ns(tunables, bytes).saturating_add(positioning).saturating_add(tunables.return_ns);
    }

    /// How long after it is within the reservation a request is done at the latest: it waits for the sweep that runs, for its own, and
    /// for one request that the device may have begun meanwhile. In ns.
    pub(super) fn delay_ns_max(&self) -> u64 {
        let one = transfer_ns(&self.tunables, self.largest_bytes).saturating_add(self.tunables.position_ns);
        self.sweep_ns_max.saturating_mul(2).saturating_add(one)
    }

    /// What is reserved, all told.
    pub(super) fn sum(&self) -> Reserved {
        let contexts = self.reserving().filter(|&(flow, _)| flow < self.first_group).count();
        let contexts = u32::try_from(contexts).unwrap_or(u32::MAX);
        Reserved {
            contexts,
            groups: self.reservations.saturating_sub(contexts),
            load_ns: self.load_ns(),
            load_ns_max: self.tunables.load_ns_max(),
            sweep_ns_max: self.sweep_ns_max,
            delay_ns_max: self.delay_ns_max(),
        }
    }
}
