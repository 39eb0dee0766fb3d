//! Suggestions for misspelt names.

/// Returns " (did you mean `x`?)" for the nearest name, or an empty text. A name is near if it
/// takes edits of at most half of its letters.
pub(crate) fn did_you_mean<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> String {
    let typed = typed.to_lowercase();
    names
        .map(|name| (strsim::damerau_levenshtein(&typed, name), name))
        .filter(|(edits, name)| edits * 2 <= name.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map_or_else(String::new, |(_, name)| format!(" (did you mean `{name}`?)"))
}

/// Joins names with commas, each in backticks; "none" for an empty list.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
