//! The tests of the workspace, built by cargo, with their results counted.
//!
//! Cargo runs one test program after the other. Most of them wait for much of their time (for
//! mounts, servers and other programs), so [`everything`] runs as many of them side by side as the
//! machine has processors.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tools::cargo;

/// Runs the unit tests of all libraries and programs.
pub fn libraries() -> Result<()> {
    let (results, success) =
        pass_on(cargo().args(["test", "--quiet", "--workspace", "--no-fail-fast", "--lib", "--bins"]))?;
    summarise(&results, success)
}

/// Runs all tests: those of libraries, programs, examples and documentation, and the integration
/// tests.
pub fn everything() -> Result<()> {
    let start = Instant::now();
    let programs = build()?;
    println!("-- built {} test programs in {:.0} s", programs.len(), start.elapsed().as_secs_f64());
    let (mut results, mut success) = run_side_by_side(programs)?;
    let (documentation, passed) = pass_on(cargo().args(["test", "--quiet", "--workspace", "--no-fail-fast", "--doc"]))?;
    results.extend(documentation);
    success &= passed;
    summarise(&results, success)
}

/// The variable that gives proptest the seed of its cases.
const SEED: &str = "PROPTEST_RNG_SEED";
/// The seed of the checks, if the variable is not set: without it every run draws other cases, and
/// a check of an unrelated change could find an old fault.
const SEED_OF_CHECKS: &str = "1";

/// A test program.
#[derive(Debug, PartialEq, Eq)]
struct TestProgram {
    /// True for integration tests, false for unit tests.
    is_integration: bool,
    /// The directory of its package, in which it runs.
    directory: PathBuf,
    executable: PathBuf,
}

impl TestProgram {
    /// Reads one of cargo's messages in JSON; `None` if it does not tell of a test program.
    fn of_message(message: &Value) -> Option<TestProgram> {
        let executable = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
        let directory = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_path_buf();
        Some(TestProgram {
            is_integration: message["target"]["kind"][0] == "test",
            directory,
            executable: executable.into(),
        })
    }

    /// The package and the name of the file.
    fn name(&self) -> String {
        let part = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{}: {}", part(&self.directory), part(&self.executable))
    }
}

/// Builds all test programs and the programs that they start. Returns the test programs,
/// integration tests first because they take the longest.
fn build() -> Result<Vec<TestProgram>> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut programs = Vec::new();
    for line in BufReader::new(output).lines() {
        programs.extend(TestProgram::of_message(&serde_json::from_str(&line?).context("a message of cargo")?));
    }
    if !child.wait()?.success() {
        bail!("cargo test --no-run failed");
    }
    programs.sort_by_key(|program| !program.is_integration);
    Ok(programs)
}

/// Runs test programs, as many at a time as there are processors. Prints the output of each when it
/// has ended. Returns the lines with results, and whether all succeeded.
fn run_side_by_side(programs: Vec<TestProgram>) -> Result<(Vec<String>, bool)> {
    let at_a_time = std::thread::available_parallelism().map_or(1, |processors| processors.get());
    let remaining = Mutex::new(programs.into_iter());
    let ended = Mutex::new((Vec::new(), true));
    let work = || -> Result<()> {
        loop {
            let next = remaining.lock().expect("no thread panics with the lock").next();
            let Some(program) = next else { return Ok(()) };
            let (lines, success) = run_program(&program)?;
            let mut ended = ended.lock().expect("no thread panics with the lock");
            ended.0.extend(lines);
            ended.1 &= success;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    Ok(ended.into_inner().expect("no thread panics with the lock"))
}

/// Runs a test program and prints its output. Returns the lines with results, and whether it
/// succeeded.
fn run_program(program: &TestProgram) -> Result<(Vec<String>, bool)> {
    println!("-- {} begins", program.name());
    let start = Instant::now();
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.directory).env("CARGO_MANIFEST_DIR", &program.directory);
    if std::env::var_os(SEED).is_none() {
        command.env(SEED, SEED_OF_CHECKS);
    }
    let output = command.env("HOISTWAY_REQUIRE_BROWSER", "1").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {}", program.executable.display()))?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // In one call, so that the outputs of two programs do not mix.
    println!("-- {} ({:.1} s)\n{text}{errors}", program.name(), start.elapsed().as_secs_f64());
    Ok((text.lines().filter(|line| is_result(line)).map(str::to_owned).collect(), output.status.success()))
}

/// Prints the lines with results once more, with their sums. Fails if a test failed.
fn summarise(results: &[String], success: bool) -> Result<()> {
    println!("-- results of all tests");
    for line in results {
        println!("{line}");
    }
    let [passed, failed, ignored] =
        ["passed", "failed", "ignored"].map(|word| results.iter().map(|line| count(line, word)).sum::<u64>());
    println!("-- {passed} tests passed, {failed} failed, {ignored} were ignored");
    if !success || failed > 0 {
        bail!("tests failed");
    }
    if passed == 0 {
        bail!("not a single test ran");
    }
    Ok(())
}

/// Runs a command of cargo and passes its output on. Returns the lines with results, and whether
/// the command succeeded.
fn pass_on(command: &mut Command) -> Result<(Vec<String>, bool)> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut results = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if is_result(&line) {
            results.push(line);
        }
    }
    Ok((results, child.wait()?.success()))
}

/// Returns true for a line with the result of a test program.
fn is_result(line: &str) -> bool {
    line.starts_with("test result:")
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

    #[test]
    fn test_programs_are_found_among_the_messages_of_cargo() {
        let message = |test: bool| {
            let text = format!(
                r#"{{"manifest_path": "/w/crates/nbd/Cargo.toml", "target": {{"kind": ["test"]}},
                    "profile": {{"test": {test}}}, "executable": "/w/target/it-12"}}"#
            );
            TestProgram::of_message(&serde_json::from_str(&text).expect("JSON"))
        };
        let expected = TestProgram {
            is_integration: true,
            directory: "/w/crates/nbd".into(),
            executable: "/w/target/it-12".into(),
        };
        assert_eq!(message(true), Some(expected));
        assert_eq!(message(false), None, "an ordinary program");
    }

    #[test]
    fn the_failure_of_one_program_is_a_failure_of_all() {
        let program =
            |name: &str| TestProgram { is_integration: false, directory: "/".into(), executable: name.into() };
        let (lines, success) = run_side_by_side(vec![program("true"), program("false")]).expect("both run");
        assert!(lines.is_empty() && !success);
        assert!(summarise(&["test result: ok. 1 passed; 0 failed".into()], true).is_ok());
        assert!(summarise(&[], true).is_err(), "no test ran");
    }
}
