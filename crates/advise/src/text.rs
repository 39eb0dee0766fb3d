//! Figures as text, with three significant digits.

use crate::objective::Unit;

/// A value with its unit: `12.3 ms`, `88.1 MB/s`, `0.93`; a dash for a value that is not finite.
pub fn value_text(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    match unit {
        Unit::Time if value < 1e3 => format!("{value:.0} ns"),
        Unit::Time if value < 999.5e3 => format!("{} us", digits(value / 1e3)),
        Unit::Time if value < 999.5e6 => format!("{} ms", digits(value / 1e6)),
        Unit::Time => format!("{} s", digits(value / 1e9)),
        Unit::Rate if value < 999.5e3 => format!("{} kB/s", digits(value / 1e3)),
        Unit::Rate if value < 999.5e6 => format!("{} MB/s", digits(value / 1e6)),
        Unit::Rate => format!("{} GB/s", digits(value / 1e9)),
        Unit::Number => digits(value),
    }
}

/// A size with a power of 1000: `160 GB`, `4.00 TB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let value = bytes as f64;
    match value {
        v if v < 1e6 => format!("{} kB", digits(v / 1e3)),
        v if v < 1e9 => format!("{} MB", digits(v / 1e6)),
        v if v < 1e12 => format!("{} GB", digits(v / 1e9)),
        v => format!("{} TB", digits(v / 1e12)),
    }
}

/// Three significant digits, more only before the point.
fn digits(value: f64) -> String {
    match value.abs() {
        m if m == 0.0 || m >= 99.95 => format!("{value:.0}"),
        m if m >= 9.995 => format!("{value:.1}"),
        m if m >= 0.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
