//! `cargo xtask fsx`: random file operations through mounts, compared with a model.

use std::path::PathBuf;

use anyhow::Result;
use hoistway_workspace::{cargo, programs};

/// Options of `cargo xtask fsx`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Minutes of each set-up; all run at the same time
    #[arg(long, default_value_t = 30.0, value_name = "N")]
    minutes: f64,
    /// The seed of all random choices, instead of a new one
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The directory in which files are created
    #[arg(long = "in", default_value = "/var/tmp", value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// Runs the operations in four set-ups of the mount, built with all checks of a debug build.
pub fn run(options: &Options) -> Result<()> {
    let mut command = cargo::command();
    command.args(["run", "--quiet", "--profile", "checked", "-p", "hoistway-mount", "--example", "fsx", "--"]);
    command.args(["--minutes", &options.minutes.to_string(), "--in"]).arg(std::path::absolute(&options.directory)?);
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    programs::run(&mut command)
}
