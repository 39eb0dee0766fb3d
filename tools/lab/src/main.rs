//! Measurements and campaigns: what takes long, needs a quiet machine, or compares with other
//! programs. `cargo xtask help` lists the tasks.
//!
//! Where to change what:
//! - a measurement: the module with the name of its task; goals: `goals.rs`; sections of pages:
//!   `sections.rs`; CPU time: `processor.rs`
//! - emulated drives as block devices: `emulated.rs`
//! - jobs under real kernels beside their simulation: `guest.rs`, with the jobs, the figures and
//!   the page in `fidelity/`
//! - the dashboard and the alerts in Prometheus: `check_monitoring/`; pictures of the dashboard:
//!   `web/dashboard`
//! - building and running the fuzz targets: `fuzz/`

#![forbid(unsafe_code)]

mod bench_arena;
mod bench_elevators;
mod bench_mount;
mod bench_nbd;
mod bench_order;
mod bench_sweep;
mod check_advise;
mod check_monitoring;
mod compare;
mod crash_test;
mod emulated;
mod fidelity;
mod fsx;
mod fuzz;
mod goals;
mod guest;
mod processor;
mod sections;
mod soak;
mod stress;
mod whatif;

use std::process::ExitCode;

use anyhow::Result;
use hoistway_workspace::tasks::{self, Program};

#[derive(clap::Subcommand, Debug)]
enum Task {
    CrashTest(crash_test::Options),
    Fsx(fsx::Options),
    Fuzz(fuzz::Options),
    Soak(soak::Options),
    Stress(stress::Options),
    Guest(guest::Options),
    BenchElevators(bench_elevators::Options),
    BenchNbd(bench_nbd::Options),
    BenchMount(bench_mount::Options),
    BenchOrder(bench_order::Options),
    BenchArena(bench_arena::Options),
    BenchSweep(bench_sweep::Options),
    Compare(compare::Options),
    Whatif(whatif::Options),
    CheckAdvise(check_advise::Options),
    CheckMonitoring(check_monitoring::Options),
}

fn main() -> ExitCode {
    tasks::main(Program::Lab, run)
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::CrashTest(options) => crash_test::run(&options),
        Task::Fsx(options) => fsx::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Stress(options) => stress::run(&options),
        Task::Guest(options) => guest::run(&options),
        Task::BenchElevators(options) => bench_elevators::run(&options),
        Task::BenchNbd(options) => bench_nbd::run(&options),
        Task::BenchMount(options) => bench_mount::run(&options),
        Task::BenchOrder(options) => bench_order::run(&options),
        Task::BenchArena(options) => bench_arena::run(&options),
        Task::BenchSweep(options) => bench_sweep::run(&options),
        Task::Compare(options) => compare::run(&options),
        Task::Whatif(options) => whatif::run(&options),
        Task::CheckAdvise(options) => check_advise::run(&options),
        Task::CheckMonitoring(options) => check_monitoring::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_the_tasks_of_the_list() {
        tasks::assert_consistent::<Task>(Program::Lab);
    }

    #[test]
    fn a_benchmark_runs_at_least_one_round() {
        let accepts = |arguments: &[&str]| tasks::command::<Task>(Program::Lab).try_get_matches_from(arguments).is_ok();
        assert!(!accepts(&["lab", "bench-nbd", "--rounds", "0"]));
        assert!(accepts(&["lab", "bench-nbd", "--only", "cost", "--only", "crowd"]));
        assert!(!accepts(&["lab", "bench-nbd", "--only", "costs"]));
    }
}
