//! The program of the crate: the task `check-fresh` of `cargo xtask`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use hoistway_workspace::cargo::Workspace;
use hoistway_workspace::tasks::{self, Program};

#[derive(clap::Subcommand, Debug)]
enum Task {
    CheckFresh(hoistway_fresh::Options),
}

fn main() -> ExitCode {
    tasks::main(Program::Fresh, |Task::CheckFresh(options)| hoistway_fresh::run(&Workspace::this()?, &options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_the_tasks_of_the_list() {
        tasks::assert_consistent::<Task>(Program::Fresh);
    }
}
