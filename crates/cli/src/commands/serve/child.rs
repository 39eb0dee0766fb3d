//! `--run COMMAND`: the server lives as long as a command does.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Exit;

/// How long a command may take to end once it is asked to.
const END_MAX: Duration = Duration::from_secs(10);
/// How often it is looked at meanwhile.
const END_LOOK: Duration = Duration::from_millis(10);

/// A command that runs beside the server.
pub struct Companion {
    child: Child,
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
    /// Starts a command in a shell. It finds the server by `NBD_URI` and `NBD_SOCKET`, or as with nbdkit by `uri`, `nbd`, `unixsocket`, `port`,
    /// `exportname` and `tls`.
    pub fn start(command: &str, reach: &Reach) -> Result<Companion> {
        let child = Command::new("sh")
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
        Ok(Companion { child, ended: None })
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

    /// Ends it, if it has not ended by itself, and answers how it ended. One that pays no heed is killed after [`END_MAX`].
    pub fn end(mut self) -> Result<Exit> {
        if !self.has_ended()? {
            if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
                // It may end by itself at this moment: that is as well.
                let _ = kill_process(pid, Signal::TERM);
            }
            let asked = Instant::now();
            while !self.has_ended()? {
                if asked.elapsed() >= END_MAX {
                    tracing::warn!("the command does not end: it is killed");
                    self.child.kill().context("the command cannot be killed")?;
                    let status = self.child.wait().context("cannot learn what became of the command")?;
                    self.ended = Some(exit_of(status));
                    break;
                }
                std::thread::sleep(END_LOOK);
            }
        }
        Ok(self.ended.unwrap_or(Exit::Failed))
    }
}

/// As shells have it: the command's own code, or 128 and the number of the signal that ended it.
fn exit_of(status: std::process::ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Exit::Code(u8::try_from(code).unwrap_or(1))
}
