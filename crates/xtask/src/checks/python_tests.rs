//! The tests of the Python package, in an environment of their own below `target/`.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::tools;
use crate::{python, repository};

/// The command that repeats a skipped check.
const COMMAND: &str = "cargo xtask test-python";

/// Options of the tests of the Python package.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Build a wheel as users do, install it in a fresh environment and run the tests there
    #[arg(long)]
    wheel: bool,
    /// Also run the tests on Ray and of notebooks in Jupyter, whose packages are large
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
    let requirements: &[&str] = if options.clusters { &[python::TESTS, python::CLUSTERS] } else { &[python::TESTS] };
    let root = repository::root().canonicalize()?;
    let base = python::directory()?;
    let venv = base.join(if options.wheel { "wheel-venv" } else { "venv" });
    if options.wheel {
        fs::remove_dir_all(&venv).or_else(|error| if venv.exists() { Err(error) } else { Ok(()) })?;
    }
    let interpreter = match python::environment(&system, &venv, requirements) {
        Ok(interpreter) => interpreter,
        Err(error) => {
            println!("SKIPPED: {error:#}; with python3-venv and pip's access to packages: {COMMAND}");
            return Ok(());
        }
    };
    let site = base.join("site");
    let mut tests = Command::new(&interpreter);
    tests.current_dir(&root).args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"]);
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    if options.wheel {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "./python"];
        tools::run(Command::new(&interpreter).current_dir(&root).args(install))?;
        return tools::run(&mut tests);
    }
    python::package(&python::tested_module()?, &site)?;
    if !options.clusters {
        tests.args(["-m", "not cluster"]);
    }
    tools::run(tests.env("PYTHONPATH", &site))?;
    let mut types = Command::new(&interpreter);
    types.current_dir(root.join("python")).args(["-m", "mypy", "--strict", "--cache-dir"]).arg(base.join("mypy"));
    tools::run(types.arg(site.join("hoistway")).arg("tests").env("MYPYPATH", &site))
}
