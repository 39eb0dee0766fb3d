//! Rates, latencies and shares of a server over the interval between two samples.

use std::time::Duration;

use serde::Serialize;

use super::sample::{DeviceSample, ServerSample, TenantSample};
use crate::histogram::Latencies;

/// A server over an interval; the document of `hoistway top --json`.
#[derive(Clone, Debug, Serialize)]
pub struct ServerView {
    /// Version of the document's form: 1.
    pub schema: u32,
    /// Length of the interval, in seconds.
    pub interval_s: f64,
    /// Version of the server.
    pub version: String,
    /// I/O engine of the server.
    pub engine: String,
    /// Time since the start of the server, in seconds.
    pub uptime_s: f64,
    /// Number of open connections.
    pub connections: u64,
    /// Devices in the server's order.
    pub devices: Vec<DeviceView>,
}

/// A device over an interval.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceView {
    /// Name of the device.
    pub name: String,
    /// Name of the current elevator.
    pub elevator: String,
    /// Depth: the greatest number of requests in the device at once.
    pub depth: u64,
    /// Backend that stores the data, for example `file:/dev/sdb`.
    pub backend: String,
    /// Name of the emulated drive.
    pub drive: Option<String>,
    /// Part of the interval in which at least one request was in the device, 0 to 1.
    pub utilisation: f64,
    /// Bytes a second of all tenants.
    pub bytes_per_second: f64,
    /// Bytes read a second of all tenants.
    pub read_bytes_per_second: f64,
    /// Requests a second of all tenants.
    pub requests_per_second: f64,
    /// Requests in the device at the end of the interval.
    pub in_flight: u64,
    /// Requests waiting in the queue at the end of the interval.
    pub waiting: u64,
    /// Name of the tenant that has the elevator's slice.
    pub slice: Option<String>,
    /// 99th percentile of the lateness of an emulated drive's completions since the start, in ns.
    pub lateness_p99_ns: Option<u64>,
    /// Tenants of the device.
    pub tenants: Vec<TenantView>,
}

/// A tenant of a device over an interval.
#[derive(Clone, Debug, Serialize)]
pub struct TenantView {
    /// Name of the tenant.
    pub name: String,
    /// Weight of the tenant.
    pub weight: u64,
    /// I/O class of the tenant.
    pub class: String,
    /// Bytes a second, of all operations.
    pub bytes_per_second: f64,
    /// Bytes read a second.
    pub read_bytes_per_second: f64,
    /// Bytes written a second.
    pub written_bytes_per_second: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Failed requests a second.
    pub errors_per_second: f64,
    /// Median of the waiting times in the queue, in ns; `None` without requests in the interval.
    pub queue_p50_ns: Option<u64>,
    /// 99th percentile of the waiting times in the queue, in ns.
    pub queue_p99_ns: Option<u64>,
    /// Median of the service times of the device, in ns.
    pub device_p50_ns: Option<u64>,
    /// 99th percentile of the service times of the device, in ns.
    pub device_p99_ns: Option<u64>,
    /// Share of the device's bytes in the server's last ten seconds, 0 to 1.
    pub share: Option<f64>,
    /// Share of the device's time in the server's last ten seconds, 0 to 1.
    pub share_of_time: Option<f64>,
    /// The share that weights and reservations grant, 0 to 1.
    pub entitlement: Option<f64>,
    /// Requests in the device.
    pub in_flight: u64,
    /// Requests waiting in the queue.
    pub waiting: u64,
    /// Requests that the tenant's limits hold back.
    pub held: u64,
    /// True if the tenant has the elevator's slice at this moment.
    pub has_slice: bool,
}

impl TenantView {
    /// Returns true if the tenant's share is below nine tenths of its entitlement while its
    /// requests wait.
    pub fn is_short(&self) -> bool {
        self.waiting > 0 && self.share.zip(self.entitlement).is_some_and(|(share, due)| share < 0.9 * due)
    }
}

impl ServerView {
    /// Computes the rates, latencies and shares between two samples.
    pub fn between(before: &ServerSample, now: &ServerSample) -> ServerView {
        let interval = now.at.saturating_duration_since(before.at).max(Duration::from_millis(1));
        let value = |key: &str| now.server.get(key).cloned().unwrap_or_default();
        let first_number = |text: String| text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        ServerView {
            schema: 1,
            interval_s: interval.as_secs_f64(),
            version: value("version"),
            engine: value("engine"),
            uptime_s: value("uptime").parse().unwrap_or(0.0),
            connections: first_number(value("connections")),
            devices: now.devices.iter().map(|device| device_view(earlier(before, device), device, interval)).collect(),
        }
    }
}

/// The same device in an earlier sample.
fn earlier<'a>(before: &'a ServerSample, device: &DeviceSample) -> Option<&'a DeviceSample> {
    before.devices.iter().find(|other| other.name == device.name)
}

fn device_view(before: Option<&DeviceSample>, now: &DeviceSample, interval: Duration) -> DeviceView {
    let value = |key: &str| now.values.get(key).cloned().unwrap_or_default();
    let optional = |key: &str| Some(value(key)).filter(|text| !text.is_empty() && text != "-");
    let scheduler = value("queue/scheduler");
    let elevator = scheduler.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
    let busy = |device: &DeviceSample| device.values.get("busy").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let busy_ns = busy(now).saturating_sub(before.map_or(0, busy));
    let slice = optional("slice");
    let tenants: Vec<TenantView> = now
        .tenants
        .iter()
        .map(|tenant| {
            let earlier = before.and_then(|device| device.tenants.iter().find(|other| other.name == tenant.name));
            tenant_view(earlier, tenant, interval, slice.as_deref())
        })
        .collect();
    let sum = |of: fn(&TenantView) -> f64| tenants.iter().map(of).sum();
    DeviceView {
        name: now.name.clone(),
        elevator,
        depth: value("queue/depth").parse().unwrap_or(0),
        backend: value("backend"),
        drive: optional("drive"),
        utilisation: (busy_ns as f64 / interval.as_nanos() as f64).min(1.0),
        bytes_per_second: sum(|tenant| tenant.bytes_per_second),
        read_bytes_per_second: sum(|tenant| tenant.read_bytes_per_second),
        requests_per_second: sum(|tenant| tenant.requests_per_second),
        in_flight: value("inflight").split_whitespace().filter_map(|word| word.parse::<u64>().ok()).sum(),
        waiting: value("waiting").parse().unwrap_or(0),
        slice,
        lateness_p99_ns: value("lateness").split(' ').find_map(|pair| pair.strip_prefix("p99=")?.parse().ok()),
        tenants,
    }
}

fn tenant_view(
    before: Option<&TenantSample>,
    now: &TenantSample,
    interval: Duration,
    slice: Option<&str>,
) -> TenantView {
    let seconds = interval.as_secs_f64();
    let rate = |keys: &[&str]| {
        let count = |tenant: &TenantSample| keys.iter().map(|key| tenant.counter(key)).fold(0, u64::saturating_add);
        count(now).saturating_sub(before.map_or(0, count)) as f64 / seconds
    };
    let empty = Latencies::default();
    let queue = now.queue.since(before.map_or(&empty, |tenant| &tenant.queue));
    let device = now.device.since(before.map_or(&empty, |tenant| &tenant.device));
    TenantView {
        name: now.name.clone(),
        weight: now.counter("weight"),
        class: now.values.get("class").cloned().unwrap_or_default(),
        bytes_per_second: rate(&["rbytes", "wbytes", "dbytes"]),
        read_bytes_per_second: rate(&["rbytes"]),
        written_bytes_per_second: rate(&["wbytes"]),
        requests_per_second: rate(&["rios", "wios", "dios", "fios"]),
        errors_per_second: rate(&["errors"]),
        queue_p50_ns: queue.percentile_ns(50.0),
        queue_p99_ns: queue.percentile_ns(99.0),
        device_p50_ns: device.percentile_ns(50.0),
        device_p99_ns: device.percentile_ns(99.0),
        share: now.fraction("bytes"),
        share_of_time: now.fraction("time"),
        entitlement: now.fraction("entitlement"),
        in_flight: now.counter("in_flight"),
        waiting: now.counter("waiting"),
        held: now.counter("held"),
        has_slice: slice == Some(now.name.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn sample(at: Instant, rbytes: u64, busy_ns: u64, queue: &[&str]) -> ServerSample {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let rios = (rbytes / 4096).to_string();
        let values = pairs(&[
            ("rbytes", &rbytes.to_string()),
            ("rios", &rios),
            ("waiting", "3"),
            ("weight", "300"),
            ("bytes", "0.600"),
            ("entitlement", "0.750"),
        ]);
        let queue = Latencies::from_text(queue.iter().copied()).unwrap();
        let tenant = TenantSample { name: "db".into(), values, queue, device: Latencies::default() };
        let busy = busy_ns.to_string();
        let values = pairs(&[
            ("queue/scheduler", "noop [bfq] kyber"),
            ("queue/depth", "2"),
            ("busy", &busy),
            ("slice", "db"),
            ("inflight", "       2        1"),
            ("drive", "-"),
            ("lateness", "count=10 p50=20000 p99=90000 max=150000"),
        ]);
        let server = pairs(&[("connections", "12 16384 99"), ("uptime", "61.25"), ("version", "0.1.0")]);
        ServerSample { at, server, devices: vec![DeviceSample { name: "sda".into(), values, tenants: vec![tenant] }] }
    }

    #[test]
    fn rates_and_latencies_are_those_of_the_interval() {
        let start = Instant::now();
        let before = sample(start, 1 << 20, 1_000_000_000, &["1024:100"]);
        let now = sample(start + Duration::from_secs(2), 9 << 20, 2_500_000_000, &["1024:100", "1048576:10"]);
        let view = ServerView::between(&before, &now);
        assert_eq!((view.interval_s, view.connections, view.uptime_s), (2.0, 12, 61.25));
        let device = &view.devices[0];
        assert_eq!((device.elevator.as_str(), device.depth, device.utilisation), ("bfq", 2, 0.75));
        assert_eq!((device.in_flight, device.drive.as_deref(), device.lateness_p99_ns), (3, None, Some(90_000)));
        let row = &device.tenants[0];
        // 8 MiB in 2 s, in requests of 4 KiB; the middle of the bucket from 1,048,576 on, 131,072
        // wide.
        assert_eq!((row.bytes_per_second, row.requests_per_second), (4_194_304.0, 1024.0));
        assert_eq!((row.queue_p50_ns, row.device_p50_ns), (Some(1_114_112), None));
        assert!(row.has_slice && row.is_short());
    }

    #[test]
    fn the_counters_of_a_new_device_count_from_zero() {
        let start = Instant::now();
        let now = sample(start + Duration::from_secs(1), 4096, 0, &[]);
        let before = ServerSample { at: start, devices: Vec::new(), ..now.clone() };
        assert_eq!(ServerView::between(&before, &now).devices[0].tenants[0].bytes_per_second, 4096.0);
        // A restarted server counts from 0: rates do not become negative.
        let later = sample(start + Duration::from_secs(1), 0, 0, &[]);
        assert_eq!(ServerView::between(&now, &later).devices[0].bytes_per_second, 0.0);
    }
}
