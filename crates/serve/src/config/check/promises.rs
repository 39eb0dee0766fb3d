//! Reservations: whether each device can keep all that is promised on it.
//!
//! A reservation of r bytes a second in requests of s bytes takes r / bandwidth + r * position / s of a device's time; where an arm moves, its
//! stroke back takes 5/4 of a positioning, twice a second. What is promised may come to 85 % of the time, so that real time has 5 and
//! best effort 10. These are the figures that a device gives its bandwidth class, which says the last word when the server starts: here the
//! answer comes before anything has been opened, and with the place in the file.

use super::super::{Config, TenantConfig};
use super::{Check, place_of};

/// A second in ns.
const SECOND_NS: u64 = 1_000_000_000;
/// The class knows no faster device, in bytes a second.
const BANDWIDTH_MAX: u64 = 10_000_000_000;
/// The device time that may be promised, in ns a second.
const PROMISED_NS_MAX: u64 = 850_000_000;

impl Check<'_, '_> {
    pub(super) fn promises(&mut self) {
        if !self.building.problems.is_empty() {
            // What is referred to may not be what was meant.
            return;
        }
        let config = &self.building.config;
        let mut wrong = Vec::new();
        for (device, rotates) in config.devices.iter().zip(&self.building.device_rotates) {
            let mut taken_ns = if *rotates { strokes_ns(device.position_ns.unwrap_or(0)) } else { 0 };
            for (entry, tenant) in self.draft.tenants.iter().zip(&config.tenants) {
                let Some(reserve) = tenant.terms.reserve.filter(|_| may_use(config, tenant, &device.name)) else {
                    continue;
                };
                let (Some(bandwidth), Some(position_ns)) = (device.bandwidth, device.position_ns) else {
                    let text = format!(
                        "`reserve` is a promise on the device `{}`, which is not known well enough: give both its `bandwidth` and its `position`; \
                         `hoistway serve --calibrate` measures them",
                        device.name
                    );
                    wrong.push((place_of(entry, "reserve"), text));
                    continue;
                };
                let cost_ns = cost_ns(reserve.bytes_per_second, reserve.request_bytes, bandwidth, position_ns);
                let free_ns = PROMISED_NS_MAX.saturating_sub(taken_ns);
                if cost_ns > free_ns {
                    let text = format!(
                        "`reserve` of {} bytes/s in requests of {} bytes takes {} % of the device `{}`, and {} % are left of the 85 % that may \
                         be promised",
                        reserve.bytes_per_second,
                        reserve.request_bytes,
                        percent(cost_ns),
                        device.name,
                        percent_down(free_ns)
                    );
                    wrong.push((place_of(entry, "reserve"), text));
                } else {
                    taken_ns += cost_ns;
                }
            }
        }
        for (place, text) in wrong {
            self.problem(place, text);
        }
    }
}

/// The device time of the strokes back, in ns a second: in sweeps of half a second.
fn strokes_ns(position_ns: u64) -> u64 {
    (position_ns / 800).saturating_mul(1000).saturating_mul(2)
}

/// The device time of a reservation, in ns a second. The class knows bandwidth in KB/s and positions in us.
fn cost_ns(rate: u64, request_bytes: u64, bandwidth: u64, position_ns: u64) -> u64 {
    let wide = |value: u64| u128::from(value);
    let (bandwidth, position_ns) = (bandwidth.min(BANDWIDTH_MAX) / 1000 * 1000, position_ns / 1000 * 1000);
    let transfer = (wide(rate) * wide(SECOND_NS)).div_ceil(wide(bandwidth.max(1000)));
    let positioning = (wide(rate) * wide(position_ns)).div_ceil(wide(request_bytes.max(1)));
    u64::try_from(transfer + positioning).unwrap_or(u64::MAX)
}

/// Hundredths of the device's time with a decimal, rounded up.
fn percent(ns: u64) -> String {
    let tenths = ns.div_ceil(SECOND_NS / 1000);
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn percent_down(ns: u64) -> String {
    let tenths = ns / (SECOND_NS / 1000);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Whether a client of this tenant can have an export of this device: else nothing is promised to it there.
fn may_use(config: &Config, tenant: &TenantConfig, device: &str) -> bool {
    config.can_reach(tenant, device)
}
