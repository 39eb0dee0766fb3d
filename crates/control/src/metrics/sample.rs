//! The figures of one scrape, with a bounded number of labels.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;

use super::{OTHERS, TENANTS_MAX};
use crate::share::{Share, Watch};
use crate::target::{AccountView, AdminTarget, DeviceFacts, ObjectKind, OpView, ServerFacts};
use hoistway_qos::{OpKind, Terms};

/// The upper bounds of the latency buckets in seconds: 1, 2.5 and 5 of each decade from 10 us to
/// 10 s. A last bucket has no bound.
pub const BOUNDS_S: [f64; 19] = [
    10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1.0,
    2.5, 5.0, 10.0,
];

/// All figures of a scrape.
#[derive(Debug)]
pub struct Sample {
    /// The facts of the server.
    pub server: ServerFacts,
    /// The devices with their names.
    pub devices: Vec<(String, DeviceFacts)>,
    /// The figures of tenants by device and label.
    pub tenants: BTreeMap<(String, String), Tally>,
}

/// The figures of the tenants with one label on a device.
#[derive(Debug)]
pub struct Tally {
    /// The figures by kind of request.
    pub ops: [(&'static str, Figures); 4],
    /// The device time, in ns.
    pub service_ns: u64,
    /// The number of requests within a reservation that completed after their bound.
    pub reservation_missed: u64,
    /// The sum of the lateness of the requests that completed after the bound of their reservation,
    /// in ns.
    pub reservation_late_ns: u64,
    /// The largest lateness of a request within a reservation, in ns.
    pub lateness_ns: u64,
    /// The sum over all requests of the time for which limits delayed them, in ns.
    pub held_ns: u64,
    /// The number of slices that ended.
    pub slices: u64,
    /// The sum of the lengths of the slices that ended, in ns.
    pub slice_ns: u64,
    /// Whether the active slice is the tenant's; `None` under elevators without slices.
    pub holds_slice: Option<bool>,
    /// The terms; `None` for the label of several tenants.
    pub terms: Option<Terms>,
    /// The number of requests in the queue.
    pub waiting: u64,
    /// The number of requests that limits delay.
    pub held: u64,
    /// The number of requests in the device.
    pub in_flight: u64,
    /// The share in the last ten seconds; empty for the label of several tenants.
    pub share: Share,
}

/// The figures of one kind of requests.
#[derive(Debug, Default)]
pub struct Figures {
    /// The number of completed requests.
    pub requests: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The number of failed requests.
    pub errors: u64,
    /// The times in the queue.
    pub queue: Durations,
    /// The times in the device.
    pub device: Durations,
}

/// A latency histogram with the buckets of a scrape.
#[derive(Debug, Default)]
pub struct Durations {
    /// The number of requests in each bucket of [`BOUNDS_S`], then beyond the last.
    pub buckets: [u64; BOUNDS_S.len() + 1],
    /// The number of all requests.
    pub count: u64,
    /// The sum of all latencies in seconds.
    pub sum_s: f64,
}

impl Sample {
    /// Reads the figures of the server. `labelled` are the tenants with a label of their own;
    /// further tenants get one up to [`TENANTS_MAX`]. Only these have latencies: a histogram costs
    /// some 10 us, while the cost of counters is negligible.
    pub fn take(
        server: ServerFacts,
        labelled: &mut BTreeSet<String>,
        watch: &Watch,
        target: &dyn AdminTarget,
    ) -> Sample {
        let mut devices = Vec::new();
        let mut tenants: BTreeMap<(String, String), Tally> = BTreeMap::new();
        for name in target.names(ObjectKind::Devices) {
            let Some(facts) = target.device(&name) else { continue };
            target.accounts(&name, &mut |tenant, account| {
                if labelled.len() < TENANTS_MAX && !labelled.contains(tenant) {
                    labelled.insert(tenant.to_owned());
                }
                let own = labelled.contains(tenant);
                let label = if own { tenant } else { OTHERS };
                let tally = tenants.entry((name.clone(), label.to_owned())).or_default();
                tally.add(account);
                tally.add_state(tenant, &facts);
                if own {
                    tally.add_latencies(account);
                    tally.share = watch.share(&name, tenant);
                    tally.terms = target.terms(tenant);
                }
            });
            devices.push((name, facts));
        }
        Sample { server, devices, tenants }
    }
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            ops: OpKind::ALL.map(|op| (op.name(), Figures::default())),
            service_ns: 0,
            reservation_missed: 0,
            reservation_late_ns: 0,
            lateness_ns: 0,
            held_ns: 0,
            slices: 0,
            slice_ns: 0,
            holds_slice: None,
            terms: None,
            waiting: 0,
            held: 0,
            in_flight: 0,
            share: Share::default(),
        }
    }
}

impl Tally {
    fn add(&mut self, account: &AccountView<'_>) {
        self.ops.iter_mut().zip(&account.ops).for_each(|((_, figures), op)| figures.add(op));
        for (sum, more) in [
            (&mut self.service_ns, account.service_ns),
            (&mut self.reservation_missed, account.reservation_missed),
            (&mut self.reservation_late_ns, account.reservation_late_ns),
            (&mut self.held_ns, account.held_ns),
            (&mut self.slices, account.slices),
            (&mut self.slice_ns, account.slice_ns),
            (&mut self.waiting, account.waiting),
            (&mut self.held, account.held),
            (&mut self.in_flight, account.in_flight),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Adds what the elevator does for a tenant at present: its slice, and late requests.
    fn add_state(&mut self, tenant: &str, device: &DeviceFacts) {
        let late = device.late.iter().find(|(name, _)| name == tenant);
        self.lateness_ns = self.lateness_ns.max(late.map_or(0, |(_, ns)| *ns));
        if device.has_slices {
            let holds = device.slice.as_ref().is_some_and(|slice| slice.holder == tenant);
            self.holds_slice = Some(holds || self.holds_slice == Some(true));
        }
    }

    fn add_latencies(&mut self, account: &AccountView<'_>) {
        for ((_, figures), op) in self.ops.iter_mut().zip(&account.ops) {
            op.queue_ns.into_iter().for_each(|recorded| figures.queue.add(recorded));
            op.device_ns.into_iter().for_each(|recorded| figures.device.add(recorded));
        }
    }
}

impl Figures {
    fn add(&mut self, op: &OpView<'_>) {
        self.requests = self.requests.saturating_add(op.requests);
        self.bytes = self.bytes.saturating_add(op.bytes);
        self.errors = self.errors.saturating_add(op.errors);
    }
}

impl Durations {
    fn add(&mut self, recorded: &Histogram<u64>) {
        let mut bucket = 0;
        for value in recorded.iter_recorded() {
            let (at_s, count) = (value.value_iterated_to() as f64 / 1e9, value.count_since_last_iteration());
            while BOUNDS_S.get(bucket).is_some_and(|bound| at_s > *bound) {
                bucket += 1;
            }
            self.buckets[bucket] = self.buckets[bucket].saturating_add(count);
            self.count = self.count.saturating_add(count);
            self.sum_s += at_s * count as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let mut recorded = Histogram::<u64>::new_with_bounds(1_000, 1_000_000_000_000, 2).unwrap();
        for us in [1, 9, 11, 900, 2_000_000, 60_000_000] {
            recorded.record(us * 1000).unwrap();
        }
        let mut durations = Durations::default();
        durations.add(&recorded);
        durations.add(&recorded);
        let filled: Vec<_> = durations.buckets.iter().enumerate().filter(|(_, count)| **count > 0).collect();
        assert_eq!(filled, [(0, &4), (1, &2), (6, &2), (16, &2), (19, &2)]);
        assert!(durations.count == 12 && (durations.sum_s - 124.0).abs() < 1.0, "{}", durations.sum_s);
    }
}
