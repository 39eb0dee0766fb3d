//! All checks, one after the other, with their times.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::tools::{self, cargo};
use crate::{laws, pages, proof, tidy, worlds};

/// A check.
type Step = fn() -> Result<()>;

/// Runs everything. A failing step does not keep the others from running; at the end all that failed are named.
pub fn test() -> Result<()> {
    let steps: [(&str, Step); 10] = [
        ("tools", tools::install_missing),
        ("format", format),
        ("tidy", tidy::run),
        ("clippy", clippy),
        ("tests", tests),
        ("docs", docs),
        ("pages", pages::check),
        ("laws", laws::run),
        ("proof", proof::run),
        ("worlds", worlds::some),
    ];
    let start = Instant::now();
    let mut summary = Vec::new();
    let mut failed = Vec::new();
    for (name, step) in steps {
        println!("== {name}");
        let began = Instant::now();
        let result = step();
        let seconds = began.elapsed().as_secs_f64();
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        println!("== {name}: {word} in {seconds:.1} s");
        summary.push(format!("{name:<8} {word:<6} {seconds:>7.1} s"));
        if let Err(error) = result {
            println!("{error:#}");
            failed.push(name);
        }
    }
    println!("== summary\n{}\nall      {:>14.1} s", summary.join("\n"), start.elapsed().as_secs_f64());
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// The fuzzers are a workspace of their own.
fn format() -> Result<()> {
    tools::run(cargo().args(["fmt", "--all", "--check"]))?;
    tools::run(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn clippy() -> Result<()> {
    tools::run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn docs() -> Result<()> {
    let flags = "-D warnings";
    tools::run(cargo().args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", flags))
}

/// All tests of the workspace. Their output is passed on; the lines that tell the results are printed once more at the end, so
/// that they stay in sight, and counted.
fn tests() -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).env("HOISTWAY_REQUIRE_BROWSER", "1").stdout(Stdio::piped());
    let (results, success) = pass_on(&mut command)?;
    println!("-- results of all tests");
    for line in &results {
        println!("{line}");
    }
    let [passed, failed, ignored] =
        ["passed", "failed", "ignored"].map(|what| results.iter().map(|line| count(line, what)).sum::<u64>());
    println!("-- {passed} tests passed, {failed} failed, {ignored} were ignored");
    if !success || failed > 0 {
        bail!("cargo test failed");
    }
    if passed == 0 {
        bail!("not a single test ran");
    }
    Ok(())
}

/// Runs a command, passes its output on, and answers the lines that tell results.
fn pass_on(command: &mut Command) -> Result<(Vec<String>, bool)> {
    let mut child = command.spawn().context("cannot start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut results = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if line.starts_with("test result:") {
            results.push(line);
        }
    }
    Ok((results, child.wait()?.success()))
}

/// The number before a word in `test result: ok. 12 passed; 0 failed; ...`.
fn count(line: &str, what: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ';']).collect();
    let found = words.windows(2).find(|pair| pair[1] == what);
    found.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let line = "test result: ok. 12 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!((count(line, "passed"), count(line, "failed"), count(line, "ignored")), (12, 1, 3));
    }
}
