//! hoistway: finds the I/O scheduler for a workload, and the reason.
//!
//! Each subcommand has a file or folder in `commands/`, and its options are declared in `cli.rs` or
//! `cli/`. The crates below this one do not print. Exit codes: 0 success, 1 failure, 2 invalid
//! command line or configuration, 3 `conform` found a difference, 130 interrupted. `tar` has the
//! codes of GNU tar; `ionice` and other commands that run a program return the code of the program.
//!
//! [`run`] is the whole program; `main.rs` and the Python package call it.
//!
//! Where to change what:
//! - an option or a help text: `cli.rs` and `cli/`; names as arguments and suggestions: `names.rs`
//! - the text of a result: the command's files in `commands/`; its figures and its JSON are values
//!   of the crates below
//! - shell completions: `complete.rs`; its names of elevators, drives ...: `complete/values.rs`
//! - tables, colours and closed pipes: `output.rs`; progress bars: `progress.rs`
//! - exit codes and the form of errors: `failure.rs`; their table in help texts and manual pages:
//!   `exit_status.rs`

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod complete;
mod control;
mod exit_status;
mod failure;
mod interrupt;
mod names;
mod output;
mod program;
mod progress;
mod setting;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use cli::{Cli, Command};
use output::Out;

/// Runs the command line and returns the exit code. The first argument is the name of the program.
/// `program` is the file that runs this command, for commands that start further processes of it;
/// `None` is the file of this process.
pub fn run(arguments: Vec<OsString>, program: Option<PathBuf>) -> u8 {
    program::set(arguments.first().map(OsString::as_os_str), program);
    if let Some(exit) = complete::answer(arguments.clone()) {
        return exit.code();
    }
    let arguments = cli::with_dashes(arguments);
    let mut cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return cli::refuse(&error, &arguments).code(),
    };
    if let Some(Command::Compare(args)) = &mut cli.command
        && let Err(error) = args.drop_word_fio(&arguments)
    {
        return failure::report(&error.into()).code();
    }
    let mut out = Out::stdout();
    let ended = commands::run(cli, &mut out).and_then(|exit| {
        out.flush()?;
        Ok(exit)
    });
    ended.unwrap_or_else(|error| failure::report(&error)).code()
}
