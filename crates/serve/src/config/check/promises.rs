//! Reservations: whether each device can keep all that is promised on it.
//!
//! A reservation of r bytes a second in requests of s bytes takes r / bandwidth + r * position / s of a device's time, and the strokes
//! back once every half second; what is promised may come to 85 % of it, so that real time has 5 and best effort 10 (the bandwidth
//! class's defaults).

use super::super::{Config, ExportConfig, Rule, TenantConfig};
use super::{Check, place_of};
use crate::rules::matches;

/// A second in ns.
const SECOND_NS: u64 = 1_000_000_000;
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
        for device in &config.devices {
            let mut taken_ns = 0u64;
            for (entry, tenant) in self.draft.tenants.iter().zip(&config.tenants) {
                let Some(reserve) = tenant.terms.reserve.filter(|_| may_use(config, tenant, &device.name)) else {
                    continue;
                };
                let (Some(bandwidth), position_ns) = (device.bandwidth, device.position_ns.unwrap_or(0)) else {
                    let text = format!(
                        "`reserve` is a promise on the device `{}`, of which nothing is known: give its `bandwidth` and `position`; \
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

/// The device time of a reservation, in ns a second.
fn cost_ns(rate: u64, request_bytes: u64, bandwidth: u64, position_ns: u64) -> u64 {
    let wide = |value: u64| u128::from(value);
    let transfer = (wide(rate) * wide(SECOND_NS)).div_ceil(wide(bandwidth.max(1)));
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

/// Whether a client of this tenant can have an export of this device.
fn may_use(config: &Config, tenant: &TenantConfig, device: &str) -> bool {
    config.exports.iter().filter(|export| export.device == device).any(|export| may_see(tenant, export))
}

fn may_see(tenant: &TenantConfig, export: &ExportConfig) -> bool {
    let chosen = tenant.rules.iter().all(|rule| match rule {
        Rule::Export(pattern) => matches(pattern, &export.name),
        _ => true,
    });
    chosen && (export.tenants.is_empty() || export.tenants.contains(&tenant.name))
}
