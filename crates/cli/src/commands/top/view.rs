//! What there is to see: two samples, and what lies between them.

use std::time::Duration;

use hoistway_control::Latencies;
use serde::Serialize;

use super::sample::{Device, Sample, Tenant};

/// A server over an interval.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// The version of this document.
    pub schema: u32,
    /// The interval, in seconds.
    pub interval_s: f64,
    /// The server's version.
    pub version: String,
    /// Its engine.
    pub engine: String,
    /// How long it has been running, in seconds.
    pub uptime_s: f64,
    /// Connections that are open.
    pub connections: u64,
    /// Its devices.
    pub devices: Vec<DeviceView>,
}

/// A device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceView {
    /// Its name.
    pub name: String,
    /// The elevator.
    pub elevator: String,
    /// Requests that it is given at once.
    pub depth: u64,
    /// Where its bytes lie.
    pub backend: String,
    /// The model of a drive before it.
    pub drive: Option<String>,
    /// How much of the interval at least one request was in it, 0 to 1.
    pub utilisation: f64,
    /// Bytes a second, of all tenants.
    pub bytes_per_second: f64,
    /// Of these, read.
    pub read_bytes_per_second: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Requests in it.
    pub in_flight: u64,
    /// Requests that wait above it.
    pub waiting: u64,
    /// Whom the elevator serves alone.
    pub slice: Option<String>,
    /// How late an emulated drive's completions came since the start, 99 of 100, in ns.
    pub lateness_p99_ns: Option<u64>,
    /// Its tenants.
    pub tenants: Vec<Row>,
}

/// A tenant of a device.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: u64,
    /// Its class.
    pub class: String,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Of these, read.
    pub read_bytes_per_second: f64,
    /// Of these, written.
    pub written_bytes_per_second: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Requests that failed, a second.
    pub errors_per_second: f64,
    /// Half of its requests waited no longer, in ns; none: there were none.
    pub queue_p50_ns: Option<u64>,
    /// 99 of 100 waited no longer.
    pub queue_p99_ns: Option<u64>,
    /// Half were in the device no longer.
    pub device_p50_ns: Option<u64>,
    /// 99 of 100 were in the device no longer.
    pub device_p99_ns: Option<u64>,
    /// Its part of the bytes in the server's last ten seconds, 0 to 1.
    pub share: Option<f64>,
    /// Its part of the device's time in the server's last ten seconds.
    pub share_of_time: Option<f64>,
    /// What it was entitled to.
    pub entitlement: Option<f64>,
    /// Requests in the device.
    pub in_flight: u64,
    /// Requests that wait in the queue.
    pub waiting: u64,
    /// Requests that its limits hold back.
    pub held: u64,
    /// Whether the elevator serves it alone at this moment.
    pub has_slice: bool,
}

impl Row {
    /// Whether it gets less than nine tenths of what is due, while it asks for more.
    pub fn is_short(&self) -> bool {
        let wants_more = self.waiting > 0;
        wants_more && self.share.zip(self.entitlement).is_some_and(|(share, due)| share < 0.9 * due)
    }
}

impl View {
    /// What happened between two samples.
    pub fn between(before: &Sample, now: &Sample) -> View {
        let interval = now.at.saturating_duration_since(before.at).max(Duration::from_millis(1));
        let told = |key: &str| now.server.get(key).cloned().unwrap_or_default();
        let first = |text: String| text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        View {
            schema: 1,
            interval_s: interval.as_secs_f64(),
            version: told("version"),
            engine: told("engine"),
            uptime_s: told("uptime").parse().unwrap_or(0.0),
            connections: first(told("connections")),
            devices: now.devices.iter().map(|device| device_view(earlier(before, device), device, interval)).collect(),
        }
    }
}

/// The same device in an earlier sample, or one that has done nothing yet.
fn earlier<'a>(before: &'a Sample, device: &Device) -> Option<&'a Device> {
    before.devices.iter().find(|other| other.name == device.name)
}

fn device_view(before: Option<&Device>, now: &Device, interval: Duration) -> DeviceView {
    let told = |key: &str| now.told.get(key).cloned().unwrap_or_default();
    let optional = |key: &str| Some(told(key)).filter(|text| !text.is_empty() && text != "-");
    let scheduler = told("queue/scheduler");
    let elevator = scheduler.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
    let busy = |device: &Device| device.told.get("busy").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let busy_ns = busy(now).saturating_sub(before.map_or(0, busy));
    let slice = optional("slice");
    let rows: Vec<Row> = now
        .tenants
        .iter()
        .map(|tenant| {
            let earlier = before.and_then(|device| device.tenants.iter().find(|other| other.name == tenant.name));
            row(earlier, tenant, interval, slice.as_deref())
        })
        .collect();
    let sum = |of: fn(&Row) -> f64| rows.iter().map(of).sum();
    DeviceView {
        name: now.name.clone(),
        elevator,
        depth: told("queue/depth").parse().unwrap_or(0),
        backend: told("backend"),
        drive: optional("drive"),
        utilisation: (busy_ns as f64 / interval.as_nanos() as f64).min(1.0),
        bytes_per_second: sum(|row| row.bytes_per_second),
        read_bytes_per_second: sum(|row| row.read_bytes_per_second),
        requests_per_second: sum(|row| row.requests_per_second),
        in_flight: told("inflight").split_whitespace().filter_map(|word| word.parse::<u64>().ok()).sum(),
        waiting: told("waiting").parse().unwrap_or(0),
        slice,
        lateness_p99_ns: told("lateness").split(' ').find_map(|pair| pair.strip_prefix("p99=")?.parse().ok()),
        tenants: rows,
    }
}

fn row(before: Option<&Tenant>, now: &Tenant, interval: Duration, slice: Option<&str>) -> Row {
    let seconds = interval.as_secs_f64();
    let rate = |keys: &[&str]| {
        let count = |tenant: &Tenant| keys.iter().map(|key| tenant.figure(key)).fold(0, u64::saturating_add);
        count(now).saturating_sub(before.map_or(0, count)) as f64 / seconds
    };
    let nothing = Latencies::default();
    let queue = now.queue.since(before.map_or(&nothing, |tenant| &tenant.queue));
    let device = now.device.since(before.map_or(&nothing, |tenant| &tenant.device));
    Row {
        name: now.name.clone(),
        weight: now.figure("weight"),
        class: now.told.get("class").cloned().unwrap_or_default(),
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
        in_flight: now.figure("in_flight"),
        waiting: now.figure("waiting"),
        held: now.figure("held"),
        has_slice: slice == Some(now.name.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn sample(at: Instant, rbytes: u64, busy_ns: u64, queue: &[&str]) -> Sample {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let rios = (rbytes / 4096).to_string();
        let told = pairs(&[
            ("rbytes", &rbytes.to_string()),
            ("rios", &rios),
            ("waiting", "3"),
            ("weight", "300"),
            ("bytes", "0.600"),
            ("entitlement", "0.750"),
        ]);
        let queue = Latencies::from_text(queue.iter().copied()).unwrap();
        let tenant = Tenant { name: "db".into(), told, queue, device: Latencies::default() };
        let busy = busy_ns.to_string();
        let told = pairs(&[
            ("queue/scheduler", "noop [bfq] kyber"),
            ("queue/depth", "2"),
            ("busy", &busy),
            ("slice", "db"),
            ("inflight", "       2        1"),
            ("drive", "-"),
            ("lateness", "count=10 p50=20000 p99=90000 max=150000"),
        ]);
        let server = pairs(&[("connections", "12 16384 99"), ("uptime", "61.25"), ("version", "0.1.0")]);
        Sample { at, server, devices: vec![Device { name: "sda".into(), told, tenants: vec![tenant] }] }
    }

    #[test]
    fn rates_and_latencies_are_those_of_the_interval() {
        let start = Instant::now();
        let before = sample(start, 1 << 20, 1_000_000_000, &["1024:100"]);
        let now = sample(start + Duration::from_secs(2), 9 << 20, 2_500_000_000, &["1024:100", "1048576:10"]);
        let view = View::between(&before, &now);
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
    fn a_device_that_is_new_has_all_its_counters_from_this_interval() {
        let start = Instant::now();
        let now = sample(start + Duration::from_secs(1), 4096, 0, &[]);
        let before = Sample { at: start, devices: Vec::new(), ..now.clone() };
        assert_eq!(View::between(&before, &now).devices[0].tenants[0].bytes_per_second, 4096.0);
        // A server that was started anew counts from 0: no rate is negative.
        let later = sample(start + Duration::from_secs(1), 0, 0, &[]);
        assert_eq!(View::between(&now, &later).devices[0].bytes_per_second, 0.0);
    }
}
