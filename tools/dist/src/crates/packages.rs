//! Packages of the published crates: made, built, and put where a project outside the repository
//! can depend on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_workspace::{cargo, programs};

use super::manifests::{Crate, Crates};

/// The largest package in bytes. The largest today has 290 kB; crates.io accepts 10 MB.
const PACKAGE_BYTES_MAX: u64 = 1 << 20;
/// The exit code of cargo-semver-checks for changes that break callers.
const BREAKS: i32 = 100;

/// Makes the packages of all published crates. Returns their files, in the order of publication.
///
/// # Errors
/// A manifest lacks something, a package cannot be made, or one is too large.
pub fn package(crates: &Crates) -> Result<Vec<PathBuf>> {
    run_package(crates, &["--no-verify"])?;
    let files: Vec<PathBuf> = crates.order().iter().map(|one| file_of(crates, one)).collect();
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
pub fn build(crates: &Crates) -> Result<()> {
    run_package(crates, &[])
}

fn run_package(crates: &Crates, more: &[&str]) -> Result<()> {
    let violations = crates.violations();
    if !violations.is_empty() {
        bail!("crates cannot be published:\n  {}", violations.join("\n  "));
    }
    let mut command = cargo::command_in(&crates.root);
    command.args(["package", "--quiet", "--locked", "--workspace", "--allow-dirty"]).args(more);
    for internal in crates.crates.iter().filter(|one| !one.is_published) {
        command.args(["--exclude", &internal.name]);
    }
    programs::run(&mut command)
}

fn file_of(crates: &Crates, one: &Crate) -> PathBuf {
    crates.target.join("package").join(format!("{}-{}.crate", one.name, one.version))
}

/// Fills a directory that takes the place of crates.io: cargo calls it a directory source. It has
/// the packages of [`package`] and, from the archive of cargo, all crates that `roots` depend on.
///
/// # Errors
/// `roots` names no published crate, a package is missing, or a dependency cannot be fetched.
pub fn directory_source(crates: &Crates, roots: &[&str], to: &Path) -> Result<()> {
    let vendored = tempfile::tempdir().context("a directory for packages")?;
    let project = vendored.path();
    let (mut patches, mut dependencies) = (String::new(), String::new());
    for one in crates.order() {
        let file = file_of(crates, one);
        programs::run(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(project))?;
        patches.push_str(&format!("{} = {{ path = \"{}-{}\" }}\n", one.name, one.name, one.version));
    }
    for root in roots {
        let one = crates.order().into_iter().find(|one| one.name == *root);
        let one = one.with_context(|| format!("{root} is no published crate"))?;
        dependencies.push_str(&format!("{root} = \"{}\"\n", one.version));
    }
    let manifest = format!(
        "[package]\nname = \"roots\"\nedition = \"2024\"\npublish = false\n\n[lib]\npath = \"lib.rs\"\n\n\
         [workspace]\n\n[dependencies]\n{dependencies}\n[patch.crates-io]\n{patches}"
    );
    fs::write(project.join("Cargo.toml"), manifest).context("cannot write the manifest of the roots")?;
    fs::write(project.join("lib.rs"), "").context("cannot write the library of the roots")?;
    // The other dependencies are those of the crates.
    fs::copy(crates.root.join("Cargo.lock"), project.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot empty {}", to.display()))?;
    }
    let mut vendor = cargo::command_in(project);
    programs::run(vendor.args(["vendor", "--quiet"]).arg(to).stdout(Stdio::null()))?;
    for one in crates.order() {
        let name = format!("{}-{}", one.name, one.version);
        fs::write(project.join(&name).join(".cargo-checksum.json"), r#"{"files":{}}"#)
            .with_context(|| format!("cannot write the checksums of {name}"))?;
        programs::run(Command::new("cp").arg("-a").arg(project.join(&name)).arg(to))?;
    }
    Ok(())
}

/// Compiles the published crates with the oldest compiler that their manifests promise, which
/// rustup fetches if necessary.
///
/// # Errors
/// The compiler cannot be fetched, or a crate does not compile.
pub fn with_oldest_compiler(crates: &Crates, version: &str) -> Result<()> {
    let rustup = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(arguments).current_dir(&crates.root);
        command
    };
    let mut ask = rustup(&["run", version, "rustc", "--version"]);
    if !ask.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        programs::run(&mut rustup(&["toolchain", "install", version, "--profile", "minimal"]))?;
    }
    // A directory of its own, so that the compilers do not invalidate each other's results.
    let mut check = rustup(&["run", version, "cargo", "check", "--quiet", "--locked", "--target-dir"]);
    check.arg(crates.target.join("oldest-compiler"));
    // This program was started by another cargo, whose variables would name its compiler.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        check.env_remove(variable);
    }
    for one in crates.order() {
        check.args(["--package", &one.name]);
    }
    programs::run(&mut check)
}

/// Compares the API of published libraries with that of a git revision, by cargo-semver-checks: a
/// change that breaks callers is an error unless the version announces it.
///
/// # Errors
/// cargo-semver-checks is missing, or it reports a change.
pub fn compare(crates: &Crates, baseline: &str, only: &[String]) -> Result<()> {
    if let Some(unknown) = only.iter().find(|name| !crates.order().iter().any(|one| one.name == **name)) {
        bail!("`{unknown}` is no published crate: `cargo xtask check-crates --order` lists them");
    }
    let mut command = cargo::command_in(&crates.root);
    command.args(["semver-checks", "--baseline-rev", baseline]);
    let libraries = crates.order().into_iter().filter(|one| one.has_library);
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
