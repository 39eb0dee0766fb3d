//! The directories of the repository that have npm packages, and the programs that run in them.

use std::process::Command;

use crate::repository;

/// The package of the playground. It also has the tests of pages in a browser.
pub const PLAYGROUND: &str = "web";
/// The package that draws the dashboard. It also uses packages of [`PLAYGROUND`].
pub const DASHBOARD: &str = "web/dashboard";

/// A program that starts in a directory of the repository.
pub fn program(directory: &str, name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(repository::root().join(directory));
    command
}
