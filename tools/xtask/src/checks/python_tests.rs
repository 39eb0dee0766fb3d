//! The tests of the Python package, in an environment of their own below the target directory.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::{needs, programs, python, repository};

/// Options of the tests of the Python package.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Build a wheel as users do, install it in a fresh environment and run the tests there
    #[arg(long)]
    wheel: bool,
    /// Also run the tests on Ray and of notebooks in Jupyter, whose packages are large
    #[arg(long)]
    clusters: bool,
    /// Install Python if it is missing (as root on Debian)
    #[arg(long)]
    install: bool,
}

/// Runs the tests with the module that `cargo test` builds, and checks all types. Where packages of
/// Python cannot be fetched, the tests are skipped, unless everything is to be installed.
pub fn check(install: bool) -> Result<()> {
    run(&Options { install, ..Options::default() })
}

/// Runs the tests of the Python package.
pub fn run(options: &Options) -> Result<()> {
    needs::provide(needs::PYTHON, options.install)?;
    let system = programs::find("python3").context("python3 is not on the path")?;
    let requirements: &[&str] = if options.clusters { &[python::TESTS, python::CLUSTERS] } else { &[python::TESTS] };
    let root = repository::root().canonicalize()?;
    let base = python::directory()?;
    let venv = base.join(if options.wheel { "wheel-venv" } else { "venv" });
    if options.wheel {
        fs::remove_dir_all(&venv).or_else(|error| if venv.exists() { Err(error) } else { Ok(()) })?;
    }
    let interpreter = match python::environment(&system, &venv, requirements) {
        Ok(interpreter) => interpreter,
        Err(error) if options.install => return Err(error),
        Err(error) => {
            println!("SKIPPED: {error:#}: cargo xtask test-python");
            return Ok(());
        }
    };
    let site = base.join("site");
    let mut tests = Command::new(&interpreter);
    tests.current_dir(&root).args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"]);
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    if options.wheel {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "./python"];
        programs::run(Command::new(&interpreter).current_dir(&root).args(install))?;
        return programs::run(&mut tests);
    }
    python::package(&root, &python::tested_module()?, &site)?;
    if !options.clusters {
        tests.args(["-m", "not cluster"]);
    }
    programs::run(tests.env("PYTHONPATH", &site))?;
    let mut types = Command::new(&interpreter);
    types.current_dir(root.join("python")).args(["-m", "mypy", "--strict", "--cache-dir"]).arg(base.join("mypy"));
    programs::run(types.arg(site.join("hoistway")).arg("tests").env("MYPYPATH", &site))
}
