//! The npm packages of the repository: their directories, their installation, and the programs that
//! run in them.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::{repository, tools};

/// The package of the playground. It also has the tests of pages in a browser.
pub const PLAYGROUND: &str = "web";
/// The package that draws the dashboard. It also uses packages of [`PLAYGROUND`].
pub const DASHBOARD: &str = "web/dashboard";

/// Installs the packages of the lock file in a directory, unless they are.
pub fn install_packages(directory: &str) -> Result<()> {
    let path = repository::root().join(directory);
    let changed = |file: &str| fs::metadata(path.join(file)).and_then(|found| found.modified()).ok();
    match (changed("node_modules/.package-lock.json"), changed("package-lock.json")) {
        (Some(installed), Some(wanted)) if installed >= wanted => Ok(()),
        _ => tools::run(program(directory, "npm").args(["ci", "--silent", "--no-audit", "--no-fund"])),
    }
}

/// A program that starts in a directory of the repository.
pub fn program(directory: &str, name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(repository::root().join(directory));
    command
}
