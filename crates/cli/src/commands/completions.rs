//! `hoistway completions`: shell completions from the declaration of the command line.

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};
use crate::failure::Exit;
use crate::output::Out;

/// Prints the completions for one shell.
pub fn run(args: &CompletionsArgs, out: &mut Out) -> Result<Exit> {
    // clap_complete panics on a write error, so the script goes to memory first.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hoistway", &mut script);
    out.bytes(&script)?;
    Ok(Exit::Success)
}
