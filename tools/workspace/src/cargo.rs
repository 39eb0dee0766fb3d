//! Builds with cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::programs::{find, output, run};
use crate::repository;

/// The cargo that runs this program, started in the root of the workspace.
pub fn command() -> Command {
    command_in(repository::root())
}

/// The cargo that runs this program, started in a directory.
pub fn command_in(directory: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(directory);
    command
}

/// A workspace on this machine.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The directory of its manifest.
    pub root: PathBuf,
    /// The directory into which cargo builds it.
    pub target_directory: PathBuf,
}

impl Workspace {
    /// The workspace of this program.
    pub fn this() -> Result<Workspace> {
        Ok(Workspace { root: repository::root().to_owned(), target_directory: target_directory()? })
    }
}

/// Finds a subcommand of cargo, on the path or where cargo installs programs.
pub fn find_tool(program: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let installed = home.map(|home| home.join("bin").join(program)).filter(|path| path.is_file());
    find(program).or(installed)
}

/// Returns the directory that cargo builds the workspace into.
pub fn target_directory() -> Result<PathBuf> {
    target_directory_of(&repository::root().join("Cargo.toml"))
}

/// Returns the directory that cargo builds the workspace of a manifest into.
pub fn target_directory_of(manifest: &Path) -> Result<PathBuf> {
    let options = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path"];
    let printed = output(command().args(options).arg(manifest))?;
    let metadata: serde_json::Value = serde_json::from_str(&printed).context("the output of cargo metadata")?;
    let directory = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    Ok(PathBuf::from(directory.context("cargo metadata names no target_directory")?))
}

/// Builds programs and examples of the workspace, selected by options of `cargo build`, and returns
/// their directory, which has the examples in `examples/`.
///
/// The crates below them are those of the build of the tests. Cargo selects features for the set of
/// packages and targets that it builds: for one package, or for programs without an example, it
/// would compile many crates again. Therefore an example is always among the targets.
pub fn built(targets: &[&str]) -> Result<PathBuf> {
    if std::env::var_os(ALL_BUILT).is_none() {
        build(targets)?;
    }
    Ok(target_directory()?.join("debug"))
}

/// The variable which says that [`build_all`] has run: processes that run side by side do not wait
/// for one another's cargo then.
pub const ALL_BUILT: &str = "HOISTWAY_ALL_BUILT";

/// Builds all programs and examples of the workspace, and the module for Python, in the
/// configuration of the tests.
pub fn build_all() -> Result<()> {
    build(&["--bins", "--examples"])
}

fn build(targets: &[&str]) -> Result<()> {
    run(command().args(["build", "--quiet", "--workspace", "--example", "worlds"]).args(targets))
}

/// Builds the program in the configuration that the tests use, and returns its path.
pub fn hoistway() -> Result<PathBuf> {
    Ok(built(&["--bin", "hoistway"])?.join("hoistway"))
}

/// Builds the program as packages contain it, and returns its path. Published figures are measured
/// with it.
pub fn packaged() -> Result<PathBuf> {
    run(command().args(["build", "--quiet", "--profile", "dist", "-p", "hoistway"]))?;
    Ok(target_directory()?.join("dist/hoistway"))
}
