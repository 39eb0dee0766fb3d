//! The tasks of releases. The crate `hoistway-release` does them.

use std::fs;

use anyhow::{Context, Result};
use hoistway_release::Workspace;

use crate::repository;

/// Options of the check of packages.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Print the published crates in the order in which they can be published, and do nothing else
    #[arg(long)]
    order: bool,
    /// Also build each package from what is in it
    #[arg(long)]
    verify: bool,
    /// Also compile the crates with the oldest compiler that their manifests promise
    #[arg(long)]
    msrv: bool,
    /// Also compare the API with that of a git revision [default: the newest tag of a release]
    #[arg(long, value_name = "REVISION")]
    semver: Option<Option<String>>,
    /// Compare the API of these crates only
    #[arg(long, value_name = "CRATE", requires = "semver")]
    only: Vec<String>,
}

/// Options of the release notes.
#[derive(clap::Args, Debug)]
pub struct NotesOptions {
    /// The version [default: that of the workspace]
    version: Option<String>,
}

/// Makes the packages and checks them.
pub fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::read(&repository::root().canonicalize().context("the root of the repository")?)?;
    if options.order {
        workspace.order().iter().for_each(|one| println!("{}", one.name));
        return Ok(());
    }
    for file in hoistway_release::package(&workspace)? {
        println!("{}", file.display());
    }
    if options.verify {
        hoistway_release::build(&workspace)?;
    }
    if options.msrv {
        let version = env!("CARGO_PKG_RUST_VERSION");
        hoistway_release::with_oldest_compiler(&workspace, version)?;
        println!("the published crates compile with Rust {version}");
    }
    if let Some(revision) = &options.semver {
        match revision.clone().or_else(|| hoistway_release::last_tag(&workspace.root)) {
            Some(revision) => hoistway_release::compare(&workspace, &revision, &options.only)?,
            None => println!("SKIPPED: no release has a tag yet; name a revision: --semver REVISION"),
        }
    }
    Ok(())
}

/// Prints the release notes of a version.
pub fn print_notes(options: &NotesOptions) -> Result<()> {
    let path = repository::root().join("CHANGELOG.md");
    let changelog = fs::read_to_string(&path).context("cannot read CHANGELOG.md")?;
    println!(
        "{}",
        hoistway_release::notes(&changelog, options.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION")))?
    );
    Ok(())
}
