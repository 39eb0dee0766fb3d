//! Simulated runs of the server, and the crash test of the real server.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::server;
use crate::tools::{self, cargo};

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
pub fn worlds(options: &Options) -> Result<()> {
    let example = ["run", "--quiet", "--profile", "checked", "--example", "worlds"];
    tools::run(cargo().args(example).args(PACKAGE).arg("--").args(&options.arguments))
}

/// Runs 500 simulations in the build of the tests, in less than a minute.
pub fn some_worlds() -> Result<()> {
    // The features of dependencies are those of the whole workspace, as in the build of the tests;
    // with `-p` cargo would build many dependencies again.
    tools::run(cargo().args(["build", "--quiet", "--workspace", "--example", "worlds"]))?;
    let program = tools::target_directory()?.join("debug/examples/worlds");
    tools::run(Command::new(program).args(["--seeds", "500"]))
}

/// Kills the real server under load and checks the data that it had acknowledged.
pub fn crash_test(options: &Options) -> Result<()> {
    let mut arguments = options.arguments.clone();
    let named = arguments.iter().position(|word| word == "--hoistway").filter(|at| at + 1 < arguments.len());
    let hoistway = match named {
        Some(at) => arguments.drain(at..at + 2).next_back().map(PathBuf::from).unwrap_or_default(),
        None => server::build()?,
    };
    let example = ["run", "--quiet", "--profile", "checked", "--example", "crash_test"];
    tools::run(cargo().args(example).args(PACKAGE).args(["--", "--hoistway"]).arg(hoistway).args(arguments))
}
