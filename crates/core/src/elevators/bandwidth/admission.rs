//! Admission of reservations, and the bounds that follow from them.
//!
//! `figures` has the arithmetic.

use super::Bandwidth;
use super::flow::Flow;
use crate::bucket::TokenBucket;
use crate::collections::{Count, Slot};
use crate::elevator::Elevator;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::reservation::{Reservation, ReservationSummary, ReserveError};
use crate::elevator::tables::HostTypes;

impl<H: HostTypes, E: Elevator<H>> Bandwidth<H, E> {
    /// Admits a reservation or refuses it.
    pub(super) fn admit(&mut self, core: &QueueCore<H>, flow: Slot, wanted: Reservation) -> Result<(), ReserveError> {
        let Reservation { bytes_per_second: rate, depth_bytes, request_bytes } = wanted;
        let now_ns = core.clock.now_ns();
        let figures = self.tunables.figures();
        figures.admit(self.load_ns(), self.flows[flow].reservation(), wanted)?;
        // Inflow in a horizon: rate * T; 10^10 * 10^4 ms stays far below 2^64.
        let in_horizon = rate.saturating_mul(figures.horizon_ns / 1_000_000) / 1000;
        let depth = depth_bytes.unwrap_or(in_horizon.max(request_bytes.saturating_mul(2)));
        let entry = &mut self.flows[flow];
        if entry.is_reserved() {
            entry.bucket.change(rate, depth, now_ns);
        } else {
            self.reservations.increment();
            entry.begin(TokenBucket::full(rate, depth, now_ns));
        }
        entry.request_bytes = request_bytes;
        self.refile(core, flow, now_ns);
        self.set_bounds();
        Ok(())
    }

    /// The device time of all reservations, in ns a second; 0 without any.
    fn load_ns(&self) -> u64 {
        self.tunables.figures().load_ns(self.reserving().filter_map(|(_, flow)| flow.reservation()))
    }

    /// The flows with reservations.
    fn reserving(&self) -> impl Iterator<Item = (Slot, &Flow)> {
        (0..self.flows.capacity()).map(|slot| (slot, &self.flows[slot])).filter(|(_, flow)| flow.is_reserved())
    }

    /// Computes the bounds after a change of reservations or of the device's figures.
    pub(super) fn set_bounds(&mut self) {
        let (mut bytes, mut requests) = (0u64, 0u64);
        for (_, flow) in self.reserving() {
            bytes = bytes.saturating_add(flow.bucket.depth());
            requests = requests.saturating_add(flow.burst_requests());
        }
        let tunables = &self.tunables;
        let positioning = requests.saturating_mul(tunables.position_ns);
        let transfer = tunables.figures().transfer_ns(bytes);
        self.sweep_ns_max = transfer.saturating_add(positioning).saturating_add(tunables.return_ns);
    }

    /// The maximum time in ns from eligibility to completion of a request: the rest of the running
    /// sweep, its own sweep, and one request that the device may have begun.
    pub(super) fn delay_ns_max(&self) -> u64 {
        self.sweep_ns_max.saturating_mul(2).saturating_add(self.one_ns())
    }

    /// The same bound for a device that takes several requests at once: all but one of them can
    /// precede the request.
    pub(super) fn late_after_ns(&self) -> u64 {
        let more = u64::from(self.deepest.saturating_sub(1));
        self.delay_ns_max().saturating_add(self.one_ns().saturating_mul(more))
    }

    /// The device's maximum time for one request, in ns.
    fn one_ns(&self) -> u64 {
        self.tunables.figures().transfer_ns(self.largest_bytes).saturating_add(self.tunables.position_ns)
    }

    /// The summary of all reservations.
    pub(super) fn sum(&self) -> ReservationSummary {
        let contexts = self.reserving().filter(|&(flow, _)| flow < self.first_group).count();
        let contexts = u32::try_from(contexts).unwrap_or(u32::MAX);
        ReservationSummary {
            contexts,
            groups: self.reservations.saturating_sub(contexts),
            load_ns: self.load_ns(),
            load_ns_max: self.tunables.load_ns_max(),
            sweep_ns_max: self.sweep_ns_max,
            delay_ns_max: self.delay_ns_max(),
        }
    }
}
