//! The subcommands, one file (or folder) each.

mod advise;
mod arena;
mod bench;
mod compare;
mod completions;
mod conform;
mod ctl;
mod devices;
mod drives;
mod elevators;
mod ionice;
mod man;
mod mount;
mod order;
mod reproduce;
mod serve;
mod sweep;
mod tar;
mod top;
mod trace;

use anyhow::Result;

use crate::cli::{Cli, Command};
use crate::failure::Exit;
use crate::output::Out;

/// Runs the command of the command line.
///
/// # Errors
/// The error that stopped the command; `failure::report` prints it.
pub fn run(cli: Cli, out: &mut Out) -> Result<Exit> {
    match cli.command {
        None => compare::run_example(out),
        Some(Command::Advise(args)) => advise::run(&args, out),
        Some(Command::Arena(args)) => arena::run(&args, out),
        Some(Command::Compare(args)) => compare::run(&args, out),
        Some(Command::Conform(args)) => conform::run(&args, out),
        Some(Command::Elevators(args)) => elevators::run(&args, out),
        Some(Command::Drives(args)) => drives::run(&args, out),
        Some(Command::Devices(args)) => devices::run(&args, out),
        Some(Command::Ionice(args)) => ionice::run(&args, out),
        Some(Command::Mount(args)) => mount::run(&args, out),
        Some(Command::Order(args)) => order::run(&args, out),
        Some(Command::Reproduce(args)) => reproduce::run(&args, out),
        Some(Command::Serve(args)) => serve::run(&args, out),
        Some(Command::Bench(args)) => bench::run(&args.what, out),
        Some(Command::Ctl(args)) => ctl::run(&args, out),
        Some(Command::Sweep(args)) => sweep::run(&args, out),
        Some(Command::Trace(args)) => trace::run(&args, out),
        Some(Command::Tar(args)) => tar::run(&args, out),
        Some(Command::Top(args)) => top::run(&args, out),
        Some(Command::Completions(args)) => completions::run(&args, out),
        Some(Command::Man(args)) => man::run(&args, out),
    }
}
