//! `--run COMMAND`: the server lives as long as a command does.

use std::io::IsTerminal as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use crate::failure::Exit;

/// How long a command, and what it has started, may take to end once it is asked to.
const END_MAX: Duration = Duration::from_secs(10);
/// How often it is looked at meanwhile.
const END_LOOK: Duration = Duration::from_millis(10);

/// A command that runs beside the server.
pub struct Companion {
    child: Child,
    /// It and what it starts are a process group of their own. In front of a terminal they are not:
    /// they could not read from it.
    is_group: bool,
    ended: Option<Exit>,
}

/// How the command reaches the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The URI of the first export.
    pub uri: String,
    /// The path of the Unix socket, or nothing.
    pub socket: String,
    /// The port, or nothing.
    pub port: String,
    /// The name of the first export.
    pub export: String,
    /// `off`, `on` (offered) or `require`.
    pub tls: &'static str,
}

impl Companion {
    /// Starts a command in a shell. It finds the server by `NBD_URI` and `NBD_SOCKET`, or as with
    /// nbdkit by `uri`, `nbd`, `unixsocket`, `port`, `exportname` and `tls`.
    pub fn start(command: &str, reach: &Reach) -> Result<Companion> {
        let is_group = !std::io::stdin().is_terminal();
        let mut shell = Command::new("sh");
        if is_group {
            shell.process_group(0);
        }
        let child = shell
            .args(["-c", command])
            .env("NBD_URI", &reach.uri)
            .env("NBD_SOCKET", &reach.socket)
            .env("uri", &reach.uri)
            .env("nbd", &reach.uri)
            .env("unixsocket", &reach.socket)
            .env("port", &reach.port)
            .env("exportname", &reach.export)
            .env("tls", reach.tls)
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

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        if self.ended.is_none()
            && let Some(status) = self.child.try_wait().context("cannot learn what became of the command")?
        {
            tracing::info!(%status, "the command has ended");
            self.ended = Some(exit_of(status));
        }
        Ok(self.ended.is_some())
    }

    /// Ends it, if it has not ended by itself, and answers how it ended. What pays no heed is
    /// killed after [`END_MAX`].
    pub fn end(mut self) -> Result<Exit> {
        self.stop(END_MAX)?;
        Ok(self.ended.unwrap_or(Exit::Failed))
    }

    /// Asks the command and what it has started to end, and kills what is left after a while. One
    /// that has ended by itself is left in peace, and so is what it leaves behind.
    fn stop(&mut self, patience: Duration) -> Result<()> {
        if self.has_ended()? {
            return Ok(());
        }
        self.signal(Signal::TERM);
        let asked = Instant::now();
        while !self.has_ended()? || self.has_left_some() {
            if asked.elapsed() >= patience {
                tracing::warn!("the command does not end: it is killed");
                self.signal(Signal::KILL);
                if self.ended.is_none() {
                    let status = self.child.wait().context("cannot learn what became of the command")?;
                    self.ended = Some(exit_of(status));
                }
                break;
            }
            std::thread::sleep(END_LOOK);
        }
        Ok(())
    }

    /// Signals all of it. It may end by itself at this moment: that is as well.
    fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) else { return };
        // The number is nobody else's: as long as there are processes in the group it is the
        // group's, and without a group the shell has not been waited for.
        let _ = match (self.is_group, self.ended) {
            (true, _) => kill_process_group(pid, signal),
            (false, None) => kill_process(pid, signal),
            (false, Some(_)) => Ok(()),
        };
    }

    /// Whether processes of its group are there.
    fn has_left_some(&self) -> bool {
        let pid = Pid::from_raw(self.child.id().cast_signed()).filter(|_| self.is_group);
        pid.is_some_and(|pid| test_kill_process_group(pid).is_ok())
    }
}

impl Drop for Companion {
    /// When the server fails the command is not left behind.
    fn drop(&mut self) {
        if let Err(error) = self.stop(END_MAX) {
            tracing::error!("{error:#}");
        }
    }
}

/// As shells have it: the command's own code, or 128 and the number of the signal that ended it.
fn exit_of(status: std::process::ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Exit::Code(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(command: &str) -> Companion {
        Companion::start(command, &Reach::default()).expect("there is a shell")
    }

    /// Starts a command that says when it has come so far, in a file.
    fn started(command: &str) -> (Companion, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let said = folder.path().join("pid");
        let companion = start(&command.replace("SAY", &format!("echo $! >{0}.new; mv {0}.new {0}", said.display())));
        while !said.exists() {
            std::thread::sleep(END_LOOK);
        }
        (companion, folder)
    }

    fn is_there(folder: &tempfile::TempDir) -> bool {
        let pid = std::fs::read_to_string(folder.path().join("pid")).expect("it was said");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // One that nobody has waited for yet is dead all the same.
        !stat.is_empty() && !stat.contains(") Z ")
    }

    #[test]
    fn what_the_command_has_started_ends_with_it() {
        let (mut companion, folder) = started("sleep 1000 & SAY; wait");
        assert!(companion.is_group && is_there(&folder));
        companion.stop(END_MAX).expect("it can be ended");
        assert_eq!(companion.ended, Some(Exit::Code(128 + 15)));
        assert!(!is_there(&folder));
    }

    #[test]
    fn a_command_that_pays_no_heed_is_killed() {
        let (mut companion, folder) = started("trap '' TERM; sleep 1000 & SAY; while :; do sleep 1000; done");
        companion.stop(Duration::ZERO).expect("it can be ended");
        assert_eq!(companion.ended, Some(Exit::Code(128 + 9)));
        while is_there(&folder) {
            std::thread::sleep(END_LOOK);
        }
    }

    #[test]
    fn a_command_is_not_left_behind_when_the_server_fails() {
        let (companion, folder) = started("sleep 1000 & SAY; wait");
        drop(companion);
        assert!(!is_there(&folder));
    }

    #[test]
    fn how_it_ended_by_itself_is_known() {
        let mut companion = start("exit 7");
        while !companion.has_ended().expect("it is a child") {
            std::thread::sleep(END_LOOK);
        }
        assert_eq!(companion.end().expect("it has ended"), Exit::Code(7));
    }
}
