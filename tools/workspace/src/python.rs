//! An environment of Python below the directory that cargo builds into, and the package `hoistway`
//! with a module that cargo built.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, programs, repository};

/// Packages of the tests, with their versions.
pub const TESTS: &str = "python/requirements-test.txt";
/// Packages of the tests and measurements on clusters, beside those.
pub const CLUSTERS: &str = "python/requirements-clusters.txt";

/// Returns the directory of environments and of the package.
pub fn directory() -> Result<PathBuf> {
    Ok(cargo::target_directory()?.join("python"))
}

/// Makes an environment with the packages; one whose packages are the wanted ones stays as it is.
/// Returns its interpreter.
pub fn environment(system: &Path, venv: &Path, requirements: &[&str]) -> Result<PathBuf> {
    let python = venv.join("bin/python");
    let read = |file: &&str| fs::read_to_string(repository::root().join(file)).with_context(|| (*file).to_owned());
    let wanted = requirements.iter().map(read).collect::<Result<String>>()?;
    let stamp = venv.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    programs::output(Command::new(system).args(["-m", "venv", "--clear"]).arg(venv))
        .context("no environment of Python")?;
    let mut install = Command::new(&python);
    install.current_dir(repository::root());
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    for file in requirements {
        install.args(["--requirement", file]);
    }
    programs::output(&mut install).context("the packages of Python cannot be installed")?;
    fs::write(stamp, wanted)?;
    Ok(python)
}

/// Puts the Python files of the package and a compiled module into the directory `hoistway` of a
/// directory. Files of an earlier call are removed.
///
/// # Errors
///
/// A file that cannot be read or written; the message names it.
pub fn package(root: &Path, module: &Path, to: &Path) -> Result<()> {
    let package = to.join("hoistway");
    if package.exists() {
        fs::remove_dir_all(&package).with_context(|| format!("cannot empty {}", package.display()))?;
    }
    fs::create_dir_all(&package).with_context(|| format!("cannot make {}", package.display()))?;
    let files = root.join("python/hoistway");
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
        fs::set_permissions(to, Permissions::from_mode(0o644)).with_context(|| to.display().to_string())
    };
    for entry in fs::read_dir(&files).with_context(|| files.display().to_string())? {
        let entry = entry?;
        // An interpreter leaves a directory of compiled files.
        if entry.file_type()?.is_file() {
            copy(&entry.path(), &package.join(entry.file_name()))?;
        }
    }
    let placed = package.join("_hoistway.abi3.so");
    fs::hard_link(module, &placed).or_else(|_| copy(module, &placed))
}

/// Builds the module in the configuration that the tests use, and returns its file.
pub fn tested_module() -> Result<PathBuf> {
    if std::env::var_os(cargo::ALL_BUILT).is_none() {
        programs::run(cargo::command().args(["test", "--quiet", "--workspace", "--no-run"]))?;
    }
    Ok(cargo::target_directory()?.join("debug/deps/lib_hoistway.so"))
}
