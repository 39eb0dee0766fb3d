//! The packages of the workspace, as `cargo metadata` lists them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::repository::{self, File};
use crate::{cargo, programs};

/// The prefix of the names of all packages of the workspace except [`PROGRAM`].
const PREFIX: &str = "hoistway-";
/// The package of the program, whose short name is `cli`.
const PROGRAM: &str = "hoistway";

/// A package of the workspace.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// The short name: without `hoistway-`, and `cli` for the program.
    pub name: String,
    /// The name in its manifest.
    pub full_name: String,
    /// True if it is published.
    pub is_published: bool,
    /// The description in its manifest.
    pub description: String,
    /// The directory relative to the root of the repository, for example `crates/core`.
    pub directory: String,
    /// The packages of the workspace that its library, program or build script needs, by short
    /// name, sorted.
    pub dependencies: Vec<String>,
    /// The packages of the workspace that only its tests and examples need, by short name, sorted.
    pub dev_dependencies: Vec<String>,
}

impl Package {
    /// Reads the Rust files below `src`, unit tests included.
    pub fn sources(&self) -> Result<Vec<File>> {
        repository::rust_files(&format!("{}/src", self.directory))
    }
}

/// Lists the packages of the workspace, sorted by name.
pub fn packages() -> Result<Vec<Package>> {
    let printed = programs::output(cargo::command().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&printed).context("the output of cargo metadata")?;
    let listed = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut packages: Vec<Package> = listed.iter().map(parse).collect::<Result<_>>()?;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

/// Reads a package from the output of `cargo metadata`.
fn parse(package: &Value) -> Result<Package> {
    let full_name = package["name"].as_str().context("a package without a name")?;
    let manifest = PathBuf::from(package["manifest_path"].as_str().context("a package without a manifest")?);
    let root = repository::root().canonicalize().context("the root of the repository")?;
    let directory = manifest.parent().and_then(|path| path.strip_prefix(&root).ok());
    let directory = directory.context("a manifest outside the repository")?;
    let all = package["dependencies"].as_array().context("a package without a list of dependencies")?;
    let short_names = |is_dev: bool| {
        let wanted = all.iter().filter(|one| (one["kind"].as_str() == Some("dev")) == is_dev);
        let mut names: Vec<String> = wanted.filter_map(|one| short_name(one["name"].as_str()?)).collect();
        names.sort();
        names.dedup();
        names
    };
    Ok(Package {
        name: short_name(full_name).unwrap_or_else(|| full_name.to_owned()),
        full_name: full_name.to_owned(),
        is_published: package["publish"].is_null(),
        description: package["description"].as_str().unwrap_or_default().to_owned(),
        directory: directory.to_string_lossy().into_owned(),
        dependencies: short_names(false),
        dev_dependencies: short_names(true),
    })
}

/// Returns the short name of a package of the workspace; `None` for other packages.
fn short_name(name: &str) -> Option<String> {
    let name = if name == PROGRAM { "cli" } else { name.strip_prefix(PREFIX)? };
    Some(name.to_owned())
}
