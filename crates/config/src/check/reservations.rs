//! Checks that each device can sustain the reservations on it.
//!
//! The arithmetic is that of the reservation layer, [`hoistway_core::DeviceFigures`], which decides
//! again when the server starts. This check runs before any device is opened and reports the
//! location in the file.

use super::{Check, location_of};
use crate::model::TenantConfig;
use hoistway_qos::{is_layer_tunable, reservation_figures, reservation_of};

/// A second in ns.
const SECOND_NS: u64 = 1_000_000_000;

impl Check<'_, '_> {
    pub(super) fn reservations_fit(&mut self) {
        if !self.builder.problems.is_empty() {
            // A reference with an error may point to the wrong device.
            return;
        }
        let config = &self.builder.config;
        let mut wrong = Vec::new();
        for (device, rotates) in config.devices.iter().zip(&self.builder.device_rotates) {
            let queue = &device.queue;
            let figures = reservation_figures(queue.bandwidth, queue.position_ns, *rotates, &queue.tunables);
            let mut admitted = Vec::new();
            for (entry, tenant) in self.draft.tenants.iter().zip(&config.tenants) {
                let Some(reserve) = tenant.terms.reserve.filter(|_| config.can_reach(tenant, &device.queue.name))
                else {
                    continue;
                };
                if device.queue.bandwidth.is_none() || device.queue.position_ns.is_none() {
                    let text = format!(
                        "`reserve` needs the `bandwidth` and the `position` of the device `{}`; \
                         `hoistway serve --calibrate` measures them",
                        device.queue.name
                    );
                    wrong.push((location_of(entry, "reserve"), text));
                    continue;
                }
                let wanted = reservation_of(reserve);
                let load_ns = figures.load_ns(admitted.iter().copied());
                if figures.admit(load_ns, None, wanted).is_ok() {
                    admitted.push(wanted);
                    continue;
                }
                let alone_ns = figures.load_ns([wanted]).saturating_sub(figures.cost_ns(&wanted));
                let text = format!(
                    "`reserve` of {} bytes/s in requests of {} bytes takes {} % of the device `{}`, and {} % are left of the {} % that may \
                     be reserved",
                    reserve.bytes_per_second,
                    reserve.request_bytes,
                    percent(figures.cost_ns(&wanted)),
                    device.queue.name,
                    percent_down(figures.load_ns_max.saturating_sub(load_ns.max(alone_ns))),
                    figures.load_ns_max / (SECOND_NS / 100),
                );
                wrong.push((location_of(entry, "reserve"), text));
            }
        }
        for (location, text) in wrong {
            self.problem(location, text);
        }
    }

    /// Warns of tunables of the reservation layer on devices without reservations.
    pub(super) fn reservation_tunables_have_effect(&mut self) {
        let config = &self.builder.config;
        let mut warnings = Vec::new();
        for (entry, device) in self.draft.devices.iter().zip(&config.devices) {
            let own = device.queue.elevator.map_or(&[][..], |kind| kind.info().tunables);
            let is_own = |name: &str| own.iter().any(|row| row.name == name);
            let reserves =
                |tenant: &TenantConfig| tenant.terms.reserve.is_some() && config.can_reach(tenant, &device.queue.name);
            let layers = device.queue.tunables.iter().find(|(name, _)| is_layer_tunable(name) && !is_own(name));
            if let Some((name, _)) = layers.filter(|_| !config.tenants.iter().any(reserves)) {
                let text = format!(
                    "`{name}` is a tunable of reservations and has no effect: no tenant has a reservation on the device `{}`",
                    device.queue.name
                );
                warnings.push((location_of(entry, "tunables"), text));
            }
        }
        for (location, text) in warnings {
            self.warning(location, text);
        }
    }
}

/// Formats a share of the device's time in percent with one decimal, rounded up.
fn percent(ns: u64) -> String {
    let tenths = ns.div_ceil(SECOND_NS / 1000);
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn percent_down(ns: u64) -> String {
    let tenths = ns / (SECOND_NS / 1000);
    format!("{}.{}", tenths / 10, tenths % 10)
}
