//! The server that tasks start to test or to measure it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::programs;

/// The longest time until the server is ready.
const START_MAX: Duration = Duration::from_secs(20);
/// The longest time until the server exits after SIGTERM: it replies to all requests and flushes
/// before.
const STOP_MAX: Duration = Duration::from_secs(30);

/// Lists the names of all elevators of a program.
pub fn elevators(hoistway: &Path) -> Result<Vec<String>> {
    let printed = programs::output(Command::new(hoistway).args(["elevators", "--json"]))?;
    let document: serde_json::Value =
        serde_json::from_str(&printed).context("the output of hoistway elevators --json")?;
    let listed = document["elevators"].as_array().context("no list of elevators")?;
    listed.iter().map(|one| Ok(one["name"].as_str().context("an elevator without a name")?.to_owned())).collect()
}

/// A server that is ready. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `hoistway serve` or `hoistway mount` and waits until it prints that it is ready. Its
    /// standard error goes to the file `log`.
    pub fn start(command: &mut Command, log: &Path) -> Result<Server> {
        let file = fs::File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let mut server = Server { child, log: log.to_owned() };
        let stdout = BufReader::new(server.child.stdout.take().context("its output is not piped")?);
        let (sender, receiver) = mpsc::channel();
        // The thread ends with the server.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok).filter(|line| line.starts_with("ready: ")) {
                let _ = sender.send(line);
            }
        });
        match receiver.recv_timeout(START_MAX) {
            Ok(_) => Ok(server),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                bail!("the server is not ready after {} s: {}", START_MAX.as_secs(), server.log_text())
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => bail!("the server did not start: {}", server.log_text()),
        }
    }

    /// Starts a server of an emulated drive, given by its name or by the file of its profile, whose
    /// first 4 GiB are in memory, and waits until it is ready. Returns it with the path of its
    /// socket, which is in the directory as its log is. `record` is the file for the requests.
    pub fn start_emulated(
        hoistway: &Path,
        drive: &Path,
        record: Option<&Path>,
        directory: &Path,
    ) -> Result<(Server, PathBuf)> {
        let socket = directory.join("emulated.socket");
        let _ = fs::remove_file(&socket);
        let mut serve = Command::new(hoistway);
        serve.args(["serve", "--export", "=mem:4G,elevator=noop", "--control", "none", "--drive"]).arg(drive);
        serve.arg("--socket").arg(&socket);
        if let Some(file) = record {
            serve.arg("--record").arg(file);
        }
        let server = Server::start(&mut serve, &directory.join("emulated.log"))?;
        Ok((server, socket))
    }

    /// The process identifier.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the log.
    fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default().trim().to_owned()
    }

    /// Sends SIGTERM and waits for a clean exit. Returns the log.
    pub fn stop(mut self) -> Result<String> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a child without a number")?;
        kill_process(pid, Signal::TERM).context("cannot send SIGTERM to the server")?;
        let status = self.wait()?;
        if status.success() {
            Ok(self.log_text())
        } else {
            bail!("the server exited with {status}: {}", self.log_text())
        }
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > STOP_MAX {
                bail!("the server has not exited after {} s: {}", STOP_MAX.as_secs(), self.log_text());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if the server has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
