//! Values in the text form of the kernel's files.

use std::fmt;
use std::num::{IntErrorKind, ParseIntError};

use hoistway_core::{Class, Kind, Priority, Tunable};
use hoistway_units::UnitError;

/// Why a value was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} {why}")]
pub struct BadValue {
    /// The value.
    pub value: String,
    /// The fault, and the values that are valid.
    pub why: String,
}

/// Returns a [`BadValue`] as error.
pub fn bad<T>(value: &str, why: impl Into<String>) -> Result<T, BadValue> {
    Err(BadValue { value: value.to_owned(), why: why.into() })
}

/// Returns all elevators, the current one in brackets: `noop deadline [cfq]`.
pub fn scheduler(present: Kind) -> String {
    let each =
        |kind: &Kind| if *kind == present { format!("[{}]", kind.info().name) } else { kind.info().name.to_owned() };
    hoistway_custom::all().iter().map(each).collect::<Vec<_>>().join(" ")
}

/// Parses the name or an alias of an elevator.
pub fn parse_elevator(value: &str) -> Result<Kind, BadValue> {
    if let Some(kind) = hoistway_custom::find(value) {
        return Ok(kind);
    }
    let all = hoistway_custom::all();
    let known = all.iter().flat_map(|kind| [kind.info().name].into_iter().chain(kind.info().aliases.iter().copied()));
    match super::names::suggest(value, known) {
        Some(name) => bad(value, format!("is no elevator; did you mean {name:?}?")),
        None => {
            let names: Vec<_> = all.iter().map(|kind| kind.info().name).collect();
            bad(value, format!("is no elevator; there are {}", names.join(" ")))
        }
    }
}

/// Parses the value of a tunable: a number in its unit, which may follow the number.
pub fn parse_tunable(tunable: &Tunable, value: &str) -> Result<i64, BadValue> {
    let (unit, min, max) = (tunable.unit.label(), tunable.min, tunable.max);
    let number = value.strip_suffix(unit).map_or(value, str::trim_end);
    match number.parse::<i64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        Err(error) if !is_overflow(&error) => {
            bad(value, format!("is no whole number: {} takes {min} to {max} {unit}", tunable.name))
        }
        _ => bad(value, format!("is out of range: {} takes {min} to {max} {unit}", tunable.name)),
    }
}

/// A number that a leaf takes.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// The name of the leaf.
    pub what: &'a str,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The unit of both; empty for a number without one.
    pub unit: &'static str,
}

impl fmt::Display for Range<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { what, min, max, unit } = self;
        write!(f, "{what} takes {min} to {max}{}{unit}", if unit.is_empty() { "" } else { " " })
    }
}

/// Parses a whole number within a range.
pub fn parse_number(value: &str, range: Range<'_>) -> Result<u64, BadValue> {
    match value.parse::<u64>() {
        Ok(number) if (range.min..=range.max).contains(&number) => Ok(number),
        Err(error) if !is_overflow(&error) => bad(value, format!("is no whole number: {range}")),
        _ => bad(value, format!("is out of range: {range}")),
    }
}

/// Returns true if the text is a number beyond the type.
fn is_overflow(error: &ParseIntError) -> bool {
    matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow)
}

/// Parses a number of bytes or requests, such as `1M`, within a range.
pub fn parse_amount(value: &str, range: Range<'_>) -> Result<u64, BadValue> {
    match hoistway_units::parse_bytes(value) {
        Ok(amount) if (range.min..=range.max).contains(&amount) => Ok(amount),
        Ok(_) | Err(UnitError::TooLarge { .. }) => bad(value, format!("is out of range: {range}")),
        Err(_) => bad(value, format!("is not an amount: {range}, such as 1048576 or 1M")),
    }
}

/// Parses a rate of bytes or operations: a number, optionally with a binary prefix and `/s`. The
/// word `none` stands for no rate.
pub fn parse_rate(value: &str, range: Range<'_>, none: &str) -> Result<Option<u64>, BadValue> {
    if value == none {
        return Ok(None);
    }
    let rate = parse_amount(value.strip_suffix("/s").unwrap_or(value), range);
    rate.map(Some)
        .map_err(|BadValue { why, .. }| BadValue { value: value.to_owned(), why: format!("{why}, or {none}") })
}

/// Returns the name of a class in the form of `ionice`.
pub fn class(class: Class) -> &'static str {
    match class {
        Class::None => "none",
        Class::RealTime => "realtime",
        Class::BestEffort => "best-effort",
        Class::Idle => "idle",
    }
}

/// Parses a class by name or number in the form of `ionice -c`.
pub fn parse_class(value: &str) -> Result<Class, BadValue> {
    match value {
        "none" | "0" => Ok(Class::None),
        "realtime" | "1" => Ok(Class::RealTime),
        "best-effort" | "2" => Ok(Class::BestEffort),
        "idle" | "3" => Ok(Class::Idle),
        _ => bad(value, "is no class: it is none, realtime, best-effort or idle (0 to 3)"),
    }
}

/// Returns a priority in the form of `ionice -p`.
pub fn ionice(priority: Priority) -> String {
    match priority.class() {
        Class::Idle => "idle".to_owned(),
        other => format!("{}: prio {}", class(other), priority.level()),
    }
}

/// Returns `1` for true and `0` for false.
pub fn switch(on: bool) -> String {
    u8::from(on).to_string()
}

/// Returns a fraction with three digits; `-` without a value.
pub fn fraction(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "-".to_owned(), |fraction| format!("{fraction:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_elevator_is_in_brackets() {
        let text = scheduler(Kind::Cfq);
        assert!(text.contains(" [cfq] ") && text.starts_with("linus noop deadline "), "{text}");
        assert_eq!(text.split(' ').count(), Kind::ALL.len());
    }

    #[test]
    fn errors_name_the_valid_values() {
        let message = |result: Result<_, BadValue>| result.map(|_: Kind| ()).unwrap_err().to_string();
        assert_eq!(message(parse_elevator("cqf")), "\"cqf\" is no elevator; did you mean \"cfq\"?");
        assert!(message(parse_elevator("xyzzyx")).ends_with(" paternoster"));
        let idle = Kind::CfqV3.info().tunables.iter().find(|tunable| tunable.name == "slice_idle").unwrap();
        assert_eq!(parse_tunable(idle, "0"), Ok(0));
        assert_eq!(parse_tunable(idle, "8ms"), Ok(8));
        let message = parse_tunable(idle, "-1").unwrap_err().to_string();
        assert!(message.starts_with("\"-1\" is out of range: slice_idle takes 0 to "), "{message}");
        let range = |what, min, max, unit| Range { what, min, max, unit };
        assert_eq!(
            parse_number("0", range("weight", 1, 1000, "")).unwrap_err().to_string(),
            "\"0\" is out of range: weight takes 1 to 1000"
        );
        for value in ["129", "18446744073709551616"] {
            assert_eq!(
                parse_number(value, range("depth", 1, 128, "requests")).unwrap_err().to_string(),
                format!("{value:?} is out of range: depth takes 1 to 128 requests")
            );
        }
        let limit = range("limit", 1, u64::MAX, "bytes/s");
        assert_eq!(parse_rate("20M", limit, "max"), Ok(Some(20 << 20)));
        assert_eq!(parse_rate("max", limit, "max"), Ok(None));
        for (value, fault) in [("0", "out of range"), ("16384P/s", "out of range"), ("fast", "not an amount")] {
            let message = parse_rate(value, limit, "max").unwrap_err().to_string();
            assert!(message.starts_with(&format!("{value:?} is {fault}: limit takes 1 to ")), "{message}");
            assert!(message.contains("18446744073709551615 bytes/s") && message.ends_with(", or max"), "{message}");
        }
    }

    #[test]
    fn priorities_have_the_form_of_ionice() {
        assert_eq!(ionice(Priority::new(Class::BestEffort, 4).unwrap()), "best-effort: prio 4");
        assert_eq!(ionice(Priority::new(Class::Idle, 0).unwrap()), "idle");
        assert_eq!(ionice(Priority::UNSET), "none: prio 0");
        for (text, class) in [("3", Class::Idle), ("realtime", Class::RealTime)] {
            assert_eq!(parse_class(text), Ok(class));
        }
    }
}
