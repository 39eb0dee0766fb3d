//! Seeds: a number, a range or a list of both.

use toml::de::DeValue;

use crate::value::Value;

/// The maximum number of seeds of a sweep.
const SEEDS_MAX: usize = 1_000_000;

/// Reads the value of the key `seeds`: `5`, `"1-32"` or `[1, 7, "10-19"]`.
///
/// # Errors
/// A sentence with the value and the valid ones.
pub(super) fn read(value: &DeValue<'_>) -> Result<Vec<u64>, String> {
    let mut seeds = Vec::new();
    match value {
        DeValue::Array(list) => list.iter().try_for_each(|one| add(&mut seeds, one.get_ref()))?,
        one => add(&mut seeds, one)?,
    }
    match seeds.len() {
        0 => Err("`seeds` is empty: write at least one seed, as in `seeds = \"1-8\"`".to_owned()),
        1..=SEEDS_MAX => Ok(seeds),
        _ => Err(format!("`seeds` has more than {SEEDS_MAX} seeds")),
    }
}

fn add(seeds: &mut Vec<u64>, value: &DeValue<'_>) -> Result<(), String> {
    let value = Value::read(value);
    let wrong = || {
        let shown = value.as_ref().map_or_else(|| "no seed".to_owned(), |value| format!("`{value}`"));
        format!("`seeds` has {shown}: write a number from 0, a range as in \"1-32\", or a list of both")
    };
    let (first, last) = match &value {
        Some(Value::Int(seed)) => u64::try_from(*seed).map(|seed| (seed, seed)).map_err(|_| wrong())?,
        Some(Value::Text(range)) => {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
                (Ok(first), Ok(last)) if first <= last => (first, last),
                _ => return Err(wrong()),
            }
        }
        _ => return Err(wrong()),
    };
    if last - first >= SEEDS_MAX as u64 {
        return Err(format!("`seeds` has the range {first}-{last}: at most {SEEDS_MAX} seeds"));
    }
    match (first..=last).find(|seed| seeds.contains(seed)) {
        Some(twice) if seeds.len() < 10_000 => Err(format!("`seeds` has {twice} twice")),
        _ => {
            seeds.extend(first..=last);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(text: &str) -> Result<Vec<u64>, String> {
        let table = toml::de::DeTable::parse(text).unwrap();
        read(table.get_ref().get("seeds").unwrap().get_ref())
    }

    #[test]
    fn numbers_ranges_and_lists_are_seeds() {
        assert_eq!(seeds("seeds = 5").unwrap(), [5]);
        assert_eq!(seeds("seeds = \"1-4\"").unwrap(), [1, 2, 3, 4]);
        assert_eq!(seeds("seeds = [1, \"7 - 8\"]").unwrap(), [1, 7, 8]);
    }

    #[test]
    fn other_values_are_refused_with_the_valid_ones() {
        for text in ["seeds = -1", "seeds = \"8-1\"", "seeds = 1.5", "seeds = []", "seeds = [1, \"1-3\"]"] {
            let error = seeds(text).unwrap_err();
            assert!(error.contains("seeds"), "{text}: {error}");
        }
        assert!(seeds("seeds = \"0-18446744073709551615\"").unwrap_err().contains("at most"));
    }
}
