//! `--run COMMAND`: a command that runs beside the server; the server ends with it.

use std::io::IsTerminal as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use crate::failure::{Exit, chain};

/// Timeout of the command and its child processes after SIGTERM.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of the checks for the end of the command.
const END_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A command that runs beside the server.
pub struct Companion {
    child: Child,
    /// True if the command and its child processes are a process group of their own. With a
    /// terminal they are not: they could not read from it.
    is_group: bool,
    ended: Option<Exit>,
}

/// Addresses of the server, for the environment of the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerAddresses {
    /// NBD URI of the first export.
    pub uri: String,
    /// Path of the Unix socket; empty without one.
    pub socket: String,
    /// TCP port; empty without one.
    pub port: String,
    /// Name of the first export.
    pub export: String,
    /// `off`, `on` (offered) or `require`.
    pub tls: &'static str,
}

impl Companion {
    /// Starts a command in a shell. The environment has the addresses of the server in `NBD_URI`
    /// and `NBD_SOCKET`, and with the names of nbdkit in `uri`, `nbd`, `unixsocket`, `port`,
    /// `exportname` and `tls`.
    pub fn start(command: &str, addresses: &ServerAddresses) -> Result<Companion> {
        let is_group = !std::io::stdin().is_terminal();
        let mut shell = Command::new("sh");
        if is_group {
            shell.process_group(0);
        }
        let child = shell
            .args(["-c", command])
            .env("NBD_URI", &addresses.uri)
            .env("NBD_SOCKET", &addresses.socket)
            .env("uri", &addresses.uri)
            .env("nbd", &addresses.uri)
            .env("unixsocket", &addresses.socket)
            .env("port", &addresses.port)
            .env("exportname", &addresses.export)
            .env("tls", addresses.tls)
            .env_remove("NOTIFY_SOCKET")
            .env_remove("LISTEN_FDS")
            .env_remove("LISTEN_FDNAMES")
            .env_remove("LISTEN_PID")
            .env_remove("WATCHDOG_PID")
            .env_remove("WATCHDOG_USEC")
            .stdin(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot run `{command}`"))?;
        tracing::info!(pid = child.id(), command, "running");
        Ok(Companion { child, is_group, ended: None })
    }

    /// Returns true if the command has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        if self.ended.is_none()
            && let Some(status) = self.child.try_wait().context("cannot query the status of the command")?
        {
            tracing::info!(%status, "the command has ended");
            self.ended = Some(exit_of(status));
        }
        Ok(self.ended.is_some())
    }

    /// Ends the command, if it has not ended by itself, and returns its exit code. The command is
    /// killed after [`END_TIMEOUT`].
    pub fn end(mut self) -> Result<Exit> {
        self.stop(END_TIMEOUT)?;
        Ok(self.ended.unwrap_or(Exit::Failed))
    }

    /// Sends SIGTERM to the command and its child processes, and SIGKILL after a timeout. Child
    /// processes of a command that has ended by itself are not signalled.
    fn stop(&mut self, timeout: Duration) -> Result<()> {
        if self.has_ended()? {
            return Ok(());
        }
        self.signal(Signal::TERM);
        let signalled = Instant::now();
        while !self.has_ended()? || self.has_group_members() {
            if signalled.elapsed() >= timeout {
                tracing::warn!("the command does not end and is killed");
                self.signal(Signal::KILL);
                if self.ended.is_none() {
                    let status = self.child.wait().context("cannot query the status of the command")?;
                    self.ended = Some(exit_of(status));
                }
                break;
            }
            std::thread::sleep(END_POLL_INTERVAL);
        }
        Ok(())
    }

    /// Signals the process group, or the shell alone. Errors are ignored: the processes may end at
    /// this moment.
    fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) else { return };
        // The process id cannot belong to another process: a group keeps it while it has members,
        // and without a group the shell has not been waited for.
        let _ = match (self.is_group, self.ended) {
            (true, _) => kill_process_group(pid, signal),
            (false, None) => kill_process(pid, signal),
            (false, Some(_)) => Ok(()),
        };
    }

    /// Returns true if the process group has processes.
    fn has_group_members(&self) -> bool {
        let pid = Pid::from_raw(self.child.id().cast_signed()).filter(|_| self.is_group);
        pid.is_some_and(|pid| test_kill_process_group(pid).is_ok())
    }
}

impl Drop for Companion {
    /// Ends the command if the server fails.
    fn drop(&mut self) {
        if let Err(error) = self.stop(END_TIMEOUT) {
            tracing::error!("{}", chain(&error));
        }
    }
}

/// Exit code by the convention of shells: that of the command, or 128 plus the number of the signal
/// that ended it.
fn exit_of(status: std::process::ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Exit::Code(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(command: &str) -> Companion {
        Companion::start(command, &ServerAddresses::default()).expect("a shell exists")
    }

    /// Starts a command whose `SAY` writes the id of its background process to a file, and waits
    /// for that file.
    fn started(command: &str) -> (Companion, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let pid_file = folder.path().join("pid");
        let companion =
            start(&command.replace("SAY", &format!("echo $! >{0}.new; mv {0}.new {0}", pid_file.display())));
        while !pid_file.exists() {
            std::thread::sleep(END_POLL_INTERVAL);
        }
        (companion, folder)
    }

    fn is_running(folder: &tempfile::TempDir) -> bool {
        let pid = std::fs::read_to_string(folder.path().join("pid")).expect("the process id was written");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // A zombie has ended.
        !stat.is_empty() && !stat.contains(") Z ")
    }

    #[test]
    fn child_processes_of_the_command_end_with_it() {
        let (mut companion, folder) = started("sleep 1000 & SAY; wait");
        assert!(companion.is_group && is_running(&folder));
        companion.stop(END_TIMEOUT).expect("the command can be ended");
        assert_eq!(companion.ended, Some(Exit::Code(128 + 15)));
        assert!(!is_running(&folder));
    }

    #[test]
    fn a_command_that_ignores_sigterm_is_killed() {
        let (mut companion, folder) = started("trap '' TERM; sleep 1000 & SAY; while :; do sleep 1000; done");
        companion.stop(Duration::ZERO).expect("the command can be ended");
        assert_eq!(companion.ended, Some(Exit::Code(128 + 9)));
        while is_running(&folder) {
            std::thread::sleep(END_POLL_INTERVAL);
        }
    }

    #[test]
    fn the_command_ends_when_the_server_fails() {
        let (companion, folder) = started("sleep 1000 & SAY; wait");
        drop(companion);
        assert!(!is_running(&folder));
    }

    #[test]
    fn the_exit_code_of_the_command_is_returned() {
        let mut companion = start("exit 7");
        while !companion.has_ended().expect("the command is a child process") {
            std::thread::sleep(END_POLL_INTERVAL);
        }
        assert_eq!(companion.end().expect("the command has ended"), Exit::Code(7));
    }
}
