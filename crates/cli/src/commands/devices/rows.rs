//! What is known of the tunables of the kernel's schedulers: from the elevators' own rows, where the names agree.

use hoistway_core::{Kind, Tunable, Unit};
use hoistway_machine::{Row, kernel_tunables};

/// The rows of a scheduler of the kernel's, by its name; none of one that is not among the elevators.
pub fn rows(scheduler: &str) -> Vec<Row> {
    let (Some(names), Some(kind)) = (kernel_tunables(scheduler), Kind::from_name(scheduler)) else { return Vec::new() };
    let rows = kind.info().tunables.iter().filter(|tunable| names.contains(&tunable.name));
    rows.map(row).collect()
}

fn row(tunable: &'static Tunable) -> Row {
    let Tunable { name, unit, default, min, max, meaning, trade_off } = *tunable;
    let unit = match unit {
        Unit::Factor | Unit::Number | Unit::Form | Unit::Times => "",
        unit => unit.label(),
    };
    // The kernel shows how many requests that is, which follows the queue.
    let default = (name != "async_depth").then_some(default);
    Row { name, unit, default, min, max, words: &[], meaning, trade_off }
}

/// What a row takes: "0 or 1", "0 or more", "1 to 9", and words.
pub fn range(row: &Row) -> String {
    match (row.min, row.max) {
        _ if !row.words.is_empty() => row.words.join(", "),
        (0, 0) => String::new(),
        (0, 1) => "0 or 1".to_owned(),
        (min, _) if min <= i64::from(i32::MIN) => "any".to_owned(),
        (min, max) if max >= i64::from(i32::MAX) => format!("{min} or more"),
        (min, max) => format!("{min} to {max}"),
    }
}

/// A value with its unit, if that is more than 0 or 1.
pub fn with_unit(value: &str, row: Option<&Row>) -> String {
    match row.map_or("", |row| row.unit) {
        "" | "0/1" => value.to_owned(),
        "requests" if value == "1" => "1 request".to_owned(),
        unit => format!("{value} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tunable_of_the_kernels_schedulers_is_told_of() {
        for scheduler in ["mq-deadline", "kyber", "bfq"] {
            let mut known: Vec<&str> = rows(scheduler).iter().map(|row| row.name).collect();
            known.sort_unstable();
            assert_eq!(known, kernel_tunables(scheduler).expect("one of the kernel's"), "{scheduler}");
        }
        assert!(rows("none").is_empty() && rows("cfq").is_empty() && rows("other").is_empty());
    }

    #[test]
    fn a_range_tells_a_limit_only_if_there_is_one() {
        let row = |min, max| Row { min, max, ..rows("bfq")[0] };
        assert_eq!(
            [(0, 1), (1, i64::MAX), (-1, 9)].map(|(min, max)| range(&row(min, max))),
            ["0 or 1", "1 or more", "-1 to 9"]
        );
    }
}
