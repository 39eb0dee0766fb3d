//! `cargo xtask stress`: the file-system stressors of stress-ng on a directory and through mounts
//! of directories beside it, with both ways of write-back.
//!
//! The outcomes must be equal. A difference must be a row of the table in docs/mount-files.md;
//! [`DIFFERENCES`] names the row.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_workspace::{cargo, programs, repository};

use hoistway_workspace::server::Server;

const PACKAGES: [(&str, &str); 2] = [("stress-ng", "stress-ng"), ("timeout", "coreutils")];

/// Stressors of the class whose outcome does not depend on the directory, with the objects that
/// they use.
const EXCLUDED: [(&str, &str); 6] = [
    ("bind-mount", "mounts of its own"),
    ("binderfs", "a file system of its own"),
    ("dup", "descriptors"),
    ("eventfd", "descriptors"),
    ("io", "every mounted file system, by syncfs"),
    ("procfs", "files in /proc"),
];

/// Stressors with another outcome through a mount with write-back by the mount and by the kernel,
/// and a part of the row of the table of differences that explains it.
const DIFFERENCES: [(&str, [Outcome; 2], &str); 2] = [
    ("fiemap", [Outcome::Skipped, Outcome::Skipped], "`FIEMAP`"),
    // It writes to files while it makes them immutable, so that the outcome depends on the times.
    ("iomix", [Outcome::Passed, Outcome::Failed], "made immutable"),
];

/// The page with the table of differences.
const PAGE: &str = "docs/mount-files.md";
/// Seconds after the end of its time until a stressor is killed.
const END_MAX_S: u64 = 300;

/// Options of `cargo xtask stress`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Seconds of each stressor
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400), value_name = "N")]
    seconds: u64,
    /// Run only this stressor; may be repeated
    #[arg(long, value_name = "STRESSOR")]
    only: Vec<String>,
    /// The directory in which the directories are created
    #[arg(long = "in", default_value = "/var/tmp", value_name = "DIRECTORY")]
    directory: PathBuf,
    /// The program to run, instead of the one that is built with the profile `dist`
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Install missing programs (as root on Debian)
    #[arg(long)]
    install: bool,
}

/// The outcome of a stressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// The file system lacks what the stressor needs.
    Skipped,
    /// The time was too short for an operation, which says nothing.
    Unfinished,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
            Outcome::Unfinished => "no operation",
        })
    }
}

/// The result of a stressor in one directory.
struct Run {
    outcome: Outcome,
    /// Completed operations.
    operations: u64,
    /// The lines that explain a failure or a skip.
    reasons: Vec<String>,
}

/// Runs the stressors, each at the same time in the directory and through both mounts.
pub fn run(options: &Options) -> Result<()> {
    programs::require_all(&PACKAGES, options.install)?;
    if !programs::is_root() {
        bail!("mounting for the stressors needs root");
    }
    let stressors = stressors(&options.only)?;
    let hoistway = options.hoistway.clone().map_or_else(cargo::packaged, Ok)?;
    let root = options.directory.join(format!("hoistway-stress-{}", std::process::id()));
    let outcome = measure(&stressors, options.seconds, &hoistway, &root);
    std::fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))?;
    outcome
}

fn measure(stressors: &[String], seconds: u64, hoistway: &Path, root: &Path) -> Result<()> {
    let directory = |name: &str| -> Result<PathBuf> {
        let path = root.join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    };
    let (mut ways, mut mounts) = (vec![directory("plain")?], Vec::new());
    for mode in ["ours", "kernel"] {
        let (source, at) = (directory(&format!("{mode}-source"))?, directory(mode)?);
        let mut command = Command::new(hoistway);
        command.arg("mount").args([&source, &at]).args(["--write-back", mode]);
        mounts.push(Server::start(&mut command, &root.join(format!("{mode}.log")))?);
        ways.push(at);
    }
    println!("| stressor | directory | write-back ours | write-back kernel |\n|---|---|---|---|");
    let (mut notes, mut operations, mut unexplained, mut failed) = (Vec::new(), [0; 3], Vec::new(), Vec::new());
    for stressor in stressors {
        let runs: Vec<Run> = std::thread::scope(|scope| {
            let spawn = |directory: &'_ PathBuf| {
                let directory = directory.clone();
                scope.spawn(move || stress(stressor, seconds, &directory))
            };
            let running: Vec<_> = ways.iter().map(spawn).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Run>>| {
                thread.join().unwrap_or_else(|_| bail!("a thread panicked"))
            };
            running.into_iter().map(join).collect::<Result<_>>()
        })?;
        let outcomes: Vec<String> = runs.iter().map(|run| run.outcome.to_string()).collect();
        println!("| {stressor} | {} |", outcomes.join(" | "));
        for (run, sum) in runs.iter().zip(&mut operations) {
            *sum += run.operations;
        }
        match judge(stressor, &runs)? {
            Verdict::Equal(Outcome::Failed) => failed.push(stressor.as_str()),
            Verdict::Equal(_) => {}
            Verdict::Known(row) => notes.push(format!("{stressor}: differs as the table of {PAGE} says: {row}")),
            Verdict::Unfinished => {
                notes.push(format!("{stressor}: no operation in {seconds} s; --seconds gives it more"))
            }
            Verdict::Unexplained => unexplained.push(stressor.as_str()),
        }
        if runs.iter().any(|run| run.outcome == Outcome::Failed) || unexplained.contains(&stressor.as_str()) {
            for (run, directory) in runs.iter().zip(&ways) {
                notes.extend(
                    run.reasons.iter().map(|reason| format!("{stressor} in {}: {reason}", directory.display())),
                );
            }
        }
    }
    for mount in mounts {
        mount.stop()?;
    }
    println!();
    notes.iter().for_each(|note| println!("{note}"));
    println!(
        "{} stressors of {seconds} s, {operations:?} operations in the directory, with write-back ours and kernel; \
         {} failed everywhere, {} without an explained difference",
        stressors.len(),
        failed.len(),
        unexplained.len()
    );
    if unexplained.is_empty() {
        Ok(())
    } else {
        bail!("differences that {PAGE} does not explain: {}", unexplained.join(", "))
    }
}

/// Lists the stressors to run: those of the class, or those that are named.
fn stressors(only: &[String]) -> Result<Vec<String>> {
    let printed = Command::new("stress-ng").args(["--class", "filesystem?"]).stdin(Stdio::null()).output()?;
    let text = [printed.stdout, printed.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let listed = text.lines().find_map(|line| line.split_once("stressors:")).context("no list of stressors")?.1;
    let listed: Vec<String> = listed.split_whitespace().map(str::to_owned).collect();
    if let Some(unknown) = only.iter().find(|name| !listed.contains(name)) {
        bail!("--only {unknown:?} is no stressor of the class filesystem; there are {}", listed.join(", "));
    }
    let is_excluded = |name: &String| EXCLUDED.iter().any(|(excluded, _)| excluded == name);
    let wanted = |name: &String| if only.is_empty() { !is_excluded(name) } else { only.contains(name) };
    Ok(listed.into_iter().filter(wanted).collect())
}

/// Runs a stressor in a directory.
fn stress(stressor: &str, seconds: u64, directory: &Path) -> Result<Run> {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", &(seconds + END_MAX_S).to_string(), "stress-ng"]);
    command.args([&format!("--{stressor}"), "1", "--timeout", &format!("{seconds}s"), "--verify", "--metrics"]);
    command.arg("--temp-path").arg(directory).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("stress-ng --{stressor}"))?;
    let text = [output.stdout, output.stderr].concat();
    Ok(read(stressor, &String::from_utf8_lossy(&text), output.status.code()))
}

/// Reads the output of stress-ng. A failure is a line, or another exit status than 0.
fn read(stressor: &str, text: &str, code: Option<i32>) -> Run {
    let operations = text.lines().find_map(|line| {
        let mut words = line.split_once("metrc:")?.1.split_whitespace().skip(1);
        (words.next() == Some(stressor)).then(|| words.next()?.parse().ok()).flatten()
    });
    let of = |mark: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains(mark)).map(|line| line.trim().to_owned()).collect()
    };
    let mut failures = of(" fail: ");
    if code != Some(0) {
        failures.push(format!("exit status {code:?}"));
    }
    let skips = of("skipping");
    let (outcome, reasons) = match (failures.is_empty(), skips.is_empty(), operations) {
        (false, ..) => (Outcome::Failed, failures),
        (true, false, _) => (Outcome::Skipped, skips),
        (true, true, Some(1..)) => (Outcome::Passed, Vec::new()),
        (true, true, _) => (Outcome::Unfinished, vec!["no operation was completed".to_owned()]),
    };
    Run { outcome, operations: operations.unwrap_or(0), reasons }
}

/// The comparison of the runs of a stressor.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Equal(Outcome),
    /// The row that explains the difference.
    Known(String),
    Unexplained,
    /// A run was too short.
    Unfinished,
}

/// Compares the outcomes through the mounts with that in the directory, which comes first.
fn judge(stressor: &str, runs: &[Run]) -> Result<Verdict> {
    let (plain, through) = runs.split_first().context("no runs")?;
    if runs.iter().any(|run| run.outcome == Outcome::Unfinished) {
        return Ok(Verdict::Unfinished);
    }
    if through.iter().all(|run| run.outcome == plain.outcome) {
        return Ok(Verdict::Equal(plain.outcome));
    }
    let is_known = |outcomes: &[Outcome; 2]| through.iter().map(|run| run.outcome).eq(*outcomes);
    let known = DIFFERENCES.iter().find(|(name, outcomes, _)| *name == stressor && is_known(outcomes));
    let Some((.., mark)) = known else { return Ok(Verdict::Unexplained) };
    let row = row(mark)?.with_context(|| format!("{PAGE} has no row with {mark}, which explains {stressor}"))?;
    Ok(Verdict::Known(row))
}

/// Finds a row of the table of differences.
fn row(mark: &str) -> Result<Option<String>> {
    let path = repository::root().join(PAGE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let section = text.split("\n## ").find(|section| section.starts_with("Differences\n"));
    let mut rows = section.unwrap_or_default().lines().filter(|line| line.starts_with('|'));
    Ok(rows.find(|line| line.contains(mark)).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outcome: Outcome) -> Run {
        Run { outcome, operations: 1, reasons: Vec::new() }
    }

    #[test]
    fn outcomes_are_read() {
        let passed =
            "stress-ng: metrc: [7] stressor       bogo ops real time\nstress-ng: metrc: [7] lease      224      3.00\n";
        assert_eq!(
            (read("lease", passed, Some(0)).outcome, read("lease", passed, Some(0)).operations),
            (Outcome::Passed, 224)
        );
        assert_eq!(read("lease", passed, Some(2)).outcome, Outcome::Failed);
        let failed = format!("stress-ng: fail:  [7] lease: wrong\n{passed}");
        assert_eq!(read("lease", &failed, Some(0)).reasons, ["stress-ng: fail:  [7] lease: wrong"]);
        let skipped = "stress-ng: info:  [8] lease: not supported, skipping stressor\n";
        assert_eq!(read("lease", skipped, Some(0)).outcome, Outcome::Skipped);
        assert_eq!(read("lease", &passed.replace("224", "0"), Some(0)).outcome, Outcome::Unfinished);
    }

    #[test]
    fn only_a_difference_of_the_list_is_known() {
        let [passed, skipped, failed] =
            [Outcome::Passed, Outcome::Skipped, Outcome::Failed].map(|outcome| move || run(outcome));
        let judged = |stressor, runs: [Run; 3]| judge(stressor, &runs).unwrap();
        assert_eq!(judged("link", [passed(), passed(), passed()]), Verdict::Equal(Outcome::Passed));
        assert_eq!(judged("link", [passed(), skipped(), passed()]), Verdict::Unexplained);
        assert!(matches!(judged("fiemap", [passed(), skipped(), skipped()]), Verdict::Known(_)));
        assert_eq!(judged("fiemap", [passed(), failed(), skipped()]), Verdict::Unexplained);
        assert!(matches!(judged("iomix", [passed(), passed(), failed()]), Verdict::Known(_)));
        assert_eq!(judged("iomix", [passed(), failed(), passed()]), Verdict::Unexplained);
        let unfinished = || run(Outcome::Unfinished);
        assert_eq!(judged("link", [passed(), unfinished(), passed()]), Verdict::Unfinished);
    }

    #[test]
    fn every_known_difference_has_a_row_in_the_table() {
        for (stressor, _, mark) in DIFFERENCES {
            assert!(row(mark).unwrap().is_some(), "{stressor}: {mark}");
        }
    }
}
