//! The program hoistway: [`hoistway::run`] with the arguments of the process.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    hoistway::run(std::env::args_os().collect(), None).into()
}
