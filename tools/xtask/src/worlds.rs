//! `cargo xtask worlds`: simulated worlds of the server and the mount.

use std::process::Command;

use anyhow::Result;
use hoistway_workspace::{cargo, programs};

/// The package whose examples run the simulations.
const PACKAGE: [&str; 2] = ["-p", "hoistway-simulation"];

/// Arguments that are passed on to the program.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Options of the program; `-- --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Runs simulations, built with optimisation and with all checks of a debug build.
pub fn run(options: &Options) -> Result<()> {
    let example = ["run", "--quiet", "--profile", "checked", "--example", "worlds"];
    programs::run(cargo::command().args(example).args(PACKAGE).arg("--").args(&options.arguments))
}

/// Runs 250 simulations of the server and 200 of the mount in the build of the tests, in less than
/// a minute.
pub fn some() -> Result<()> {
    let program = cargo::built(&["--example", "worlds"])?.join("examples/worlds");
    programs::run(Command::new(&program).args(["--seeds", "250"]))?;
    programs::run(Command::new(program).args(["--of", "mount", "--seeds", "200"]))
}
