//! How many requests the device is given while a party loses a part of its share.
//!
//! More requests in the device raise its throughput up to a point; beyond it they only wait there
//! instead of here, and a request of a party that asks for little waits behind them. Where that
//! point is, is found by trying: in turn, the device is given as much as the limit and a quarter
//! more. If a quarter more raises the throughput, the limit rises; otherwise it falls.

use crate::collections::Count;

/// The completions in one trial.
const COMPLETIONS: u32 = 32;
/// The gain in throughput, in percent, for which the limit rises.
const GAIN_PERCENT: u64 = 3;
/// The limit at the beginning, as a multiple of the time that a read takes alone.
const FIRST_TIMES: u64 = 2;
/// What a request counts for beside its size, in sectors: 32 KiB.
const WORK_A_REQUEST: u64 = 64;

/// The limit of the cost of requests in the device.
#[derive(Debug, Default)]
pub(super) struct Depth {
    /// The limit, in ns; 0 while unknown.
    limit_ns: u64,
    /// Whether the present trial is the one with more.
    is_high: bool,
    /// Whether the limit was reached in this trial.
    is_reached: bool,
    completions: u32,
    work: u64,
    began_ns: u64,
    /// The throughput of the trial at the limit.
    low: u64,
}

impl Depth {
    /// The present limit, in ns; `None` while it is unknown.
    fn limit(&self) -> Option<u64> {
        let more = if self.is_high { self.limit_ns / 4 } else { 0 };
        (self.limit_ns > 0).then(|| self.limit_ns.saturating_add(more))
    }

    /// Returns true if requests that cost so much are enough.
    pub fn is_enough(&mut self, in_flight_ns: u64) -> bool {
        let is_enough = self.limit().is_some_and(|limit| in_flight_ns >= limit);
        self.is_reached |= is_enough;
        is_enough
    }

    /// Learns from a completed request. `alone_ns` is the time that a read takes alone, 0 if
    /// unknown.
    pub fn complete(&mut self, sectors: u32, now_ns: u64, alone_ns: u64) {
        if self.limit_ns == 0 {
            self.limit_ns = alone_ns.saturating_mul(FIRST_TIMES);
        }
        self.work = self.work.saturating_add(u64::from(sectors)).saturating_add(WORK_A_REQUEST);
        self.completions.increment();
        if self.completions < COMPLETIONS {
            return;
        }
        let us = now_ns.saturating_sub(self.began_ns) / 1000;
        let rate = self.work.saturating_mul(1 << 16) / us.max(1);
        if !self.is_reached {
            // No party was held back: the trial says nothing.
            self.is_high = false;
        } else if self.is_high {
            let is_gain = rate.saturating_mul(100) > self.low.saturating_mul(GAIN_PERCENT.saturating_add(100));
            self.limit_ns = if is_gain {
                self.limit_ns.saturating_add(self.limit_ns / 4)
            } else {
                self.limit_ns.saturating_sub(self.limit_ns / 8)
            };
            self.limit_ns = self.limit_ns.max(alone_ns);
            self.is_high = false;
        } else {
            self.low = rate;
            self.is_high = true;
        }
        (self.completions, self.work, self.began_ns, self.is_reached) = (0, 0, now_ns, false);
    }
}
