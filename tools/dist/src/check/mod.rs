//! The check of the packages: the console blocks of docs/install.md run on clean systems, in which
//! nothing of the repository is present, with the packages of a directory.
//!
//! `systems.rs` makes the systems that blocks name with `in=`, `old_kernel.rs` a virtual machine
//! and `old_interface.rs` the system calls of an older kernel; `packages.rs` checks what no block
//! shows: lintian, checksums, the bill of materials, the container image, and the program on a
//! machine without io_uring.

mod containers;
mod old_interface;
mod old_kernel;
mod packages;
mod systems;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hoistway_workspace::console::{Block, blocks};
use hoistway_workspace::needs;

use crate::binaries::{self, Machine};
use crate::source::{Packing, Source};
use crate::{archive, debian, materials, program};
use systems::System;

/// The document whose blocks run.
const DOCUMENT: &str = "docs/install.md";

/// Options of `cargo xtask check-dist`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Compile the packages with the profile `release`, which is quicker
    #[arg(long)]
    quick: bool,
    /// Check the packages of this directory and build none
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "twice"])]
    from: Option<PathBuf>,
    /// Make the Debian package and the tarball of this program, and walk only these, the packages
    /// of the C library and the wheel of `--module`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "twice", "from", "machine", "only"])]
    program: Option<PathBuf>,
    /// Also make the wheel of this extension module of Python
    #[arg(long, value_name = "FILE", requires = "program")]
    module: Option<PathBuf>,
    /// Build everything twice, in two directories, and compare all bytes first
    #[arg(long)]
    twice: bool,
    /// An architecture; may be repeated [default: all]
    #[arg(long, value_enum, value_name = "MACHINE")]
    machine: Vec<Machine>,
    /// A system that a block of docs/install.md names with in=, a check, `trixie` or `emulated`;
    /// may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

/// Builds the packages and checks all of them.
pub fn check(source: &Source, options: &Options) -> Result<()> {
    if let Some(program) = &options.program {
        return check_quick(source, program, options.module.as_deref());
    }
    needs::provide(needs::PACKAGES, true)?;
    let walks = Walks::read(source, true)?;
    require_known(&options.only, &walks)?;
    let directory = match &options.from {
        Some(directory) if directory.join("SHA256SUMS").is_file() => std::path::absolute(directory)?,
        Some(directory) => bail!("{} has no packages: there is no SHA256SUMS", directory.display()),
        None => {
            let to = source.scratch("checked");
            let built = crate::Options {
                to: Some(to.clone()),
                quick: options.quick,
                twice: options.twice,
                only: Vec::new(),
                machine: options.machine.clone(),
                install: true,
            };
            crate::run(source, &built)?;
            to
        }
    };
    let machines = if options.machine.is_empty() { Machine::ALL.to_vec() } else { options.machine.clone() };
    let wants = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let mut report = Report::default();
    for (name, check) in packages::ALL {
        if wants(name) {
            report.add(name, || check(source, &directory, &machines));
        }
    }
    for name in walks.systems().into_iter().filter(|name| wants(name)) {
        walks.report(&mut report, source, &directory, name)?;
    }
    if wants("trixie") {
        for name in systems::ON_NEXT_DEBIAN {
            let system = || System::next_debian(name, source, &directory);
            report.add(&format!("{name} (trixie)"), || walks.walk_in(name, system()?));
        }
    }
    let foreign = machines.into_iter().find(|machine| Machine::native().is_ok_and(|native| native != *machine));
    if let Some(machine) = foreign.filter(|_| wants("emulated")) {
        report.add("emulated", || walks.walk(source, &directory, "empty", machine));
    }
    report.finish()
}

/// Fails if a name of `--only` is that of no check.
fn require_known(only: &[String], walks: &Walks) -> Result<()> {
    let mut known: Vec<&str> = packages::ALL.iter().map(|(name, _)| *name).collect();
    known.extend(walks.systems());
    known.extend(["trixie", "emulated"]);
    match only.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => bail!("--only {name}: no check has this name; the names are {}", known.join(", ")),
        None => Ok(()),
    }
}

/// Makes the Debian package and the tarball of a program that was built with debug information, the
/// wheel of such a module, and the packages of the C library and of the crates, and walks all of
/// them. It is a step of all checks.
///
/// A system that this machine cannot have is skipped. So are a Debian system and a wheel that
/// cannot be made because programs are missing or cannot be fetched; with
/// `HOISTWAY_REQUIRE_DEBIAN=1` a missing Debian is a failure.
fn check_quick(source: &Source, file: &Path, module: Option<&Path>) -> Result<()> {
    let source = &Source { packing: Packing::Fast, ..source.clone() };
    let machine = Machine::native()?;
    let directory = source.scratch("quick");
    crate::tree::renew(&directory)?;
    let program = source.scratch("quick-program");
    let mut strip = std::process::Command::new("strip");
    hoistway_workspace::programs::run(strip.arg("-o").arg(&program).arg(file))?;
    let pages = program::pages(source, &program)?;
    let licences = materials::licences(source, materials::PROGRAM, machine)?;
    let mut files = vec![
        debian::program(source, machine, &program, &pages, &licences, &directory)?,
        program::tarball(source, machine, &program, &pages, &licences, &directory)?,
    ];
    files.extend(debian::library(source, &directory)?);
    crate::tree::write(&directory.join("SHA256SUMS"), archive::sums(&files)?, 0o644)?;
    let walks = Walks::read(source, false)?;
    let mut report = Report::default();
    report.add("checksums", || packages::checksums(source, &directory, &[machine]));
    for name in ["tarball", "empty", "linux-4.18"] {
        walks.report(&mut report, source, &directory, name)?;
    }
    if let Some(module) = module {
        match binaries::wheel_tools(source) {
            Err(reason) => println!("SKIPPED: python: {reason:#}"),
            Ok(tools) => report.add("python", || {
                crate::wheel::of_module(source, module, &tools, &directory)?;
                walks.walk(source, &directory, "python", machine)
            }),
        }
    }
    let is_required = std::env::var_os("HOISTWAY_REQUIRE_DEBIAN").is_some_and(|value| value == "1");
    match systems::require_debian(source) {
        Err(reason) if !is_required => println!("SKIPPED: the Debian packages: {reason:#}"),
        Err(reason) => return Err(reason),
        Ok(()) => {
            for name in ["debian", "debian-c"] {
                report.add(name, || walks.walk(source, &directory, name, machine));
            }
        }
    }
    report.finish()
}

/// The checks that ran.
#[derive(Debug, Default)]
struct Report {
    failed: Vec<String>,
}

impl Report {
    /// Runs a check and prints its outcome and its time. One that fails does not keep the others
    /// from running.
    fn add(&mut self, name: &str, check: impl FnOnce() -> Result<()>) {
        let begun = Instant::now();
        let outcome = check();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("  {name:<17} {word:<6} {:>6.1} s", begun.elapsed().as_secs_f64());
        if let Err(error) = outcome {
            println!("{error:#}");
            self.failed.push(name.to_owned());
        }
    }

    fn finish(self) -> Result<()> {
        if self.failed.is_empty() { Ok(()) } else { bail!("failed: {}", self.failed.join(", ")) }
    }
}

/// The blocks of the document.
#[derive(Debug)]
struct Walks {
    blocks: Vec<Block>,
    /// True if programs that a system needs may be installed on this machine.
    install: bool,
}

impl Walks {
    fn read(source: &Source, install: bool) -> Result<Walks> {
        Ok(Walks { blocks: blocks(&source.text(DOCUMENT)?), install })
    }

    /// The systems that blocks name, in the order of the document.
    fn systems(&self) -> Vec<&str> {
        let mut known = BTreeSet::new();
        let systems = self.blocks.iter().filter_map(|block| block.system.as_deref());
        systems.filter(|name| known.insert(*name)).collect()
    }

    /// Reports the blocks of a system on this machine, or that the machine cannot have the system.
    fn report(&self, report: &mut Report, source: &Source, packages: &Path, name: &str) -> Result<()> {
        let machine = Machine::native()?;
        match systems::obstacle(name, source, packages, self.install) {
            Some(reason) => println!("SKIPPED: {name}: {reason}"),
            None => report.add(name, || self.walk(source, packages, name, machine)),
        }
        Ok(())
    }

    /// Makes a system and runs its blocks, which share it.
    fn walk(&self, source: &Source, packages: &Path, name: &str, machine: Machine) -> Result<()> {
        let system = System::new(name, source, packages, machine).with_context(|| format!("the system {name}"))?;
        self.walk_in(name, system)
    }

    /// Runs the blocks of a system.
    fn walk_in(&self, name: &str, system: System) -> Result<()> {
        let own: Vec<&Block> = self.blocks.iter().filter(|block| block.system.as_deref() == Some(name)).collect();
        if own.is_empty() {
            bail!("no block of {DOCUMENT} is marked in={name}");
        }
        let mut failures = Vec::new();
        for block in own.into_iter().filter(|block| !block.no_run) {
            failures.extend(hoistway_workspace::console::failures(DOCUMENT, block, &system.run(block)?));
        }
        if failures.is_empty() { Ok(()) } else { bail!("{}", failures.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_no_check_is_refused_with_the_names_that_are_right() {
        let walks = Walks { blocks: blocks("```console in=debian\n$ true\n```\n"), install: false };
        let only = |name: &str| require_known(&[name.to_owned()], &walks);
        for name in ["lintian", "debian", "trixie", "emulated"] {
            only(name).expect(name);
        }
        let error = only("debain").expect_err("no check").to_string();
        assert!(
            error.starts_with("--only debain: no check has this name; the names are checksums, lintian"),
            "{error}"
        );
    }
}
