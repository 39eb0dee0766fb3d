//! `hoistway devices`: lists, explains and sets this machine's block devices.

mod explain;
mod forget;
mod list;
mod set;
mod summary;

use std::path::Path;

use anyhow::{Context, Result};
use hoistway_machine::{BlockDevice, FindError, Inventory, Root, devices, find};

use crate::cli::{DevicesArgs, DevicesCommand};
use crate::failure::{Exit, UsageError};
use crate::names::did_you_mean;
use crate::output::Out;

/// Runs the command.
///
/// # Errors
/// [`UsageError`] for arguments that exclude each other, and errors of the machine.
pub fn run(args: &DevicesArgs, out: &mut Out) -> Result<Exit> {
    let root = root(&args.root)?;
    if args.command.is_some() && (args.device.is_some() || args.all || args.json) {
        let text =
            "what to show and what to do cannot stand together; `hoistway devices set DEVICE ...` would be right";
        return Err(UsageError(text.to_owned()).into());
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
            let device = find_device(&root, text)?;
            if args.json {
                json(&Inventory::of_one(&root, &all, &device), out)?
            } else {
                explain::print(&root, &all, &device, out)?
            }
        }
        None if args.json => json(&Inventory::of_all(&root, &all), out)?,
        None => list::print(&root, &all, args.all, out)?,
    }
    Ok(Exit::Success)
}

/// Prints the inventory with the keys of each object in alphabetical order.
fn json(inventory: &Inventory, out: &mut Out) -> Result<()> {
    out.json(&serde_json::to_value(inventory)?)
}

/// The tree of files at a path, which stands for the machine.
///
/// # Errors
/// If there is no such directory.
pub fn root(path: &Path) -> Result<Root> {
    if path == Path::new("/") {
        return Ok(Root::machine());
    }
    let whole = path.canonicalize().with_context(|| format!("--root {}: it cannot be read", path.display()))?;
    Ok(Root::at(whole))
}

/// Finds a device; the error for an unknown name suggests the nearest name.
///
/// # Errors
/// [`FindError`] if there is no such device.
pub fn find_device(root: &Root, text: &str) -> Result<BlockDevice> {
    find(root, text).map_err(|error| match &error {
        FindError::None { text, names } => {
            let nearest = did_you_mean(text, names.iter().map(String::as_str));
            anyhow::anyhow!("there is no block device `{text}`{nearest}; there are {}", names.join(", "))
        }
        _ => error.into(),
    })
}
