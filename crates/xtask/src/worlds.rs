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
