//! The tests of the workspace, run by cargo, with their results counted.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tools::cargo;

/// Runs the unit tests of all libraries and programs.
pub fn libraries() -> Result<()> {
    run(cargo().args(["test", "--quiet", "--workspace", "--no-fail-fast", "--lib", "--bins"]))
}

/// Runs all tests: those of libraries, programs, examples and documentation, and the integration
/// tests.
pub fn everything() -> Result<()> {
    run(cargo().args(["test", "--workspace", "--no-fail-fast"]).env("HOISTWAY_REQUIRE_BROWSER", "1"))
}

/// Runs cargo and passes its output on. Prints the lines with results once more at the end, with
/// their sums.
fn run(command: &mut Command) -> Result<()> {
    let (results, success) = pass_on(command.stdout(Stdio::piped()))?;
    println!("-- results of all tests");
    for line in &results {
        println!("{line}");
    }
    let [passed, failed, ignored] =
        ["passed", "failed", "ignored"].map(|word| results.iter().map(|line| count(line, word)).sum::<u64>());
    println!("-- {passed} tests passed, {failed} failed, {ignored} were ignored");
    if !success || failed > 0 {
        bail!("cargo test failed");
    }
    if passed == 0 {
        bail!("not a single test ran");
    }
    Ok(())
}

/// Runs a command and passes its output on. Returns the lines with results, and whether the command
/// succeeded.
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

/// Returns the number before a word in `test result: ok. 12 passed; 0 failed; ...`, 0 if the word
/// is missing.
fn count(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ';']).collect();
    let found = words.windows(2).find(|pair| pair[1] == word);
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
