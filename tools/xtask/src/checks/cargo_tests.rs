//! The tests of the workspace, built by cargo, with their results counted.
//!
//! Cargo runs one test program after the other. Most of them wait for much of their time (for
//! mounts, servers and other programs), so [`everything`] runs as many of them side by side as the
//! machine has processors. Those that compare times run alone, after the others.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hoistway_workspace::cargo;
use serde_json::Value;

/// Runs the unit tests of all libraries and programs.
pub fn libraries() -> Result<()> {
    let libraries = ["test", "--quiet", "--workspace", "--no-fail-fast", "--lib", "--bins"];
    summarise(&pass_on(cargo::command().args(libraries))?)
}

/// Runs all tests: those of libraries, programs, examples and documentation, and the integration
/// tests. With `browser`, tests of pages fail without Chromium, which they are otherwise skipped
/// for.
pub fn everything(browser: bool) -> Result<()> {
    let start = Instant::now();
    let programs = build()?;
    println!("-- built {} test programs in {:.0} s", programs.len(), start.elapsed().as_secs_f64());
    let (alone, others) = programs.into_iter().partition(|program| ALONE.contains(&program.package().as_str()));
    let at_a_time = std::thread::available_parallelism().map_or(1, |processors| processors.get());
    let mut outcome = run_side_by_side(others, at_a_time, browser)?;
    outcome.add(run_side_by_side(alone, 1, browser)?);
    outcome.add(pass_on(cargo::command().args(["test", "--quiet", "--workspace", "--no-fail-fast", "--doc"]))?);
    summarise(&outcome)
}

/// What test programs printed that is of use at the end.
#[derive(Debug)]
struct Outcome {
    /// The lines with results.
    results: Vec<String>,
    /// The output of the failed tests, by program.
    failures: Vec<String>,
    /// True if all programs exited with 0.
    success: bool,
}

impl Outcome {
    /// The outcome of no program.
    fn none() -> Outcome {
        Outcome { results: Vec::new(), failures: Vec::new(), success: true }
    }

    /// The outcome of a program that printed this text.
    fn of(text: &str, success: bool) -> Outcome {
        let results = text.lines().filter(|line| line.starts_with("test result:")).map(str::to_owned).collect();
        Outcome { results, failures: failures(text).collect(), success }
    }

    fn add(&mut self, more: Outcome) {
        self.results.extend(more.results);
        self.failures.extend(more.failures);
        self.success &= more.success;
    }
}

/// Lines of a program's failures that are printed once more at the end.
const FAILURE_LINES_MAX: usize = 100;

/// Returns the outputs of the failed tests, an element for each test program. A program prints two
/// sections `failures:`: outputs, and then names.
fn failures(text: &str) -> impl Iterator<Item = String> {
    text.split("\nfailures:\n").skip(1).step_by(2).map(|section| {
        let lines: Vec<&str> = section.trim().lines().collect();
        let kept = lines[..lines.len().min(FAILURE_LINES_MAX)].join("\n");
        let left_out = lines.len().saturating_sub(FAILURE_LINES_MAX);
        if left_out == 0 { kept } else { format!("{kept}\n({left_out} further lines stand above)") }
    })
}

/// The packages whose test programs compare times with those of other programs. Beside others they
/// repeat their runs until the machine delays none of them, for minutes.
const ALONE: [&str; 1] = ["fiodiff"];

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

    /// The name of the package's directory.
    fn package(&self) -> String {
        last_part(&self.directory)
    }

    /// The package and the name of the file.
    fn name(&self) -> String {
        format!("{}: {}", self.package(), last_part(&self.executable))
    }
}

fn last_part(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Builds all test programs and the programs that they start. Returns the test programs,
/// integration tests first because they take the longest.
fn build() -> Result<Vec<TestProgram>> {
    let mut command = cargo::command();
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

/// Runs test programs, some at a time. Prints the output of each when it has ended.
fn run_side_by_side(programs: Vec<TestProgram>, at_a_time: usize, browser: bool) -> Result<Outcome> {
    let remaining = Mutex::new(programs.into_iter());
    let ended = Mutex::new(Outcome::none());
    let work = || -> Result<()> {
        loop {
            let next = remaining.lock().expect("no thread panics with the lock").next();
            let Some(program) = next else { return Ok(()) };
            let outcome = run_program(&program, browser)?;
            ended.lock().expect("no thread panics with the lock").add(outcome);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    Ok(ended.into_inner().expect("no thread panics with the lock"))
}

/// Runs a test program and prints its output.
fn run_program(program: &TestProgram, browser: bool) -> Result<Outcome> {
    println!("-- {} begins", program.name());
    let start = Instant::now();
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.directory).env("CARGO_MANIFEST_DIR", &program.directory);
    if std::env::var_os(SEED).is_none() {
        command.env(SEED, SEED_OF_CHECKS);
    }
    if browser {
        command.env("HOISTWAY_REQUIRE_BROWSER", "1");
    }
    let (mut texts, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    // Files, not pipes: a process that a failed test leaves behind would keep a pipe open.
    command.stdin(Stdio::null()).stdout(texts.try_clone()?).stderr(errors.try_clone()?);
    let status = command.status().with_context(|| format!("cannot start {}", program.executable.display()))?;
    let (text, errors) = (written(&mut texts)?, written(&mut errors)?);
    // In one call, so that the outputs of two programs do not mix.
    println!("-- {} ({:.1} s)\n{text}{errors}", program.name(), start.elapsed().as_secs_f64());
    let mut outcome = Outcome::of(&text, status.success());
    if !outcome.success && outcome.failures.is_empty() {
        let name = program.name();
        outcome.failures.push(format!("{name} ended with {status}, and no test of it is reported as failed"));
    }
    Ok(outcome)
}

/// Returns what a program has written to a file.
fn written(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Prints the lines with results once more, with their sums. Fails if a test failed, with the
/// output of the failed tests as the error.
fn summarise(Outcome { results, failures, success }: &Outcome) -> Result<()> {
    println!("-- results of all tests");
    for line in results {
        println!("{line}");
    }
    let [passed, failed, ignored] =
        ["passed", "failed", "ignored"].map(|word| results.iter().map(|line| count(line, word)).sum::<u64>());
    println!("-- {passed} tests passed, {failed} failed, {ignored} were ignored");
    if !success || failed > 0 {
        bail!("{failed} tests failed\n{}", failures.join("\n"));
    }
    if passed == 0 {
        bail!("not a single test ran");
    }
    Ok(())
}

/// Runs a command of cargo and passes its output on.
fn pass_on(command: &mut Command) -> Result<Outcome> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut text = String::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        text.push_str(&line);
        text.push('\n');
    }
    Ok(Outcome::of(&text, child.wait()?.success()))
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
    fn the_output_of_failed_tests_is_part_of_the_error() {
        let output = "\
running 2 tests
test good ... ok
test bad ... FAILED

failures:

---- bad stdout ----
thread 'bad' panicked at tests/it/main.rs:3:5:
two is not three

failures:
    bad

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let error = summarise(&Outcome::of(output, false)).expect_err("a test failed").to_string();
        let expected =
            "1 tests failed\n---- bad stdout ----\nthread 'bad' panicked at tests/it/main.rs:3:5:\ntwo is not three";
        assert_eq!(error, expected);
        let endless = format!("\nfailures:\n\n{}\nfailures:\n    bad\n", "line\n".repeat(FAILURE_LINES_MAX + 7));
        let two: Vec<String> = failures(&format!("{output}{endless}")).collect();
        assert!(two.len() == 2 && expected.ends_with(&two[0]), "{two:?}");
        assert!(two[1].ends_with("line\n(7 further lines stand above)"), "{two:?}");
        assert_eq!(failures("test good ... ok\n").count(), 0);
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
        let outcome = run_side_by_side(vec![program("true"), program("false")], 2, false).expect("both run");
        assert!(outcome.results.is_empty() && !outcome.success);
        assert_eq!(outcome.failures, [": false ended with exit status: 1, and no test of it is reported as failed"]);
        assert!(summarise(&Outcome::of("test result: ok. 1 passed; 0 failed", true)).is_ok());
        assert!(summarise(&Outcome::none()).is_err(), "no test ran");
    }
}
