//! `cargo xtask bench-arena`: the standings of all elevators in docs/arena.md.

use std::path::PathBuf;

use anyhow::{Context, Result};
use hoistway_workspace::parts;

use crate::sections;

const PAGE: &str = "docs/arena.md";

/// Options of `cargo xtask bench-arena`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Number of seeds
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The folder of the results, whose runs are not simulated again; the default is in cargo's
    /// target directory
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The program to use, instead of the one for packages, which is built
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Write the standings to docs/arena.md instead of printing them
    #[arg(long)]
    write: bool,
}

/// Runs the arena and prints or writes its tables.
pub fn run(options: &Options) -> Result<()> {
    let hoistway = sections::program(options.hoistway.as_deref())?;
    let folder = sections::folder(options.folder.as_deref(), "arena")?;
    let mut command = std::process::Command::new(hoistway);
    command.args(["arena", "--cpu", "--tables", "--output"]).arg(&folder);
    command.args(["--seeds", &options.seeds.to_string()]).stderr(std::process::Stdio::inherit());
    let output = command.output().with_context(|| format!("{command:?}"))?;
    anyhow::ensure!(output.status.success(), "{command:?}: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    if options.write {
        parts::put(PAGE, &[("standings", text)])?;
    } else {
        print!("{text}");
    }
    Ok(())
}
