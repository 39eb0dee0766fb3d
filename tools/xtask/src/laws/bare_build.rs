//! A build of the core for a machine without an operating system: it fails if the core needs `std`.

use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::needs::{self, Need};
use hoistway_workspace::{cargo, programs, repository};

const TARGET: &str = "x86_64-unknown-none";

/// Returns what is missing for the build if nothing is to be installed, and the command that
/// installs it.
pub fn missing(install: bool) -> Option<String> {
    if install { None } else { needs::provide(&[Need::Target(TARGET)], false).err().map(|error| format!("{error:#}")) }
}

/// Builds the core for the bare machine with the current compiler, whose library rustup fetches if
/// necessary. Where rustup cannot fetch it, Debian's compiler builds it: that one comes with the
/// source of `core`.
pub fn build() -> Result<()> {
    if needs::provide(&[Need::Target(TARGET)], true).is_ok() {
        return programs::run(cargo::command().args([
            "build",
            "--quiet",
            "--package",
            "hoistway-core",
            "--target",
            TARGET,
        ]));
    }
    println!("rustup cannot fetch {TARGET}: trying Debian's compiler, which builds its own core");
    build_with_debian().with_context(|| format!("no way to build for {TARGET}: try `rustup target add {TARGET}`"))
}

fn build_with_debian() -> Result<()> {
    let (cargo, rustc) = ("/usr/bin/cargo", "/usr/bin/rustc");
    if !std::path::Path::new("/usr/lib/rustlib/src/rust/library/core").exists() {
        programs::install(&["cargo-web", "rustc-web", "rust-web-src"])?;
    }
    let directory = cargo::target_directory()?.join("bare");
    // Building `core` itself is unstable; the variable lets a stable compiler do it. Only this
    // build sees it.
    programs::run(
        Command::new(cargo)
            .current_dir(repository::root())
            .env("RUSTC", rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            .args([
                "build",
                "--quiet",
                "--package",
                "hoistway-core",
                "--target",
                TARGET,
                "-Zbuild-std=core",
                "--target-dir",
            ])
            .arg(directory),
    )
}
