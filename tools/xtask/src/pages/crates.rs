//! The picture and the table of the crates in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::Result;

use crate::laws::Package;

/// Draws the crates as a Mermaid diagram. An arrow points from a crate to one that it depends on.
///
/// Arrows that follow from others are left out: if A depends on B and C, and B depends on C, the
/// arrow from A to C is not drawn.
pub fn picture(packages: &[Package]) -> String {
    let needs: BTreeMap<&str, BTreeSet<&str>> = packages
        .iter()
        .map(|package| (package.name.as_str(), package.dependencies.iter().map(String::as_str).collect()))
        .collect();
    let mut text = "```mermaid\nflowchart TD\n".to_owned();
    for (name, direct) in &needs {
        if direct.is_empty() && !needs.values().any(|others| others.contains(name)) {
            let _ = writeln!(text, "    {name}");
        }
        for other in direct {
            let implied = direct.iter().any(|between| between != other && reaches(&needs, between, other));
            if !implied {
                let _ = writeln!(text, "    {name} --> {other}");
            }
        }
    }
    text.push_str("```");
    text
}

/// Returns true if a crate depends on another one, directly or through others. The crates have no
/// circles.
fn reaches(needs: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    needs.get(from).is_some_and(|direct| direct.iter().any(|next| *next == to || reaches(needs, next, to)))
}

/// Returns a table with a row for each crate: its name, its description, its lines of code, and the
/// name under which it is published.
pub fn table(packages: &[Package]) -> Result<String> {
    let mut text = "| crate | is | lines | published as |\n|---|---|---|---|\n".to_owned();
    for package in packages {
        let lines: usize = package.sources()?.iter().map(|file| file.text.lines().count()).sum();
        // To the nearest thousand, so that the table does not change with every commit.
        let thousands = (lines + 500) / 1000;
        let size = if thousands == 0 { "< 1,000".to_owned() } else { format!("{thousands},000") };
        let published = if package.is_published { format!("`{}`", package.full_name) } else { "internal".to_owned() };
        let Package { name, directory, description, .. } = package;
        let _ = writeln!(text, "| [`{name}`]({directory}) | {description} | {size} | {published} |");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_that_follow_from_others_are_left_out() {
        let package = |name: &str, dependencies: &[&str]| Package {
            name: name.to_owned(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
            ..Package::default()
        };
        let drawn = picture(&[package("a", &["b", "c"]), package("b", &["c"]), package("c", &[]), package("d", &[])]);
        assert_eq!(drawn, "```mermaid\nflowchart TD\n    a --> b\n    b --> c\n    d\n```");
    }
}
