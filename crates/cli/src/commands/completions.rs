//! `hoistway completions`: prints the script with which a shell completes the command line.

use anyhow::Result;

use crate::cli::CompletionsArgs;
use crate::complete;
use crate::failure::Exit;
use crate::output::Out;
use crate::program;

/// Prints the script for one shell.
pub fn run(args: &CompletionsArgs, out: &mut Out) -> Result<Exit> {
    out.bytes(&complete::script(&args.shell.to_string(), program::name())?)?;
    Ok(Exit::Success)
}
