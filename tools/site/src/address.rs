//! Addresses: where a file of the repository is in the site.

/// The folder of pages that show files of the repository.
pub const SOURCES: &str = "source";

/// The address of the page of a document, relative to the root of the site. Documents of `docs` are
/// at the top; a README is the index of its folder.
pub fn of_document(path: &str) -> String {
    let path = match path {
        "docs/README.md" => return "contents.html".to_owned(),
        _ => path.strip_prefix("docs/").unwrap_or(path),
    };
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let name = name.strip_suffix(".md").unwrap_or(name);
    let name = if name == "README" { "index".to_owned() } else { lower(name) };
    if folder.is_empty() { format!("{name}.html") } else { format!("{folder}/{name}.html") }
}

fn lower(name: &str) -> String {
    if name.chars().all(|c| c.is_ascii_uppercase()) { name.to_ascii_lowercase() } else { name.to_owned() }
}

/// The address of a picture or of another file that is copied as it is.
pub fn of_copy(path: &str) -> String {
    path.strip_prefix("docs/").unwrap_or(path).to_owned()
}

/// The address of the page that shows a file.
pub fn of_listing(path: &str) -> String {
    format!("{SOURCES}/{path}.html")
}

/// The address of the page that lists a folder.
pub fn of_folder(path: &str) -> String {
    format!("{SOURCES}/{path}/index.html")
}

/// The path from the page `from` to `to`, both relative to the root of the site.
pub fn between(from: &str, to: &str) -> String {
    let from: Vec<&str> = from.split('/').collect();
    let to_parts: Vec<&str> = to.split('/').collect();
    let folders = from.len() - 1;
    let common = (0..folders.min(to_parts.len() - 1)).take_while(|&i| from[i] == to_parts[i]).count();
    let mut path = "../".repeat(folders - common);
    path.push_str(&to_parts[common..].join("/"));
    path
}

/// Joins the folder of a document with a relative path, and resolves `.` and `..`. Returns None for
/// a path above the root.
pub fn resolve(document: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_addresses() {
        assert_eq!(of_document("docs/compare.md"), "compare.html");
        assert_eq!(of_document("docs/elevators/cfq-v1.md"), "elevators/cfq-v1.html");
        assert_eq!(of_document("examples/slow-disk/README.md"), "examples/slow-disk/index.html");
        assert_eq!(of_document("ARCHITECTURE.md"), "architecture.html");
        assert_eq!(of_document("README.md"), "index.html");
        assert_eq!(of_document("docs/README.md"), "contents.html");
    }

    #[test]
    fn paths_lead_from_page_to_page() {
        assert_eq!(between("compare.html", "elevators/cfq.html"), "elevators/cfq.html");
        assert_eq!(between("elevators/cfq.html", "elevators/bfq.html"), "bfq.html");
        assert_eq!(between("elevators/cfq.html", "compare.html"), "../compare.html");
        assert_eq!(between("a/b/c.html", "a/d/e.html"), "../d/e.html");
    }

    #[test]
    fn relative_paths_are_resolved() {
        assert_eq!(resolve("docs/elevators/cfq.md", "../guest.md").as_deref(), Some("docs/guest.md"));
        assert_eq!(resolve("docs/a.md", "../crates/core").as_deref(), Some("crates/core"));
        assert_eq!(resolve("a.md", "../b"), None);
    }
}
