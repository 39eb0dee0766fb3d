//! Releases: the published crates and their order, the checks of their packages,
//! and release notes.
//!
//! Where to change what:
//! - what the manifest and the directory of a published crate must have: `manifests.rs`
//! - packages, the oldest compiler, the source of packages for other projects, comparisons of the
//!   API: `packages.rs`
//! - the section of CHANGELOG.md: `notes.rs`

mod manifests;
mod notes;
mod packages;

use std::fs;

use anyhow::{Context, Result};
use hoistway_workspace::repository;

pub use manifests::{Crate, Crates};
pub use packages::{compare, directory_source, package};

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
    let crates = Crates::read(&repository::root().canonicalize().context("the root of the repository")?)?;
    if options.order {
        crates.order().iter().for_each(|one| println!("{}", one.name));
        return Ok(());
    }
    for file in packages::package(&crates)? {
        println!("{}", file.display());
    }
    if options.verify {
        packages::build(&crates)?;
    }
    if options.msrv {
        let version = env!("CARGO_PKG_RUST_VERSION");
        packages::with_oldest_compiler(&crates, version)?;
        println!("the published crates compile with Rust {version}");
    }
    if let Some(revision) = &options.semver {
        match revision.clone().or_else(|| packages::last_tag(&crates.root)) {
            Some(revision) => packages::compare(&crates, &revision, &options.only)?,
            None => println!("SKIPPED: no release has a tag yet; name a revision: --semver REVISION"),
        }
    }
    Ok(())
}

/// Prints the release notes of a version.
pub fn print_notes(options: &NotesOptions) -> Result<()> {
    let path = repository::root().join("CHANGELOG.md");
    let changelog = fs::read_to_string(&path).context("cannot read CHANGELOG.md")?;
    println!("{}", notes::section(&changelog, options.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION")))?);
    Ok(())
}
