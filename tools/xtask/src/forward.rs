//! Tasks of other programs: cargo builds the program, which gets the arguments as they are.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches};
use hoistway_workspace::cargo;
use hoistway_workspace::programs;
use hoistway_workspace::tasks::{self, Program, Task};

/// The identifier of the argument that has all arguments of a task.
const ARGUMENTS: &str = "arguments";

/// The command line: the tasks of this program, and those of the others with any arguments.
pub fn command<T: clap::Subcommand>() -> clap::Command {
    let command = tasks::command::<T>(Program::Xtask);
    others().fold(command, |command, task| {
        let arguments = Arg::new(ARGUMENTS).num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
        let subcommand = clap::Command::new(task.name).about(task.does).disable_help_flag(true);
        command.subcommand(subcommand.arg(arguments.value_parser(clap::value_parser!(OsString))))
    })
}

/// The tasks of the other programs.
fn others() -> impl Iterator<Item = &'static Task> {
    tasks::TASKS.iter().filter(|task| task.program != Program::Xtask)
}

/// The task of another program that the command line names, and its arguments.
pub fn task(matches: &ArgMatches) -> Option<(&'static Task, Vec<OsString>)> {
    let (name, matches) = matches.subcommand()?;
    let task = others().find(|task| task.name == name)?;
    Some((task, matches.get_many(ARGUMENTS).into_iter().flatten().cloned().collect()))
}

/// Builds the program of a task and runs it. Fails if the program fails.
pub fn run(task: &Task, arguments: Vec<OsString>) -> ExitCode {
    let mut command = cargo::command();
    // Paths among the arguments begin where the user is.
    command.args(["run", "--quiet", "--package", task.program.package(), "--bin", task.program.package(), "--"]);
    if let Ok(directory) = std::env::current_dir() {
        command.current_dir(directory);
    }
    match command.arg(task.name).args(arguments).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => tasks::exit_code(Err(error).context("cannot start cargo")),
    }
}

/// Runs a task of another program as a step of the checks, with the program in the build of the
/// tests.
pub fn step(program: Program, arguments: &[&str]) -> Result<()> {
    programs::run(&mut tested(program, arguments)?)
}

/// The command of a task of another program, in the build of the tests.
pub fn tested(program: Program, arguments: &[&str]) -> Result<Command> {
    let name = arguments.first().copied().unwrap_or_default();
    if !tasks::of(program).any(|task| task.name == name) {
        bail!("{} has no task {name}", program.package());
    }
    let mut command = Command::new(cargo::built(&["--bin", program.package()])?.join(program.package()));
    command.args(arguments);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Subcommand)]
    enum Own {
        Check,
        Test,
        TestPython,
        TestElevatorCrate,
        Tidy,
        Laws,
        Proof,
        Deny,
        Worlds,
    }

    fn parsed(arguments: &[&str]) -> Option<(&'static str, Vec<OsString>)> {
        let matches = command::<Own>().try_get_matches_from(arguments).expect("arguments");
        task(&matches).map(|(task, arguments)| (task.name, arguments))
    }

    #[test]
    fn arguments_of_other_programs_are_passed_on_as_they_are() {
        let (name, arguments) = parsed(&["xtask", "bench-nbd", "--rounds", "0", "--help", "--", "-x"]).expect("a task");
        assert_eq!(name, "bench-nbd");
        assert_eq!(arguments, ["--rounds", "0", "--help", "--", "-x"]);
        assert_eq!(parsed(&["xtask", "tidy"]), None);
    }

    #[test]
    fn a_task_that_no_program_has_is_refused() {
        assert!(command::<Own>().try_get_matches_from(["xtask", "bench-ndb"]).is_err());
    }
}
