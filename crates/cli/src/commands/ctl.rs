//! `hoistway ctl`: a running server's tree of texts.

use anyhow::Result;
use hoistway_control::leaves_under;
use hoistway_control::{meant_path, table};

use crate::cli::{CtlArgs, CtlCommand};
use crate::control::Control;
use crate::failure::{Exit, UsageError};
use crate::output::Out;

/// Lists, prints, sets or explains paths.
pub fn run(args: &CtlArgs, out: &mut Out) -> Result<Exit> {
    let connect = || Control::connect(args.control.as_deref());
    match &args.command {
        CtlCommand::Help { markdown: true, .. } => out.bytes(table().as_bytes())?,
        CtlCommand::Help { path, .. } => explain(path, out)?,
        CtlCommand::Ls { recursive, path } => tell(&mut connect()?, &request("ls", *recursive, path), out)?,
        CtlCommand::Get { recursive, paths } => {
            let mut control = connect()?;
            // Without a path, all of the tree.
            let all = [String::new()];
            for path in if paths.is_empty() { &all } else { paths.as_slice() } {
                tell(&mut control, &request("get", *recursive, path), out)?;
            }
        }
        CtlCommand::Set { path, value } => {
            let reply = connect()?.ask(&format!("set {} {value}", one_word(path)?))?;
            if let Some(warning) = reply.warning {
                crate::failure::tell(&format!("warning: {warning}"));
            }
        }
    }
    Ok(Exit::Success)
}

fn tell(control: &mut Control, request: &str, out: &mut Out) -> Result<()> {
    let reply = control.ask(request)?;
    Ok(reply.lines.iter().try_for_each(|line| out.line(line))?)
}

fn request(verb: &str, recursive: bool, path: &str) -> String {
    let recursive = if recursive { "-r " } else { "" };
    format!("{verb} {recursive}{path}").trim_end().to_owned()
}

/// A path has no blanks, so that the value begins behind the first one.
fn one_word(path: &str) -> Result<&str> {
    if path.is_empty() || path.contains(char::is_whitespace) {
        return Err(UsageError(format!("{path:?} is no path: blanks in names are written %20")).into());
    }
    Ok(path)
}

fn explain(path: &str, out: &mut Out) -> Result<()> {
    let mut leaves = leaves_under(path).peekable();
    if leaves.peek().is_none() {
        let hint = meant_path(path).map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
        return Err(UsageError(format!("nothing is known of {path:?}{hint}")).into());
    }
    for leaf in leaves {
        out.heading(leaf.path)?;
        out.paragraph(4, &format!("{} ({}, {})", leaf.meaning, leaf.access().label(), leaf.unit))?;
    }
    Ok(())
}
