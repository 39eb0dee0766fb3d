//! The tests of the Python package, in an environment of their own below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::repository;
use crate::tools::{self, cargo};

/// Packages of the tests, with their versions.
const REQUIREMENTS: &str = "python/requirements-test.txt";
/// Packages of the tests on clusters, beside those.
const CLUSTER_REQUIREMENTS: &str = "python/requirements-clusters.txt";
/// The command that repeats a skipped check.
const COMMAND: &str = "cargo xtask test-python";

/// Options of the tests of the Python package.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Build a wheel as users do, install it in a fresh environment and run the tests there
    #[arg(long)]
    wheel: bool,
    /// Also run the tests on Ray, whose packages are large
    #[arg(long)]
    clusters: bool,
}

/// Runs the tests with the module that `cargo test` builds, and checks all types. A machine without
/// Python, or on which its packages cannot be installed, skips them.
pub fn check() -> Result<()> {
    run(&Options::default())
}

/// Runs the tests of the Python package.
pub fn run(options: &Options) -> Result<()> {
    let Some(system) = tools::find("python3") else {
        println!("SKIPPED: there is no python3: apt-get install python3-venv, then {COMMAND}");
        return Ok(());
    };
    let requirements: &[&str] = if options.clusters { &[REQUIREMENTS, CLUSTER_REQUIREMENTS] } else { &[REQUIREMENTS] };
    let root = repository::root().canonicalize()?;
    let base = tools::target_directory()?.join("python");
    let venv = base.join(if options.wheel { "wheel-venv" } else { "venv" });
    if options.wheel {
        fs::remove_dir_all(&venv).or_else(|error| if venv.exists() { Err(error) } else { Ok(()) })?;
    }
    let python = match environment(&system, &venv, requirements) {
        Ok(python) => python,
        Err(error) => {
            println!("SKIPPED: {error:#}; with python3-venv and pip's access to packages: {COMMAND}");
            return Ok(());
        }
    };
    let site = base.join("site");
    let mut tests = Command::new(&python);
    tests.current_dir(&root).args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"]);
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    if options.wheel {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "./python"];
        tools::run(Command::new(&python).current_dir(&root).args(install))?;
        return tools::run(&mut tests);
    }
    package(&root, &site)?;
    if !options.clusters {
        tests.args(["-m", "not cluster"]);
    }
    tools::run(tests.env("PYTHONPATH", &site))?;
    let mut types = Command::new(&python);
    types.current_dir(root.join("python")).args(["-m", "mypy", "--strict", "--cache-dir"]).arg(base.join("mypy"));
    tools::run(types.arg(site.join("hoistway")).arg("tests").env("MYPYPATH", &site))
}

/// Makes an environment with the packages; one whose packages are the wanted ones stays as it is.
/// Returns its interpreter.
fn environment(system: &Path, venv: &Path, requirements: &[&str]) -> Result<PathBuf> {
    let python = venv.join("bin/python");
    let read = |file: &&str| fs::read_to_string(repository::root().join(file)).with_context(|| (*file).to_owned());
    let wanted = requirements.iter().map(read).collect::<Result<String>>()?;
    let stamp = venv.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    tools::output(Command::new(system).args(["-m", "venv"]).arg(venv)).context("no environment of Python")?;
    let mut install = Command::new(&python);
    install.current_dir(repository::root());
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    for file in requirements {
        install.args(["--requirement", file]);
    }
    tools::output(&mut install).context("the packages of the tests cannot be installed")?;
    fs::write(stamp, wanted)?;
    Ok(python)
}

/// Puts the Python files and the module, as `cargo test` builds it, side by side.
fn package(root: &Path, site: &Path) -> Result<()> {
    tools::run(cargo().args(["test", "--quiet", "--workspace", "--no-run"]))?;
    let module = tools::target_directory()?.join("debug/deps/lib_hoistway.so");
    let package = site.join("hoistway");
    fs::create_dir_all(&package)?;
    for entry in fs::read_dir(&package)? {
        fs::remove_file(entry?.path())?;
    }
    for entry in fs::read_dir(root.join("python/hoistway"))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), package.join(entry.file_name()))?;
        }
    }
    let copy = package.join("_hoistway.abi3.so");
    fs::hard_link(&module, &copy).or_else(|_| fs::copy(&module, &copy).map(drop)).context("the extension module")?;
    Ok(())
}
