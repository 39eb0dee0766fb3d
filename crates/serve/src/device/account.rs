//! What each tenant had of a device: counts, bytes, errors, latencies, and its part of the device's time.

use hdrhistogram::Histogram;

use super::WorkOp;

/// The least latency that is told apart from none, in ns: 1 us.
const LATENCY_MIN_NS: u64 = 1_000;
/// Longer ones count as this: 1000 s.
const LATENCY_MAX_NS: u64 = 1_000_000_000_000;
/// Two digits: a latency is known to 1 %.
const DIGITS: u8 = 2;

/// What requests are counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counted {
    /// READ, CACHE.
    Read = 0,
    /// WRITE.
    Write = 1,
    /// TRIM, WRITE_ZEROES.
    Discard = 2,
    /// FLUSH.
    Flush = 3,
}

impl Counted {
    /// All of them, in the order of [`Account::ops`].
    pub const ALL: [Counted; 4] = [Counted::Read, Counted::Write, Counted::Discard, Counted::Flush];

    /// Its name in labels and texts.
    pub const fn name(self) -> &'static str {
        match self {
            Counted::Read => "read",
            Counted::Write => "write",
            Counted::Discard => "discard",
            Counted::Flush => "flush",
        }
    }

    /// As what a piece of work counts; questions are not counted.
    pub fn of(op: WorkOp) -> Option<Counted> {
        match op {
            WorkOp::Read | WorkOp::Cache => Some(Counted::Read),
            WorkOp::Write => Some(Counted::Write),
            WorkOp::Zero { .. } | WorkOp::Trim => Some(Counted::Discard),
            WorkOp::Flush => Some(Counted::Flush),
            WorkOp::Status => None,
        }
    }
}

/// What one tenant had of one device since the start. Nothing in it ever decreases but `waiting`, `held` and `in_flight`.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// By [`Counted`].
    pub ops: [OpAccount; 4],
    /// Requests that wait in the queue, the pieces of a split one each for itself.
    pub waiting: u64,
    /// Requests that its limits hold back.
    pub held: u64,
    /// Requests in the device, pieces as above.
    pub in_flight: u64,
    /// The device's time that it had, in ns: while several requests are in the device, each has an equal part of the time.
    pub service_ns: u64,
    /// Requests within its reservation that were done later than promised.
    pub reservation_missed: u64,
    /// For how long it had a request that was not over, in ns, as of the last time it had none.
    pub active_ns: u64,
    /// Since when it has, in ns of the server's clock.
    active_since_ns: u64,
    /// Requests that are not over, flushes and questions included.
    open: u64,
}

/// The same of one kind of requests.
#[derive(Clone, Debug, Default)]
pub struct OpAccount {
    /// Requests that were done, errors included; a request whose client has left counts no more.
    pub requests: u64,
    /// Bytes that were read, written or given back.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// From when a request came (limits included) until its first piece went to the device, in ns; none: never counted. About 15 KiB.
    pub queue_ns: Option<Box<Histogram<u64>>>,
    /// From then until it was done, in ns.
    pub device_ns: Option<Box<Histogram<u64>>>,
    /// Both together, in ns.
    pub total_ns: Option<Box<Histogram<u64>>>,
}

impl Account {
    /// A request has come: from its first to its last one a tenant is active.
    pub(super) fn entered(&mut self, now_ns: u64) {
        if self.open == 0 {
            self.active_since_ns = now_ns;
        }
        self.open += 1;
    }

    /// A request is over.
    pub(super) fn left(&mut self, now_ns: u64) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            self.active_ns += now_ns.saturating_sub(self.active_since_ns);
        }
    }

    /// Whether nothing of it is left.
    pub(super) fn is_over(&self) -> bool {
        self.open == 0
    }

    /// The active time up to now, in ns.
    pub fn active_until(&self, now_ns: u64) -> u64 {
        self.active_ns + if self.open > 0 { now_ns.saturating_sub(self.active_since_ns) } else { 0 }
    }

    /// Writes down what has been done.
    pub(super) fn done(&mut self, op: WorkOp, bytes: u64, failed: bool, queue_ns: u64, device_ns: u64) {
        let Some(kind) = Counted::of(op) else { return };
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

    /// Bytes of all kinds.
    pub fn bytes(&self) -> u64 {
        self.ops.iter().map(|op| op.bytes).sum()
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.ops.iter().map(|op| op.requests).sum()
    }
}

fn record(histogram: &mut Option<Box<Histogram<u64>>>, ns: u64) {
    histogram.get_or_insert_with(latencies).saturating_record(ns);
}

/// An empty histogram of latencies in ns. Its bounds are constants that fit, so the smallest histogram is never needed.
pub(super) fn latencies() -> Box<Histogram<u64>> {
    let fitting = Histogram::new_with_bounds(LATENCY_MIN_NS, LATENCY_MAX_NS, DIGITS);
    Box::new(fitting.unwrap_or_else(|_| unreachable!("1 us to 1000 s at two digits are bounds of a histogram")))
}

/// The time of the device, and how it is divided among what is in it.
#[derive(Debug, Default)]
pub(super) struct Busy {
    in_flight: u32,
    changed_ns: u64,
    /// For how long something was in the device, in ns.
    busy_ns: u64,
    /// What one request that is always in the device would have had, in ns / 256.
    each: u64,
}

impl Busy {
    /// A request enters; answers the mark that [`Busy::leave`] wants.
    pub fn enter(&mut self, now_ns: u64) -> u64 {
        self.advance(now_ns);
        self.in_flight += 1;
        self.each
    }

    /// A request that entered at this mark leaves; answers its part of the time, in ns.
    pub fn leave(&mut self, mark: u64, now_ns: u64) -> u64 {
        self.advance(now_ns);
        self.in_flight = self.in_flight.saturating_sub(1);
        (self.each - mark) >> 8
    }

    /// For how long something was in the device up to now, in ns.
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
        let mut busy = Busy::default();
        let first = busy.enter(100);
        let second = busy.enter(200);
        assert_eq!(busy.leave(first, 400), 100 + 100, "100 ns alone, then half of 200 ns");
        assert_eq!(busy.leave(second, 500), 100 + 100);
        busy.enter(1_000);
        assert_eq!(busy.busy_ns(1_050), 450, "the pause does not count");
    }

    #[test]
    fn a_latency_is_known_to_a_hundredth_from_a_microsecond_to_a_thousand_seconds() {
        let mut histogram = latencies();
        for ns in [0, 900, 55_555, 7_000_000, 2_000_000_000_000] {
            histogram.saturating_record(ns);
        }
        assert_eq!(histogram.len(), 5);
        let near = |quantile: f64, ns: u64| histogram.value_at_quantile(quantile).abs_diff(ns) <= ns / 100 + 1_024;
        assert!(near(0.6, 55_555) && near(0.8, 7_000_000) && near(1.0, 1_000_000_000_000), "{histogram:?}");
    }
}
