//! The checks of the workspace. `cargo xtask help` lists these and the tasks of the other programs
//! of `tools/`, which this one starts (`forward.rs`): it depends on none of them, nor on a crate of
//! the product, so that it is compiled in seconds.
//!
//! Where to change what:
//! - the steps of `check` and `test`: `checks/`; what they need and how it is installed:
//!   `tools/workspace/src/needs.rs`; the names of all tasks: `tools/workspace/src/tasks.rs`
//! - dependencies between crates and sizes of folders: `laws/crates.rs`; cycles of modules:
//!   `laws/modules/`; the source of the core: `laws/core_source.rs`
//! - comments: `tidy/language.rs`; lengths: `tidy/lengths.rs`; links and paths:
//!   `tidy/references.rs`
//! - the proof that the core cannot panic: `proof.rs`
//! - simulated worlds of the server: `worlds.rs`

#![forbid(unsafe_code)]

mod checks;
mod forward;
mod graph;
mod laws;
mod proof;
mod tidy;
mod worlds;

use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches;
use hoistway_workspace::tasks;

/// The tasks of this program.
#[derive(clap::Subcommand, Debug)]
enum Task {
    Check(checks::Options),
    Test(checks::TestOptions),
    TestPython(checks::PythonOptions),
    TestElevatorCrate,
    Tidy,
    Laws(checks::Options),
    Proof,
    Deny(checks::Options),
    Worlds(worlds::Options),
}

fn main() -> ExitCode {
    let matches = forward::command::<Task>().get_matches();
    if let Some((task, arguments)) = forward::task(&matches) {
        return forward::run(task, arguments);
    }
    let task = Task::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    tasks::exit_code(run(task))
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Check(options) => checks::quick(&options),
        Task::Test(options) => checks::all(&options),
        Task::TestPython(options) => checks::test_python(&options),
        Task::TestElevatorCrate => checks::outside_elevator(),
        Task::Tidy => tidy::check(),
        Task::Laws(options) => laws::check(options.install),
        Task::Proof => proof::run(),
        Task::Deny(options) => checks::deny(&options),
        Task::Worlds(options) => worlds::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use hoistway_workspace::tasks::Program;

    use super::*;

    #[test]
    fn the_program_has_the_tasks_of_the_list() {
        tasks::assert_consistent::<Task>(Program::Xtask);
        forward::command::<Task>().debug_assert();
    }

    #[test]
    fn every_task_has_a_line_of_help() {
        for task in forward::command::<Task>().get_subcommands() {
            assert!(task.get_about().is_some(), "{}", task.get_name());
        }
    }

    #[test]
    fn arguments_of_simulated_worlds_are_passed_on() {
        let matches = forward::command::<Task>().try_get_matches_from(["xtask", "worlds", "--seeds", "500", "-k"]);
        let Task::Worlds(options) = Task::from_arg_matches(&matches.expect("arguments")).expect("a task") else {
            panic!("another task")
        };
        assert_eq!(options.arguments, ["--seeds", "500", "-k"]);
    }
}
