//! What the layer of reservations is told of a device: for the layer itself, and for whoever asks before there is one.

use hoistway_core::{DeviceFigures, Reservation};

use crate::tenant::Reserve;

/// The layer's tunables that follow from what a device sustains (bytes a second) and takes to position (ns); the defaults where that is not told.
/// Reads and writes are reserved, as their direction is all the same to clients. Where an arm moves, its stroke back takes 5/4 of a positioning.
pub(crate) fn values(bandwidth: Option<u64>, position_ns: Option<u64>, rotates: bool) -> [(&'static str, i64); 4] {
    let of = |name: &'static str, value: Option<u64>| {
        let row = Reservation::TUNABLES.iter().find(|row| row.name == name);
        let (min, max, default) = row.map_or((0, i64::MAX, 0), |row| (row.min, row.max, row.default));
        (name, value.map_or(default, |value| i64::try_from(value).unwrap_or(i64::MAX).clamp(min, max)))
    };
    let back_us = |ns: u64| if rotates { ns / 800 } else { 0 };
    [
        of("dirs", Some(2)),
        of("device_bandwidth", bandwidth.map(|bytes| bytes / 1000)),
        of("device_position", position_ns.map(|ns| ns / 1000)),
        of("device_return", position_ns.map(back_us)),
    ]
}

/// The figures that its admission reckons with: those, and what the device's tunables say beyond them.
pub(crate) fn reckoned(values: &[(&'static str, i64)], tunables: &[(String, i64)]) -> DeviceFigures {
    let told = tunables.iter().map(|(name, value)| (name.as_str(), *value));
    DeviceFigures::of_tunables(values.iter().copied().chain(told))
}

/// Whether a tunable is the layer's.
pub(crate) fn is_layers(name: &str) -> bool {
    Reservation::TUNABLES.iter().any(|row| row.name == name)
}

/// A tenant's reservation as the queue knows it.
pub(crate) fn reservation_of(reserve: Reserve) -> Reservation {
    Reservation { request_bytes: reserve.request_bytes, ..Reservation::of(reserve.bytes_per_second) }
}
