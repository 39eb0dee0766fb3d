//! The program of the crate: the task `kernel` of `cargo xtask`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use hoistway_workspace::tasks::{self, Program};

#[derive(clap::Subcommand, Debug)]
enum Task {
    Kernel(hoistway_kernel::Options),
}

fn main() -> ExitCode {
    tasks::main(Program::Kernel, |Task::Kernel(options)| hoistway_kernel::run(&options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_the_tasks_of_the_list() {
        tasks::assert_consistent::<Task>(Program::Kernel);
    }
}
