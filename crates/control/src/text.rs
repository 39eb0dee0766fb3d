//! Values in the text form of the kernel's files.

use hoistway_core::{Class, Kind, Priority, Tunable};

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

/// Returns all elevators, the present one in brackets: `noop deadline [cfq]`.
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
        Ok(_) => bad(value, format!("is out of range: {} takes {min} to {max} {unit}", tunable.name)),
        Err(_) => bad(value, format!("is no whole number: {} takes {min} to {max} {unit}", tunable.name)),
    }
}

/// Parses a whole number within a range.
pub fn parse_number(what: &str, value: &str, min: u64, max: u64) -> Result<u64, BadValue> {
    match value.parse::<u64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        Ok(_) => bad(value, format!("is out of range: {what} takes {min} to {max}")),
        Err(_) => bad(value, format!("is no whole number: {what} takes {min} to {max}")),
    }
}

/// Parses a rate of bytes or operations: a number, optionally with a binary prefix and `/s`. The
/// word `none` stands for no rate.
pub fn parse_rate(what: &str, value: &str, none: &str, max: u64) -> Result<Option<u64>, BadValue> {
    if value == none {
        return Ok(None);
    }
    match parse_amount(value.strip_suffix("/s").unwrap_or(value)) {
        Some(0) => bad(value, format!("is too little: {what} takes 1 to {max}, or {none}")),
        Some(rate) if rate <= max => Ok(Some(rate)),
        Some(_) => bad(value, format!("is out of range: {what} takes 1 to {max}, or {none}")),
        None => bad(value, format!("is not an amount: {what} takes a number such as 20971520 or 20M, or {none}")),
    }
}

/// Parses a number of bytes or operations, optionally with a binary prefix.
pub fn parse_amount(text: &str) -> Option<u64> {
    hoistway_units::parse_bytes(text).ok()
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
        assert_eq!(
            parse_number("weight", "0", 1, 1000).unwrap_err().to_string(),
            "\"0\" is out of range: weight takes 1 to 1000"
        );
        assert_eq!(parse_rate("limit", "20M", "max", u64::MAX), Ok(Some(20 << 20)));
        assert_eq!(parse_rate("limit", "max", "max", u64::MAX), Ok(None));
        assert!(parse_rate("limit", "fast", "max", 9).is_err() && parse_rate("limit", "0", "max", 9).is_err());
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
