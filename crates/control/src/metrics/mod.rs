//! The metrics of the server as OpenMetrics text, for Prometheus and compatible scrapers.

pub mod http;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::share::Watch;
use crate::target::AdminTarget;
use sample::{BOUNDS_S, Sample};

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
}

impl Metrics {
    /// Creates the state before the first scrape: no tenant has a label of its own.
    pub fn new() -> Metrics {
        Metrics::default()
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
        let mut text = String::new();
        // Writing to a string does not fail. If it did, the text would lack its end, and a scraper
        // would refuse it.
        let _ = encode(&mut text, &registry);
        self.last = Some((at_ns, text.clone()));
        text
    }
}

impl Collector for Sample {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        self.server(&mut encoder)?;
        self.devices(&mut encoder)?;
        self.tenants(&mut encoder)?;
        self.durations(&mut encoder)
    }
}

impl Sample {
    /// Encodes the metrics of the server.
    fn server(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let labels = vec![("version", self.server.version.clone()), ("engine", self.server.engine.clone())];
        let info = Info::new(labels);
        info.encode(encoder.encode_descriptor("build", "The server's version and engine", None, MetricType::Info)?)?;
        let uptime = ConstGauge::new(seconds(self.server.uptime_ns));
        uptime.encode(encoder.encode_descriptor(
            "uptime",
            "Time since the start",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?)?;
        let open = ConstGauge::new(whole(self.server.connections));
        open.encode(encoder.encode_descriptor("connections", "Open connections", None, MetricType::Gauge)?)?;
        let accepted = ConstCounter::new(self.server.connections_total);
        accepted.encode(encoder.encode_descriptor(
            "connections_accepted",
            "Connections accepted since the start",
            None,
            MetricType::Counter,
        )?)
    }

    /// Encodes the metrics of the devices.
    fn devices(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let rows = || self.devices.iter().map(|(name, device)| ([("device", name.clone())], device));
        gauges(
            encoder,
            "device_depth",
            "The most requests in the device",
            rows().map(|(labels, device)| (labels, whole(u64::from(device.depth)))),
        )?;
        gauges(
            encoder,
            "device_in_flight",
            "Requests in the device",
            rows().map(|(labels, device)| (labels, whole(device.in_flight[0] + device.in_flight[1]))),
        )?;
        let busy = rows().map(|(labels, device)| (labels, seconds(device.busy_ns)));
        counters(encoder, "device_busy", "Time with at least one request in the device", Some(&Unit::Seconds), busy)?;
        let elevators =
            rows().map(|([device], facts)| ([device, ("elevator", facts.elevator.info().name.to_owned())], 1));
        gauges(encoder, "device_elevator", "The elevator of the device", elevators)?;
        gauges(
            encoder,
            "device_violation",
            "1 if the custom elevator of the device broke a rule: requests are dispatched in order of arrival",
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

    /// Encodes the metrics of each tenant on each device, apart from latencies.
    fn tenants(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let rows = || {
            self.tenants
                .iter()
                .map(|((device, tenant), tally)| ([("tenant", tenant.clone()), ("device", device.clone())], tally))
        };
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
        let missed = rows().map(|(labels, tally)| (labels, tally.reservation_missed));
        counters(
            encoder,
            "reservation_missed",
            "Requests within a reservation that completed after their bound",
            None,
            missed,
        )?;
        gauges(
            encoder,
            "queue_depth",
            "Requests waiting in the queue",
            rows().map(|(labels, tally)| (labels, whole(tally.waiting))),
        )?;
        gauges(
            encoder,
            "held",
            "Requests delayed by the limits of a tenant",
            rows().map(|(labels, tally)| (labels, whole(tally.held))),
        )?;
        gauges(
            encoder,
            "in_flight",
            "Requests in the device",
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

/// Encodes a gauge family with one gauge for each row of labels and value.
fn gauges<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: impl Iterator<Item = (L, i64)>,
) -> std::fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
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
