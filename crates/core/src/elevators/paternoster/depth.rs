//! The number of requests in the device and in the pool while contexts are below their shares.
//!
//! More requests in the device raise its throughput up to a point; beyond it they only wait there
//! instead of here, and a request of a context that asks for little waits behind them. The point is
//! found by probing: periods at a limit alternate with periods at a quarter more. If a quarter more
//! raises the throughput, the limit rises; otherwise it falls.
//!
//! A part of the pool of requests is left to contexts that are within their shares of the pool.

use crate::collections::{Count, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

use super::Paternoster;

/// The completions in one period.
const COMPLETIONS: u32 = 32;
/// The gain in throughput, in percent, for which the limit rises.
const GAIN_PERCENT: u64 = 3;
/// The limit at the beginning, as a multiple of the time that a read takes in an empty device.
const FIRST_TIMES: u64 = 2;
/// The work of a request beside its size, in sectors: 32 KiB.
const WORK_A_REQUEST: u64 = 64;
/// The part of the pool of requests that contexts with more than their share leave to others: one
/// in four.
const POOL_PART_FOR_OTHERS: u32 = 4;

/// The limit of the cost of requests in the device.
#[derive(Debug, Default)]
pub(super) struct DepthLimit {
    /// The limit, in ns; 0 while unknown.
    limit_ns: u64,
    /// Whether the current period is one with a quarter more.
    is_raised: bool,
    /// Whether the limit was reached in this period.
    is_reached: bool,
    completions: u32,
    work: u64,
    began_ns: u64,
    /// The throughput of the period at the limit.
    base_rate: u64,
}

impl DepthLimit {
    /// The current limit, in ns; `None` while it is unknown.
    fn limit(&self) -> Option<u64> {
        let more = if self.is_raised { self.limit_ns / 4 } else { 0 };
        (self.limit_ns > 0).then(|| self.limit_ns.saturating_add(more))
    }

    /// Returns true if requests of this cost in the device are enough.
    pub fn is_enough(&mut self, in_flight_ns: u64) -> bool {
        let is_enough = self.limit().is_some_and(|limit| in_flight_ns >= limit);
        self.is_reached |= is_enough;
        is_enough
    }

    /// Learns from a completed request. `unloaded_ns` is the time that a read takes in an empty
    /// device, 0 if unknown.
    pub fn complete(&mut self, sectors: u32, now_ns: u64, unloaded_ns: u64) {
        if self.limit_ns == 0 {
            self.limit_ns = unloaded_ns.saturating_mul(FIRST_TIMES);
        }
        self.work = self.work.saturating_add(u64::from(sectors)).saturating_add(WORK_A_REQUEST);
        self.completions.increment();
        if self.completions < COMPLETIONS {
            return;
        }
        let us = now_ns.saturating_sub(self.began_ns) / 1000;
        let rate = self.work.saturating_mul(1 << 16) / us.max(1);
        if !self.is_reached {
            // No context was throttled: the period shows nothing.
            self.is_raised = false;
        } else if self.is_raised {
            let is_gain = rate.saturating_mul(100) > self.base_rate.saturating_mul(GAIN_PERCENT.saturating_add(100));
            self.limit_ns = if is_gain {
                self.limit_ns.saturating_add(self.limit_ns / 4)
            } else {
                self.limit_ns.saturating_sub(self.limit_ns / 8)
            };
            self.limit_ns = self.limit_ns.max(unloaded_ns);
            self.is_raised = false;
        } else {
            (self.base_rate, self.is_raised) = (rate, true);
        }
        (self.completions, self.work, self.began_ns, self.is_reached) = (0, 0, now_ns, false);
    }
}

impl<H: HostTypes> Paternoster<H> {
    /// Returns true if contexts that had more than their share have to wait although no other is
    /// eligible: the device is deep enough, and a context lost a part of its share.
    pub(super) fn is_throttled(&mut self) -> bool {
        self.deprived > 0 && self.costs.in_flight > 0 && self.depth.is_enough(self.in_flight_ns)
    }

    /// The part of a pool of `nr_requests` from which a context may allocate.
    pub(super) fn pool_limit(&self, core: &QueueCore<H>, context: Slot, nr_requests: u32) -> u32 {
        let allocated = u64::from(core.tables.contexts[context].requests).saturating_add(1);
        if context >= self.capacity
            || self.has_share_of(core, context, allocated, nr_requests)
            || self.is_for_this_turn(core, context, allocated)
        {
            return nr_requests;
        }
        nr_requests.saturating_sub(nr_requests / POOL_PART_FOR_OTHERS)
    }

    /// Returns true if this many requests of a pool of `size` are within the share of a context.
    fn has_share_of(&self, core: &QueueCore<H>, context: Slot, requests: u64, size: u32) -> bool {
        let entry = &self.contexts[context];
        let membership = if entry.is_present { entry.membership } else { self.shares.membership_of(core, context) };
        self.shares.normalised(core, membership, requests) <= u64::from(size)
    }

    /// Returns true if this many requests of a context will be served in its current turn.
    fn is_for_this_turn(&self, core: &QueueCore<H>, context: Slot, requests: u64) -> bool {
        let entry = &self.contexts[context];
        context == self.in_turn
            && self.normalised(core, context, entry.cost_ns.saturating_mul(requests)).saturating_add(entry.position)
                < entry.position_limit
    }
}

#[cfg(test)]
mod tests {
    use super::DepthLimit;

    const US: u64 = 1000;
    const MS: u64 = 1000 * US;

    #[test]
    fn the_depth_rises_where_it_raises_the_throughput_and_falls_where_it_does_not() {
        // With k requests of 100 us of cost each the drive completes min(k, 16) in 100 us.
        let run = |first_unloaded_ns: u64| {
            let (mut depth, mut now_ns) = (DepthLimit::default(), MS);
            let mut deepest = 0;
            depth.complete(8, now_ns, first_unloaded_ns);
            for _ in 0..20_000 {
                let mut requests = 0u64;
                while requests < 1000 && !depth.is_enough(requests * 100 * US) {
                    requests += 1;
                }
                now_ns += 100 * US / requests.clamp(1, 16);
                depth.complete(8, now_ns, 100 * US);
                deepest = requests;
            }
            deepest
        };
        for first_unloaded_ns in [100 * US, 8 * MS] {
            let deepest = run(first_unloaded_ns);
            assert!((10..=32).contains(&deepest), "{deepest} requests, from {first_unloaded_ns} ns");
        }
    }
}
