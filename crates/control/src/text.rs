//! Values as texts, as the kernel writes and reads them.

use hoistway_core::{Class, Kind, Priority, Tunable};

/// Why a value was not taken. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} {why}")]
pub struct BadValue {
    /// What was given.
    pub value: String,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

/// Makes a [`BadValue`].
pub fn bad<T>(value: &str, why: impl Into<String>) -> Result<T, BadValue> {
    Err(BadValue { value: value.to_owned(), why: why.into() })
}

/// The elevators, the present one in brackets: `noop deadline [cfq]`.
pub fn scheduler(present: Kind) -> String {
    let each =
        |kind: &Kind| if *kind == present { format!("[{}]", kind.info().name) } else { kind.info().name.to_owned() };
    Kind::ALL.iter().map(each).collect::<Vec<_>>().join(" ")
}

/// An elevator by its name or another that it goes by.
pub fn parse_elevator(value: &str) -> Result<Kind, BadValue> {
    if let Some(kind) = Kind::from_name(value) {
        return Ok(kind);
    }
    let known =
        Kind::ALL.iter().flat_map(|kind| [kind.info().name].into_iter().chain(kind.info().aliases.iter().copied()));
    match super::names::meant(value, known) {
        Some(meant) => bad(value, format!("is no elevator; did you mean {meant:?}?")),
        None => {
            let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.info().name).collect();
            bad(value, format!("is no elevator; there are {}", names.join(" ")))
        }
    }
}

/// A value of a tunable: a number in its unit, which may be written behind it.
pub fn parse_tunable(tunable: &Tunable, value: &str) -> Result<i64, BadValue> {
    let (unit, min, max) = (tunable.unit.label(), tunable.min, tunable.max);
    let number = value.strip_suffix(unit).map_or(value, str::trim_end);
    match number.parse::<i64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        Ok(_) => bad(value, format!("is out of range: {} takes {min} to {max} {unit}", tunable.name)),
        Err(_) => bad(value, format!("is no whole number: {} takes {min} to {max} {unit}", tunable.name)),
    }
}

/// A whole number within a range.
pub fn parse_number(what: &str, value: &str, min: u64, max: u64) -> Result<u64, BadValue> {
    match value.parse::<u64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        Ok(_) => bad(value, format!("is out of range: {what} takes {min} to {max}")),
        Err(_) => bad(value, format!("is no whole number: {what} takes {min} to {max}")),
    }
}

/// A rate of bytes or operations: a number, perhaps with a prefix (1024 each) and `/s`; `none`
/// stands for none.
pub fn parse_rate(what: &str, value: &str, none: &str, max: u64) -> Result<Option<u64>, BadValue> {
    if value == none {
        return Ok(None);
    }
    match parse_amount(value.strip_suffix("/s").unwrap_or(value)) {
        Some(0) => bad(value, format!("is too little: {what} takes 1 to {max}, or {none}")),
        Some(rate) if rate <= max => Ok(Some(rate)),
        Some(_) => bad(value, format!("is out of range: {what} takes 1 to {max}, or {none}")),
        None => bad(value, format!("is no amount: {what} takes a number such as 20971520 or 20M, or {none}")),
    }
}

/// A number of bytes or operations, perhaps with a prefix (1024 each).
pub fn parse_amount(text: &str) -> Option<u64> {
    hoistway_units::parse_bytes(text).ok()
}

/// The name of a class as `ionice` has it.
pub fn class(class: Class) -> &'static str {
    match class {
        Class::None => "none",
        Class::RealTime => "realtime",
        Class::BestEffort => "best-effort",
        Class::Idle => "idle",
    }
}

/// A class by its name or number, as `ionice -c` takes them.
pub fn parse_class(value: &str) -> Result<Class, BadValue> {
    match value {
        "none" | "0" => Ok(Class::None),
        "realtime" | "1" => Ok(Class::RealTime),
        "best-effort" | "2" => Ok(Class::BestEffort),
        "idle" | "3" => Ok(Class::Idle),
        _ => bad(value, "is no class: it is none, realtime, best-effort or idle (0 to 3)"),
    }
}

/// A priority as `ionice -p` prints it.
pub fn ionice(priority: Priority) -> String {
    match priority.class() {
        Class::Idle => "idle".to_owned(),
        other => format!("{}: prio {}", class(other), priority.level()),
    }
}

/// `0` or `1`.
pub fn switch(on: bool) -> String {
    u8::from(on).to_string()
}

/// A fraction with three digits; `-` where there is none.
pub fn fraction(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "-".to_owned(), |fraction| format!("{fraction:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_elevator_stands_in_brackets_among_all() {
        let text = scheduler(Kind::Cfq);
        assert!(text.contains(" [cfq] ") && text.starts_with("linus noop deadline "), "{text}");
        assert_eq!(text.split(' ').count(), Kind::ALL.len());
    }

    #[test]
    fn what_is_refused_is_told_with_what_would_be_right() {
        let told = |result: Result<_, BadValue>| result.map(|_: Kind| ()).unwrap_err().to_string();
        assert_eq!(told(parse_elevator("cqf")), "\"cqf\" is no elevator; did you mean \"cfq\"?");
        assert!(told(parse_elevator("xyzzyx")).ends_with("kyber"));
        let idle = Kind::CfqV3.info().tunables.iter().find(|tunable| tunable.name == "slice_idle").unwrap();
        assert_eq!(parse_tunable(idle, "0"), Ok(0));
        assert_eq!(parse_tunable(idle, "8ms"), Ok(8));
        let told = parse_tunable(idle, "-1").unwrap_err().to_string();
        assert!(told.starts_with("\"-1\" is out of range: slice_idle takes 0 to "), "{told}");
        assert_eq!(
            parse_number("weight", "0", 1, 1000).unwrap_err().to_string(),
            "\"0\" is out of range: weight takes 1 to 1000"
        );
        assert_eq!(parse_rate("limit", "20M", "max", u64::MAX), Ok(Some(20 << 20)));
        assert_eq!(parse_rate("limit", "max", "max", u64::MAX), Ok(None));
        assert!(parse_rate("limit", "fast", "max", 9).is_err() && parse_rate("limit", "0", "max", 9).is_err());
    }

    #[test]
    fn priorities_read_as_ionice_prints_them() {
        assert_eq!(ionice(Priority::new(Class::BestEffort, 4).unwrap()), "best-effort: prio 4");
        assert_eq!(ionice(Priority::new(Class::Idle, 0).unwrap()), "idle");
        assert_eq!(ionice(Priority::UNSET), "none: prio 0");
        for (text, class) in [("3", Class::Idle), ("realtime", Class::RealTime)] {
            assert_eq!(parse_class(text), Ok(class));
        }
    }
}
