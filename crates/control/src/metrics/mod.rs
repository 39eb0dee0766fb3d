//! The metrics of the server as OpenMetrics text, for Prometheus and compatible scrapers.

pub mod http;
mod of_process;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, EncodeMetric, MetricEncoder,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::process;
use crate::share::Watch;
use crate::target::AdminTarget;
use of_process::MemoryLimit;
use sample::{BOUNDS_S, Sample, Tally};

/// The maximum number of tenants with a label of their own. The others share one label.
pub const TENANTS_MAX: usize = 64;
/// The time in ns for which a scrape returns the text of the previous one. A client that scrapes
/// without a pause costs the server at most five scrapes per second.
pub const FRESH_NS: u64 = 200_000_000;
/// The label of all tenants without a label of their own.
pub const OTHERS: &str = "other";

/// Builds the text of a scrape.
#[derive(Debug, Default)]
pub struct Metrics {
    /// The tenants with a label of their own: the first ones, because a counter that changed its
    /// label would seem to jump.
    labelled: BTreeSet<String>,
    /// The uptime in ns at the last scrape, and its text.
    last: Option<(u64, String)>,
    /// True if the figures of the process are among the metrics.
    has_process: bool,
}

impl Metrics {
    /// Creates the state before the first scrape: no tenant has a label of its own. Without figures
    /// of the process, the text depends on the target alone.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// Creates the state before the first scrape, with the figures of this process among the
    /// metrics.
    pub fn of_process() -> Metrics {
        Metrics { has_process: true, ..Metrics::default() }
    }

    /// Returns all metrics as OpenMetrics text, at most [`FRESH_NS`] old.
    pub fn text(&mut self, watch: &Watch, target: &dyn AdminTarget) -> String {
        let server = target.server();
        let at_ns = server.uptime_ns;
        if let Some((_, text)) = self.last.as_ref().filter(|(last_ns, _)| at_ns.saturating_sub(*last_ns) < FRESH_NS) {
            return text.clone();
        }
        let sample = Sample::take(server, &mut self.labelled, watch, target);
        let mut registry = Registry::with_prefix("hoistway");
        registry.register_collector(Box::new(sample));
        // The names of these metrics have no prefix: programs of all kinds have them.
        let mut unprefixed = Registry::default();
        if let Some(facts) = self.has_process.then(process::read).flatten() {
            registry.register_collector(Box::new(MemoryLimit(facts.memory_bytes_max)));
            unprefixed.register_collector(Box::new(facts));
        }
        let mut text = String::new();
        // Writing to a string does not fail. If it did, the text would lack its end, and a scraper
        // would refuse it.
        let _ = encode_registry(&mut text, &registry)
            .and_then(|()| encode_registry(&mut text, &unprefixed))
            .and_then(|()| encode_eof(&mut text));
        self.last = Some((at_ns, text.clone()));
        text
    }
}

impl Collector for Sample {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        self.server(&mut encoder)?;
        self.devices(&mut encoder)?;
        self.tenants(&mut encoder)?;
        self.reservations(&mut encoder)?;
        self.terms(&mut encoder)?;
        self.slices(&mut encoder)?;
        self.durations(&mut encoder)
    }
}

impl Sample {
    /// Encodes the metrics of the server.
    fn server(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let labels = vec![("version", self.server.version.clone()), ("engine", self.server.engine.clone())];
        let info = Info::new(labels);
        info.encode(encoder.encode_descriptor("build", "The server's version and engine", None, MetricType::Info)?)?;
        let uptime_s = seconds(self.server.uptime_ns);
        gauge(encoder, "uptime", "Time since the start", Some(&Unit::Seconds), Some(uptime_s))?;
        gauge(encoder, "connections", "Open connections", None, Some(whole(self.server.connections)))?;
        let most = whole(self.server.connections_max);
        gauge(encoder, "connections_max", "Limit of open connections", None, Some(most))?;
        let accepted = ConstCounter::new(self.server.connections_total);
        accepted.encode(encoder.encode_descriptor(
            "connections_accepted",
            "Connections accepted since the start",
            None,
            MetricType::Counter,
        )?)?;
        self.readings(encoder)
    }

    /// Encodes the metrics of the readings of the configuration.
    fn readings(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let readings = &self.server.readings;
        let help = "1 if the configuration was read without an error the last time, at the start or by a reload";
        gauge(encoder, "last_reload_success", help, None, Some(i64::from(!readings.has_failed)))?;
        let help = "Time at which the configuration was read the last time, in seconds since 1970";
        let at_s = readings.at_unix_ms.map(|ms| ms as f64 / 1000.0);
        gauge(encoder, "last_reload_timestamp", help, Some(&Unit::Seconds), at_s)?;
        let results = [("success", readings.succeeded), ("failure", readings.failed)];
        let rows = results.into_iter().map(|(result, count)| ([("result", result)], count));
        counters(encoder, "reloads", "Reloads of the configuration since the start", None, rows)
    }

    /// Encodes the metrics of the devices.
    fn devices(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let rows = || self.devices.iter().map(|(name, device)| ([("device", name.clone())], device));
        gauges(
            encoder,
            "device_depth",
            "The most requests in the device",
            None,
            rows().map(|(labels, device)| (labels, whole(u64::from(device.depth)))),
        )?;
        gauges(
            encoder,
            "device_in_flight",
            "Requests in the device",
            None,
            rows().map(|(labels, device)| (labels, whole(device.in_flight[0] + device.in_flight[1]))),
        )?;
        let busy = rows().map(|(labels, device)| (labels, seconds(device.busy_ns)));
        counters(encoder, "device_busy", "Time with at least one request in the device", Some(&Unit::Seconds), busy)?;
        let elevators =
            rows().map(|([device], facts)| ([device, ("elevator", facts.elevator.info().name.to_owned())], 1));
        gauges(encoder, "device_elevator", "The elevator of the device", None, elevators)?;
        gauges(
            encoder,
            "device_violation",
            "1 if the custom elevator of the device broke a rule: requests are dispatched in order of arrival",
            None,
            rows().map(|(labels, device)| (labels, i64::from(device.violation.is_some()))),
        )?;
        let mut family = encoder.encode_descriptor(
            "lateness",
            "Lateness of an emulated drive's completions against the model since the start",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for ([device], facts) in rows() {
            for (quantile, ns) in
                facts.lateness.iter().flat_map(|late| [("0.5", late.p50_ns), ("0.99", late.p99_ns), ("1", late.max_ns)])
            {
                let labels = [device.clone(), ("quantile", quantile.to_owned())];
                ConstGauge::new(seconds(ns)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// Returns the figures of each tenant on each device, with their labels.
    fn tenant_rows(&self) -> impl Iterator<Item = (TenantLabels, &Tally)> {
        self.tenants
            .iter()
            .map(|((device, tenant), tally)| ([("tenant", tenant.clone()), ("device", device.clone())], tally))
    }

    /// Encodes the terms of each tenant on each device.
    fn terms(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let rows = || self.tenant_rows().filter_map(|(labels, tally)| Some((labels, tally.terms.as_ref()?)));
        gauges(
            encoder,
            "weight",
            "Weight of a tenant among its siblings",
            None,
            rows().map(|(labels, terms)| (labels, i64::from(terms.weight))),
        )?;
        let bytes_per_second = Unit::Other("bytes_per_second".to_owned());
        gauges(
            encoder,
            "reservation",
            "Reserved bandwidth of a tenant",
            Some(&bytes_per_second),
            rows().filter_map(|(labels, terms)| Some((labels, whole(terms.reserve?.bytes_per_second)))),
        )?;
        gauges(
            encoder,
            "limit",
            "Limit of a tenant's bandwidth",
            Some(&bytes_per_second),
            rows().filter_map(|(labels, terms)| Some((labels, whole(terms.limits.bytes?.per_second)))),
        )?;
        gauges(
            encoder,
            "limit",
            "Limit of a tenant's requests",
            Some(&Unit::Other("requests_per_second".to_owned())),
            rows().filter_map(|(labels, terms)| Some((labels, whole(terms.limits.operations?.per_second)))),
        )
    }

    /// Encodes the slices of elevators that have them.
    fn slices(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let rows = || self.tenant_rows().filter(|(_, tally)| tally.holds_slice.is_some() || tally.slices > 0);
        counters(
            encoder,
            "slices",
            "Slices of a tenant that ended",
            None,
            rows().map(|(labels, tally)| (labels, tally.slices)),
        )?;
        counters(
            encoder,
            "slice",
            "Time of a tenant's slices that ended",
            Some(&Unit::Seconds),
            rows().map(|(labels, tally)| (labels, seconds(tally.slice_ns))),
        )?;
        gauges(
            encoder,
            "slice_holder",
            "1 if the elevator serves the tenant exclusively now",
            None,
            rows().filter_map(|(labels, tally)| Some((labels, i64::from(tally.holds_slice?)))),
        )?;
        let devices = || self.devices.iter().filter(|(_, facts)| facts.has_slices);
        let slices = || devices().map(|(name, facts)| ([("device", name.clone())], facts.slice.as_ref()));
        gauges(
            encoder,
            "slice_length",
            "Length of the present slice up to its latest end; 0 without a slice",
            Some(&Unit::Seconds),
            slices().map(|(labels, slice)| {
                let length_ns = slice.and_then(|slice| Some(slice.age_ns.saturating_add(slice.left_ns?)));
                (labels, seconds(length_ns.unwrap_or(0)))
            }),
        )?;
        gauges(
            encoder,
            "slice_left",
            "Time until the latest end of the present slice; 0 without a slice",
            Some(&Unit::Seconds),
            slices().map(|(labels, slice)| (labels, seconds(slice.and_then(|slice| slice.left_ns).unwrap_or(0)))),
        )
    }

    /// Encodes the metrics of each tenant on each device, apart from latencies.
    fn tenants(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let rows = || self.tenant_rows();
        let ops = || {
            rows().flat_map(|([tenant, device], tally)| {
                tally
                    .ops
                    .iter()
                    .map(move |(op, figures)| ([("op", (*op).to_owned()), tenant.clone(), device.clone()], figures))
            })
        };
        counters(encoder, "requests", "Completed requests", None, ops().map(|(labels, op)| (labels, op.requests)))?;
        counters(
            encoder,
            "bytes",
            "Bytes read, written or discarded",
            None,
            ops().map(|(labels, op)| (labels, op.bytes)),
        )?;
        counters(encoder, "errors", "Failed requests", None, ops().map(|(labels, op)| (labels, op.errors)))?;
        let service = rows().map(|(labels, tally)| (labels, seconds(tally.service_ns)));
        counters(encoder, "service", "Device time of a tenant", Some(&Unit::Seconds), service)?;
        let held = rows().map(|(labels, tally)| (labels, seconds(tally.held_ns)));
        counters(
            encoder,
            "held",
            "Sum over all requests of the time for which the limits of a tenant delayed them",
            Some(&Unit::Seconds),
            held,
        )?;
        gauges(
            encoder,
            "queue_depth",
            "Requests waiting in the queue",
            None,
            rows().map(|(labels, tally)| (labels, whole(tally.waiting))),
        )?;
        gauges(
            encoder,
            "held",
            "Requests delayed by the limits of a tenant",
            None,
            rows().map(|(labels, tally)| (labels, whole(tally.held))),
        )?;
        gauges(
            encoder,
            "in_flight",
            "Requests in the device",
            None,
            rows().map(|(labels, tally)| (labels, whole(tally.in_flight))),
        )?;
        let mut family = encoder.encode_descriptor(
            "share",
            "Share of a tenant of the device in the last ten seconds, and its entitlement",
            Some(&Unit::Ratios),
            MetricType::Gauge,
        )?;
        for ([tenant, device], tally) in rows() {
            for (of, fraction) in
                [("bytes", tally.share.bytes), ("time", tally.share.time), ("entitlement", tally.share.entitlement)]
            {
                let labels = [tenant.clone(), device.clone(), ("of", of.to_owned())];
                if let Some(fraction) = fraction {
                    ConstGauge::new(fraction).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }

    /// Encodes how each tenant's reservation was kept.
    fn reservations(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let rows = || self.tenant_rows();
        let missed = rows().map(|(labels, tally)| (labels, tally.reservation_missed));
        counters(
            encoder,
            "reservation_missed",
            "Requests within a reservation that completed after their bound",
            None,
            missed,
        )?;
        let late = rows().map(|(labels, tally)| (labels, seconds(tally.reservation_late_ns)));
        counters(
            encoder,
            "reservation_late",
            "Sum of the times by which requests within a reservation completed after their bound",
            Some(&Unit::Seconds),
            late,
        )?;
        let reserved =
            |tally: &Tally| tally.lateness_ns > 0 || tally.terms.as_ref().is_some_and(|t| t.reserve.is_some());
        gauges(
            encoder,
            "reservation_lateness",
            "Largest time by which a request within a reservation is later than its bound now",
            Some(&Unit::Seconds),
            rows().filter(|(_, tally)| reserved(tally)).map(|(labels, tally)| (labels, seconds(tally.lateness_ns))),
        )
    }

    /// Encodes the latency histograms of each tenant on each device.
    fn durations(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut family = encoder.encode_descriptor(
            "request_duration",
            "Latency of requests: until dispatch to the device (queue), and from there to completion (device)",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for ((device, tenant), tally) in &self.tenants {
            for (op, figures) in &tally.ops {
                for (phase, durations) in [("queue", &figures.queue), ("device", &figures.device)] {
                    if durations.count == 0 {
                        continue;
                    }
                    let labels = [("op", *op), ("tenant", tenant), ("device", device), ("phase", phase)];
                    let bounds = BOUNDS_S.iter().copied().chain([f64::INFINITY]);
                    let buckets: Vec<(f64, u64)> = bounds.zip(durations.buckets).collect();
                    let mut histogram: MetricEncoder<'_> = family.encode_family(&labels)?;
                    histogram.encode_histogram::<prometheus_client::encoding::NoLabelSet>(
                        durations.sum_s,
                        durations.count,
                        &buckets,
                        None,
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// The labels of a tenant on a device.
type TenantLabels = [(&'static str, String); 2];

/// Encodes a counter family with one counter for each row of labels and value. The encoder appends
/// the unit to `name`.
fn counters<L: EncodeLabelSet, V: EncodeCounterValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    rows: impl Iterator<Item = (L, V)>,
) -> std::fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    for (labels, value) in rows {
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Encodes a gauge without labels; without a sample if it has no value. The encoder appends the
/// unit to `name`.
fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    value: Option<impl EncodeGaugeValue>,
) -> std::fmt::Result {
    let family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    value.map_or(Ok(()), |value| ConstGauge::new(value).encode(family))
}

/// Encodes a gauge family with one gauge for each row of labels and value. The encoder appends the
/// unit to `name`.
fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    rows: impl Iterator<Item = (L, V)>,
) -> std::fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, value) in rows {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Converts a count to the type of gauges; a larger count becomes the maximum.
fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
