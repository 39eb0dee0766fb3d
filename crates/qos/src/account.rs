//! The account of a tenant on a device: requests, bytes, errors, latencies, and its part of the
//! device's time.

use hdrhistogram::Histogram;

use crate::request::RequestOp;

/// The minimum latency that a histogram distinguishes from zero, in ns: 1 us.
const LATENCY_MIN_NS: u64 = 1_000;
/// The greatest latency that a histogram records, in ns: 1000 s. Longer latencies count as this.
const LATENCY_MAX_NS: u64 = 1_000_000_000_000;
/// Significant digits of a histogram: latencies are accurate to 1 %.
const DIGITS: u8 = 2;

/// The kind under which a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum OpKind {
    /// Reads, and reads into a cache.
    Read = 0,
    /// Writes of data.
    Write = 1,
    /// Trims, and writes of zeroes.
    Discard = 2,
    /// Flushes of written data.
    Flush = 3,
}

impl OpKind {
    /// All kinds, in the order of [`Account::ops`].
    pub const ALL: [OpKind; 4] = [OpKind::Read, OpKind::Write, OpKind::Discard, OpKind::Flush];

    /// Returns the name of the kind in metric labels and texts.
    pub const fn name(self) -> &'static str {
        match self {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Discard => "discard",
            OpKind::Flush => "flush",
        }
    }

    /// Returns the kind under which an operation is counted. Status queries are not counted.
    pub fn of(op: RequestOp) -> Option<OpKind> {
        match op {
            RequestOp::Read | RequestOp::Cache => Some(OpKind::Read),
            RequestOp::Write => Some(OpKind::Write),
            RequestOp::Zero { .. } | RequestOp::Trim => Some(OpKind::Discard),
            RequestOp::Flush => Some(OpKind::Flush),
            RequestOp::Status => None,
        }
    }
}

/// The account of one tenant on one device since the start. Only `waiting`, `held` and `in_flight`
/// ever decrease.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Counters by [`OpKind`].
    pub ops: [OpAccount; 4],
    /// Requests that wait in the queue; each piece of a split request counts.
    pub waiting: u64,
    /// Requests that the tenant's limits hold back.
    pub held: u64,
    /// Requests in the device; each piece of a split request counts.
    pub in_flight: u64,
    /// The tenant's part of the device's time, in ns: requests that are in the device together
    /// share its time equally.
    pub service_ns: u64,
    /// Requests within the tenant's reservation that completed after their deadline.
    pub reservation_missed: u64,
    /// The sum of the lateness of the requests that completed after the bound of their reservation,
    /// in ns.
    pub reservation_late_ns: u64,
    /// Slices of the tenant's clients that have ended, in elevators with slices.
    pub slices: u64,
    /// The sum of the lengths of the slices that have ended, in ns.
    pub slice_ns: u64,
    /// The sum over all requests of the time for which limits delayed them, in ns, up to the
    /// last change of [`held`](Account::held).
    held_ns: u64,
    /// The time of the last change of [`held`](Account::held), in ns of the host's clock.
    held_changed_ns: u64,
    /// The time during which the tenant had at least one request in progress, in ns, up to the last
    /// time it had none.
    pub active_ns: u64,
    /// The time at which the current period with requests in progress began, in ns of the host's
    /// clock.
    active_since_ns: u64,
    /// Requests in progress, flushes and status queries included.
    open: u64,
}

/// The counters of one kind of requests.
#[derive(Clone, Debug, Default)]
pub struct OpAccount {
    /// Requests that completed, errors included. Requests of clients that left are not counted.
    pub requests: u64,
    /// Bytes that were read, written or discarded.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The time from a request's arrival to the dispatch of its first piece, in ns; includes the
    /// time that limits held it back. `None` before the first request. A histogram takes about 15
    /// KiB.
    pub queue_ns: Option<Box<Histogram<u64>>>,
    /// The time from the dispatch of the first piece to the completion, in ns.
    pub device_ns: Option<Box<Histogram<u64>>>,
    /// The time from arrival to completion, in ns.
    pub total_ns: Option<Box<Histogram<u64>>>,
}

impl Account {
    /// Counts a request that arrived. A tenant is active while it has requests in progress.
    pub(crate) fn open_request(&mut self, now_ns: u64) {
        if self.open == 0 {
            self.active_since_ns = now_ns;
        }
        self.open += 1;
    }

    /// Counts a request that ended.
    pub(crate) fn close_request(&mut self, now_ns: u64) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            self.active_ns += now_ns.saturating_sub(self.active_since_ns);
        }
    }

    /// Counts a request that limits hold back from now on.
    pub(crate) fn hold(&mut self, now_ns: u64) {
        self.change_held(self.held + 1, now_ns);
    }

    /// Counts a request that limits no longer hold back.
    pub(crate) fn release(&mut self, now_ns: u64) {
        self.change_held(self.held.saturating_sub(1), now_ns);
    }

    fn change_held(&mut self, held: u64, now_ns: u64) {
        self.held_ns = self.held_until(now_ns);
        (self.held, self.held_changed_ns) = (held, now_ns);
    }

    /// Returns the sum over all requests of the time for which limits delayed them up to `now_ns`,
    /// in ns: two requests that are delayed for a second count two seconds.
    pub fn held_until(&self, now_ns: u64) -> u64 {
        self.held_ns.saturating_add(now_ns.saturating_sub(self.held_changed_ns).saturating_mul(self.held))
    }

    /// Returns true if no request is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.open == 0
    }

    /// Returns the time during which the tenant had requests in progress, up to `now_ns`, in ns.
    pub fn active_until(&self, now_ns: u64) -> u64 {
        self.active_ns + if self.open > 0 { now_ns.saturating_sub(self.active_since_ns) } else { 0 }
    }

    /// Counts a completed request.
    pub(crate) fn count(&mut self, op: RequestOp, bytes: u64, failed: bool, queue_ns: u64, device_ns: u64) {
        let Some(kind) = OpKind::of(op) else { return };
        let account = &mut self.ops[kind as usize];
        account.requests += 1;
        if failed {
            account.errors += 1;
        } else {
            account.bytes += bytes;
        }
        record(&mut account.queue_ns, queue_ns);
        record(&mut account.device_ns, device_ns);
        record(&mut account.total_ns, queue_ns.saturating_add(device_ns));
    }

    /// Returns the bytes of all kinds of requests.
    pub fn bytes(&self) -> u64 {
        self.ops.iter().map(|op| op.bytes).sum()
    }

    /// Returns the number of requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.ops.iter().map(|op| op.requests).sum()
    }
}

fn record(histogram: &mut Option<Box<Histogram<u64>>>, ns: u64) {
    histogram.get_or_insert_with(latency_histogram).saturating_record(ns);
}

/// Creates an empty histogram of latencies in ns, from 1 us to 1000 s with two significant digits.
pub fn latency_histogram() -> Box<Histogram<u64>> {
    let fitting = Histogram::new_with_bounds(LATENCY_MIN_NS, LATENCY_MAX_NS, DIGITS);
    Box::new(fitting.unwrap_or_else(|_| unreachable!("1 us to 1000 s at two digits are bounds of a histogram")))
}

/// The busy time of a device, and its equal division among the requests in it.
#[derive(Debug, Default)]
pub(crate) struct BusyTime {
    in_flight: u32,
    changed_ns: u64,
    /// The time during which at least one request was in the device, in ns.
    busy_ns: u64,
    /// The service time of a hypothetical request that is always in the device, in ns / 256.
    each: u64,
}

impl BusyTime {
    /// Counts a request that enters the device. Returns the mark that [`BusyTime::leave`] takes.
    pub fn enter(&mut self, now_ns: u64) -> u64 {
        self.advance(now_ns);
        self.in_flight += 1;
        self.each
    }

    /// Counts a request that leaves the device. Returns its part of the device's time, in ns.
    pub fn leave(&mut self, mark: u64, now_ns: u64) -> u64 {
        self.advance(now_ns);
        self.in_flight = self.in_flight.saturating_sub(1);
        (self.each - mark) >> 8
    }

    /// Returns the time during which at least one request was in the device, up to `now_ns`, in ns.
    pub fn busy_ns(&self, now_ns: u64) -> u64 {
        self.busy_ns + if self.in_flight > 0 { now_ns.saturating_sub(self.changed_ns) } else { 0 }
    }

    fn advance(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.changed_ns);
        self.changed_ns = self.changed_ns.max(now_ns);
        if self.in_flight > 0 && elapsed_ns > 0 {
            self.busy_ns += elapsed_ns;
            self.each += (elapsed_ns << 8) / u64::from(self.in_flight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_requests_in_the_device_have_half_of_its_time_each() {
        let mut busy = BusyTime::default();
        let first = busy.enter(100);
        let second = busy.enter(200);
        assert_eq!(busy.leave(first, 400), 100 + 100, "100 ns alone, then half of 200 ns");
        assert_eq!(busy.leave(second, 500), 100 + 100);
        busy.enter(1_000);
        assert_eq!(busy.busy_ns(1_050), 450, "the pause does not count");
    }

    #[test]
    fn the_time_of_held_requests_is_added_up_while_they_wait() {
        let mut account = Account::default();
        account.hold(1_000);
        account.hold(1_500);
        assert_eq!(account.held_until(2_000), 1_000 + 500, "one for 1000 ns, the other for 500 ns");
        account.release(2_000);
        assert_eq!(account.held_until(2_100), 1_600);
        account.release(2_100);
        assert_eq!((account.held, account.held_until(9_000)), (0, 1_600));
    }

    #[test]
    fn a_latency_is_known_to_a_hundredth_from_a_microsecond_to_a_thousand_seconds() {
        let mut histogram = latency_histogram();
        for ns in [0, 900, 55_555, 7_000_000, 2_000_000_000_000] {
            histogram.saturating_record(ns);
        }
        assert_eq!(histogram.len(), 5);
        let near = |quantile: f64, ns: u64| histogram.value_at_quantile(quantile).abs_diff(ns) <= ns / 100 + 1_024;
        assert!(near(0.6, 55_555) && near(0.8, 7_000_000) && near(1.0, 1_000_000_000_000), "{histogram:?}");
    }
}
