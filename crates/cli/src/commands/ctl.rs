//! `hoistway ctl`: reads and sets the values of a running server.

use anyhow::Result;
use hoistway_control::client::ControlClient;
use hoistway_control::{leaves_under, suggest_path, table};

use crate::cli::{CtlArgs, CtlCommand};
use crate::control;
use crate::failure::{Exit, UsageError, print_message};
use crate::output::Out;

/// Lists, prints, sets or explains paths.
pub fn run(args: &CtlArgs, out: &mut Out) -> Result<Exit> {
    let connect = || control::connect(args.control.as_ref());
    match &args.command {
        CtlCommand::Help { markdown: true, .. } => out.bytes(table().as_bytes())?,
        CtlCommand::Help { path, .. } => explain(path, out)?,
        CtlCommand::Ls { recursive, path } => print(&mut connect()?, &request("ls", *recursive, path), out)?,
        CtlCommand::Get { recursive, paths } => {
            let mut client = connect()?;
            // Without a path, the whole tree.
            let root = [String::new()];
            for path in if paths.is_empty() { &root } else { paths.as_slice() } {
                print(&mut client, &request("get", *recursive, path), out)?;
            }
        }
        CtlCommand::Set { path, value } => {
            let reply = connect()?.request(&format!("set {} {value}", one_word(path)?))?;
            if let Some(warning) = reply.warning {
                print_message(&format!("warning: {warning}"));
            }
        }
    }
    Ok(Exit::Success)
}

/// Sends a request and prints the lines of its reply.
fn print(client: &mut ControlClient, request: &str, out: &mut Out) -> Result<()> {
    let reply = client.request(request)?;
    Ok(reply.lines.iter().try_for_each(|line| out.line(line))?)
}

fn request(verb: &str, recursive: bool, path: &str) -> String {
    let recursive = if recursive { "-r " } else { "" };
    format!("{verb} {recursive}{path}").trim_end().to_owned()
}

/// Checks that a path has no blanks, because the value begins after the first blank.
fn one_word(path: &str) -> Result<&str> {
    if path.is_empty() || path.contains(char::is_whitespace) {
        return Err(UsageError(format!("{path:?} is no path: blanks in names are written %20")).into());
    }
    Ok(path)
}

fn explain(path: &str, out: &mut Out) -> Result<()> {
    let mut leaves = leaves_under(path).peekable();
    if leaves.peek().is_none() {
        let hint = suggest_path(path).map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
        return Err(UsageError(format!("there is no path {path:?}{hint}")).into());
    }
    for leaf in leaves {
        out.heading(leaf.path)?;
        out.paragraph(4, &format!("{} ({}, {})", leaf.meaning, leaf.access().label(), leaf.unit))?;
    }
    Ok(())
}
