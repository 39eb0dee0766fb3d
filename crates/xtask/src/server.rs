//! hoistway's server, as tasks start it to try or to measure it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::tools::{self, cargo};

/// How long it may take to be ready.
const START_MAX: Duration = Duration::from_secs(20);
/// How long it may take to leave once it is asked to: everything asked for is answered and flushed before.
const LEAVE_MAX: Duration = Duration::from_secs(30);

/// The program as it is shipped.
pub fn build() -> Result<PathBuf> {
    tools::run(cargo().args(["build", "--quiet", "--release", "-p", "hoistway-cli"]))?;
    Ok(tools::target_directory()?.join("release/hoistway"))
}

/// The names of all elevators that a program has.
pub fn elevators(hoistway: &Path) -> Result<Vec<String>> {
    let printed = tools::output(Command::new(hoistway).args(["elevators", "--json"]))?;
    let document: serde_json::Value =
        serde_json::from_str(&printed).context("what hoistway elevators --json prints")?;
    let listed = document["elevators"].as_array().context("no list of elevators")?;
    listed.iter().map(|one| Ok(one["name"].as_str().context("an elevator without a name")?.to_owned())).collect()
}

/// A server that is ready. It is killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `hoistway serve` as the command says and waits until it tells that it is ready; what it tells besides goes to `log`.
    pub fn start(command: &mut Command, log: &Path) -> Result<Server> {
        let file = fs::File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let mut server = Server { child, log: log.to_owned() };
        let stdout = BufReader::new(server.child.stdout.take().context("its output is not piped")?);
        let (tell, told) = mpsc::channel();
        // It ends with the server: nobody waits for it.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok).filter(|line| line.starts_with("ready: ")) {
                let _ = tell.send(line);
            }
        });
        match told.recv_timeout(START_MAX) {
            Ok(_) => Ok(server),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                bail!("the server is not ready after {} s: {}", START_MAX.as_secs(), server.log_text())
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => bail!("the server did not start: {}", server.log_text()),
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged.
    fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default().trim().to_owned()
    }

    /// Asks it to leave and waits: it must do so cleanly. Answers what it logged.
    pub fn leave(mut self) -> Result<String> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a child without a number")?;
        kill_process(pid, Signal::TERM).context("the server cannot be asked to leave")?;
        let status = self.wait()?;
        if status.success() { Ok(self.log_text()) } else { bail!("the server left with {status}: {}", self.log_text()) }
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let asked = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if asked.elapsed() > LEAVE_MAX {
                bail!("the server has not left after {} s: {}", LEAVE_MAX.as_secs(), self.log_text());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After it has left there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
