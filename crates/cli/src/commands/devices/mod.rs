//! `hoistway devices`: this machine's block devices, told and set.

mod explain;
mod forget;
mod json;
mod list;
mod rows;
mod set;

use std::path::Path;

use anyhow::{Context, Result};
use hoistway_machine::{BlockDevice, FindError, Root, devices, find};

use crate::cli::{DevicesArgs, DevicesCommand};
use crate::failure::{Exit, UsageError};
use crate::names::did_you_mean;
use crate::output::Out;

/// Lists the devices, explains one, or sets one.
pub fn run(args: &DevicesArgs, out: &mut Out) -> Result<Exit> {
    let root = root(&args.root)?;
    if args.command.is_some() && (args.device.is_some() || args.all || args.json) {
        let what = "what is to be told and what is to be done cannot stand together; `hoistway devices set DEVICE ...` would be right";
        return Err(UsageError(what.to_owned()).into());
    }
    match &args.command {
        Some(DevicesCommand::Set(set)) => return set::run(&root, set, out),
        Some(DevicesCommand::Forget(forget)) => return forget::run(&root, forget, out),
        Some(DevicesCommand::Reset(reset)) => return set::reset(&root, reset, out),
        None => {}
    }
    let all = devices(&root)?;
    match &args.device {
        Some(text) => {
            let device = one(&root, text)?;
            if args.json {
                out.json(&json::one(&root, &all, &device)?)?
            } else {
                explain::print(&root, &all, &device, out)?
            }
        }
        None if args.json => out.json(&json::all(&root, &all)?)?,
        None => list::print(&root, &all, args.all, out)?,
    }
    Ok(Exit::Success)
}

/// The tree that stands for the machine.
///
/// # Errors
/// When there is no such folder.
pub fn root(path: &Path) -> Result<Root> {
    if path == Path::new("/") {
        return Ok(Root::machine());
    }
    let whole = path.canonicalize().with_context(|| format!("--root {}: it cannot be read", path.display()))?;
    Ok(Root::at(whole))
}

/// The device that a person means; of one that there is not, the nearest is named.
///
/// # Errors
/// When there is none.
pub fn one(root: &Root, text: &str) -> Result<BlockDevice> {
    find(root, text).map_err(|error| match &error {
        FindError::None { text, names } => {
            let nearest = did_you_mean(text, names.iter().map(String::as_str));
            anyhow::anyhow!("there is no block device `{text}`{nearest}; there are {}", names.join(", "))
        }
        _ => error.into(),
    })
}
