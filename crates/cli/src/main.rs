//! The program hoistway: [`hoistway_cli::run`] with the arguments of the process.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    hoistway_cli::run(std::env::args_os().collect(), None).into()
}
