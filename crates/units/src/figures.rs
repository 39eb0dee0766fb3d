//! Figures with three significant digits, for tables and sentences.

/// Formats a figure with three significant digits, more only before the point: 0.0421, 4.21, 42.1,
/// 421, 4213; a dash for a value that is not finite.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    // The bounds are the values at which rounding reaches the next power of ten.
    let decimals = match value.abs() {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// Formats bytes with a power of 1000: "160 GB", "1.06 GB", "4.00 TB".
pub fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match value {
        v if v < 1e6 => format!("{} kB", figure(v / 1e3)),
        v if v < 1e9 => format!("{} MB", figure(v / 1e6)),
        v if v < 1e12 => format!("{} GB", figure(v / 1e9)),
        v => format!("{} TB", figure(v / 1e12)),
    }
}

/// Formats a share, 0 to 1, as per cent without its sign: "94.9", "0.4", "100".
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return "-".to_owned();
    }
    if percent >= 99.95 { format!("{percent:.0}") } else { format!("{percent:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        let shown = [0.0, 0.04213, 0.4213, 9.999, 42.134, 99.99, 4213.4, f64::INFINITY].map(figure);
        assert_eq!(shown, ["0", "0.0421", "0.421", "10.0", "42.1", "100", "4213", "-"]);
    }

    #[test]
    fn bytes_have_the_suitable_prefix() {
        assert_eq!([42_000, 160_000_000_000, 4_000_000_000_000].map(bytes), ["42.0 kB", "160 GB", "4.00 TB"]);
    }

    #[test]
    fn shares_have_a_tenth_of_a_percent() {
        assert_eq!([0.0, 0.9493, 0.9996, 1.042].map(percent), ["0.0", "94.9", "100", "104"]);
    }
}
