//! The checks, one after the other, with their times: cheap ones first.

mod cargo_tests;
mod python_tests;

use std::time::Instant;

use anyhow::{Result, bail};

use crate::tools::{self, cargo};
use crate::{laws, pages, proof, simulation, tidy};
pub use python_tests::{Options as PythonOptions, run as test_python};

/// Options of all checks.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Install missing programs (as root on Debian); otherwise they are listed with the command
    /// that installs them
    #[arg(long)]
    pub install: bool,
}

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
const ALL: [Step; 13] = [
    ("tools", |options| tools::require(options.install)),
    ("format", |_| format()),
    ("tidy", |_| tidy::check()),
    ("dependencies", dependencies),
    ("laws", |_| laws::check()),
    ("clippy", |_| clippy()),
    ("fuzzers", |_| fuzzers()),
    ("tests", |_| cargo_tests::everything()),
    ("python", |_| python_tests::check()),
    ("pages", |_| pages::check()),
    ("worlds", |_| simulation::some_worlds()),
    ("docs", |_| docs()),
    ("proof", |_| proof::run()),
];

/// Runs the quick checks.
pub fn quick(options: &Options) -> Result<()> {
    run(&QUICK, options)
}

/// Runs all checks.
pub fn all(options: &Options) -> Result<()> {
    run(&ALL, options)
}

/// Runs checks; one that fails does not keep the others from running. Fails at the end and names
/// all that failed.
fn run(steps: &[Step], options: &Options) -> Result<()> {
    let start = Instant::now();
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
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
        }
    }
    rows.push(row("all", "", start.elapsed().as_secs_f64()));
    println!("== times\n{}", rows.join("\n"));
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// A row of the table of times.
fn row(name: &str, word: &str, seconds: f64) -> String {
    format!("{name:<12} {word:<6} {seconds:>7.1} s")
}

/// Checks the format of the workspace, and of the fuzzers, which are a workspace of their own.
fn format() -> Result<()> {
    tools::run(cargo().args(["fmt", "--all", "--check"]))?;
    tools::run(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
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
