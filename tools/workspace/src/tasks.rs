//! The tasks of `cargo xtask`. The program xtask does the checks itself and starts the other
//! programs of `tools/` for theirs, so that it is compiled in seconds.

use std::process::ExitCode;

use anyhow::Result;

/// A program of `tools/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The checks.
    Xtask,
    /// Packages, the C library, releases.
    Dist,
    /// Generated jobs in fio and in the simulator.
    Fiodiff,
    /// A fresh machine.
    Fresh,
    /// The kernel module.
    Kernel,
    /// Measurements and campaigns.
    Lab,
    /// Generated parts of documents.
    Pages,
    /// The site and the playground.
    Site,
}

impl Program {
    /// The name of its package and of its executable.
    pub fn package(self) -> &'static str {
        match self {
            Program::Xtask => "hoistway-xtask",
            Program::Dist => "hoistway-dist",
            Program::Fiodiff => "hoistway-fiodiff",
            Program::Fresh => "hoistway-fresh",
            Program::Kernel => "hoistway-kernel",
            Program::Lab => "hoistway-lab",
            Program::Pages => "hoistway-pages",
            Program::Site => "hoistway-site",
        }
    }
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The subcommand of `cargo xtask`, and of the program.
    pub name: &'static str,
    /// The program that does it.
    pub program: Program,
    /// The line of its help, and of the table in CONTRIBUTING.md.
    pub does: &'static str,
}

const fn task(program: Program, name: &'static str, does: &'static str) -> Task {
    Task { name, program, does }
}

/// All tasks, in the order of the help.
pub const TASKS: &[Task] = &[
    task(
        Program::Xtask,
        "check",
        "Quick checks before a commit: format, tidy, laws, clippy, fuzzers, unit tests, decisions",
    ),
    task(Program::Xtask, "test", "All checks, as continuous integration runs them"),
    task(Program::Xtask, "test-python", "Run the tests of the Python package"),
    task(
        Program::Xtask,
        "test-elevator-crate",
        "Build the example of an elevator in a crate outside the workspace, and run a simulation with it",
    ),
    task(Program::Xtask, "tidy", "Check the lengths of files and functions, comments, links and version numbers"),
    task(
        Program::Xtask,
        "laws",
        "Check the laws: the core's source, dependencies between crates, dependency cycles, a build for a bare machine",
    ),
    task(Program::Xtask, "proof", "Prove that the core cannot panic"),
    task(Program::Xtask, "deny", "Check licences, duplicates and sources of all dependencies with cargo-deny"),
    task(
        Program::Xtask,
        "worlds",
        "Simulate the server with its clients, disks and faults; each simulated world has a seed",
    ),
    task(Program::Pages, "pages", "Check that the generated parts of the documents are current, or write them"),
    task(Program::Site, "site", "Build the site from the documents, with its references, and check its links"),
    task(
        Program::Site,
        "playground",
        "Build (the default) or test the playground, the comparison in the browser: docs/playground.md",
    ),
    task(Program::Dist, "clib", "Build the C library: libhoistway.a, libhoistway.so, hoistway.h and hoistway.pc"),
    task(Program::Dist, "dist", "Build Debian packages, tarballs, wheels and the container image: packaging/README.md"),
    task(Program::Dist, "check-dist", "Build the packages and install each on a clean system: docs/install.md"),
    task(Program::Dist, "check-crates", "Make the packages of the published crates, and check them: docs/releasing.md"),
    task(Program::Dist, "release-notes", "Print the section of a version in CHANGELOG.md"),
    task(
        Program::Fresh,
        "check-fresh",
        "Run the commands of README.md and .ci/run in a minimal Debian with a plain Rust toolchain",
    ),
    task(
        Program::Kernel,
        "kernel",
        "Build the kernel module, boot kernels in QEMU with it, and judge what the guests report",
    ),
    task(
        Program::Fiodiff,
        "fio-diff",
        "Run generated fio jobs in fio and in the simulator, and compare their requests: docs/job-files.md",
    ),
    task(
        Program::Lab,
        "crash-test",
        "Kill the real server or mount under load, and check that no acknowledged data are lost",
    ),
    task(Program::Lab, "fsx", "Run random file operations through mounts and compare the files with a model"),
    task(Program::Lab, "fuzz", "Build and run the fuzz targets of `fuzz/`, several at a time"),
    task(Program::Lab, "soak", "Run the server under clients that verify what they read"),
    task(
        Program::Lab,
        "stress",
        "Run stress-ng's file-system stressors on a directory and through mounts, and compare the outcomes",
    ),
    task(
        Program::Lab,
        "guest",
        "Run jobs of fio, and programs that read trees of files, under real kernels on emulated drives and in the \
         simulator: docs/guest.md",
    ),
    task(
        Program::Lab,
        "bench-elevators",
        "Compare the CPU cost of the elevators with that of the kernels' schedulers: docs/elevator-costs.md",
    ),
    task(Program::Lab, "bench-nbd", "Compare the server with other NBD servers: docs/serve-benchmarks.md"),
    task(
        Program::Lab,
        "bench-mount",
        "Compare the mount with other ways to access the same files: docs/mount-benchmarks.md",
    ),
    task(
        Program::Lab,
        "bench-order",
        "Measure the gain of disk order and the cost of archiving: docs/order-benchmarks.md",
    ),
    task(Program::Lab, "bench-arena", "Compare all elevators on many drives and workloads: docs/arena.md"),
    task(Program::Lab, "bench-sweep", "Measure the speed and the memory of sweeps: docs/sweeps.md"),
    task(Program::Lab, "compare", "Compare the cost of two builds of the program"),
    task(Program::Lab, "whatif", "Measure the accuracy of the predictions of `hoistway trace whatif`: docs/whatif.md"),
    task(
        Program::Lab,
        "check-advise",
        "Compare the advice of `hoistway advise` with predictions and real runs: docs/advise-checked.md",
    ),
    task(
        Program::Lab,
        "check-monitoring",
        "Check the dashboard and the alerts against Prometheus, and draw the dashboard: docs/monitoring.md",
    ),
];

/// The tasks of a program.
pub fn of(program: Program) -> impl Iterator<Item = &'static Task> {
    TASKS.iter().filter(move |task| task.program == program)
}

/// Parses the command line of a program of `tools/` and does its task. An error is printed, and
/// fails the program.
pub fn main<T: clap::Subcommand>(program: Program, run: impl FnOnce(T) -> Result<()>) -> ExitCode {
    let matches = command::<T>(program).get_matches();
    let task = T::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    exit_code(run(task))
}

/// Prints an error and returns the exit code of the program.
pub fn exit_code(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the command line of a program, with the texts of [`TASKS`] as its help.
pub fn command<T: clap::Subcommand>(program: Program) -> clap::Command {
    let command = clap::Command::new(program.package()).bin_name("cargo xtask");
    let command = T::augment_subcommands(command.subcommand_required(true).max_term_width(100));
    let command = command.about("Checks, generated documents and measurements of the hoistway workspace");
    of(program).fold(command, |command, task| {
        command.mut_subcommand(task.name, |subcommand| subcommand.about(task.does).long_about(None))
    })
}

/// Checks in a test that a program has the tasks which [`TASKS`] lists, and no others.
pub fn assert_consistent<T: clap::Subcommand>(program: Program) {
    let listed: Vec<&str> = of(program).map(|task| task.name).collect();
    let command = T::augment_subcommands(clap::Command::new(program.package()));
    let mut present: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    present.sort_by_key(|name| listed.iter().position(|other| other == name));
    assert_eq!(present, listed);
    self::command::<T>(program).debug_assert();
}
