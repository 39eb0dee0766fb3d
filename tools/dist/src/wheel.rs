//! The wheel: maturin builds the extension module for the stable ABI of Python and for the oldest
//! glibc that Rust supports.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_workspace::programs;

use crate::binaries::{self, Machine, Quality};
use crate::materials::{self, PYTHON_MODULE};
use crate::source::Source;
use crate::tree;

/// The version of glibc that the wheel needs, as wheels name it.
const PLATFORM: &str = "manylinux_2_17";
/// The directory of an unpacked wheel.
const UNPACKED: &str = concat!("hoistway-", env!("CARGO_PKG_VERSION"));

/// Builds the wheel for an architecture, with its bill of materials and the licences of the
/// libraries in it.
pub(crate) fn build(source: &Source, machine: Machine, quality: Quality, to: &Path) -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-gnu", machine.name());
    programs::run(Command::new("rustup").args(["target", "add", &target]).stderr(Stdio::null()))?;
    let scratch = source.scratch(&format!("wheel-{}", machine.name()));
    tree::renew(&scratch)?;
    let bill = scratch.join("hoistway.cdx.json");
    materials::write(source, PYTHON_MODULE, machine, &bill)?;
    let made = scratch.join("made");
    let mut maturin = tool(source, "maturin")?;
    maturin.current_dir(source.root().join("python"));
    maturin.args(["build", "--quiet", "--locked", "--zig", "--compatibility", PLATFORM, "--auditwheel", "check"]);
    maturin.args(["--profile", quality.profile(), "--target", &target, "--out"]).arg(&made);
    programs::run(maturin.arg("--sbom-include").arg(&bill))?;
    let unpack = ["unpack", "--dest"];
    programs::output(tool(source, "wheel")?.args(unpack).arg(&scratch).arg(only_file(&made)?))?;
    pack(source, machine, &binaries::tools(source)?, &scratch, to)
}

/// Makes a wheel of an extension module that is compiled already, for this machine only: maturin
/// writes the metadata.
pub(crate) fn of_module(source: &Source, module: &Path, tools: &Path, to: &Path) -> Result<PathBuf> {
    let scratch = source.scratch("wheel-of-module");
    tree::renew(&scratch)?;
    let unpacked = scratch.join(UNPACKED);
    let stripped = scratch.join("module");
    programs::run(Command::new("strip").arg("--strip-debug").arg("-o").arg(&stripped).arg(module))?;
    hoistway_workspace::python::package(source.root(), &stripped, &unpacked)?;
    let mut maturin = Command::new(tools.join("maturin"));
    maturin.current_dir(source.root().join("python"));
    maturin.args(["pep517", "write-dist-info", "--interpreter", "python3", "--metadata-directory"]).arg(&unpacked);
    programs::output(&mut maturin)?;
    pack(source, Machine::native()?, tools, &scratch, to)
}

/// Adds the licences of the libraries to an unpacked wheel and packs it into the directory of
/// packages.
fn pack(source: &Source, machine: Machine, tools: &Path, scratch: &Path, to: &Path) -> Result<PathBuf> {
    let licences = materials::licences(source, PYTHON_MODULE, machine)?;
    let unpacked = scratch.join(UNPACKED);
    let metadata = unpacked.join(format!("{UNPACKED}.dist-info"));
    tree::write(&metadata.join("licenses/LICENCES-OF-LIBRARIES.txt"), licences, 0o644)?;
    let packed = scratch.join("packed");
    tree::renew(&packed)?;
    let mut wheel = Command::new(tools.join("wheel"));
    wheel.env("SOURCE_DATE_EPOCH", source.time.to_string());
    programs::output(wheel.args(["pack", "--dest-dir"]).arg(&packed).arg(&unpacked))?;
    let file = only_file(&packed)?;
    let placed = to.join(file.file_name().context("the wheel has no name")?);
    tree::copy(&file, &placed, 0o644)?;
    Ok(placed)
}

/// A program from PyPI with the environment of reproducible builds.
fn tool(source: &Source, name: &str) -> Result<Command> {
    let mut command = Command::new(binaries::tools(source)?.join(name));
    command.envs(binaries::environment(source)?);
    Ok(command)
}

/// The file of a directory that has one.
fn only_file(directory: &Path) -> Result<PathBuf> {
    match tree::files_below(directory)?.as_slice() {
        [file] => Ok(directory.join(file)),
        files => bail!("{} has {} files, not one wheel", directory.display(), files.len()),
    }
}
