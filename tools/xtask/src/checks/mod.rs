//! The checks of `cargo xtask check` and `cargo xtask test`. `steps.rs` runs them.

mod cargo_tests;
mod python_tests;
mod steps;

use std::fs;

use anyhow::{Context, Result, bail};
use hoistway_workspace::needs::{self, Need};
use hoistway_workspace::tasks::Program;
use hoistway_workspace::{cargo, programs, python, repository};

use crate::{forward, laws, proof, tidy, worlds};
pub use python_tests::{Options as PythonOptions, run as test_python};
use steps::{Report, Step};

/// Options of all checks.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Install what is missing: programs (as root on Debian), targets of rustup, subcommands of
    /// cargo; otherwise the checks that need them are skipped, with the command that installs them
    #[arg(long)]
    pub install: bool,
}

/// Options of `cargo xtask test`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TestOptions {
    #[command(flatten)]
    options: Options,
    /// Also run the checks that take long and rarely fail: ten minutes of generated fio jobs, the
    /// packages for crates.io, and all packages of a release on clean systems
    #[arg(long)]
    full: bool,
    /// Run only the check with this name in the table of times; may be repeated
    #[arg(long, value_name = "CHECK", conflicts_with = "full")]
    only: Vec<String>,
}

/// The manifest of the crate with an elevator of its own, which is outside the workspace.
const OUTSIDE_ELEVATOR: &str = "examples/custom-elevator/Cargo.toml";

const RUSTFMT: &[Need] = &[Need::Component("rustfmt", "cargo-fmt")];
const CLIPPY: &[Need] = &[Need::Component("clippy", "cargo-clippy")];

const OBJDUMP: &[Need] = &[Need::Program("objdump")];
const TESTS_USE: &[Need] = &[Need::PythonEnvironments, Need::Directory("/usr/share/doc/fio/examples", "fio-examples")];

/// The checks of `cargo xtask check`.
const QUICK: [Step; 7] = [
    Step::new("format", |_| format()).needing(RUSTFMT),
    Step::new("tidy", |_| tidy::check()),
    Step::new("laws", |_| laws::check_sources()),
    Step::new("clippy", |_| clippy()).needing(CLIPPY),
    Step::new("fuzzers", |_| fuzzers()),
    Step::new("unit tests", |_| cargo_tests::libraries()),
    Step::new("decisions", |_| forward::step(Program::Pages, &["pages", "decisions"])),
];

/// The first checks of `cargo xtask test`, one after the other.
const FIRST: [Step; 6] = [
    Step::new("tools", programs),
    Step::new("format", |_| format()).needing(RUSTFMT),
    Step::new("tidy", |_| tidy::check()),
    Step::new("dependencies", |_| dependencies()).needing(&[Need::CargoTool("cargo-deny")]),
    Step::new("laws", |options| laws::check(options.install)),
    Step::new("tests", |options| cargo_tests::everything(options.install)).using(TESTS_USE),
];

/// The other checks of `cargo xtask test`. Lists run side by side, the checks of a list one after
/// the other. Those of the first list compile, and would wait for one another; the site shows the
/// playground; the proof and the packages build the same object.
const SIDE_BY_SIDE: &[&[Step]] = &[
    &[
        Step::new("clippy", |_| clippy()).needing(CLIPPY),
        Step::new("docs", |_| docs()),
        Step::new("playground", |_| forward::step(Program::Site, &["playground", "test"])).needing(needs::BROWSER),
        Step::new("site", |_| forward::step(Program::Site, &["site"])),
        Step::new("fuzzers", |_| fuzzers()),
    ],
    &[Step::new("kernel asm", |_| forward::step(Program::Kernel, &["kernel", "asm", "--check"]))
        .needing(needs::ASSEMBLY)],
    &[
        Step::new("proof", |_| proof::run()).needing(OBJDUMP),
        Step::new("packages", |_| packages()).needing(OBJDUMP).using(&[
            Need::PythonEnvironments,
            Need::Program("mmdebstrap"),
            Need::Program("nbdinfo"),
        ]),
    ],
    &[Step::new("pages", |_| forward::step(Program::Pages, &["pages"]))],
    &[Step::new("python", |options| python_tests::check(options.install)).needing(needs::PYTHON)],
    &[Step::new("worlds", |_| worlds::some())],
];

/// The checks of `cargo xtask test --full`, after the others: those that take long and rarely fail.
const LONG: &[Step] = &[
    Step::new("kernel", |_| forward::step(Program::Kernel, &["kernel", "check"])).needing(needs::KERNEL),
    Step::new("site in a browser", |_| forward::step(Program::Site, &["site", "--browser"])).using(needs::BROWSER),
    Step::new("fio-diff", |_| forward::step(Program::Fiodiff, &["fio-diff", "--minutes", "10"]))
        .needing(&[Need::Program("fio")]),
    Step::new("crates", |_| forward::step(Program::Dist, &["check-crates", "--verify", "--msrv"])),
    Step::new("all packages", |_| forward::step(Program::Dist, &["check-dist"])).needing(needs::PACKAGES),
];

/// Runs the quick checks.
pub fn quick(options: &Options) -> Result<()> {
    let mut report = Report::default();
    report.run(&QUICK, options);
    report.finish()
}

/// Runs all checks, or the named ones.
pub fn all(TestOptions { options, full, only }: &TestOptions) -> Result<()> {
    let mut report = Report::default();
    if !only.is_empty() {
        let all: Vec<Step> = every().copied().collect();
        let named: Result<Vec<Step>> = only.iter().map(|name| steps::find(&all, name)).collect();
        report.run(&named?, options);
        return report.finish();
    }
    report.run(&FIRST, options);
    report.run_side_by_side(SIDE_BY_SIDE, options);
    if *full {
        report.run(LONG, options);
    }
    report.finish()
}

/// The checks of `cargo xtask test --full`.
fn every() -> impl Iterator<Item = &'static Step> {
    FIRST.iter().chain(SIDE_BY_SIDE.iter().copied().flatten()).chain(LONG)
}

/// Installs the programs that checks start. Without that, tests whose program is missing are
/// skipped one by one.
fn programs(options: &Options) -> Result<()> {
    let needs: Vec<Need> = programs::PROGRAMS.iter().map(|(name, _)| Need::Program(name)).collect();
    match needs::provide(&needs, options.install) {
        Err(missing) if !options.install => println!("SKIPPED: parts of the checks: {missing:#} (--install does that)"),
        other => other?,
    }
    Ok(())
}

/// Checks the format of the workspace, and of the fuzzers, which are a workspace of their own.
fn format() -> Result<()> {
    programs::run(cargo::command().args(["fmt", "--all", "--check"]))?;
    programs::run(cargo::command().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    programs::run(cargo::command().args(["fmt", "--manifest-path", OUTSIDE_ELEVATOR, "--check"]))
}

fn clippy() -> Result<()> {
    programs::run(cargo::command().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Checks that the fuzzers compile, with what clippy has compiled. Nothing is linked, so libFuzzer
/// need not be compiled.
fn fuzzers() -> Result<()> {
    let directory = cargo::target_directory()?;
    let mut check = cargo::command();
    check.args(["check", "--quiet", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]).arg(&directory);
    programs::run(check.env("CUSTOM_LIBFUZZER_PATH", directory.join("libfuzzer.a")))
}

/// Builds the crate with an elevator of its own as a crate outside the workspace, without the
/// command line, and runs its simulation. It is no step of the checks, because it compiles all
/// dependencies again; the tests of the command line build the elevator with the workspace.
pub fn outside_elevator() -> Result<()> {
    // The dependencies are those of the workspace.
    let root = repository::root();
    let lock = root.join(OUTSIDE_ELEVATOR).with_file_name("Cargo.lock");
    fs::copy(root.join("Cargo.lock"), lock).context("cannot write the lock file of the outside crate")?;
    let run = ["run", "--quiet", "--no-default-features", "--bin", "simulate", "--manifest-path", OUTSIDE_ELEVATOR];
    let mut command = cargo::command();
    command.args(run).arg("--target-dir").arg(cargo::target_directory()?.join("custom-elevator"));
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    let printed = programs::output(&mut command)?;
    let speed = |name: &str| -> Option<f64> {
        let line = printed.lines().find(|line| line.split_whitespace().next() == Some(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    match (speed("slices"), speed("deadline")) {
        (Some(slices), Some(deadline)) if slices > deadline => Ok(()),
        _ => bail!("sequential readers are not faster under slices than under deadline:\n{printed}"),
    }
}

/// Installs the packages of the program and of the Python module that the tests have built.
fn packages() -> Result<()> {
    let mut check = forward::tested(Program::Dist, &["check-dist"])?;
    check.arg("--program").arg(cargo::hoistway()?).arg("--module").arg(python::tested_module()?);
    programs::run(&mut check)
}

fn docs() -> Result<()> {
    let flags = "-D warnings";
    programs::run(cargo::command().args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", flags))
}

/// Checks the dependencies. With `--install`, cargo-deny is installed before.
pub fn deny(options: &Options) -> Result<()> {
    let mut report = Report::default();
    report.run(&[steps::find(&FIRST, "dependencies")?], options);
    report.finish()
}

/// Checks the dependencies with cargo-deny. The advisories need a database from the network:
/// without it the other checks run.
fn dependencies() -> Result<()> {
    let deny =
        |checks: &[&str]| programs::run(cargo::command().args(["deny", "--log-level", "error", "check"]).args(checks));
    deny(&["bans", "licenses", "sources"])?;
    if programs::run(cargo::command().args(["deny", "--log-level", "error", "fetch", "db"])).is_err() {
        println!(
            "SKIPPED: the database of advisories cannot be fetched; licences, duplicates and sources were checked"
        );
        return Ok(());
    }
    deny(&["--disable-fetch", "advisories"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_that_a_check_needs_has_a_debian_package() {
        for need in every().chain(&QUICK).flat_map(|step| step.needs.iter().chain(step.uses)) {
            if let Need::Program(name) = need {
                programs::package_of(name).expect(name);
            }
        }
    }

    #[test]
    fn quick_checks_are_among_all_checks_but_for_two_that_have_larger_counterparts() {
        let all: Vec<_> = every().map(|step| step.name).collect();
        let only_quick: Vec<_> = QUICK.iter().map(|step| step.name).filter(|name| !all.contains(name)).collect();
        assert_eq!(only_quick, ["unit tests", "decisions"]);
    }
}
