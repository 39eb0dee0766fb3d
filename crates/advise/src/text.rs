//! Values of an objective as text.

use hoistway_units::figures::figure;

use crate::objective::Unit;

/// A value with its unit: `12.3 ms`, `88.1 MB/s`, `0.93`; a dash for a value that is not finite.
pub fn value_text(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    match unit {
        Unit::Time if value < 1e3 => format!("{value:.0} ns"),
        Unit::Time if value < 999.5e3 => format!("{} us", figure(value / 1e3)),
        Unit::Time if value < 999.5e6 => format!("{} ms", figure(value / 1e6)),
        Unit::Time => format!("{} s", figure(value / 1e9)),
        Unit::Rate if value < 999.5e3 => format!("{} kB/s", figure(value / 1e3)),
        Unit::Rate if value < 999.5e6 => format!("{} MB/s", figure(value / 1e6)),
        Unit::Rate => format!("{} GB/s", figure(value / 1e9)),
        Unit::Number => figure(value),
    }
}
