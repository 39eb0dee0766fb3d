//! The formatting of tunables.

use hoistway_core::{Tunable, Unit};

/// Greatest value from which on a range counts as unlimited: the limit is then that of the kernel's
/// variable.
const NO_LIMIT: i64 = i32::MAX as i64;

/// Formats the range of a tunable in its unit: "0 to 1", "1 or more", "any".
pub fn range(tunable: &Tunable) -> String {
    let Tunable { min, max, .. } = *tunable;
    match (min <= -NO_LIMIT, max >= NO_LIMIT) {
        (true, true) => "any".to_owned(),
        (_, true) => format!("{min} or more"),
        _ => format!("{min} to {max}"),
    }
}

/// Formats a value with its unit: "8 ms"; switches, factors, forms and plain numbers have none.
pub fn with_unit(value: i64, unit: Unit) -> String {
    match unit {
        Unit::Switch | Unit::Form | Unit::Factor | Unit::Number => value.to_string(),
        Unit::Requests | Unit::Times | Unit::Sectors if value == 1 => {
            format!("1 {}", unit.label().trim_end_matches('s'))
        }
        unit => format!("{value} {}", unit.label()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_limit_only_below_the_kernel_s_maximum() {
        let row = |max| Tunable { name: "", unit: Unit::Requests, default: 1, min: 1, max, meaning: "", trade_off: "" };
        assert_eq!([i64::from(u32::MAX), 9].map(|max| range(&row(max))), ["1 or more", "1 to 9"]);
        assert_eq!(with_unit(1, Unit::Requests), "1 request");
    }

    #[test]
    fn switches_and_factors_have_no_unit() {
        assert_eq!([(8, Unit::Milliseconds), (2, Unit::Factor)].map(|(v, u)| with_unit(v, u)), ["8 ms", "2"]);
    }
}
