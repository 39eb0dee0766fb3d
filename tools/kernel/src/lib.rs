//! `cargo xtask kernel`: builds the kernel module for the kernels of a table, boots them in QEMU,
//! and judges what the guests report.
//!
//! - the sources of the module under test: the crate `hoistway-dist`; its build: `build.rs`
//! - the campaigns of a test: `plans.rs`
//! - kernels with the sanitizers: `debug_kernel.rs`
//! - the core's assembly: `asm/`
//! - the Debian package: `package.rs`, with the files of `packaging/debian/hoistway-dkms/`; its
//!   installation in minimal systems: `installation.rs`
//! - the cost of a request: `bench.rs`
//! - a player beside copies: `player.rs`
//! - a job beside its simulation: `compare.rs`
//! - recordings of the module: `record.rs`, `recordings.rs`
//! - the tasks: `test.rs`, `shell.rs`, `locks.rs`; the step of `cargo xtask test`: `step.rs`
//!
//! The crate `hoistway-vm` has the kernels, their boots and the verdicts, `hoistway-guest` the
//! program in the virtual machine.

mod asm;
mod bench;
mod build;
mod compare;
mod debug_kernel;
mod installation;
mod locks;
mod package;
mod plans;
mod player;
mod record;
mod recordings;
mod shell;
mod step;
mod test;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Result, bail};
use hoistway_vm::architecture::{self, Architecture};
use hoistway_vm::fetch::{self, Fetched, Outcome};
use hoistway_vm::table::{self, Kernel};
use hoistway_workspace::needs::{self, Need};
use hoistway_workspace::{cargo, programs, repository};

pub use test::{Session, require_programs};

/// Options of `cargo xtask kernel`.
#[derive(clap::Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    /// Build the module, boot the default kernel with it, and run a short campaign: a step of
    /// `cargo xtask test`
    Check,
    /// Write the core's assembly, kernel/core-*.S, or check that it is current
    Asm(asm::Options),
    /// Download images, modules and headers of kernels into target/kernel
    Fetch(Selection),
    /// Build kernels with KASAN, KCSAN, lockdep and statistics of locks from Debian's sources
    DebugKernel(debug_kernel::Options),
    /// Build the module for kernels
    Build(Selection),
    /// Boot kernels, run campaigns against elevators and judge the results
    Test(test::Options),
    /// Count the instructions of a request under each elevator
    Bench(bench::Options),
    /// Play a film beside four copies on a slow disk, under several schedulers
    Player(player::Options),
    /// Run a job of fio in a guest whose disk is an emulated drive, and simulate it
    Compare(compare::Options),
    /// Record runs of all elevators in a guest and repeat every call of the core in user space
    Record(record::Options),
    /// Measure how long the lock of a queue is held under each elevator
    Locks(locks::Options),
    /// Boot a kernel with the module and a shell on this terminal
    Run(shell::Options),
    /// Build the Debian package from which DKMS builds the module
    Package(package::Options),
}

/// A selection of kernels.
#[derive(clap::Args, Clone, Debug, Default)]
struct Selection {
    /// A kernel of the table; may be repeated
    #[arg(long, value_name = "KERNEL")]
    kernel: Vec<String>,
    /// All kernels of the table
    #[arg(long, conflicts_with = "kernel")]
    all: bool,
}

impl Selection {
    /// The selected kernels; the default one if none is selected.
    fn kernels(&self) -> Result<Vec<&'static Kernel>> {
        if self.all {
            return Ok(testable());
        }
        if self.kernel.is_empty() {
            return Ok(vec![table::find(table::DEFAULT)?]);
        }
        self.kernel.iter().map(|name| table::find(name)).collect()
    }
}

/// All kernels of the table but those of architectures whose programs are missing and cannot be
/// installed, which it names.
fn testable() -> Vec<&'static Kernel> {
    let foreign = Architecture::ALL.into_iter().filter(|architecture| *architecture != architecture::BUILD);
    let left_out: Vec<Architecture> = foreign
        .filter(|architecture| {
            let outcome = architecture.require_programs(true);
            if let Err(error) = &outcome {
                println!("{:<16} SKIPPED: {error:#}", architecture.debian());
            }
            outcome.is_err()
        })
        .collect();
    table::KERNELS.iter().filter(|kernel| !left_out.contains(&kernel.architecture)).collect()
}

/// Runs a task.
pub fn run(options: &Options) -> Result<()> {
    match &options.task {
        Task::Check => step::check(),
        Task::Asm(options) => asm::run(options),
        Task::Fetch(selection) => {
            let all: Vec<&'static Kernel> = table::KERNELS.iter().collect();
            let kernels = if selection.kernel.is_empty() { all } else { selection.kernels()? };
            let outcomes = fetch::fetch(&kernels, &folder()?)?;
            let present = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Present(_))).count();
            println!("{present} of {} kernels", outcomes.len());
            Ok(())
        }
        Task::DebugKernel(options) => debug_kernel::run(options),
        Task::Build(selection) => build_all(selection),
        Task::Test(options) => test::run(options),
        Task::Bench(options) => bench::run(options),
        Task::Player(options) => player::run(options),
        Task::Compare(options) => compare::run(options),
        Task::Record(options) => record::run(options),
        Task::Locks(options) => locks::run(options),
        Task::Run(options) => shell::run(options),
        Task::Package(options) => package::run(options),
    }
}

/// Builds the module for kernels, also after a build that failed.
fn build_all(selection: &Selection) -> Result<()> {
    let folder = folder()?;
    let mut failed = Vec::new();
    for fetched in present(&selection.kernels()?, &folder)? {
        let built = build::build(&fetched, &folder);
        match built.and_then(|built| built.require_no_warnings().map(|()| built)) {
            Ok(built) => println!("{:<16} {}", fetched.kernel.name, built.file.display()),
            Err(error) => {
                println!("{:<16} FAILED: {error:#}", fetched.kernel.name);
                failed.push(fetched.kernel.name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("the module was not built for {}", failed.join(", ")) }
}

/// The kernels that were downloaded; downloads the others where the archives have them.
pub fn present(kernels: &[&'static Kernel], folder: &Path) -> Result<Vec<Fetched>> {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for kernel in kernels {
        match Fetched::existing(kernel, folder) {
            Some(fetched) => found.push(fetched),
            None => absent.push(*kernel),
        }
    }
    if let Some(kernel) = absent.iter().find(|kernel| kernel.options.is_some()) {
        bail!("{} is not built yet: `cargo xtask kernel debug-kernel --kernel {}` builds it", kernel.name, kernel.name);
    }
    if !absent.is_empty() {
        for outcome in fetch::fetch(&absent, folder)? {
            if let Outcome::Present(fetched) = outcome {
                found.push(fetched);
            }
        }
    }
    let order = |fetched: &Fetched| kernels.iter().position(|kernel| kernel.name == fetched.kernel.name);
    found.sort_by_key(order);
    if found.is_empty() { bail!("no archive has one of the selected kernels") } else { Ok(found) }
}

/// The modules that every boot inserts at first: disks, and the elevators of the kernel.
pub fn boot_modules() -> Vec<String> {
    plans::BOOT.map(str::to_owned).to_vec()
}

/// Builds the program of the virtual machine and returns its file.
fn guest(architecture: Architecture) -> Result<PathBuf> {
    let target = architecture.target();
    needs::provide(&[Need::Target(target)], true)?;
    let mut cargo = cargo::command();
    cargo.args(["build", "--quiet", "--release", "--package", "hoistway-guest", "--target", target]);
    cargo.envs(architecture.linker());
    programs::run(cargo.stdout(Stdio::null()))?;
    Ok(cargo::target_directory()?.join(target).join("release/hoistway-guest"))
}

/// The directory of the module's sources.
fn source_directory() -> PathBuf {
    repository::root().join("kernel")
}

/// The directory of everything that this task downloads and builds.
pub fn folder() -> Result<PathBuf> {
    Ok(cargo::target_directory()?.join("kernel"))
}
