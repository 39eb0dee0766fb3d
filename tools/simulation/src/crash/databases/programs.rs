//! Programs of databases: where they are, and running them to their end.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The longest time of a program, in seconds.
const TIME_MAX: &str = "600";

/// Finds a program where Debian installs those of PostgreSQL, newest version first, or on the path.
/// Debian's programs of PostgreSQL on the path are scripts that choose a version.
pub fn find(program: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    directories.sort();
    directories.reverse();
    directories.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    directories.into_iter().map(|directory| directory.join(program)).find(|candidate| candidate.is_file())
}

/// Returns a command that runs a program.
pub fn command(program: &str) -> Command {
    Command::new(find(program).unwrap_or_else(|| program.into()))
}

/// Returns a command that runs a program as another user and group.
pub fn command_as(program: &str, (user, group): (u32, u32)) -> Command {
    let mut command = command("setpriv");
    command.args([&format!("--reuid={user}"), &format!("--regid={group}"), "--clear-groups"]);
    command.arg(find(program).unwrap_or_else(|| program.into()));
    command
}

/// Runs a command to its end, at most for ten minutes. Returns its standard output.
pub fn output(command: &Command) -> Result<String, String> {
    let mut limited = self::command("timeout");
    limited.args(["-k", "1", TIME_MAX]).arg(command.get_program()).args(command.get_args());
    let shown: Vec<_> = limited.get_args().skip(3).map(|word| word.to_string_lossy().into_owned()).collect();
    let shown = shown.join(" ");
    // Another user may not be allowed to enter the directory of this process.
    let output = limited.current_dir("/").stdin(Stdio::null()).output().map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let printed = [output.stdout, output.stderr].concat();
    Err(format!("{shown}: {}: {}", output.status, String::from_utf8_lossy(&printed).trim()))
}
