//! The checks, one after the other, with their times: cheap ones first.

mod cargo_tests;
mod python_tests;

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::tools::{self, cargo};
use crate::{dist, kernel, laws, pages, playground, proof, repository, simulation, site, tidy};
pub use python_tests::{Options as PythonOptions, run as test_python};

/// Options of all checks.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Install missing programs (as root on Debian); otherwise they are listed with the command
    /// that installs them
    #[arg(long)]
    pub install: bool,
}

/// The manifest of the crate with an elevator of its own, which is outside the workspace.
const OUTSIDE_ELEVATOR: &str = "examples/custom-elevator/Cargo.toml";

/// A check: its name, and the function that runs it.
type Step = (&'static str, fn(&Options) -> Result<()>);

/// The checks of `cargo xtask check`.
const QUICK: [Step; 7] = [
    ("format", |_| format()),
    ("tidy", |_| tidy::check()),
    ("laws", |_| laws::check_sources()),
    ("clippy", |_| clippy()),
    ("fuzzers", |_| fuzzers()),
    ("unit tests", |_| cargo_tests::libraries()),
    ("decisions", |_| pages::check_decisions()),
];

/// The checks of `cargo xtask test`.
const ALL: [Step; 18] = [
    ("tools", |options| tools::require(options.install)),
    ("format", |_| format()),
    ("tidy", |_| tidy::check()),
    ("dependencies", dependencies),
    ("laws", |_| laws::check()),
    ("clippy", |_| clippy()),
    ("fuzzers", |_| fuzzers()),
    ("tests", |_| cargo_tests::everything()),
    ("packages", |_| dist::check_quick()),
    ("python", |_| python_tests::check()),
    ("pages", |_| pages::check()),
    ("playground", |_| playground::test()),
    ("site", |_| site::check()),
    ("worlds", |_| simulation::some_worlds()),
    ("docs", |_| docs()),
    ("proof", |_| proof::run()),
    ("kernel asm", |_| kernel::check_assembly()),
    ("kernel", |options| kernel::check(options.install)),
];

/// Runs the quick checks.
pub fn quick(options: &Options) -> Result<()> {
    run(&QUICK, options)
}

/// Runs all checks.
pub fn all(options: &Options) -> Result<()> {
    run(&ALL, options)
}

/// Runs checks; one that fails does not keep the others from running. At the end prints the errors
/// once more, because thousands of lines may lie between, and fails with the names of the failed
/// checks.
fn run(steps: &[Step], options: &Options) -> Result<()> {
    let start = Instant::now();
    let (mut rows, mut failed, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for (name, check) in steps {
        println!("== {name}");
        let began = Instant::now();
        let result = check(options);
        let seconds = began.elapsed().as_secs_f64();
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        println!("== {name}: {word} in {seconds:.1} s");
        rows.push(row(name, word, seconds));
        if let Err(error) = result {
            println!("{error:#}");
            failed.push(*name);
            errors.push(format!("== {name} failed:\n{error:#}"));
        }
    }
    rows.push(row("all", "", start.elapsed().as_secs_f64()));
    println!("== times\n{}", rows.join("\n"));
    errors.iter().for_each(|error| println!("{error}"));
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// A row of the table of times.
fn row(name: &str, word: &str, seconds: f64) -> String {
    format!("{name:<12} {word:<6} {seconds:>7.1} s")
}

/// Checks the format of the workspace, and of the fuzzers, which are a workspace of their own.
fn format() -> Result<()> {
    tools::run(cargo().args(["fmt", "--all", "--check"]))?;
    tools::run(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    tools::run(cargo().args(["fmt", "--manifest-path", OUTSIDE_ELEVATOR, "--check"]))
}

fn clippy() -> Result<()> {
    tools::run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Checks that the fuzzers compile. They have a target directory of their own, because their
/// features and profiles differ; nothing is linked, so that libFuzzer need not be compiled.
fn fuzzers() -> Result<()> {
    let check = ["check", "--quiet", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target/fuzz"];
    tools::run(cargo().args(check).env("CUSTOM_LIBFUZZER_PATH", "target/fuzz/libfuzzer.a"))
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
    let mut command = cargo();
    command.args(run).args(["--target-dir", "target/custom-elevator"]).env("CARGO_PROFILE_DEV_DEBUG", "0");
    let printed = tools::output(&mut command)?;
    let speed = |name: &str| -> Option<f64> {
        let line = printed.lines().find(|line| line.split_whitespace().next() == Some(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    match (speed("slices"), speed("deadline")) {
        (Some(slices), Some(deadline)) if slices > deadline => Ok(()),
        _ => bail!("sequential readers are not faster under slices than under deadline:\n{printed}"),
    }
}

fn docs() -> Result<()> {
    let flags = "-D warnings";
    tools::run(cargo().args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", flags))
}

/// Checks the dependencies with cargo-deny. The advisories need a database from the network:
/// without it the other checks run.
pub fn dependencies(options: &Options) -> Result<()> {
    if tools::find_cargo_tool("cargo-deny").is_none() {
        if !options.install {
            println!("SKIPPED: cargo-deny is missing: cargo install --locked cargo-deny");
            return Ok(());
        }
        tools::run(cargo().args(["install", "--quiet", "--locked", "--debug", "cargo-deny"]))?;
    }
    let deny = |checks: &[&str]| tools::run(cargo().args(["deny", "--log-level", "error", "check"]).args(checks));
    deny(&["bans", "licenses", "sources"])?;
    if tools::run(cargo().args(["deny", "--log-level", "error", "fetch", "db"])).is_err() {
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
    fn a_check_that_fails_does_not_keep_the_next_from_running() {
        let steps: [Step; 2] = [("bad", |_| bail!("broken")), ("worse", |_| bail!("broken too"))];
        let error = run(&steps, &Options::default()).expect_err("both fail");
        assert_eq!(error.to_string(), "failed: bad, worse");
        assert!(run(&[("good", |_| Ok(()))], &Options::default()).is_ok());
    }

    #[test]
    fn quick_checks_are_among_all_checks_but_for_two_that_have_larger_counterparts() {
        let all: Vec<_> = ALL.iter().map(|(name, _)| *name).collect();
        let only_quick: Vec<_> = QUICK.iter().map(|(name, _)| *name).filter(|name| !all.contains(name)).collect();
        assert_eq!(only_quick, ["unit tests", "decisions"]);
    }
}
