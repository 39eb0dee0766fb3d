//! Tests of the command line.

use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn every_task_has_a_line_of_help() {
    for task in Arguments::command().get_subcommands() {
        assert!(task.get_about().is_some(), "{}", task.get_name());
    }
}

#[test]
fn arguments_of_simulated_worlds_are_passed_on() {
    let parsed = Arguments::try_parse_from(["xtask", "worlds", "--seeds", "500", "-k"]).expect("arguments");
    let Task::Worlds(options) = parsed.task else { panic!("another task") };
    assert_eq!(options.arguments, ["--seeds", "500", "-k"]);
}

#[test]
fn a_benchmark_runs_at_least_one_round() {
    assert!(Arguments::try_parse_from(["xtask", "bench-nbd", "--rounds", "0"]).is_err());
    assert!(Arguments::try_parse_from(["xtask", "bench-nbd", "--only", "cost", "--only", "crowd"]).is_ok());
    assert!(Arguments::try_parse_from(["xtask", "bench-nbd", "--only", "costs"]).is_err());
}
