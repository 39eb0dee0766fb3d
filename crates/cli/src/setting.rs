//! The argument `--set elevator.tunable=value`, and the formatting of tunables.

use hoistway_core::{Kind, Tunable, Unit};
use hoistway_sim::{Setting, SimError};

use crate::names::did_you_mean;

/// Parses `cfq-v3.slice_idle=8ms`; the unit is optional.
///
/// # Errors
/// A message with the valid form, the elevators, the elevator's tunables, the unit or the range.
pub fn parse(text: &str) -> Result<Setting, String> {
    Setting::parse(&without_word(text).unwrap_or_else(|| text.to_owned())).map_err(|error| {
        let nearest = match &error {
            SimError::UnknownTunable { elevator, tunable, .. } => {
                let tunables = Kind::from_name(elevator).map_or(&[][..], |kind| kind.info().tunables);
                did_you_mean(tunable, tunables.iter().map(|row| row.name))
            }
            _ => String::new(),
        };
        format!("{error}{nearest}")
    })
}

/// Removes the unit word after a count, as in `cfq-v3.quantum=4 requests`, if it is the tunable's
/// own; ms and KiB are units that settings parse.
fn without_word(text: &str) -> Option<String> {
    let (path, value) = text.split_once('=')?;
    let (elevator, tunable) = path.trim().split_once('.')?;
    let unit = Kind::from_name(elevator)?.info().tunables.iter().find(|row| row.name == tunable)?.unit;
    match unit {
        Unit::Requests | Unit::Times | Unit::Factor => {
            Some(format!("{path}={}", value.trim_end().strip_suffix(unit.label())?.trim_end()))
        }
        _ => None,
    }
}

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
    fn a_typing_error_names_the_nearest() {
        let tunable = parse("cfq-v3.slice_idel=8").unwrap_err();
        assert!(tunable.ends_with("(did you mean `slice_idle`?)"), "{tunable}");
        let elevator = parse("cfq-v33.slice_idle=8").unwrap_err();
        assert!(elevator.contains("(did you mean `cfq-v3`?); `hoistway elevators` lists"), "{elevator}");
    }

    #[test]
    fn a_count_may_have_its_word_and_no_other() {
        assert_eq!(parse("cfq-v3.quantum=4 requests").map(|setting| setting.value), Ok(4));
        assert_eq!(parse("cfq-v3.quantum=4requests").map(|setting| setting.value), Ok(4));
        assert_eq!(parse("cfq-v3.slice_idle=4ms").map(|setting| setting.value), Ok(4));
        assert!(parse("cfq-v3.slice_idle=4requests").is_err());
        assert!(parse("cfq-v3.quantum=requests").is_err());
    }

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
