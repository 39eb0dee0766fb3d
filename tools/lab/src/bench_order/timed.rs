//! The wall-clock time and the CPU time of a command.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The times of a command in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    pub wall: f64,
    pub user: f64,
    pub system: f64,
}

impl Times {
    /// The CPU time.
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

/// Runs a shell command in a directory. Its output goes through `cat` to /dev/null, because GNU tar
/// reads no files if its archive is /dev/null. The times do not include cat.
pub fn run(command: &str, folder: &Path) -> Result<Times> {
    run_by(Command::new("bash"), command, folder)
}

/// Runs a command like [`run`], with real-time priority, so that other work of the machine does not
/// delay the emulation.
pub fn run_first(command: &str, folder: &Path) -> Result<Times> {
    let mut first = Command::new("chrt");
    first.args(["--fifo", "5", "bash"]);
    run_by(first, command, folder)
}

fn run_by(mut shell: Command, command: &str, folder: &Path) -> Result<Times> {
    let script = format!("set -o pipefail; TIMEFORMAT='times %3R %3U %3S'; {{ time {command}; }} | cat > /dev/null");
    let output = shell.args(["-c", &script]).current_dir(folder).output().context("cannot start bash")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{command}: {}: {}", output.status, printed.trim());
    }
    times(&printed).with_context(|| format!("{command}: no times in {printed:?}"))
}

fn times(printed: &str) -> Option<Times> {
    let line = printed.lines().rev().find_map(|line| line.strip_prefix("times "))?;
    let figures: Vec<f64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    let [wall, user, system] = figures.try_into().ok()?;
    Some(Times { wall, user, system })
}

/// Returns the medians of each command over `rounds` rounds in which the commands alternate; a
/// first round is not counted.
pub fn interleaved(
    commands: &[&str],
    folder: &Path,
    rounds: usize,
    mut before: impl FnMut() -> Result<()>,
) -> Result<Vec<Times>> {
    let mut measured = vec![Vec::with_capacity(rounds); commands.len()];
    for round in 0..=rounds {
        for (command, times) in commands.iter().zip(&mut measured) {
            before()?;
            let taken = run(command, folder)?;
            if round > 0 {
                times.push(taken);
            }
        }
    }
    Ok(measured.iter().map(|times| medians(times)).collect())
}

/// The median of each figure.
pub fn medians(times: &[Times]) -> Times {
    let median = |figure: fn(&Times) -> f64| {
        let mut figures: Vec<f64> = times.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(0.0)
    };
    // The median is that of the CPU time, because user and system time of one round belong
    // together.
    let cpu = median(Times::cpu);
    let user = median(|times| times.user).min(cpu);
    Times { wall: median(|times| times.wall), user, system: cpu - user }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_last_line_with_times() {
        let printed = "tar: nothing\ntimes 1.500000 0.250000 0.125000\n";
        assert_eq!(times(printed), Some(Times { wall: 1.5, user: 0.25, system: 0.125 }));
        assert_eq!(times("times 1.5 0.2"), None);
    }

    #[test]
    fn a_median_is_the_middle_figure() {
        let of = |wall: f64| Times { wall, user: wall / 10.0, system: 0.0 };
        let found = medians(&[of(9.0), of(1.0), of(4.0)]);
        assert_eq!((found.wall, found.cpu()), (4.0, 0.4));
    }

    #[test]
    fn a_command_that_fails_is_an_error() {
        let folder = std::env::temp_dir();
        let printed = run("false", &folder).unwrap_err().to_string();
        assert!(printed.starts_with("false: exit status: 1"), "{printed}");
        assert!(run("true", &folder).unwrap().wall < 60.0);
    }
}
