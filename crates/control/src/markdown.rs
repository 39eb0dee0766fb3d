//! The tree as a Markdown table, for docs/serve-control.md.

use std::fmt::Write;

use crate::leaves::LEAVES;

/// Returns all paths as a Markdown table.
pub fn table() -> String {
    let mut table = String::from("| path | | unit | meaning |\n|---|---|---|---|\n");
    for leaf in LEAVES {
        let _ = writeln!(table, "| `{}` | {} | {} | {} |", leaf.path, leaf.access().label(), leaf.unit, leaf.meaning);
    }
    table
}
