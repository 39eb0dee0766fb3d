//! The tables of tunables in docs/elevators, which `hoistway elevators NAME --markdown` prints.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::{cargo, programs, repository};

/// The beginning of the table on each page.
const HEADER: &str = "| tunable |";

/// Rewrites the tables that differ.
pub fn write() -> Result<()> {
    let folder = repository::root().join("docs/elevators");
    for entry in std::fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        bring_up_to_date(&path, &printed(name)?).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

/// Returns the table that the command prints for an elevator.
fn printed(name: &str) -> Result<String> {
    programs::output(Command::new(cargo::hoistway()?).args(["elevators", name, "--markdown"]))
}

fn bring_up_to_date(path: &Path, table: &str) -> Result<()> {
    let page = std::fs::read_to_string(path)?;
    let new = with_table(&page, table);
    if new != page {
        std::fs::write(path, new)?;
        println!("docs/elevators/{} has a new table", path.file_name().unwrap_or_default().display());
    }
    Ok(())
}

/// Replaces the table of a page. A page without a table is not changed.
fn with_table(page: &str, table: &str) -> String {
    let (mut new, mut in_table) = (String::new(), false);
    for line in page.split_inclusive('\n') {
        if line.starts_with(HEADER) {
            in_table = true;
            new.push_str(table);
        }
        in_table = in_table && line.starts_with('|');
        if !in_table {
            new.push_str(line);
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_of_tunables_is_replaced() {
        let page = "## Tunables\n\n| tunable | is |\n|---|---|\n| a | b |\n\nMore.\n\n| level | 0 |\n";
        let new = with_table(page, "| tunable | new |\n");
        assert_eq!(new, "## Tunables\n\n| tunable | new |\n\nMore.\n\n| level | 0 |\n");
        assert_eq!(with_table("None.\n", "None.\n"), "None.\n");
    }
}
