//! Names that a mistyped name was probably meant to be.
//!
//! All commands and configuration files use these functions, so that elevators, drives, keys and
//! tunables are suggested by the same rules.

use super::sort;

/// The greatest number of suggested names.
const SUGGESTIONS_MAX: usize = 5;
/// The longest text that is compared: the comparison takes time quadratic in the length.
const LETTERS_MAX: usize = 64;
/// The minimum number of letters of a part of a name that is searched for in other names.
const PART_LETTERS_MIN: usize = 3;

/// A rule by which a name is near: from the number of differing letters, and the name.
type Rule<'r> = &'r dyn Fn(usize, &str) -> bool;

/// Returns the names near a mistyped one, the nearest first; at most five.
///
/// A name is near if few letters differ (one in four, at least one), or if it contains the typed
/// text: `ssd-nvme-tlc` is near `nvme`. Without such a name, names are near that contain a part of
/// the typed text (`samsung-nvme`) or are contained in it, and without those the name with the
/// fewest differing letters, if they are at most half of its letters. Upper and lower case of
/// ASCII letters are equal.
pub fn near<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    nearest(typed, names.into_iter().collect())
}

fn nearest<'a>(typed: &str, names: Vec<&'a str>) -> Vec<&'a str> {
    let typed = typed.trim().to_ascii_lowercase();
    let letters = typed.chars().count();
    if typed.is_empty() || letters > LETTERS_MAX {
        return Vec::new();
    }
    let mut all: Vec<(usize, &str)> =
        names.into_iter().map(|name| (strsim::damerau_levenshtein(&typed, &name.to_ascii_lowercase()), name)).collect();
    sort::by_key(&mut all, |(edits, _)| *edits as u64);
    let few = (letters / 4).max(1);
    let is_long = |text: &str| text.chars().count() >= PART_LETTERS_MIN;
    let parts: Vec<&str> = typed.split(|letter: char| !letter.is_alphanumeric()).filter(|part| is_long(part)).collect();
    let shares_a_part =
        |name: &str| parts.iter().any(|part| name.contains(part)) || (is_long(name) && typed.contains(name));
    let least = all.first().map_or(0, |(edits, _)| *edits);
    let rules: [Rule<'_>; 3] = [
        &|edits, name| {
            (edits <= few && edits < name.chars().count())
                || (letters >= 2 && name.to_ascii_lowercase().contains(&typed))
        },
        &|_, name| shares_a_part(&name.to_ascii_lowercase()),
        &|edits, name| edits == least && edits * 2 <= name.chars().count(),
    ];
    let found = |rule: Rule<'_>| -> Vec<&'a str> {
        all.iter().filter(|(edits, name)| rule(*edits, name)).map(|(_, name)| *name).take(SUGGESTIONS_MAX).collect()
    };
    rules.into_iter().map(found).find(|near| !near.is_empty()).unwrap_or_default()
}

/// Returns " (did you mean `x` or `y`?)" for the names near a mistyped one; empty without any.
pub fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = near(typed, names).iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { String::new() } else { format!(" (did you mean {}?)", list(&quoted, "or")) }
}

/// Returns a name or sentence with a capital first letter.
///
/// ```
/// assert_eq!(hoistway_units::names::capitalised("throughput"), "Throughput");
/// ```
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Joins the parts of a list with commas, and the last one with a conjunction: "a", "a and b",
/// "a, b and c".
pub fn list(parts: &[String], conjunction: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

/// Returns the end of an error about a name that is not in a long list: the names near it, and the
/// command that prints the list.
///
/// ```
/// use hoistway_units::names::suggestion;
/// let end = suggestion("nvme", ["ssd-nvme-tlc", "cmr-8tb"], "hoistway drives");
/// assert_eq!(end, " (did you mean `ssd-nvme-tlc`?); `hoistway drives` lists all 2");
/// ```
pub fn suggestion<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>, command: &str) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let near = did_you_mean(typed, names.iter().copied());
    format!("{near}; `{command}` lists all {}", names.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVES: [&str; 9] = [
        "sata-7200-2006",
        "cmr-4tb",
        "cmr-8tb",
        "cmr-20tb",
        "ssd-sata-consumer",
        "ssd-sata-enterprise",
        "ssd-nvme-tlc",
        "ssd-nvme-tlc-mixed",
        "null",
    ];

    #[test]
    fn a_part_of_a_name_finds_all_names_with_it() {
        assert_eq!(near("nvme", DRIVES), ["ssd-nvme-tlc", "ssd-nvme-tlc-mixed"]);
        assert_eq!(near("SATA", DRIVES), ["sata-7200-2006", "ssd-sata-consumer", "ssd-sata-enterprise"]);
        assert_eq!(near("samsung-nvme-980", DRIVES), ["ssd-nvme-tlc", "ssd-nvme-tlc-mixed"]);
    }

    #[test]
    fn a_typing_error_finds_the_nearest_names_first() {
        assert_eq!(near("cmr-8bt", DRIVES)[0], "cmr-8tb");
        assert_eq!(near("cmr-5tb", DRIVES), ["cmr-4tb", "cmr-8tb"]);
        assert_eq!(near("dedline", ["noop", "deadline"]), ["deadline"]);
        assert_eq!(near("stat-7200-2005", DRIVES), ["sata-7200-2006"]);
    }

    #[test]
    fn a_name_unlike_all_others_finds_none() {
        assert_eq!(near("zzzzzzzz", DRIVES), [""; 0]);
        assert_eq!(near("", DRIVES), [""; 0]);
        assert_eq!(near(&"a".repeat(100_000), DRIVES), [""; 0]);
        assert_eq!(did_you_mean("colour", ["weight", "class"]), "");
    }

    #[test]
    fn suggestions_are_few_and_joined_in_a_sentence() {
        let names: Vec<String> = (0..30).map(|number| format!("drive-{number}")).collect();
        assert_eq!(near("drive", names.iter().map(String::as_str)).len(), SUGGESTIONS_MAX);
        assert_eq!(did_you_mean("cmr-5tb", DRIVES), " (did you mean `cmr-4tb` or `cmr-8tb`?)");
        assert_eq!(did_you_mean("tb", DRIVES), " (did you mean `cmr-4tb`, `cmr-8tb` or `cmr-20tb`?)");
    }
}
