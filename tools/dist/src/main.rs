//! The program of the crate: the tasks of packages and releases of `cargo xtask`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::Result;
use hoistway_dist::{Source, clib, crates};
use hoistway_workspace::cargo::Workspace;
use hoistway_workspace::tasks::{self, Program};

#[derive(clap::Subcommand, Debug)]
enum Task {
    Clib(clib::Options),
    Dist(hoistway_dist::Options),
    CheckDist(hoistway_dist::CheckOptions),
    CheckCrates(crates::Options),
    ReleaseNotes(crates::NotesOptions),
}

fn main() -> ExitCode {
    tasks::main(Program::Dist, run)
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Clib(options) => clib::run(&Workspace::this()?, &options),
        Task::Dist(options) => hoistway_dist::run(&Source::of(Workspace::this()?)?, &options),
        Task::CheckDist(options) => hoistway_dist::check(&Source::of(Workspace::this()?)?, &options),
        Task::CheckCrates(options) => crates::run(&options),
        Task::ReleaseNotes(options) => crates::print_notes(&options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_the_tasks_of_the_list() {
        tasks::assert_consistent::<Task>(Program::Dist);
    }
}
