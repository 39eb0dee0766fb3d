//! The checks, one after the other, with their times: cheap ones first.

mod cargo_tests;
mod python_tests;

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hoistway_workspace::needs::{self, Need};
use hoistway_workspace::tasks::Program;
use hoistway_workspace::{cargo, programs, python, repository};

use crate::{forward, laws, proof, tidy, worlds};
pub use python_tests::{Options as PythonOptions, run as test_python};

/// Options of all checks.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Install what is missing: programs (as root on Debian), targets of rustup, subcommands of
    /// cargo; otherwise the checks that need them are skipped, with the command that installs them
    #[arg(long)]
    pub install: bool,
}

/// Options of `cargo xtask test`.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct TestOptions {
    #[command(flatten)]
    options: Options,
    /// Also run the check that takes long: ten minutes of generated fio jobs
    #[arg(long)]
    full: bool,
}

/// The manifest of the crate with an elevator of its own, which is outside the workspace.
const OUTSIDE_ELEVATOR: &str = "examples/custom-elevator/Cargo.toml";

/// A check.
#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    /// What it cannot run without.
    needs: &'static [Need],
    /// What it runs without, but then it skips parts of itself, and says so.
    uses: &'static [Need],
    run: fn(&Options) -> Result<()>,
}

impl Step {
    const fn new(name: &'static str, run: fn(&Options) -> Result<()>) -> Step {
        Step { name, needs: &[], uses: &[], run }
    }

    const fn needing(self, needs: &'static [Need]) -> Step {
        Step { needs, ..self }
    }

    const fn using(self, uses: &'static [Need]) -> Step {
        Step { uses, ..self }
    }

    /// Runs the check, after what it needs is installed if that is wished for.
    fn run(&self, options: &Options) -> Result<Outcome> {
        match needs::provide(self.needs, options.install) {
            Err(error) if options.install => return Err(error),
            Err(missing) => return Ok(Outcome::Skipped(format!("{missing:#}"))),
            Ok(()) => {}
        }
        if options.install {
            needs::provide(self.uses, true)?;
        }
        (self.run)(options).map(|()| Outcome::Passed)
    }
}

/// How a check ended that found no fault.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// Something is missing: what, and the command that installs it.
    Skipped(String),
}

const RUSTFMT: &[Need] = &[Need::Component("rustfmt", "cargo-fmt")];
const CLIPPY: &[Need] = &[Need::Component("clippy", "cargo-clippy")];

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

/// The checks of `cargo xtask test`.
const ALL: [Step; 18] = [
    Step::new("tools", programs),
    Step::new("format", |_| format()).needing(RUSTFMT),
    Step::new("tidy", |_| tidy::check()),
    Step::new("dependencies", |_| dependencies()).needing(&[Need::CargoTool("cargo-deny")]),
    Step::new("laws", |options| laws::check(options.install)),
    Step::new("clippy", |_| clippy()).needing(CLIPPY),
    Step::new("fuzzers", |_| fuzzers()),
    Step::new("tests", |options| cargo_tests::everything(options.install)).using(TESTS_USE),
    Step::new("packages", |_| packages()).needing(&[Need::Program("objdump")]).using(&[
        Need::PythonEnvironments,
        Need::Program("mmdebstrap"),
        Need::Program("nbdinfo"),
    ]),
    Step::new("python", |options| python_tests::check(options.install)).needing(needs::PYTHON),
    Step::new("pages", |_| forward::step(Program::Pages, &["pages"])),
    Step::new("playground", |_| forward::step(Program::Site, &["playground", "test"])).needing(needs::BROWSER),
    Step::new("site", |_| forward::step(Program::Site, &["site", "--browser"])).using(needs::BROWSER),
    Step::new("worlds", |_| worlds::some()),
    Step::new("docs", |_| docs()),
    Step::new("proof", |_| proof::run()).needing(&[Need::Program("objdump")]),
    Step::new("kernel asm", |_| forward::step(Program::Kernel, &["kernel", "asm", "--check"])).needing(needs::ASSEMBLY),
    Step::new("kernel", |_| forward::step(Program::Kernel, &["kernel", "check"])).needing(needs::KERNEL),
];

/// The checks of `cargo xtask test --full`, after the others.
const LONG: [Step; 1] = [Step::new("fio-diff", |_| forward::step(Program::Fiodiff, &["fio-diff", "--minutes", "10"]))
    .needing(&[Need::Program("fio")])];

/// Runs the quick checks.
pub fn quick(options: &Options) -> Result<()> {
    run(&QUICK, options)
}

/// Runs all checks.
pub fn all(TestOptions { options, full }: &TestOptions) -> Result<()> {
    let long = if *full { LONG.as_slice() } else { &[] };
    run(&[&ALL, long].concat(), options)
}

/// Runs checks; one that fails does not keep the others from running. At the end prints what was
/// skipped for want of something, and the errors, once more, because thousands of lines may lie
/// between. Fails with the names of the failed checks.
fn run(steps: &[Step], options: &Options) -> Result<()> {
    let start = Instant::now();
    let (mut rows, mut failed, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    for step in steps {
        let name = step.name;
        println!("== {name}");
        let began = Instant::now();
        let result = step.run(options);
        let word = match &result {
            Ok(Outcome::Passed) => "ok",
            Ok(Outcome::Skipped(_)) => "skipped",
            Err(_) => "FAILED",
        };
        let seconds = began.elapsed().as_secs_f64();
        println!("== {name}: {word} in {seconds:.1} s");
        rows.push(row(name, word, seconds));
        match result {
            Ok(Outcome::Passed) => {}
            Ok(Outcome::Skipped(missing)) => {
                println!("SKIPPED: {missing} (--install does that)");
                remarks.push(format!("== {name} skipped: {missing}"));
            }
            Err(error) => {
                println!("{error:#}");
                failed.push(name);
                remarks.push(format!("== {name} failed:\n{error:#}"));
            }
        }
    }
    rows.push(row("all", "", start.elapsed().as_secs_f64()));
    println!("== times\n{}", rows.join("\n"));
    remarks.iter().for_each(|remark| println!("{remark}"));
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// A row of the table of times.
fn row(name: &str, word: &str, seconds: f64) -> String {
    format!("{name:<12} {word:<7} {seconds:>7.1} s")
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

/// Checks that the fuzzers compile. They have a target directory of their own, because their
/// features and profiles differ; nothing is linked, so that libFuzzer need not be compiled.
fn fuzzers() -> Result<()> {
    let directory = cargo::target_directory()?.join("fuzz");
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

/// Checks the dependencies, after cargo-deny is installed if that is wished for.
pub fn deny(options: &Options) -> Result<()> {
    let step = ALL.into_iter().find(|step| step.name == "dependencies").context("no check of the dependencies")?;
    run(&[step], options)
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

    const BAD: fn(&Options) -> Result<()> = |_| bail!("broken");
    const GOOD: fn(&Options) -> Result<()> = |_| Ok(());

    #[test]
    fn a_check_that_fails_does_not_keep_the_next_from_running() {
        let error = run(&[Step::new("bad", BAD), Step::new("worse", BAD)], &Options::default()).expect_err("both fail");
        assert_eq!(error.to_string(), "failed: bad, worse");
        assert!(run(&[Step::new("good", GOOD)], &Options::default()).is_ok());
    }

    #[test]
    fn a_check_is_skipped_with_the_command_that_installs_what_is_missing() {
        let step = Step::new("bad", BAD).needing(&[Need::Target("msp430-none-elf")]);
        let outcome = step.run(&Options::default()).expect("it does not run");
        let expected = "msp430-none-elf is missing: rustup target add msp430-none-elf";
        assert_eq!(outcome, Outcome::Skipped(expected.to_owned()));
        assert!(run(&[step], &Options::default()).is_ok());
        let partly = Step::new("good", GOOD).using(&[Need::Target("msp430-none-elf")]);
        assert_eq!(partly.run(&Options::default()).expect("it runs"), Outcome::Passed);
    }

    #[test]
    fn every_program_that_a_check_needs_has_a_debian_package() {
        for need in ALL.iter().chain(&QUICK).flat_map(|step| step.needs.iter().chain(step.uses)) {
            if let Need::Program(name) = need {
                programs::package_of(name).expect(name);
            }
        }
    }

    #[test]
    fn quick_checks_are_among_all_checks_but_for_two_that_have_larger_counterparts() {
        let all: Vec<_> = ALL.iter().map(|step| step.name).collect();
        let only_quick: Vec<_> = QUICK.iter().map(|step| step.name).filter(|name| !all.contains(name)).collect();
        assert_eq!(only_quick, ["unit tests", "decisions"]);
    }
}
