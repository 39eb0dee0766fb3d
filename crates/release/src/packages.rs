//! Packages of the published crates: made, built, and used by a project outside the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_vm::programs;

use crate::manifests::{Crate, Workspace, cargo};

/// The largest package in bytes. The largest today has 290 kB; crates.io accepts 10 MB.
const PACKAGE_BYTES_MAX: u64 = 1 << 20;
/// The exit code of cargo-semver-checks for changes that break callers.
const BREAKS: i32 = 100;
/// The program of the outside project: the example of this crate's README.
const EXAMPLE_OF: &str = "hoistway-sim";

/// Makes the packages of all published crates. Returns their files, in the order of publication.
///
/// # Errors
/// A manifest lacks something, a package cannot be made, or one is too large.
pub fn package(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    run_package(workspace, &["--no-verify"])?;
    let files: Vec<PathBuf> = workspace.order().iter().map(|one| file_of(workspace, one)).collect();
    for file in &files {
        let bytes = fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?.len();
        if bytes > PACKAGE_BYTES_MAX {
            bail!(
                "{} has {bytes} bytes; {PACKAGE_BYTES_MAX} are the most: see `include` in its manifest",
                file.display()
            );
        }
    }
    Ok(files)
}

/// Makes the packages and builds each of them from what is in it.
///
/// # Errors
/// A package cannot be built.
pub fn build(workspace: &Workspace) -> Result<()> {
    run_package(workspace, &[])
}

fn run_package(workspace: &Workspace, more: &[&str]) -> Result<()> {
    let violations = workspace.violations();
    if !violations.is_empty() {
        bail!("crates cannot be published:\n  {}", violations.join("\n  "));
    }
    let mut command = cargo(&workspace.root);
    command.args(["package", "--quiet", "--locked", "--workspace", "--allow-dirty"]).args(more);
    for internal in workspace.crates.iter().filter(|one| !one.is_published) {
        command.args(["--exclude", &internal.name]);
    }
    programs::run(&mut command)
}

fn file_of(workspace: &Workspace, one: &Crate) -> PathBuf {
    workspace.target.join("package").join(format!("{}-{}.crate", one.name, one.version))
}

/// Builds a fresh project that depends on hoistway-core and hoistway-sim as packages, and runs a
/// simulation in it: the example of the README. Returns what the program prints.
///
/// The packages of [`package`] take the place of the registry's for all crates of the workspace.
///
/// # Errors
/// A package is missing or lacks a file, or the program fails.
pub fn try_outside(workspace: &Workspace) -> Result<String> {
    let project = workspace.target.join("outside-project");
    let sources = project.join("packages");
    // Only what is in the packages of today counts.
    if sources.exists() {
        fs::remove_dir_all(&sources).with_context(|| format!("cannot empty {}", sources.display()))?;
    }
    fs::create_dir_all(&sources).with_context(|| format!("cannot make {}", sources.display()))?;
    let mut patches = String::new();
    for one in workspace.order() {
        let file = file_of(workspace, one);
        programs::run(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(&sources))?;
        patches.push_str(&format!("{} = {{ path = \"packages/{}-{}\" }}\n", one.name, one.name, one.version));
    }
    let of = |name: &str| workspace.crates.iter().find(|one| one.name == name);
    let sim = of(EXAMPLE_OF).context("the workspace has no hoistway-sim")?;
    let version = &sim.version;
    let readme = sources.join(format!("{EXAMPLE_OF}-{version}")).join("README.md");
    let text = fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    let program = first_example(&text).with_context(|| format!("{}: no example in Rust", readme.display()))?;
    let dependencies: String =
        ["core", "drive", "fio", "sim"].iter().map(|name| format!("hoistway-{name} = \"{version}\"\n")).collect();
    let manifest = format!(
        "[package]\nname = \"outside-project\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [workspace]\n\n[dependencies]\n{dependencies}\n[patch.crates-io]\n{patches}"
    );
    let write = |path: &str, text: &str| {
        fs::write(project.join(path), text).with_context(|| format!("cannot write {path} of {}", project.display()))
    };
    fs::create_dir_all(project.join("src")).context("cannot make the directory of the program")?;
    write("Cargo.toml", &manifest)?;
    write("src/main.rs", program)?;
    // The other dependencies are those of the workspace.
    fs::copy(workspace.root.join("Cargo.lock"), project.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
    let mut run = cargo(&project);
    run.args(["run", "--quiet", "--target-dir"]).arg(workspace.target.join("outside-target"));
    programs::output(run.env("CARGO_PROFILE_DEV_DEBUG", "0"))
}

/// Returns the code of the first example in Rust of a README.
fn first_example(readme: &str) -> Option<&str> {
    let (_, rest) = readme.split_once("```rust\n")?;
    rest.split_once("```").map(|(code, _)| code)
}

/// Compiles the published crates with the oldest compiler that their manifests promise, which
/// rustup fetches if necessary.
///
/// # Errors
/// The compiler cannot be fetched, or a crate does not compile.
pub fn with_oldest_compiler(workspace: &Workspace, version: &str) -> Result<()> {
    let rustup = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(arguments).current_dir(&workspace.root);
        command
    };
    let mut ask = rustup(&["run", version, "rustc", "--version"]);
    if !ask.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        programs::run(&mut rustup(&["toolchain", "install", version, "--profile", "minimal"]))?;
    }
    // A directory of its own, so that the compilers do not invalidate each other's results.
    let mut check = rustup(&["run", version, "cargo", "check", "--quiet", "--locked", "--target-dir"]);
    check.arg(workspace.target.join("oldest-compiler"));
    // This program was started by another cargo, whose variables would name its compiler.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        check.env_remove(variable);
    }
    for one in workspace.order() {
        check.args(["--package", &one.name]);
    }
    programs::run(&mut check)
}

/// Compares the API of published libraries with that of a git revision, by cargo-semver-checks: a
/// change that breaks callers is an error unless the version announces it.
///
/// # Errors
/// cargo-semver-checks is missing, or it reports a change.
pub fn compare(workspace: &Workspace, baseline: &str, only: &[String]) -> Result<()> {
    if let Some(unknown) = only.iter().find(|name| !workspace.order().iter().any(|one| one.name == **name)) {
        bail!("`{unknown}` is no published crate: `cargo xtask check-crates --order` lists them");
    }
    let mut command = cargo(&workspace.root);
    command.args(["semver-checks", "--baseline-rev", baseline]);
    let libraries = workspace.order().into_iter().filter(|one| one.has_library);
    for one in libraries.filter(|one| only.is_empty() || only.contains(&one.name)) {
        command.args(["--package", &one.name]);
    }
    let status = command.status().context("cannot start cargo semver-checks")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(BREAKS) => bail!("the API has changes that break callers, which the version does not announce"),
        _ => bail!("cargo semver-checks: {status}; is it installed? cargo install --locked cargo-semver-checks"),
    }
}

/// Returns the newest tag of a release (`v*`) before the checked out commit; `None` without one.
pub fn last_tag(root: &Path) -> Option<String> {
    let describe = ["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"];
    let output = Command::new("git").args(describe).current_dir(root).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_example_in_rust_is_found() {
        let readme = "# A\n\n```\nshell\n```\n\n```rust\nfn main() {}\n```\n\n```rust\nother\n```\n";
        assert_eq!(first_example(readme), Some("fn main() {}\n"));
        assert_eq!(first_example("text"), None);
    }
}
