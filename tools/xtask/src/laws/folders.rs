//! The sizes of folders: what stands in one place can be read in one go.

use std::collections::BTreeMap;

use anyhow::Result;
use hoistway_workspace::packages::Package;

/// The maximum number of lines of the files of a folder, with comments and unit tests, without
/// those of the folders in it.
const LINES_MAX: usize = 6_000;

/// Lists the folders of the crates that are too large.
pub fn violations(packages: &[Package]) -> Result<Vec<String>> {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for package in packages {
        for file in package.sources()? {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            *lines.entry(folder.to_owned()).or_default() += file.text.lines().count();
        }
    }
    Ok(too_large(&lines))
}

fn too_large(lines: &BTreeMap<String, usize>) -> Vec<String> {
    let large = lines.iter().filter(|(_, lines)| **lines > LINES_MAX);
    large
        .map(|(folder, lines)| format!("{folder}: its files have {lines} lines; {LINES_MAX} is the most: make folders"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_above_the_limit_is_found() {
        let lines = [("crates/fio/src", LINES_MAX), ("crates/sim/src", LINES_MAX + 1)];
        let found = too_large(&lines.map(|(folder, lines)| (folder.to_owned(), lines)).into());
        assert_eq!(found, ["crates/sim/src: its files have 6001 lines; 6000 is the most: make folders"]);
    }
}
