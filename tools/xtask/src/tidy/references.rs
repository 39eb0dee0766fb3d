//! References that lead nowhere: links between documents, files that the head of a Rust file names,
//! and packages from other registries.

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

/// Finds files and folders that the page at the head of a Rust file names and that do not exist:
/// texts in backticks that end in `.rs` or with a slash. They count from `src` of the crate, from
/// the folder of the file, from the crate, from the root, or from the folder that the line names
/// before them. `exists` takes paths from the root.
pub fn dead_names(file: &File, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let directory = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let is_inside = |part: &&str| ["src", "tests", "examples"].contains(part);
    let end = file.path.split('/').take_while(|part| !is_inside(part)).map(|part| part.len() + 1).sum::<usize>();
    let package = Path::new(file.path.get(..end).unwrap_or_default());
    let mut dead = Vec::new();
    let mut in_code = false;
    for (index, line) in file.text.lines().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("//!") else { continue };
        in_code ^= text.trim_start().starts_with("```");
        let mut named_folder = package.join("src");
        for name in text.split('`').skip(1).step_by(2).filter(|name| !in_code && is_place(name)) {
            let folders = [&package.join("src"), directory, package, Path::new(""), &named_folder];
            match folders.iter().map(|folder| folder.join(name)).find(|place| exists(place)) {
                Some(place) if name.ends_with('/') => named_folder = place,
                Some(_) => {}
                None => dead.push(format!("{}:{}: there is no {name}", file.path, index + 1)),
            }
        }
    }
    dead
}

/// Returns true for the path of a Rust file or of a folder, unless it is one of the system's.
fn is_place(name: &str) -> bool {
    let is_path = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    is_path && !name.starts_with('/') && (name.ends_with(".rs") || name.ends_with('/'))
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
    fn names_of_files_at_the_head_of_a_file_are_found_from_its_folder_its_crate_and_the_root() {
        let there = ["crates/a/src/b/mod.rs", "crates/a/src/b/c.rs", "crates/a/src/b/", "crates/a/tests/d.rs", "docs/"];
        let exists = |path: &Path| there.iter().any(|known| Path::new(known) == path);
        let found = |text: &str| dead_names(&file("crates/a/src/b/mod.rs", text), &exists);
        for good in [
            "//! `c.rs`, `b/c.rs`, `b/`, `tests/d.rs`, `docs/`, and `crates/a/src/b/c.rs`",
            "//! ```text\n//! `none.rs`\n//! ```",
            "// `none.rs`\n/// `none.rs`",
            "//! `a/b`, `x * none.rs`, `/sys/block/`, none.rs",
        ] {
            assert_eq!(found(good), [""; 0], "{good}");
        }
        assert_eq!(found("\n//! `c.rs` and `none.rs`"), ["crates/a/src/b/mod.rs:2: there is no none.rs"]);
        assert_eq!(found("//! `d.rs`, `a/`").len(), 2);
        let head = file("crates/a/src/lib.rs", "//! `b/`: `c.rs`, `d.rs`\n//! `c.rs`");
        let expected = ["crates/a/src/lib.rs:1: there is no d.rs", "crates/a/src/lib.rs:2: there is no c.rs"];
        assert_eq!(dead_names(&head, &exists), expected);
    }

    #[test]
    fn only_crates_io_is_a_source() {
        let text = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"registry+https://example.org/\"";
        assert_eq!(foreign_sources(&file("Cargo.lock", text)).len(), 1);
    }
}
