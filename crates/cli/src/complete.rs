//! Shell completions: the scripts of `hoistway completions`, and the answers to them.
//!
//! A script calls the program for the candidates of a word, with the name of the shell in
//! [`VARIABLE`]. The engine of `clap_complete` finds the argument that the word belongs to; the
//! names that hoistway knows come from [`KnownNames`], which is added to every argument that takes
//! them.

mod scripts;
mod values;

use std::ffi::OsString;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::{CompleteEnv, Elvish, Fish, Powershell, Shells};

use crate::cli::Cli;
use crate::failure::Exit;
use scripts::{BASH, ZSH};
use values::KnownNames;

/// The environment variable that makes the program answer a completion script.
const VARIABLE: &str = "HOISTWAY_COMPLETE";

const SHELLS: Shells<'static> = Shells(&[&BASH, &ZSH, &Fish, &Elvish, &Powershell]);

/// Answers a completion script; `None` if the program was not called by one.
pub fn answer(arguments: impl IntoIterator<Item = OsString>) -> Option<Exit> {
    let directory = std::env::current_dir().ok();
    let answered =
        CompleteEnv::with_factory(command).var(VARIABLE).shells(SHELLS).try_complete(arguments, directory.as_deref());
    match answered {
        Ok(false) => None,
        Ok(true) => Some(Exit::Success),
        Err(_) => Some(Exit::Failed),
    }
}

/// The script that a shell reads to complete the program of this name.
pub fn script(shell: &str, program: &str) -> Result<Vec<u8>> {
    let adapter = SHELLS.completer(shell).with_context(|| format!("there are no completions for the shell {shell}"))?;
    let mut script = Vec::new();
    adapter.write_registration(VARIABLE, program, program, program, &mut script)?;
    Ok(script)
}

/// The declaration of the command line with the names that its arguments take.
fn command() -> Command {
    with_names(Cli::command())
}

fn with_names(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|argument| match KnownNames::of(&name, &argument) {
            Some(names) => argument.add(ArgValueCompleter::new(names)),
            None => argument,
        })
        .mut_subcommands(with_names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn each(command: &Command, check: &mut dyn FnMut(&str, &Arg)) {
        command.get_arguments().for_each(|argument| check(command.get_name(), argument));
        command.get_subcommands().for_each(|command| each(command, check));
    }

    #[test]
    fn every_argument_that_takes_names_completes_them() {
        let mut found = Vec::new();
        each(&command(), &mut |command, argument| {
            let names = argument.get_value_names().unwrap_or_default().join(" ");
            if names.contains("NAME|FILE.toml") || names.contains("ELEVATOR.TUNABLE") {
                assert!(argument.get::<ArgValueCompleter>().is_some(), "{command} {argument}");
            }
            if argument.get::<ArgValueCompleter>().is_some() {
                found.push(format!("{command} {}", argument.get_id()));
            }
        });
        for expected in [
            "compare drive",
            "compare elevators",
            "compare settings",
            "elevators name",
            "drives drive",
            "mount elevator",
        ] {
            assert!(found.iter().any(|known| known == expected), "{expected}: {found:?}");
        }
    }

    #[test]
    fn there_is_a_script_for_every_shell_of_the_command() {
        use clap::ValueEnum as _;
        for shell in clap_complete::Shell::value_variants() {
            let script = String::from_utf8(script(&shell.to_string(), "hoistway").expect("a script")).expect("text");
            assert!(script.contains(VARIABLE) && script.contains("hoistway"), "{shell}: {script}");
        }
    }
}
