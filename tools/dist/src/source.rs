//! The sources of the packages: the workspace with its version and its commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::cargo::Workspace;
use hoistway_workspace::programs;

/// The version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The version of the Debian packages: the second number counts the packages of one version.
pub(crate) const DEBIAN_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// How packages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// As small as possible, for users.
    Small,
    /// In little time, for tests.
    Fast,
}

/// A workspace at a commit.
#[derive(Clone, Debug)]
pub struct Source {
    /// The directories of the workspace.
    pub workspace: Workspace,
    /// The commit and its day, as in `1af454ec0000 2026-11-27`.
    pub commit: String,
    /// The time of the commit in seconds since 1970, which all files of the packages get.
    pub time: u64,
    /// The same time as a line of a Debian changelog has it.
    pub date: String,
    /// How its packages are compressed.
    pub(crate) packing: Packing,
}

impl Source {
    /// Describes a workspace at its checked out commit.
    pub fn of(workspace: Workspace) -> Result<Source> {
        let log = |format: &str| -> Result<String> {
            let mut git = Command::new("git");
            git.args(["log", "-1", "--abbrev=12", "--date=format-local:%a, %d %b %Y %H:%M:%S +0000"]);
            let printed = programs::output(git.arg(format).current_dir(&workspace.root).env("TZ", "UTC"))?;
            Ok(printed.trim().to_owned())
        };
        let time = log("--format=%ct")?.parse().context("the time of the commit")?;
        let (commit, date) = (log("--format=%h %cs")?, log("--format=%cd")?);
        Ok(Source { workspace, commit, time, date, packing: Packing::Small })
    }

    /// The root of the workspace.
    pub fn root(&self) -> &Path {
        &self.workspace.root
    }

    /// A directory below that of cargo, for what packages are made from.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.workspace.target_directory.join("packages").join(name)
    }

    /// Returns true if the directory has changes that are not in the commit.
    pub(crate) fn is_changed(&self) -> Result<bool> {
        let mut git = Command::new("git");
        Ok(!programs::output(git.args(["status", "--porcelain"]).current_dir(self.root()))?.trim().is_empty())
    }

    /// Reads a text of the repository.
    pub(crate) fn text(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.root().join(name)).with_context(|| format!("cannot read {name}"))
    }
}
