//! The table of tasks in CONTRIBUTING.md.

use clap::CommandFactory;

/// Returns a table with a row for each task: its command and the first line of its help.
pub fn table() -> String {
    let mut table = "| command | does |\n|---|---|\n".to_owned();
    for task in crate::Arguments::command().get_subcommands() {
        let about = task.get_about().map(ToString::to_string).unwrap_or_default();
        table.push_str(&format!("| `cargo xtask {}` | {about} |\n", task.get_name()));
    }
    table
}
