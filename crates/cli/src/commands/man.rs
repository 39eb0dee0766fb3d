//! `hoistway man`: manual pages, from the declaration of the command line.

use std::fs;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::{Cli, ManArgs};
use crate::failure::Exit;
use crate::output::Out;

/// Prints the page of the whole program, or writes those of all commands into a folder.
pub fn run(args: &ManArgs, out: &mut Out) -> Result<Exit> {
    let command = Cli::command();
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        out.bytes(&page)?;
        return Ok(Exit::Success);
    };
    fs::create_dir_all(folder).with_context(|| format!("{}: the folder cannot be made", folder.display()))?;
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("{}: the pages cannot be written", folder.display()))?;
    out.line(format_args!("wrote the manual pages into {}", folder.display()))?;
    Ok(Exit::Success)
}
