//! References that lead nowhere: links between documents, and packages from other registries.

use std::path::Path;

use hoistway_workspace::repository::File;

/// Finds packages in a lock file that do not come from crates.io.
pub fn foreign_sources(file: &File) -> Vec<String> {
    let canonical = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let foreign = file.text.lines().enumerate().filter(|(_, line)| line.starts_with("source = ") && *line != canonical);
    foreign.map(|(index, line)| format!("{}:{}: {line} is not crates.io", file.path, index + 1)).collect()
}

/// Finds links to files that do not exist. `exists` takes paths from the root.
pub fn dead_links(file: &File, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let directory = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut dead = Vec::new();
    let mut in_code = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split(['#', ' ']).next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !exists(&directory.join(target)) {
                dead.push(format!("{}:{}: the link to {target} leads nowhere", file.path, index + 1));
            }
        }
    }
    dead
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn dead_links_are_found_from_the_folder_of_the_file() {
        let text = "[a](b.md) [c](../d.md#x) [e](https://f) [g](#h)\n```\n[i](j)\n```";
        let found = dead_links(&file("docs/a.md", text), &|path| path == Path::new("docs/b.md"));
        assert_eq!(found, ["docs/a.md:1: the link to ../d.md leads nowhere"]);
    }

    #[test]
    fn only_crates_io_is_a_source() {
        let text = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"registry+https://example.org/\"";
        assert_eq!(foreign_sources(&file("Cargo.lock", text)).len(), 1);
    }
}
