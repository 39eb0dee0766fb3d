//! Steps of the checks: run one after the other or side by side, timed, and reported.

use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hoistway_workspace::cargo;
use hoistway_workspace::needs::{self, Need};

use super::Options;

/// A check.
#[derive(Clone, Copy)]
pub struct Step {
    pub name: &'static str,
    /// What it cannot run without.
    pub needs: &'static [Need],
    /// What it runs without, but then it skips parts of itself, and says so.
    pub uses: &'static [Need],
    run: fn(&Options) -> Result<()>,
}

impl Step {
    pub const fn new(name: &'static str, run: fn(&Options) -> Result<()>) -> Step {
        Step { name, needs: &[], uses: &[], run }
    }

    pub const fn needing(self, needs: &'static [Need]) -> Step {
        Step { needs, ..self }
    }

    pub const fn using(self, uses: &'static [Need]) -> Step {
        Step { uses, ..self }
    }

    /// Runs the check. With `--install`, what it needs is installed before.
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

/// Finds a check by its name.
pub fn find(steps: &[Step], name: &str) -> Result<Step> {
    let names = || steps.iter().map(|step| step.name).collect::<Vec<_>>().join(", ");
    let found = steps.iter().find(|step| step.name == name);
    found.copied().with_context(|| format!("no check has the name {name:?}; the names are {}", names()))
}

/// The results of checks. One that fails does not keep the others from running.
#[derive(Debug)]
pub struct Report {
    start: Instant,
    /// The rows of the table of times.
    rows: Vec<String>,
    failed: Vec<&'static str>,
    /// What was skipped for want of something, and the errors. They are printed at the end once
    /// more, because thousands of lines may lie between.
    remarks: Vec<String>,
}

impl Default for Report {
    fn default() -> Report {
        Report { start: Instant::now(), rows: Vec::new(), failed: Vec::new(), remarks: Vec::new() }
    }
}

impl Report {
    /// Runs checks one after the other.
    pub fn run(&mut self, steps: &[Step], options: &Options) {
        for step in steps {
            println!("== {}", step.name);
            let begun = Instant::now();
            let result = step.run(options);
            self.add(step.name, result, begun);
        }
    }

    /// Runs lists of checks side by side, as many as the machine has processors; each check is a
    /// process of its own, whose output is printed when it has ended. What the checks need is
    /// installed before, with `--install`: two installations cannot run at the same time.
    pub fn run_side_by_side(&mut self, lists: &'static [&'static [Step]], options: &Options) {
        if options.install {
            for step in lists.iter().copied().flatten() {
                // The check itself reports what cannot be installed.
                let _ = needs::provide(step.needs, true).and_then(|()| needs::provide(step.uses, true));
            }
        }
        println!("== programs");
        let begun = Instant::now();
        self.add("programs", cargo::build_all().map(|()| Outcome::Passed), begun);
        let at_a_time = std::thread::available_parallelism().map_or(1, |processors| processors.get());
        let (remaining, report) = (Mutex::new(lists.iter()), Mutex::new(self));
        let work = || {
            loop {
                let next = remaining.lock().expect("no thread panics with the lock").next();
                let Some(list) = next else { return };
                for step in *list {
                    let begun = Instant::now();
                    let result = step.run_apart(options);
                    report.lock().expect("no thread panics with the lock").add_apart(step.name, result, begun);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..at_a_time {
                scope.spawn(work);
            }
        });
    }

    /// Adds the result of a check that ran apart, and prints what it printed.
    fn add_apart(&mut self, name: &'static str, result: Result<Apart>, begun: Instant) {
        let result = result.and_then(|apart| {
            println!("== {name}\n{}", apart.printed.trim_end());
            match (apart.success, skipped(&apart.printed)) {
                (true, None) => Ok(Outcome::Passed),
                (true, Some(missing)) => Ok(Outcome::Skipped(missing)),
                (false, _) => bail!("{}", last_error(&apart.printed)),
            }
        });
        self.add(name, result, begun);
    }

    fn add(&mut self, name: &'static str, result: Result<Outcome>, begun: Instant) {
        let word = match &result {
            Ok(Outcome::Passed) => "ok",
            Ok(Outcome::Skipped(_)) => "skipped",
            Err(_) => "FAILED",
        };
        let seconds = begun.elapsed().as_secs_f64();
        println!("== {name}: {word} in {seconds:.1} s");
        self.rows.push(row(name, word, seconds));
        match result {
            Ok(Outcome::Passed) => {}
            Ok(Outcome::Skipped(missing)) => {
                println!("{SKIPPED}{missing}{HOW}");
                self.remarks.push(format!("== {name} skipped: {missing}"));
            }
            Err(error) => {
                println!("{error:#}");
                self.failed.push(name);
                self.remarks.push(format!("== {name} failed:\n{error:#}"));
            }
        }
    }

    /// Prints the table of times, if several checks ran, and the remarks. Fails with the names of
    /// the failed checks.
    pub fn finish(mut self) -> Result<()> {
        if self.rows.len() > 1 {
            self.rows.push(row("all", "", self.start.elapsed().as_secs_f64()));
            println!("== times\n{}", self.rows.join("\n"));
        }
        self.remarks.iter().for_each(|remark| println!("{remark}"));
        if self.failed.is_empty() { Ok(()) } else { bail!("failed: {}", self.failed.join(", ")) }
    }
}

/// What a check printed that ran as a process of its own.
#[derive(Debug)]
struct Apart {
    success: bool,
    printed: String,
}

impl Step {
    /// Runs the check as a process of its own: `cargo xtask test --only NAME`.
    fn run_apart(&self, options: &Options) -> Result<Apart> {
        let mut file = tempfile::tempfile()?;
        // The build of all programs has replaced the file of this process.
        let mut command = Command::new(cargo::target_directory()?.join("debug/hoistway-xtask"));
        command.args(["test", "--only", self.name]).args(options.install.then_some("--install"));
        command.env(cargo::ALL_BUILT, "1").stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
        let success = command.status().with_context(|| format!("cannot start {command:?}"))?.success();
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Apart { success, printed: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

/// The line that follows the result of a skipped check.
const SKIPPED: &str = "SKIPPED: ";
const HOW: &str = " (--install does that)";

/// What a skipped check that ran apart lacks.
fn skipped(printed: &str) -> Option<String> {
    let line = printed.lines().find(|line| line.starts_with(SKIPPED) && line.ends_with(HOW))?;
    let is_step = printed.lines().any(|line| line.starts_with("== ") && line.contains(": skipped in "));
    is_step.then(|| line[SKIPPED.len()..line.len() - HOW.len()].to_owned())
}

/// The error of a check that ran apart: what it printed after the table of times.
fn last_error(printed: &str) -> String {
    let behind = printed.split("failed:\n").last().unwrap_or(printed);
    behind.trim().to_owned()
}

/// A row of the table of times.
fn row(name: &str, word: &str, seconds: f64) -> String {
    format!("{name:<12} {word:<7} {seconds:>7.1} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: fn(&Options) -> Result<()> = |_| bail!("broken");
    const GOOD: fn(&Options) -> Result<()> = |_| Ok(());

    fn run(steps: &[Step]) -> Result<()> {
        let mut report = Report::default();
        report.run(steps, &Options::default());
        report.finish()
    }

    #[test]
    fn a_check_that_fails_does_not_keep_the_next_from_running() {
        let error = run(&[Step::new("bad", BAD), Step::new("worse", BAD)]).expect_err("both fail");
        assert_eq!(error.to_string(), "failed: bad, worse");
        assert!(run(&[Step::new("good", GOOD)]).is_ok());
    }

    #[test]
    fn a_check_is_skipped_with_the_command_that_installs_what_is_missing() {
        let step = Step::new("bad", BAD).needing(&[Need::Target("msp430-none-elf")]);
        let outcome = step.run(&Options::default()).expect("it does not run");
        let expected = "msp430-none-elf is missing: rustup target add msp430-none-elf";
        assert_eq!(outcome, Outcome::Skipped(expected.to_owned()));
        assert!(run(&[step]).is_ok());
        let partly = Step::new("good", GOOD).using(&[Need::Target("msp430-none-elf")]);
        assert_eq!(partly.run(&Options::default()).expect("it runs"), Outcome::Passed);
    }

    #[test]
    fn the_result_of_a_check_that_ran_apart_is_read_from_its_output() {
        let mut report = Report::default();
        let mut add = |success: bool, printed: &str| {
            report.add_apart("x", Ok(Apart { success, printed: printed.to_owned() }), Instant::now());
        };
        add(true, "== x\nfine\n== x: ok in 1.0 s\n");
        add(true, "== x\n== x: skipped in 0.0 s\nSKIPPED: qemu is missing (--install does that)\n== times\n");
        add(true, "== x\nSKIPPED: a part\n== x: ok in 1.0 s\n");
        add(false, "== x\nlong\n== x failed:\nbroken\nerror: failed: x\n");
        assert_eq!(report.failed, ["x"]);
        assert_eq!(report.remarks, ["== x skipped: qemu is missing", "== x failed:\nbroken\nerror: failed: x"]);
    }

    #[test]
    fn a_name_that_no_check_has_is_refused_with_the_names() {
        let error = find(&[Step::new("laws", GOOD), Step::new("docs", GOOD)], "law").err().expect("no check");
        assert_eq!(error.to_string(), "no check has the name \"law\"; the names are laws, docs");
    }
}
