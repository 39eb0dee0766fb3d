//! The keys of a drive file, for the reference in docs/drive-files.md. `raw` declares them.

use std::fmt::Write as _;

use super::raw::TABLES;

/// A table of a drive file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTable {
    /// The name of the table, in brackets if it can occur many times; empty for the file itself.
    pub heading: &'static str,
    /// The description of the table.
    pub about: &'static str,
    /// The keys of the table.
    pub keys: &'static [Key],
}

/// A key of a drive file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name of the key.
    pub name: &'static str,
    /// The values that the key takes.
    pub takes: &'static str,
    /// The default.
    pub default: &'static str,
    /// The meaning of the key.
    pub meaning: &'static str,
}

/// Lists all tables of a drive file with their keys.
pub fn key_tables() -> &'static [KeyTable] {
    &TABLES
}

/// Renders all keys as Markdown: the reference of docs/drive-files.md.
pub fn markdown() -> String {
    let mut text = String::new();
    for table in key_tables() {
        let heading = if table.heading.is_empty() { "The file".to_owned() } else { format!("`[{}]`", table.heading) };
        let about = table.about.trim();
        let _ = write!(text, "## {heading}\n\n");
        if !table.heading.is_empty() {
            let _ = write!(text, "{about}\n\n");
        }
        text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        for key in table.keys {
            let _ = writeln!(text, "| `{}` | {} | {} | {} |", key.name, key.takes, key.default, key.meaning.trim());
        }
        text.push('\n');
    }
    text
}
