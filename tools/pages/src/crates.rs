//! The picture and the table of the crates in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::Result;
use hoistway_workspace::packages::Package;

/// The crates of a picture and a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What users get.
    Product,
    /// What only developers run.
    Tools,
}

impl Part {
    /// Returns true if a crate belongs to the part.
    fn contains(self, package: &Package) -> bool {
        package.directory.starts_with("tools/") == (self == Part::Tools)
    }
}

/// Draws the crates of a part as a Mermaid diagram. An edge leads from a crate to one that it
/// depends on; a crate of the other part has round corners.
///
/// Edges that follow from others are left out: if A depends on B and C, and B depends on C, the
/// edge from A to C is not drawn.
pub fn picture(packages: &[Package], part: Part) -> String {
    let needs: BTreeMap<&str, BTreeSet<&str>> = packages
        .iter()
        .map(|package| (package.name.as_str(), package.dependencies.iter().map(String::as_str).collect()))
        .collect();
    let own: BTreeSet<&str> =
        packages.iter().filter(|package| part.contains(package)).map(|package| package.name.as_str()).collect();
    let mut text = "```mermaid\nflowchart TD\n".to_owned();
    for name in &own {
        let direct = &needs[name];
        if direct.is_empty() && !needs.values().any(|others| others.contains(name)) {
            let _ = writeln!(text, "    {name}");
        }
        for other in direct {
            let implied = direct.iter().any(|between| between != other && reaches(&needs, between, other));
            let round = if own.contains(other) { String::new() } else { format!("([{other}])") };
            if !implied {
                let _ = writeln!(text, "    {name} --> {other}{round}");
            }
        }
    }
    text.push_str("```");
    text
}

/// Returns true if a crate depends on another one, directly or through others. The crates have no
/// cycles.
fn reaches(needs: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    needs.get(from).is_some_and(|direct| direct.iter().any(|next| *next == to || reaches(needs, next, to)))
}

/// Returns a table with a row for each crate of a part: its name, its description, its lines of
/// code, and the name under which it is published.
pub fn table(packages: &[Package], part: Part) -> Result<String> {
    let mut text = "| crate | is | lines | published as |\n|---|---|---|---|\n".to_owned();
    for package in packages.iter().filter(|package| part.contains(package)) {
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

    fn package(directory: &str, dependencies: &[&str]) -> Package {
        Package {
            name: directory.rsplit('/').next().unwrap_or_default().to_owned(),
            directory: directory.to_owned(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
            ..Package::default()
        }
    }

    #[test]
    fn edges_that_follow_from_others_are_left_out() {
        let packages = [("crates/a", &["b", "c"][..]), ("crates/b", &["c"]), ("crates/c", &[]), ("crates/d", &[])];
        let packages = packages.map(|(directory, dependencies)| package(directory, dependencies));
        assert_eq!(picture(&packages, Part::Product), "```mermaid\nflowchart TD\n    a --> b\n    b --> c\n    d\n```");
    }

    #[test]
    fn product_and_tools_are_drawn_apart() {
        let packages = [("crates/a", &[][..]), ("tools/t", &["a", "u"]), ("tools/u", &[])];
        let packages = packages.map(|(directory, dependencies)| package(directory, dependencies));
        assert_eq!(picture(&packages, Part::Product), "```mermaid\nflowchart TD\n```");
        assert_eq!(picture(&packages, Part::Tools), "```mermaid\nflowchart TD\n    t --> a([a])\n    t --> u\n```");
        let tools = table(&packages, Part::Tools).expect_err("these crates have no sources").to_string();
        assert!(tools.contains("tools/t"), "{tools}");
    }
}
