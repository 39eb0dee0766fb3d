//! The counters of a server at one moment, read from its control socket.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::client::{ClientError, ControlClient};
use crate::histogram::Latencies;
use crate::names::unescape;

/// Reasons why a server cannot be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// A request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A line of `devices/NAME/tenants` has a name only.
    #[error("the server reports a tenant without counters")]
    Tenant,
    /// A line of `devices/NAME/histogram` is malformed.
    #[error("the server reports a malformed histogram")]
    Histogram,
}

/// The counters of a server at one moment.
#[derive(Clone, Debug)]
pub struct ServerSample {
    /// Time of the sample.
    pub at: Instant,
    /// Values below `server/`, such as `version`, `engine` and `uptime`, by the rest of their path.
    pub server: BTreeMap<String, String>,
    /// Devices in the server's order.
    pub devices: Vec<DeviceSample>,
}

/// The counters of a device at one moment.
#[derive(Clone, Debug, Default)]
pub struct DeviceSample {
    /// Name of the device.
    pub name: String,
    /// Values below `devices/NAME/`, by the rest of their path.
    pub values: BTreeMap<String, String>,
    /// Tenants of the device.
    pub tenants: Vec<TenantSample>,
}

/// The counters of a tenant on a device at one moment.
#[derive(Clone, Debug, Default)]
pub struct TenantSample {
    /// Name of the tenant.
    pub name: String,
    /// Values of the tenant's line in `devices/NAME/tenants`, by key.
    pub values: BTreeMap<String, String>,
    /// Waiting times in the queue since the start of the server.
    pub queue: Latencies,
    /// Service times of the device since the start of the server.
    pub device: Latencies,
}

impl TenantSample {
    /// A counter of the line; 0 if the key is missing.
    pub fn counter(&self, key: &str) -> u64 {
        self.values.get(key).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// A fraction of the line, 0 to 1; `None` if the key is missing or has no value.
    pub fn fraction(&self, key: &str) -> Option<f64> {
        self.values.get(key).and_then(|text| text.parse().ok())
    }
}

impl ServerSample {
    /// Reads all counters of a server.
    ///
    /// # Errors
    /// The errors of [`ControlClient::request`], and malformed replies.
    pub fn take(client: &mut ControlClient) -> Result<ServerSample, SampleError> {
        let server = by_path(&client.request("get -r server")?.lines, "server/");
        let names = client.request("ls devices")?.lines;
        let mut devices = Vec::new();
        for listed in names {
            let component = listed.trim_end_matches('/').to_owned();
            let lines = client.request(&format!("get -r devices/{component}"))?.lines;
            let name = unescape(&component).unwrap_or_else(|| component.clone());
            devices.push(device(name, &lines, &format!("devices/{component}/"))?);
        }
        Ok(ServerSample { at: Instant::now(), server, devices })
    }
}

fn device(name: String, lines: &[String], prefix: &str) -> Result<DeviceSample, SampleError> {
    let (tenants_prefix, histogram_prefix) = (format!("{prefix}tenants: "), format!("{prefix}histogram: "));
    let mut tenants: Vec<TenantSample> = Vec::new();
    for line in lines.iter().filter_map(|line| line.strip_prefix(&tenants_prefix)) {
        let (name, pairs) = line.split_once(' ').ok_or(SampleError::Tenant)?;
        let values = pairs.split(' ').filter_map(|pair| pair.split_once('=')).map(owned).collect();
        let name = unescape(name).unwrap_or_else(|| name.to_owned());
        tenants.push(TenantSample { name, values, ..TenantSample::default() });
    }
    for line in lines.iter().filter_map(|line| line.strip_prefix(&histogram_prefix)) {
        let mut words = line.split(' ');
        let (Some(name), Some(phase)) = (words.next().and_then(unescape), words.next()) else { continue };
        let latencies = Latencies::from_text(words).ok_or(SampleError::Histogram)?;
        if let Some(tenant) = tenants.iter_mut().find(|tenant| tenant.name == name) {
            match phase {
                "queue" => tenant.queue = latencies,
                "device" => tenant.device = latencies,
                _ => {}
            }
        }
    }
    Ok(DeviceSample { name, values: by_path(lines, prefix), tenants })
}

/// The values of lines `PATH: VALUE`, by the part of the path after the prefix. Of several lines
/// with the same path the last counts.
fn by_path(lines: &[String], prefix: &str) -> BTreeMap<String, String> {
    lines.iter().filter_map(|line| line.strip_prefix(prefix)?.split_once(": ")).map(owned).collect()
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_device_become_tenants_with_latencies() {
        let lines: Vec<String> = [
            "devices/sda/queue/scheduler: noop [bfq] kyber",
            "devices/sda/tenants: data%20base rbytes=5 rios=2 weight=300 bytes=0.750 time=- entitlement=0.5",
            "devices/sda/tenants: backup rbytes=1",
            "devices/sda/histogram: data%20base queue 8:2 1024:1",
            "devices/sda/histogram: data%20base device 512:3",
            "devices/sda/histogram: unknown device 512:3",
        ]
        .map(str::to_owned)
        .into();
        let device = device("sda".into(), &lines, "devices/sda/").unwrap();
        assert_eq!(device.values["queue/scheduler"], "noop [bfq] kyber");
        assert_eq!(device.tenants.len(), 2);
        let first = &device.tenants[0];
        assert_eq!((first.name.as_str(), first.counter("rbytes"), first.counter("absent")), ("data base", 5, 0));
        assert_eq!((first.fraction("bytes"), first.fraction("time")), (Some(0.75), None));
        assert_eq!((first.queue.count(), first.device.count(), device.tenants[1].queue.count()), (3, 3, 0));
        let broken = ["devices/sda/tenants: a rios=1".to_owned(), "devices/sda/histogram: a queue 8-2".to_owned()];
        assert!(super::device("sda".into(), &broken, "devices/sda/").is_err());
    }
}
