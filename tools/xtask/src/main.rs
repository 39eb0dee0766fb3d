//! Tasks for the developers of the workspace: checks, generated documents, benchmarks. `cargo xtask
//! help` lists them.
//!
//! Where to change what:
//! - the steps of `check` and `test`: `checks/`; what they need and how it is installed:
//!   `needs.rs`;
//!   the table of programs: `tools.rs`
//! - arrows and sizes of crates: `laws/crates.rs`; circles of modules: `laws/modules/`; the source
//!   of the core: `laws/core_source.rs`
//! - banned words and comments: `tidy/language.rs`; lengths: `tidy/lengths.rs`; links:
//!   `tidy/references.rs`
//! - generated parts of documents: `pages/`
//! - the proof that the core cannot panic: `proof.rs`
//! - packages: `dist.rs` and the crate `hoistway-dist`
//! - the commands of README.md on a fresh machine: the crate `hoistway-fresh`
//! - the C library: `clib.rs` and the crate `hoistway-clib`
//! - packages of the published crates, release notes: `release.rs` and the crate
//!   `hoistway-release`
//! - generated jobs in fio and in the simulator: `fio_diff.rs` and the crate `hoistway-fiodiff`
//! - the playground in the browser: `playground.rs` and `web/`; directories of npm packages:
//!   `web.rs`
//! - building and running the fuzz targets: `fuzz/`
//! - the site: `site.rs` and the crate `hoistway-site`
//! - the environment of Python for tests and measurements: `python.rs`
//! - kernels in QEMU and the kernel module: `kernel/`; kernels on emulated drives: `guest.rs`
//! - the dashboard and the alerts in Prometheus: `check_monitoring`; pictures of the dashboard:
//!   `web/dashboard`
//! - measurements: the module with the name of the task; their goals: `goals.rs`

#![forbid(unsafe_code)]

mod bench_arena;
mod bench_elevators;
mod bench_mount;
mod bench_nbd;
mod bench_order;
mod bench_sweep;
mod check_advise;
mod check_monitoring;
mod checks;
mod clib;
mod compare;
mod dist;
mod emulated;
mod fio_diff;
mod fsx;
mod fuzz;
mod goals;
mod graph;
mod guest;
mod kernel;
mod laws;
mod needs;
mod pages;
mod playground;
mod processor;
mod proof;
mod python;
mod release;
mod repository;
mod sections;
mod server;
mod simulation;
mod site;
mod soak;
mod stress;
mod tidy;
mod tools;
mod web;
mod whatif;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Checks, generated documents and benchmarks of the hoistway workspace.
#[derive(Parser, Debug)]
#[command(name = "xtask", bin_name = "cargo xtask", max_term_width = 100, subcommand_required = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

/// The tasks. The first line of each comment is its row in the table of CONTRIBUTING.md.
#[derive(Subcommand, Debug)]
enum Task {
    /// Quick checks before a commit: format, tidy, laws, clippy, fuzzers, unit tests, decisions
    Check(checks::Options),
    /// All checks, as continuous integration runs them
    Test(checks::TestOptions),
    /// Run the tests of the Python package
    TestPython(checks::PythonOptions),
    /// Build the example of an elevator in a crate outside the workspace, and run its simulation
    TestElevatorCrate,
    /// Check lengths, words, comments and links
    Tidy(tidy::Options),
    /// Check the laws: the core's source, arrows between crates, circles of modules, a build for a
    /// bare machine
    Laws(checks::Options),
    /// Prove that the core cannot panic
    Proof,
    /// Build the C library: libhoistway.a, libhoistway.so, hoistway.h and hoistway.pc
    Clib(clib::Options),
    /// Build Debian packages, tarballs, wheels and the container image: packaging/README.md
    Dist(hoistway_dist::Options),
    /// Build the packages and install each on a clean system: docs/install.md
    CheckDist(hoistway_dist::CheckOptions),
    /// Run the commands of README.md and .ci/run in a minimal Debian with a plain Rust toolchain
    CheckFresh(hoistway_fresh::Options),
    /// Build the site from the documents, with its references, and check its links
    Site(site::Options),
    /// Check licences, duplicates and sources of all dependencies with cargo-deny
    Deny(checks::Options),
    /// Make the packages of the published crates, and check them: docs/releasing.md
    CheckCrates(release::Options),
    /// Print the section of a version in CHANGELOG.md
    ReleaseNotes(release::NotesOptions),
    /// Check that the generated parts of the documents are current, or write them
    Pages(pages::Options),
    /// Build the playground, the comparison in the browser, also without a subcommand, or test it:
    /// docs/playground.md
    Playground(playground::Options),
    /// Play simulated worlds of the server, each from a seed
    Worlds(simulation::Options),
    /// Kill the real server or mount under load, and look for data that it had acknowledged
    CrashTest(simulation::CrashOptions),
    /// Run generated fio jobs in fio and in the simulator, and compare their requests:
    /// docs/job-files.md
    FioDiff(fio_diff::Options),
    /// Run random file operations through mounts and compare the files with a model
    Fsx(fsx::Options),
    /// Build and run the fuzz targets of `fuzz/`, several at a time
    Fuzz(fuzz::Options),
    /// Run the server under clients that verify what they read
    Soak(soak::Options),
    /// Run stress-ng's file-system stressors on a directory and through mounts, and compare the
    /// outcomes
    Stress(stress::Options),
    /// Build the kernel module, boot kernels in QEMU with it, and judge what the guests report
    Kernel(kernel::Options),
    /// Run jobs of fio, and programs that read trees of files, under real kernels on emulated
    /// drives and in the simulator: docs/guest.md
    Guest(guest::Options),
    /// Measure the CPU cost of the elevators beside the kernels': docs/elevator-costs.md
    BenchElevators(bench_elevators::Options),
    /// Measure the server beside other NBD servers: docs/serve-benchmarks.md
    BenchNbd(bench_nbd::Options),
    /// Measure the mount beside other ways to the same files: docs/mount-benchmarks.md
    BenchMount(bench_mount::Options),
    /// Measure what disk order gains and what archiving costs: docs/order-benchmarks.md
    BenchOrder(bench_order::Options),
    /// Compare all elevators on many drives and workloads: docs/arena.md
    BenchArena(bench_arena::Options),
    /// Measure the speed and the memory of sweeps: docs/sweeps.md
    BenchSweep(bench_sweep::Options),
    /// Measure the cost of two builds of the program side by side
    Compare(compare::Options),
    /// Measure how good the predictions of `hoistway trace whatif` are: docs/whatif.md
    Whatif(whatif::Options),
    /// Compare the advice of `hoistway advise` with predictions and real runs:
    /// docs/advise-checked.md
    CheckAdvise(check_advise::Options),
    /// Check the dashboard and the alerts against Prometheus, and draw the dashboard:
    /// docs/monitoring.md
    CheckMonitoring(check_monitoring::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Check(options) => checks::quick(&options),
        Task::Test(options) => checks::all(&options),
        Task::TestPython(options) => checks::test_python(&options),
        Task::TestElevatorCrate => checks::outside_elevator(),
        Task::Tidy(options) => tidy::run(&options),
        Task::Laws(options) => laws::check(options.install),
        Task::Proof => proof::run(),
        Task::Dist(options) => dist::run(&options),
        Task::CheckDist(options) => dist::check(&options),
        Task::CheckFresh(options) => checks::fresh(&options),
        Task::Clib(options) => clib::run(&options),
        Task::Site(options) => site::run(&options),
        Task::Deny(options) => checks::deny(&options),
        Task::CheckCrates(options) => release::run(&options),
        Task::ReleaseNotes(options) => release::print_notes(&options),
        Task::Pages(options) => pages::run(&options),
        Task::Playground(options) => playground::run(&options),
        Task::Worlds(options) => simulation::worlds(&options),
        Task::CrashTest(options) => simulation::crash_test(&options),
        Task::FioDiff(options) => fio_diff::run(&options),
        Task::Fsx(options) => fsx::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Stress(options) => stress::run(&options),
        Task::Kernel(options) => kernel::run(&options),
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
