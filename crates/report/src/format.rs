//! Times and rates with their units, as pages show them.

use hoistway_units::figures::grouped_figure;

/// Formats a duration in a suitable unit: "0 s", "250 ns", "12.4 µs", "8.00 ms", "60.0 s".
pub fn duration(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        0.0 => "0 s".to_owned(),
        n if n < 1e3 => format!("{} ns", grouped_figure(n)),
        n if n < 1e6 => format!("{} µs", grouped_figure(n / 1e3)),
        n if n < 1e9 => format!("{} ms", grouped_figure(n / 1e6)),
        n => format!("{} s", grouped_figure(n / 1e9)),
    }
}

/// Formats a rate in MB/s (10^6 bytes a second).
pub fn rate(bytes_per_s: f64) -> String {
    format!("{} MB/s", grouped_figure(bytes_per_s / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_choose_their_unit() {
        let shown = [0, 250, 12_400, 8_000_000, 60_000_000_000].map(duration);
        assert_eq!(shown, ["0 s", "250 ns", "12.4 µs", "8.00 ms", "60.0 s"]);
    }
}
