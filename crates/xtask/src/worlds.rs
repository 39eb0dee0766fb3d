//! Simulated worlds of the server, from seeds.

use anyhow::Result;

use crate::tools::{self, cargo};

/// Plays worlds: see `crates/serve/examples/worlds.rs`, which is built with optimisation and with every check of a debug build.
pub fn run(arguments: &[&str]) -> Result<()> {
    let example = ["run", "--quiet", "--profile", "checked", "-p", "hoistway-serve", "--features", "world"];
    tools::run(cargo().args(example).args(["--example", "worlds", "--"]).args(arguments))
}

/// As many as take less than a minute.
pub fn some() -> Result<()> {
    run(&["--seeds", "500"])
}

/// Kills the real server under load: see `crates/serve/examples/crash_test.rs`.
pub fn crash_test(arguments: &[&str]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let given = arguments.iter().position(|word| *word == "--hoistway").filter(|at| at + 1 < arguments.len());
    let hoistway = match given {
        Some(at) => arguments.drain(at..at + 2).next_back().unwrap_or_default().into(),
        None => {
            tools::run(cargo().args(["build", "--quiet", "--release", "-p", "hoistway-cli"]))?;
            tools::target_directory()?.join("release/hoistway")
        }
    };
    let example = ["run", "--quiet", "--profile", "checked", "-p", "hoistway-serve", "--features", "world"];
    let command = ["--example", "crash_test", "--", "--hoistway"];
    tools::run(cargo().args(example).args(command).arg(hoistway).args(arguments))
}
