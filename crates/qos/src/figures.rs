//! The device figures by which reservations are admitted.

use hoistway_core::{DeviceFigures, Reservation};

use crate::terms::Reserve;

/// Returns the tunables of the reservation layer that follow from a device's sustained bandwidth in
/// bytes per second and its positioning time in ns; the layer's defaults where a figure is unknown.
///
/// Reads and writes are both reserved. On a rotating device the return stroke of the arm takes 5/4
/// of a positioning.
pub(crate) fn layer_tunables(
    bandwidth: Option<u64>,
    position_ns: Option<u64>,
    rotational: bool,
) -> [(&'static str, i64); 4] {
    let value_of = |name: &'static str, value: Option<u64>| {
        let row = Reservation::TUNABLES.iter().find(|row| row.name == name);
        let (min, max, default) = row.map_or((0, i64::MAX, 0), |row| (row.min, row.max, row.default));
        (name, value.map_or(default, |value| i64::try_from(value).unwrap_or(i64::MAX).clamp(min, max)))
    };
    let return_us = |ns: u64| if rotational { ns / 800 } else { 0 };
    [
        value_of("dirs", Some(2)),
        value_of("device_bandwidth", bandwidth.map(|bytes| bytes / 1000)),
        value_of("device_position", position_ns.map(|ns| ns / 1000)),
        value_of("device_return", position_ns.map(return_us)),
    ]
}

/// Returns the figures that admission reckons with: `layer`, overridden by the tunables that are
/// set on the device.
pub(crate) fn device_figures(layer: &[(&'static str, i64)], tunables: &[(String, i64)]) -> DeviceFigures {
    let set = tunables.iter().map(|(name, value)| (name.as_str(), *value));
    DeviceFigures::of_tunables(layer.iter().copied().chain(set))
}

/// Returns the figures by which reservations on a device are admitted, from its configuration:
/// bandwidth in bytes per second, positioning time in ns, and tunables.
pub fn reservation_figures(
    bandwidth: Option<u64>,
    position_ns: Option<u64>,
    rotational: bool,
    tunables: &[(String, i64)],
) -> DeviceFigures {
    device_figures(&layer_tunables(bandwidth, position_ns, rotational), tunables)
}

/// Returns true if a tunable belongs to the reservation layer.
pub fn is_layer_tunable(name: &str) -> bool {
    Reservation::TUNABLES.iter().any(|row| row.name == name)
}

/// Returns a tenant's reservation in the form that the request queue takes.
pub fn reservation_of(reserve: Reserve) -> Reservation {
    Reservation { request_bytes: reserve.request_bytes, ..Reservation::of(reserve.bytes_per_second) }
}
