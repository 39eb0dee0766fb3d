//! Settings of tunables in their written form, `cfq-v3.slice_idle=8ms`, and elevators by name.

use hoistway_core::{HostTypes, Kind, RequestQueue, Tunable, TunableError, Unit};

use hoistway_units::names::did_you_mean;

use crate::error::SimError;

/// A value for a tunable of one elevator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The elevator that has the tunable.
    pub elevator: Kind,
    /// The name of the tunable.
    pub tunable: &'static str,
    /// The value, in the tunable's own unit.
    pub value: i64,
    text: String,
}

impl Setting {
    /// Parses `elevator.tunable=value`. A value may carry a unit (`8ms`, `0.1s`, `16MiB`) if the
    /// tunable has one; without a unit, the value is in the tunable's own.
    ///
    /// # Errors
    /// A [`SimError`] that names near elevators, the elevator's tunables, or the tunable's range.
    pub fn parse(text: &str) -> Result<Setting, SimError> {
        let form = || SimError::SettingForm { text: text.into() };
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let (elevator, tunable) = name.trim().split_once('.').ok_or_else(form)?;
        let elevator = elevator_of_name(elevator)?;
        let tunables = elevator.info().tunables;
        let found = tunables.iter().find(|known| known.name == tunable).ok_or_else(|| SimError::UnknownTunable {
            text: text.into(),
            elevator: elevator.info().name.into(),
            tunable: tunable.into(),
            known: names(tunables),
        })?;
        let value = value_in_unit(value.trim(), found)
            .map_err(|problem| SimError::TunableValue { text: text.into(), problem })?;
        Ok(Setting { elevator, tunable: found.name, value, text: text.into() })
    }

    /// Parses `cfq-v3.slice_idle=8ms` as [`Setting::parse`] does; a count may also have the word of
    /// its unit, as in `cfq-v3.quantum=4 requests`.
    ///
    /// # Errors
    /// The text of [`Setting::parse`]'s error, with the tunables of similar names.
    pub fn parse_argument(text: &str) -> Result<Setting, String> {
        Setting::parse(&without_word(text).unwrap_or_else(|| text.to_owned())).map_err(|error| {
            let nearest = match &error {
                SimError::UnknownTunable { elevator, tunable, .. } => {
                    let tunables = hoistway_custom::find(elevator).map_or(&[][..], |kind| kind.info().tunables);
                    did_you_mean(tunable, tunables.iter().map(|row| row.name))
                }
                _ => String::new(),
            };
            format!("{error}{nearest}")
        })
    }

    pub(crate) fn apply<H: HostTypes>(&self, queue: &mut RequestQueue<H>) -> Result<(), SimError> {
        if queue.kind() != self.elevator {
            return Ok(());
        }
        queue.set_tunable(self.tunable, self.value).map_err(|error| match error {
            TunableError::Unknown => SimError::SettingForm { text: self.text.clone() },
            TunableError::OutOfRange { min, max } => SimError::TunableValue {
                text: self.text.clone(),
                problem: format!("{} is out of range: {} takes {min} to {max}", self.value, self.tunable),
            },
        })
    }

    /// The setting as given.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Removes the unit word after a count, as in `cfq-v3.quantum=4 requests`, if it is the tunable's
/// own; ms and KiB are units that settings parse.
fn without_word(text: &str) -> Option<String> {
    let (path, value) = text.split_once('=')?;
    let (elevator, tunable) = path.trim().split_once('.')?;
    let unit = hoistway_custom::find(elevator)?.info().tunables.iter().find(|row| row.name == tunable)?.unit;
    match unit {
        Unit::Requests | Unit::Times | Unit::Factor => {
            Some(format!("{path}={}", value.trim_end().strip_suffix(unit.label())?.trim_end()))
        }
        _ => None,
    }
}

/// Finds an elevator by name or alias.
///
/// # Errors
/// [`SimError::UnknownElevator`], with the names near to this one.
pub fn elevator_of_name(name: &str) -> Result<Kind, SimError> {
    hoistway_custom::find(name).ok_or_else(|| {
        let all = hoistway_custom::all();
        let near = did_you_mean(name, all.iter().map(|kind| kind.info().name));
        // The command does not list those that this process registered.
        let suggestion = format!("{near}; `hoistway elevators` lists all {}", Kind::ALL.len());
        SimError::UnknownElevator { name: name.into(), suggestion }
    })
}

/// The names of all elevators, separated by commas.
pub(crate) fn elevator_names() -> String {
    let names: Vec<&str> = hoistway_custom::all().iter().map(|kind| kind.info().name).collect();
    names.join(", ")
}

/// The tunables that switch control groups on (1), for elevators that have groups as an option.
const SWITCHES: [&str; 2] = ["groups", "key_type"];

/// The tunable that switches an elevator's control groups on (1) and off (0); `None` if the
/// elevator has no groups, or always has them.
pub fn group_switch(elevator: Kind) -> Option<&'static Tunable> {
    let info = elevator.info();
    info.tunables.iter().find(|tunable| info.groups && SWITCHES.contains(&tunable.name))
}

fn names(tunables: &[Tunable]) -> String {
    if tunables.is_empty() {
        return "it has none".into();
    }
    let names: Vec<&str> = tunables.iter().map(|tunable| tunable.name).collect();
    format!("it has {}", names.join(", "))
}

/// Parses a number in the tunable's unit and checks its range.
fn value_in_unit(value: &str, tunable: &Tunable) -> Result<i64, String> {
    let split = value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len());
    let (number, suffix) = value.split_at(split);
    let (number, suffix) = (number.trim(), suffix.trim().to_ascii_lowercase());
    let label = tunable.unit.label();
    let number: f64 = number.parse().map_err(|_| format!("`{value}` is not a number in {label}"))?;
    let factor = match (tunable.unit, suffix.as_str()) {
        (_, "") => 1.0,
        (Unit::Milliseconds, "ms") => 1.0,
        (Unit::Milliseconds, "us") => 1e-3,
        (Unit::Milliseconds, "s") => 1e3,
        (Unit::Microseconds, "us") => 1.0,
        (Unit::Microseconds, "ms") => 1e3,
        (Unit::Microseconds, "s") => 1e6,
        (Unit::Kibibytes, "k" | "kib") => 1.0,
        (Unit::Kibibytes, "m" | "mib") => 1024.0,
        (Unit::Kibibytes, "g" | "gib") => 1024.0 * 1024.0,
        (_, other) => return Err(format!("`{other}` is no unit of {}, which is in {label}", tunable.name)),
    };
    let scaled = number * factor;
    let whole = scaled.round();
    if (scaled - whole).abs() > 1e-9 {
        return Err(format!("{value} is not a whole number in {label}"));
    }
    if !(tunable.min as f64..=tunable.max as f64).contains(&whole) {
        let range = format!("{} takes {} to {} ({label})", tunable.name, tunable.min, tunable.max);
        return Err(format!("{value} is out of range: {range}"));
    }
    Ok(whole as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_the_tunable_s_unit() {
        assert_eq!(Setting::parse("deadline.read_expire=250ms").unwrap().value, 250);
        assert_eq!(Setting::parse("deadline.read_expire=0.1s").unwrap().value, 100);
        assert_eq!(Setting::parse("deadline.fifo_batch=8").unwrap().value, 8);
    }

    #[test]
    fn unknown_names_are_errors_with_the_near_or_the_known_ones() {
        let elevator = Setting::parse("dedline.fifo_batch=8").unwrap_err().to_string();
        assert!(elevator.contains("no elevator `dedline` (did you mean `deadline`?)"), "{elevator}");
        let tunable = Setting::parse("deadline.fifo_bach=8").unwrap_err().to_string();
        assert!(tunable.contains("deadline has no tunable `fifo_bach`") && tunable.contains("fifo_batch"), "{tunable}");
        let none = Setting::parse("noop.x=8").unwrap_err().to_string();
        assert!(none.contains("it has none"), "{none}");
        let unit = Setting::parse("deadline.fifo_batch=8ms").unwrap_err().to_string();
        assert!(unit.contains("`ms` is no unit of fifo_batch"), "{unit}");
        let range = Setting::parse("deadline.writes_starved=-1000000000000").unwrap_err().to_string();
        assert!(range.contains("takes"), "{range}");
        assert!(Setting::parse("fifo_batch").is_err());
    }

    #[test]
    fn a_typing_error_names_the_nearest() {
        let tunable = Setting::parse_argument("cfq-v3.slice_idel=8").unwrap_err();
        assert!(tunable.ends_with("(did you mean `slice_idle`?)"), "{tunable}");
        let elevator = Setting::parse_argument("cfq-v33.slice_idle=8").unwrap_err();
        assert!(elevator.contains("(did you mean `cfq-v3`?); `hoistway elevators` lists"), "{elevator}");
    }

    #[test]
    fn a_count_may_have_its_word_and_no_other() {
        assert_eq!(Setting::parse_argument("cfq-v3.quantum=4 requests").map(|setting| setting.value), Ok(4));
        assert_eq!(Setting::parse_argument("cfq-v3.quantum=4requests").map(|setting| setting.value), Ok(4));
        assert_eq!(Setting::parse_argument("cfq-v3.slice_idle=4ms").map(|setting| setting.value), Ok(4));
        assert!(Setting::parse_argument("cfq-v3.slice_idle=4requests").is_err());
        assert!(Setting::parse_argument("cfq-v3.quantum=requests").is_err());
    }
}
