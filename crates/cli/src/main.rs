//! hoistway: which I/O scheduler for my workload, and why.
//!
//! One file a subcommand under `commands`; this crate is the only place of the project that prints.
//! Exit codes: 0 all is well, 1 something could not be done, 2 the command line is wrong, 3
//! `conform` found a difference, 130 interrupted.

#![forbid(unsafe_code)]

mod bench;
mod cli;
mod commands;
mod control;
mod drive_choice;
mod failure;
mod figures;
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
