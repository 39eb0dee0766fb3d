//! The crates of the workspace as their manifests describe them, and what a published one must
//! have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hoistway_workspace::{cargo, programs};
use serde_json::Value;

/// The maximum numbers of keywords and of categories that crates.io accepts.
const KEYWORDS_MAX: usize = 5;

/// A crate of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crate {
    /// The name, for example `hoistway-core`.
    pub name: String,
    /// The version.
    pub version: String,
    /// The directory of its manifest.
    pub directory: PathBuf,
    /// True if it is published.
    pub is_published: bool,
    /// True if it has a library.
    pub has_library: bool,
    /// The crates of the workspace that its package depends on, those of tests with a version
    /// included. The value is the required version, or `*` without one.
    pub dependencies: BTreeMap<String, String>,
    /// The fields of the manifest that a published crate needs and this one has not.
    missing: Vec<String>,
}

/// The crates of the workspace, and where it is.
#[derive(Clone, Debug)]
pub struct Crates {
    /// The root of the repository.
    pub root: PathBuf,
    /// The directory into which cargo builds.
    pub target: PathBuf,
    /// The crates, sorted by name.
    pub crates: Vec<Crate>,
}

impl Crates {
    /// Reads the manifests of the workspace at `root`.
    ///
    /// # Errors
    /// `cargo metadata` fails.
    pub fn read(root: &Path) -> Result<Crates> {
        let arguments = ["metadata", "--no-deps", "--format-version", "1"];
        let printed = programs::output(cargo::command_in(root).args(arguments))?;
        let metadata: Value = serde_json::from_str(&printed).context("the output of cargo metadata")?;
        let listed = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        let mut crates: Vec<Crate> = listed.iter().map(read).collect::<Result<_>>()?;
        crates.sort_by(|a, b| a.name.cmp(&b.name));
        let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
        Ok(Crates { root: root.to_owned(), target: target.into(), crates })
    }

    /// Returns the published crates in the order in which they can be published: a crate comes
    /// after all that it depends on.
    pub fn order(&self) -> Vec<&Crate> {
        let mut open: Vec<&Crate> = self.crates.iter().filter(|one| one.is_published).collect();
        let mut ordered: Vec<&Crate> = Vec::new();
        while !open.is_empty() {
            let names: BTreeSet<&str> = open.iter().map(|one| one.name.as_str()).collect();
            let is_ready = |one: &&Crate| !one.dependencies.keys().any(|name| names.contains(name.as_str()));
            let (ready, waiting): (Vec<&Crate>, Vec<&Crate>) = open.iter().copied().partition(is_ready);
            // Cargo refuses circles, so there is a first one.
            if ready.is_empty() {
                break;
            }
            ordered.extend(ready);
            open = waiting;
        }
        ordered
    }

    /// Lists what keeps the published crates from being published.
    pub fn violations(&self) -> Vec<String> {
        let known: BTreeMap<&str, &Crate> = self.crates.iter().map(|one| (one.name.as_str(), one)).collect();
        let published = self.crates.iter().filter(|one| one.is_published);
        published.flat_map(|one| violations(one, &known)).collect()
    }
}

fn violations(one: &Crate, known: &BTreeMap<&str, &Crate>) -> Vec<String> {
    let name = &one.name;
    let mut found: Vec<String> = one.missing.iter().map(|what| format!("{name}: {what}")).collect();
    for (dependency, required) in &one.dependencies {
        let Some(other) = known.get(dependency.as_str()) else { continue };
        if !other.is_published {
            found.push(format!(
                "{name}: depends on {dependency}, which has `publish = false`; publish both or leave one out"
            ));
        } else if *required != format!("^{}", other.version) {
            found.push(format!(
                "{name}: requires {dependency} {required}, but the workspace has {}: \
                 set `version = \"{}\"` in [workspace.dependencies]",
                other.version, other.version
            ));
        }
    }
    found
}

fn read(package: &Value) -> Result<Crate> {
    let name = package["name"].as_str().context("a package without a name")?.to_owned();
    let manifest = PathBuf::from(package["manifest_path"].as_str().context("a package without a manifest")?);
    let directory = manifest.parent().context("a manifest without a directory")?.to_owned();
    // `publish = false` is an empty list of registries.
    let is_published = package["publish"].as_array().is_none_or(|registries| !registries.is_empty());
    let of_workspace = |one: &&Value| one["path"].is_string();
    // A dependency of tests without a version is not in the package.
    let is_packaged = |one: &&Value| one["kind"].as_str() != Some("dev") || one["req"].as_str() != Some("*");
    let all = package["dependencies"].as_array().context("a package without a list of dependencies")?;
    let dependencies = all.iter().filter(of_workspace).filter(is_packaged);
    let dependencies = dependencies.filter_map(|one| Some((one["name"].as_str()?.into(), one["req"].as_str()?.into())));
    let targets = package["targets"].as_array().context("a package without targets")?;
    let is_library = |target: &Value| target["kind"][0].as_str() == Some("lib");
    Ok(Crate {
        version: package["version"].as_str().unwrap_or_default().to_owned(),
        is_published,
        has_library: targets.iter().any(is_library),
        dependencies: dependencies.collect(),
        missing: missing(package, &directory),
        name,
        directory,
    })
}

/// Lists the fields and files that a published crate needs and this one has not.
fn missing(package: &Value, directory: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    for field in ["description", "documentation", "license", "rust_version"] {
        if package[field].as_str().unwrap_or_default().is_empty() {
            missing.push(format!("its manifest has no `{}`", field.replace('_', "-")));
        }
    }
    for field in ["keywords", "categories"] {
        let count = package[field].as_array().map_or(0, Vec::len);
        if count == 0 || count > KEYWORDS_MAX {
            missing.push(format!("its manifest has {count} `{field}`; 1 to {KEYWORDS_MAX} are right"));
        }
    }
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        if !directory.join(file).is_file() {
            missing.push(format!("{file} is missing in its directory"));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(name: &str, dependencies: &[(&str, &str)]) -> Crate {
        let owned = |(name, required): &(&str, &str)| ((*name).to_owned(), (*required).to_owned());
        Crate {
            name: name.to_owned(),
            version: "0.2.0".to_owned(),
            is_published: true,
            dependencies: dependencies.iter().map(owned).collect(),
            ..Crate::default()
        }
    }

    fn workspace(crates: Vec<Crate>) -> Crates {
        Crates { root: PathBuf::new(), target: PathBuf::new(), crates }
    }

    #[test]
    fn a_crate_is_published_after_its_dependencies() {
        let internal = Crate { is_published: false, ..published("x", &[]) };
        let all =
            [published("a", &[("c", "^0.2.0")]), published("b", &[]), published("c", &[("b", "^0.2.0")]), internal];
        let workspace = workspace(all.to_vec());
        let order: Vec<&str> = workspace.order().iter().map(|one| one.name.as_str()).collect();
        assert_eq!(order, ["b", "c", "a"]);
        assert_eq!(workspace.violations(), [""; 0]);
    }

    #[test]
    fn dependencies_on_internal_crates_and_on_other_versions_are_found() {
        let internal = Crate { is_published: false, ..published("x", &[]) };
        let all = vec![published("a", &[("b", "^0.1.0"), ("x", "*")]), published("b", &[]), internal];
        let found = workspace(all).violations();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a: requires b ^0.1.0, but the workspace has 0.2.0"), "{found:?}");
        assert!(found[1].starts_with("a: depends on x, which has `publish = false`"), "{found:?}");
    }

    #[test]
    fn missing_fields_and_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("README.md"), "text").unwrap();
        let package =
            serde_json::json!({"description": "d", "license": "MIT", "rust_version": "1.88", "keywords": ["k"]});
        let found = missing(&package, folder.path());
        assert_eq!(
            found,
            [
                "its manifest has no `documentation`",
                "its manifest has 0 `categories`; 1 to 5 are right",
                "LICENSE-MIT is missing in its directory",
                "LICENSE-APACHE is missing in its directory",
            ]
        );
    }

    #[test]
    fn every_crate_of_this_workspace_that_is_published_has_what_it_needs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let workspace = Crates::read(&root).unwrap();
        assert_eq!(workspace.violations(), [""; 0]);
        assert_eq!(workspace.order().len(), workspace.crates.iter().filter(|one| one.is_published).count());
    }
}
