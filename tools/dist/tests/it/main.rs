//! The comparison of APIs with cargo-semver-checks, in a workspace that the test makes.

use std::fs;
use std::path::Path;
use std::process::Command;

use hoistway_dist::crates::{Crates, compare};
use hoistway_workspace::programs;

const MANIFEST: &str =
    "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\ndescription = \"x\"\n[workspace]\n";

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=test", "-c", "user.email=test@example.org"]).args(arguments);
    programs::output(command.current_dir(directory)).unwrap();
}

#[test]
fn a_removed_function_is_a_break() {
    let is_there = Command::new("cargo").args(["semver-checks", "--version"]).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: cargo-semver-checks is missing: cargo install --locked cargo-semver-checks");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let write = |path: &str, text: &str| fs::write(root.join(path), text).unwrap();
    fs::create_dir(root.join("src")).unwrap();
    write("Cargo.toml", MANIFEST);
    write("src/lib.rs", "pub fn kept() {}\npub fn removed() {}\n");
    // cargo-semver-checks looks for manifests in all that git does not ignore.
    write(".gitignore", "/target\n");
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "first"]);
    let workspace = Crates::read(root).unwrap();

    write("src/lib.rs", "pub fn kept() {}\npub fn removed() {}\npub(crate) fn _hidden() {}\n");
    compare(&workspace, "HEAD", &[]).unwrap();
    write("src/lib.rs", "pub fn kept() {}\n");
    let found = compare(&workspace, "HEAD", &[]).unwrap_err().to_string();
    assert!(found.starts_with("the API has changes that break callers"), "{found}");
    let unknown = compare(&workspace, "HEAD", &["hoistway-unknown".to_owned()]).unwrap_err().to_string();
    assert!(unknown.contains("`hoistway-unknown` is no published crate"), "{unknown}");
}
