//! What is nearest to a name that is none.

/// " (did you mean `x`?)", or nothing when no name is near: one that takes fewer edits to reach
/// than half of its letters.
pub(crate) fn did_you_mean<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> String {
    let typed = typed.to_lowercase();
    names
        .map(|name| (strsim::damerau_levenshtein(&typed, name), name))
        .filter(|(edits, name)| edits * 2 <= name.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map_or_else(String::new, |(_, name)| format!(" (did you mean `{name}`?)"))
}

/// Names with commas between them, each in backticks; "none" without any.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
