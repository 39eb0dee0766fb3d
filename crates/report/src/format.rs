//! Rates with their unit, as pages show them.

use hoistway_units::figures::grouped_figure;

/// Formats a rate in MB/s (10^6 bytes a second).
pub fn rate(bytes_per_s: f64) -> String {
    format!("{} MB/s", grouped_figure(bytes_per_s / 1e6))
}
