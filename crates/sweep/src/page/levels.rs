//! The values of a key in the results, as levels in a sensible order.

use std::collections::BTreeMap;

use hoistway_units::{TimeUnit, parse_bytes, parse_time_ns};

use crate::columns::Cells;

/// The greatest number of levels of a key of numbers; more values are put into ranges.
const NUMBERS_MAX: usize = 12;
/// The number of ranges.
const RANGES: usize = 8;
/// The greatest number of levels of a key of names; the rest is one level.
pub const NAMES_MAX: usize = 24;

/// The levels of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// The name of the column.
    pub key: String,
    /// The values, or ranges of them, in ascending order.
    pub names: Vec<String>,
    /// The level of each row; `None` where the key does not apply.
    pub of_rows: Vec<Option<usize>>,
}

impl Levels {
    /// The levels of the rows for which `counts` is true; `None` if they have fewer than two.
    pub fn of(key: &str, cells: &Cells, counts: &[bool]) -> Option<Levels> {
        let rows = || (0..cells.len()).filter(|row| counts[*row]);
        let numbers: Vec<f64> = rows().filter_map(|row| cells.number(row)).collect();
        let levels = if numbers.is_empty() {
            Levels::of_names(key, cells, counts)
        } else {
            Levels::of_numbers(key, cells, counts, numbers)
        };
        (levels.names.len() > 1).then_some(levels)
    }

    fn of_names(key: &str, cells: &Cells, counts: &[bool]) -> Levels {
        let text = |row: usize| cells.text(row).filter(|_| counts[row]);
        let mut names: Vec<String> = (0..cells.len()).filter_map(text).collect();
        names.sort_by(|one, other| order(key, one).cmp(&order(key, other)));
        names.dedup();
        let more = names.len().saturating_sub(NAMES_MAX);
        let at: BTreeMap<String, usize> =
            names.iter().enumerate().map(|(index, name)| (name.clone(), index.min(NAMES_MAX - 1))).collect();
        if more > 0 {
            names.truncate(NAMES_MAX - 1);
            names.push(format!("{} others", more + 1));
        }
        let of_rows = (0..cells.len()).map(|row| at.get(&text(row)?).copied()).collect();
        Levels { key: key.to_owned(), names, of_rows }
    }

    fn of_numbers(key: &str, cells: &Cells, counts: &[bool], mut numbers: Vec<f64>) -> Levels {
        numbers.sort_by(f64::total_cmp);
        let mut distinct = numbers.clone();
        distinct.dedup();
        // The least value of each level.
        let starts: Vec<f64> = if distinct.len() <= NUMBERS_MAX {
            distinct.clone()
        } else {
            let mut starts: Vec<f64> = (0..RANGES).map(|range| numbers[range * numbers.len() / RANGES]).collect();
            starts.dedup();
            starts
        };
        let name = |(index, start): (usize, &f64)| {
            let end = starts.get(index + 1).copied().unwrap_or(f64::INFINITY);
            let last = distinct[..distinct.partition_point(|value| *value < end)].last().copied().unwrap_or(*start);
            if last > *start { format!("{} to {}", shown(*start), shown(last)) } else { shown(*start) }
        };
        let names = starts.iter().enumerate().map(name).collect();
        let level = |row: usize| {
            let value = cells.number(row).filter(|_| counts[row])?;
            starts.partition_point(|start| *start <= value).checked_sub(1)
        };
        Levels { key: key.to_owned(), names, of_rows: (0..cells.len()).map(level).collect() }
    }
}

/// A number as a level's name: at most four significant digits, as for a drawn random number.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return value.to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The position of a name: elevators as they are listed, sizes and times by their value, other
/// names alphabetically.
fn order<'a>(key: &str, name: &'a str) -> (u64, &'a str) {
    if key == "elevator" {
        let position = hoistway_custom::all().iter().position(|kind| kind.info().name == name);
        return (position.map_or(u64::MAX, |position| position as u64), name);
    }
    let size = parse_bytes(name).ok().or_else(|| parse_time_ns(name, TimeUnit::Seconds).ok());
    (size.unwrap_or(u64::MAX), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(key: &str, cells: &Cells) -> Levels {
        Levels::of(key, cells, &vec![true; cells.len()]).expect("two levels")
    }

    fn texts(names: &[&str]) -> Cells {
        Cells::Text(names.iter().map(|name| Some((*name).to_owned())).collect())
    }

    #[test]
    fn sizes_are_in_order_and_elevators_as_listed() {
        assert_eq!(levels("job.a.bs", &texts(&["64k", "4k", "1m"])).names, ["4k", "64k", "1m"]);
        assert_eq!(levels("elevator", &texts(&["cfq-v3", "bfq", "noop"])).names, ["noop", "cfq-v3", "bfq"]);
    }

    #[test]
    fn many_numbers_are_put_into_ranges_of_equal_counts() {
        let found = levels("x", &Cells::Int((0..80).map(Some).collect()));
        assert_eq!(found.names.len(), RANGES);
        assert_eq!((found.names[0].as_str(), found.names[7].as_str()), ("0 to 9", "70 to 79"));
        assert!((0..RANGES).all(|level| found.of_rows.iter().filter(|of| **of == Some(level)).count() == 10));
    }

    #[test]
    fn a_key_with_one_value_varies_not_and_rows_that_do_not_count_have_no_level() {
        let cells = Cells::Float(vec![Some(0.5), Some(2.0), None]);
        assert_eq!(Levels::of("x", &cells, &[true, false, true]), None);
        let found = levels("x", &cells);
        assert_eq!(
            (found.names, found.of_rows),
            (vec!["0.5".to_owned(), "2".to_owned()], vec![Some(0), Some(1), None])
        );
    }

    #[test]
    fn many_names_share_a_level() {
        let names: Vec<String> = (0..30).map(|index| format!("name-{index:02}")).collect();
        let found = levels("drive", &Cells::Text(names.into_iter().map(Some).collect()));
        assert_eq!((found.names.len(), found.names[23].as_str(), found.of_rows[29]), (24, "7 others", Some(23)));
    }
}
