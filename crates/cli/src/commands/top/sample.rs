//! One look at a server: its counters, as the control socket tells them.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};
use hoistway_control::Latencies;
use hoistway_control::unescape;

use crate::control::Control;

/// A server at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Version, engine, uptime and so on, by their names under `server/`.
    pub server: BTreeMap<String, String>,
    /// Its devices, in its order.
    pub devices: Vec<Device>,
}

/// A device.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// What its paths tell, by what stands behind `devices/NAME/`.
    pub told: BTreeMap<String, String>,
    /// Its tenants.
    pub tenants: Vec<Tenant>,
}

/// A tenant's counters on a device.
#[derive(Clone, Debug, Default)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// What the line tells, by its keys.
    pub told: BTreeMap<String, String>,
    /// How long its requests waited since the start.
    pub queue: Latencies,
    /// How long they were in the device.
    pub device: Latencies,
}

impl Tenant {
    /// A figure of the line; 0 where there is none.
    pub fn figure(&self, key: &str) -> u64 {
        self.told.get(key).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// A fraction of the line.
    pub fn fraction(&self, key: &str) -> Option<f64> {
        self.told.get(key).and_then(|text| text.parse().ok())
    }
}

impl Sample {
    /// Looks.
    ///
    /// # Errors
    /// When the server does not answer, or not as expected.
    pub fn take(control: &mut Control) -> Result<Sample> {
        let server = by_path(&control.ask("get -r server")?.lines, "server/");
        let names = control.ask("ls devices")?.lines;
        let mut devices = Vec::new();
        for listed in names {
            let component = listed.trim_end_matches('/').to_owned();
            let lines = control.ask(&format!("get -r devices/{component}"))?.lines;
            let name = unescape(&component).unwrap_or_else(|| component.clone());
            devices.push(device(name, &lines, &format!("devices/{component}/"))?);
        }
        Ok(Sample { at: Instant::now(), server, devices })
    }
}

fn device(name: String, lines: &[String], prefix: &str) -> Result<Device> {
    let (tenants_at, histogram_at) = (format!("{prefix}tenants: "), format!("{prefix}histogram: "));
    let mut tenants: Vec<Tenant> = Vec::new();
    for line in lines.iter().filter_map(|line| line.strip_prefix(&tenants_at)) {
        let (name, told) = line.split_once(' ').context("the server tells a tenant without counters")?;
        let told = told.split(' ').filter_map(|pair| pair.split_once('=')).map(owned).collect();
        tenants.push(Tenant { name: unescape(name).unwrap_or_else(|| name.to_owned()), told, ..Tenant::default() });
    }
    for line in lines.iter().filter_map(|line| line.strip_prefix(&histogram_at)) {
        let mut words = line.split(' ');
        let (Some(of), Some(phase)) = (words.next().and_then(unescape), words.next()) else { continue };
        let latencies = Latencies::from_text(words).context("the server tells a histogram that is none")?;
        if let Some(tenant) = tenants.iter_mut().find(|tenant| tenant.name == of) {
            match phase {
                "queue" => tenant.queue = latencies,
                "device" => tenant.device = latencies,
                _ => {}
            }
        }
    }
    Ok(Device { name, told: by_path(lines, prefix), tenants })
}

/// What paths tell, by what stands behind the prefix. Of several lines the last counts.
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
    fn lines_of_a_device_become_its_tenants_with_their_latencies() {
        let lines: Vec<String> = [
            "devices/sda/queue/scheduler: noop [bfq] kyber",
            "devices/sda/tenants: data%20base rbytes=5 rios=2 weight=300 bytes=0.750 time=- entitlement=0.5",
            "devices/sda/tenants: backup rbytes=1",
            "devices/sda/histogram: data%20base queue 8:2 1024:1",
            "devices/sda/histogram: data%20base device 512:3",
            "devices/sda/histogram: nobody device 512:3",
        ]
        .map(str::to_owned)
        .into();
        let device = device("sda".into(), &lines, "devices/sda/").unwrap();
        assert_eq!(device.told["queue/scheduler"], "noop [bfq] kyber");
        assert_eq!(device.tenants.len(), 2);
        let first = &device.tenants[0];
        assert_eq!((first.name.as_str(), first.figure("rbytes"), first.figure("absent")), ("data base", 5, 0));
        assert_eq!((first.fraction("bytes"), first.fraction("time")), (Some(0.75), None));
        assert_eq!((first.queue.count(), first.device.count(), device.tenants[1].queue.count()), (3, 3, 0));
        let broken = ["devices/sda/tenants: a rios=1".to_owned(), "devices/sda/histogram: a queue 8-2".to_owned()];
        assert!(super::device("sda".into(), &broken, "devices/sda/").is_err());
    }
}
