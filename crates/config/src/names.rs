//! Suggestions for misspelt names.

pub(crate) use hoistway_units::names::{did_you_mean, suggestion};

/// Joins names with commas, each in backticks; "none" for an empty list.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
