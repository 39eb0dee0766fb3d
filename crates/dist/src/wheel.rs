//! The wheel: maturin builds the extension module for the stable ABI of Python and for the oldest
//! glibc that Rust supports.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hoistway_vm::programs;

use crate::binaries::{self, Machine, Quality};
use crate::source::Source;
use crate::tree;

/// The version of glibc that the wheel needs, as wheels name it.
const PLATFORM: &str = "manylinux_2_17";

/// Builds the wheel for an architecture.
pub(crate) fn build(source: &Source, machine: Machine, quality: Quality, to: &Path) -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-gnu", machine.name());
    programs::run(std::process::Command::new("rustup").args(["target", "add", &target]))?;
    let made = source.scratch(&format!("wheel-{}", machine.name()));
    tree::renew(&made)?;
    let mut maturin = std::process::Command::new(binaries::tools(source)?.join("maturin"));
    for (name, value) in binaries::environment(source)? {
        maturin.env(name, value);
    }
    maturin.current_dir(source.root().join("python"));
    maturin.args(["build", "--quiet", "--locked", "--zig", "--compatibility", PLATFORM, "--auditwheel", "check"]);
    maturin.args(["--profile", quality.profile(), "--target", &target, "--out"]).arg(&made);
    programs::run(&mut maturin)?;
    let files = tree::files_below(&made)?;
    let file = files.first().context("maturin has written no wheel")?;
    let wheel = to.join(file);
    tree::copy(&made.join(file), &wheel, 0o644)?;
    Ok(wheel)
}
