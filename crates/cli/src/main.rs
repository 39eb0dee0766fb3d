//! hoistway: finds the I/O scheduler for a workload, and the reason.
//!
//! Each subcommand has a file under `commands`. This crate is the only one of the project that
//! prints. Exit codes: 0 success, 1 failure, 2 invalid command line, 3 `conform` found a
//! difference, 130 interrupted.

#![forbid(unsafe_code)]

mod atomic_file;
mod cli;
mod commands;
mod control;
mod drive_choice;
mod failure;
mod interrupt;
mod names;
mod output;
mod progress;
mod setting;

use std::process::ExitCode;

use clap::Parser;

use cli::Cli;
use output::Out;

fn main() -> ExitCode {
    let arguments = cli::with_dashes(std::env::args_os());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return cli::refuse(&error, &arguments),
    };
    let mut out = Out::stdout();
    let ended = commands::run(cli, &mut out).and_then(|exit| {
        out.flush()?;
        Ok(exit)
    });
    ended.unwrap_or_else(|error| failure::report(&error)).into()
}
