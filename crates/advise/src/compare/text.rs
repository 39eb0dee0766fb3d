//! Texts of figures in verdicts.

use hoistway_units::figures::figure;

/// A time in a suitable unit: "33 us", "4.21 ms", "11.6 s", "10 h".
pub fn duration(ns: u64) -> String {
    let s = ns as f64 / 1e9;
    match s {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{} ms", figure(s * 1e3)),
        s if s < 7200.0 => format!("{} s", figure(s)),
        s => format!("{:.0} h", s / 3600.0),
    }
}

/// "a", "a and b", "a, b and c".
pub fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_suitable_unit() {
        assert_eq!(
            [33_000, 4_212_000, 11_585_000_000, 36_000_000_000_000].map(duration),
            ["33 us", "4.21 ms", "11.6 s", "10 h"]
        );
    }
}
