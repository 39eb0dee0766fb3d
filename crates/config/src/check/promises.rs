//! Reservations: whether each device can keep all that is promised on it.
//!
//! The arithmetic is that of the layer of reservations itself, [`hoistway_core::DeviceFigures`],
//! which says the last word when the server starts: here the answer comes before anything has been
//! opened, and with the place in the file.

use super::{Check, place_of};
use crate::model::TenantConfig;
use hoistway_qos::{is_layer_tunable, reservation_figures, reservation_of};

/// A second in ns.
const SECOND_NS: u64 = 1_000_000_000;

impl Check<'_, '_> {
    pub(super) fn promises(&mut self) {
        if !self.building.problems.is_empty() {
            // What is referred to may not be what was meant.
            return;
        }
        let config = &self.building.config;
        let mut wrong = Vec::new();
        for (device, rotates) in config.devices.iter().zip(&self.building.device_rotates) {
            let queue = &device.queue;
            let figures = reservation_figures(queue.bandwidth, queue.position_ns, *rotates, &queue.tunables);
            let mut promised = Vec::new();
            for (entry, tenant) in self.draft.tenants.iter().zip(&config.tenants) {
                let Some(reserve) = tenant.terms.reserve.filter(|_| config.can_reach(tenant, &device.queue.name))
                else {
                    continue;
                };
                if device.queue.bandwidth.is_none() || device.queue.position_ns.is_none() {
                    let text = format!(
                        "`reserve` is a promise on the device `{}`, which is not known well enough: give both its `bandwidth` and its `position`; \
                         `hoistway serve --calibrate` measures them",
                        device.queue.name
                    );
                    wrong.push((place_of(entry, "reserve"), text));
                    continue;
                }
                let wanted = reservation_of(reserve);
                let load_ns = figures.load_ns(promised.iter().copied());
                if figures.admit(load_ns, None, wanted).is_ok() {
                    promised.push(wanted);
                    continue;
                }
                let alone_ns = figures.load_ns([wanted]).saturating_sub(figures.cost_ns(&wanted));
                let text = format!(
                    "`reserve` of {} bytes/s in requests of {} bytes takes {} % of the device `{}`, and {} % are left of the {} % that may \
                     be promised",
                    reserve.bytes_per_second,
                    reserve.request_bytes,
                    percent(figures.cost_ns(&wanted)),
                    device.queue.name,
                    percent_down(figures.load_ns_max.saturating_sub(load_ns.max(alone_ns))),
                    figures.load_ns_max / (SECOND_NS / 100),
                );
                wrong.push((place_of(entry, "reserve"), text));
            }
        }
        for (place, text) in wrong {
            self.problem(place, text);
        }
    }

    /// Warns of tunables of the layer of reservations where there is none.
    pub(super) fn layers_count(&mut self) {
        let config = &self.building.config;
        let mut warnings = Vec::new();
        for (entry, device) in self.draft.devices.iter().zip(&config.devices) {
            let own = device.queue.elevator.map_or(&[][..], |kind| kind.info().tunables);
            let is_own = |name: &str| own.iter().any(|row| row.name == name);
            let reserves =
                |tenant: &TenantConfig| tenant.terms.reserve.is_some() && config.can_reach(tenant, &device.queue.name);
            let layers = device.queue.tunables.iter().find(|(name, _)| is_layer_tunable(name) && !is_own(name));
            if let Some((name, _)) = layers.filter(|_| !config.tenants.iter().any(reserves)) {
                let text = format!(
                    "`{name}` is of reservations, and no tenant reserves anything on the device `{}`: it counts once one does",
                    device.queue.name
                );
                warnings.push((place_of(entry, "tunables"), text));
            }
        }
        for (place, text) in warnings {
            self.warning(place, text);
        }
    }
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
