//! Sets `HOISTWAY_VERSION`, the version with the commit that is built, for `hoistway --version`.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HOISTWAY_COMMIT");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // A package is built without the repository; its build names the commit.
    let commit = env::var("HOISTWAY_COMMIT").ok().or_else(commit).filter(|commit| !commit.is_empty());
    let version = commit.map_or(version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=HOISTWAY_VERSION={version}");
}

/// The checked out commit and its date, as in `1af454ec0000 2026-11-27`; `None` without a
/// repository.
fn commit() -> Option<String> {
    // The log of the checkout changes with every commit, whichever branch it is on.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["log", "-1", "--abbrev=12", "--format=%h %cs"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
