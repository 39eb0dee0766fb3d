//! An environment of Python below the directory that cargo builds into, and the package `hoistway`
//! with a module that cargo built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{repository, tools};

/// Packages of the tests, with their versions.
pub const TESTS: &str = "python/requirements-test.txt";
/// Packages of the tests and measurements on clusters, beside those.
pub const CLUSTERS: &str = "python/requirements-clusters.txt";

/// Returns the directory of environments and of the package.
pub fn directory() -> Result<PathBuf> {
    Ok(tools::target_directory()?.join("python"))
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
    tools::output(Command::new(system).args(["-m", "venv", "--clear"]).arg(venv))
        .context("no environment of Python")?;
    let mut install = Command::new(&python);
    install.current_dir(repository::root());
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    for file in requirements {
        install.args(["--requirement", file]);
    }
    tools::output(&mut install).context("the packages of Python cannot be installed")?;
    fs::write(stamp, wanted)?;
    Ok(python)
}

/// Puts the Python files of the package and a compiled module side by side in `site`.
pub fn package(module: &Path, site: &Path) -> Result<()> {
    hoistway_dist::lay_out_python_package(repository::root(), module, site)
}

/// Builds the module in the configuration that the tests use, and returns its file.
pub fn tested_module() -> Result<PathBuf> {
    tools::run(tools::cargo().args(["test", "--quiet", "--workspace", "--no-run"]))?;
    Ok(tools::target_directory()?.join("debug/deps/lib_hoistway.so"))
}
