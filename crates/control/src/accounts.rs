//! The accounts of tenants as text and JSON.

use std::fmt::Write;

use hdrhistogram::Histogram;

use crate::histogram::Latencies;
use crate::leaf::LeafQuery;
use crate::names;
use crate::target::{AccountView, ClientFacts, DeviceFacts, ObjectKind, OpView};
use crate::text;
use hoistway_qos::OpKind;

/// The maximum number of tenants whose histograms are shown for a device: each costs the server
/// some 10 us.
const TENANTS_MAX: usize = 64;

/// A phase of a request: its name and its histogram in an [`OpView`].
type Phase = (&'static str, for<'a> fn(&OpView<'a>) -> Option<&'a Histogram<u64>>);
/// The phases of a request.
const PHASES: [Phase; 3] = [("queue", |op| op.queue_ns), ("device", |op| op.device_ns), ("total", |op| op.total_ns)];

/// Returns the value of `devices/NAME/reserved`.
pub fn reserved(facts: &DeviceFacts) -> String {
    facts.reserved.map_or_else(
        || "-".to_owned(),
        |reserved| {
            format!("{} {} {} {}", reserved.load_ns, reserved.load_ns_max, reserved.contexts, reserved.delay_ns_max)
        },
    )
}

/// Returns the value of `devices/NAME/lateness`.
pub fn lateness(facts: &DeviceFacts) -> String {
    facts.lateness.as_ref().map_or_else(
        || "-".to_owned(),
        |late| format!("count={} p50={} p99={} max={}", late.count, late.p50_ns, late.p99_ns, late.max_ns),
    )
}

/// Returns the value of `devices/NAME/stat`.
pub fn device_stat(query: &LeafQuery<'_>) -> Option<String> {
    let facts = query.target.device(query.name)?;
    let mut sums = [(0u64, 0u64, 0.0f64); 4];
    query.target.accounts(query.name, &mut |_, account| {
        for (sum, op) in sums.iter_mut().zip(&account.ops) {
            sum.0 = sum.0.saturating_add(op.requests);
            sum.1 = sum.1.saturating_add(op.bytes);
            sum.2 += total_ms(op);
        }
    });
    let [read, write, discard, flush] = sums;
    let field =
        |sum: (u64, u64, f64), merges: u64| format!("{:8} {:8} {:8} {:8}", sum.0, merges, sum.1 / 512, sum.2 as u64);
    let all_ms = (read.2 + write.2 + discard.2 + flush.2) as u64;
    let in_flight = facts.in_flight[0].saturating_add(facts.in_flight[1]);
    Some(format!(
        "{} {} {in_flight:8} {:8} {all_ms:8} {} {:8} {:8}",
        field(read, facts.merges[0]),
        field(write, facts.merges[1]),
        facts.busy_ns / 1_000_000,
        field(discard, 0),
        flush.0,
        flush.2 as u64,
    ))
}

/// Returns the value of `devices/NAME/tenants`.
pub fn device_tenants(query: &LeafQuery<'_>) -> Option<String> {
    query.target.device(query.name)?;
    let mut lines = String::new();
    query.target.accounts(query.name, &mut |tenant, account| {
        let terms = query.target.terms(tenant).unwrap_or_default();
        let share = query.watch.share(query.name, tenant);
        let [bytes, time, entitlement] = [share.bytes, share.time, share.entitlement].map(text::fraction);
        let _ = writeln!(
            lines,
            "{} {} weight={} class={} reserve={} limit={} bytes={bytes} time={time} entitlement={entitlement}",
            names::escape(tenant),
            stat(account),
            terms.weight,
            text::class(terms.priority.class()),
            terms.reserve.map_or(0, |reserve| reserve.bytes_per_second),
            super::terms::show_rate(terms.limits.bytes),
        );
    });
    Some(lines)
}

/// Returns the value of `devices/NAME/histogram`.
pub fn device_histograms(query: &LeafQuery<'_>) -> Option<String> {
    query.target.device(query.name)?;
    let mut busiest: Vec<(u64, String)> = Vec::new();
    query.target.accounts(query.name, &mut |tenant, account| {
        busiest.push((account.ops.iter().map(|op| op.requests).sum(), tenant.to_owned()));
    });
    busiest.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    busiest.truncate(TENANTS_MAX);
    let mut lines = String::new();
    query.target.accounts(query.name, &mut |tenant, account| {
        if busiest.iter().any(|(_, name)| name == tenant) {
            histograms(&mut lines, &names::escape(tenant), account);
        }
    });
    Some(lines)
}

/// Returns the value of `tenants/NAME/stat`.
pub fn tenant_stat(query: &LeafQuery<'_>) -> Option<String> {
    each_device(query, |lines, device, account| {
        let _ = writeln!(lines, "{device} {}", stat(account));
    })
}

/// Returns the value of `tenants/NAME/histogram`.
pub fn tenant_histograms(query: &LeafQuery<'_>) -> Option<String> {
    each_device(query, histograms)
}

/// Returns the value of `tenants/NAME/latency`.
pub fn tenant_latency(query: &LeafQuery<'_>) -> Option<String> {
    each_device(query, |lines, device, account| {
        for (name, histogram_of) in PHASES {
            for (op, view) in OpKind::ALL.iter().zip(&account.ops) {
                let Some(histogram) = histogram_of(view).filter(|histogram| !histogram.is_empty()) else { continue };
                let at = |percent| histogram.value_at_percentile(percent);
                let _ = writeln!(
                    lines,
                    "{device} {} {name} count={} p50={} p90={} p99={} p99.9={} max={}",
                    op.name(),
                    histogram.len(),
                    at(50.0),
                    at(90.0),
                    at(99.0),
                    at(99.9),
                    histogram.max(),
                );
            }
        }
    })
}

/// Returns the value of `tenants/NAME/share`.
pub fn tenant_share(query: &LeafQuery<'_>) -> Option<String> {
    each_device(query, |lines, device, _| {
        let share = query.watch.share(&names::unescape(device).unwrap_or_default(), query.name);
        let [bytes, time, entitlement] = [share.bytes, share.time, share.entitlement].map(text::fraction);
        let _ = writeln!(lines, "{device} bytes={bytes} time={time} entitlement={entitlement}");
    })
}

/// Returns the value of `tenants/NAME/entitlement`.
pub fn tenant_entitlement(query: &LeafQuery<'_>) -> Option<String> {
    each_device(query, |lines, device, _| {
        let share = query.watch.share(&names::unescape(device).unwrap_or_default(), query.name);
        let _ = writeln!(lines, "{device} {}", text::fraction(share.entitlement));
    })
}

/// Returns the value of `tenants/NAME/stat.json`.
pub fn tenant_json(query: &LeafQuery<'_>) -> Option<String> {
    query.target.tenant(query.name)?;
    let (mut all, mut devices) = (Totals::default(), serde_json::Map::new());
    for device in query.target.names(ObjectKind::Devices) {
        query.target.account(&device, query.name, &mut |account| {
            let mut own = Totals::default();
            own.add(account);
            all.add(account);
            devices.insert(device.clone(), own.to_json());
        });
    }
    let mut document = all.to_json();
    document["devices"] = devices.into();
    Some(document.to_string())
}

/// Returns the value of `clients/ID/stat`.
pub fn client_stat(facts: &ClientFacts) -> String {
    format!(
        "requests={} in_flight={} rbytes={} wbytes={}",
        facts.requests, facts.in_flight, facts.read_bytes, facts.written_bytes
    )
}

/// Returns lines of text on the tenant's account with each device that it used.
fn each_device(query: &LeafQuery<'_>, mut show: impl FnMut(&mut String, &str, &AccountView<'_>)) -> Option<String> {
    query.target.tenant(query.name)?;
    let mut lines = String::new();
    for device in query.target.names(ObjectKind::Devices) {
        query.target.account(&device, query.name, &mut |account| show(&mut lines, &names::escape(&device), account));
    }
    Some(lines)
}

/// The sums of several accounts.
#[derive(Default)]
struct Totals {
    counters: [u64; 3],
    service_ns: u64,
    now: [u64; 3],
    /// In the order of [`PHASES`]; `None` without a recorded request.
    latencies: [Option<Histogram<u64>>; 3],
}

impl Totals {
    fn add(&mut self, account: &AccountView<'_>) {
        for op in &account.ops {
            let counters = [op.requests, op.bytes, op.errors];
            self.counters.iter_mut().zip(counters).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            for (sum, (_, histogram_of)) in self.latencies.iter_mut().zip(PHASES) {
                match (sum, histogram_of(op)) {
                    (Some(sum), Some(more)) => drop(sum.add(more)),
                    (sum @ None, Some(first)) => *sum = Some(first.clone()),
                    (_, None) => {}
                }
            }
        }
        self.service_ns = self.service_ns.saturating_add(account.service_ns);
        let now = [account.waiting, account.held, account.in_flight];
        self.now.iter_mut().zip(now).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    fn to_json(&self) -> serde_json::Value {
        let [requests, bytes, errors] = self.counters;
        let [waiting, held, in_flight] = self.now;
        let latencies = |at: usize| {
            self.latencies[at].as_ref().map(|recorded| {
                serde_json::json!({
                    "count": recorded.len(),
                    "mean": recorded.mean(),
                    "p50": recorded.value_at_percentile(50.0),
                    "p90": recorded.value_at_percentile(90.0),
                    "p99": recorded.value_at_percentile(99.0),
                    "p99_9": recorded.value_at_percentile(99.9),
                    "max": recorded.max(),
                })
            })
        };
        serde_json::json!({
            "requests": requests,
            "bytes": bytes,
            "errors": errors,
            "service_ns": self.service_ns,
            "waiting": waiting,
            "held": held,
            "in_flight": in_flight,
            "queue_ns": latencies(0),
            "device_ns": latencies(1),
            "latency_ns": latencies(2),
        })
    }
}

/// Returns an account in the form of cgroup's `io.stat`, with further keys in the same form.
fn stat(account: &AccountView<'_>) -> String {
    let [read, write, discard, flush] = &account.ops;
    let errors: u64 = account.ops.iter().map(|op| op.errors).sum();
    format!(
        "rbytes={} wbytes={} rios={} wios={} dbytes={} dios={} fios={} errors={errors} service_usec={} waiting={} held={} in_flight={} \
         reservation_missed={}",
        read.bytes,
        write.bytes,
        read.requests,
        write.requests,
        discard.bytes,
        discard.requests,
        flush.requests,
        account.service_ns / 1000,
        account.waiting,
        account.held,
        account.in_flight,
        account.reservation_missed,
    )
}

/// Appends a line per phase with the latencies of all kinds of requests together.
fn histograms(lines: &mut String, of: &str, account: &AccountView<'_>) {
    for (name, histogram_of) in &PHASES[..2] {
        let mut latencies = Latencies::default();
        account.ops.iter().filter_map(histogram_of).for_each(|recorded| latencies.add(recorded));
        if latencies.count() > 0 {
            let _ = writeln!(lines, "{of} {name} {}", latencies.to_text());
        }
    }
}

/// Returns the sum of the times of requests of one kind, waiting and in the device, in ms.
fn total_ms(op: &OpView<'_>) -> f64 {
    let sum =
        |histogram: Option<&Histogram<u64>>| histogram.map_or(0.0, |recorded| recorded.mean() * recorded.len() as f64);
    (sum(op.queue_ns) + sum(op.device_ns)) / 1e6
}
