//! The real `hoistway mount` above a directory, as a process that can be killed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hoistway_reactor::simulated::Prng;

/// The longest time until the mount is ready.
const START_MAX: Duration = Duration::from_secs(60);

/// The queue of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// No queue (`--elevator none`).
    Absent,
    /// A queue with this elevator.
    Scheduled(&'static str),
    /// A queue with this elevator, depth 1, and limits of bandwidth and of operations.
    Throttled(&'static str),
}

/// The configuration of a mount.
#[derive(Clone, Copy, Debug)]
pub struct MountSetUp {
    /// The kernel writes dirty data back instead of the mount.
    pub kernel_writes: bool,
    /// The queue.
    pub queue: Queue,
}

impl MountSetUp {
    /// Returns the set-up of a round: both ways of write-back and the three queues in turn.
    pub fn of_round(number: u64, prng: &mut Prng) -> MountSetUp {
        let elevators = ["noop", "deadline", "cfq", "bfq", "fiops", "mq-deadline", "kyber", "anticipatory", "sfq"];
        let elevator = prng.pick(&elevators);
        let queue = match number / 2 % 3 {
            0 => Queue::Absent,
            1 => Queue::Scheduled(elevator),
            _ => Queue::Throttled(elevator),
        };
        MountSetUp { kernel_writes: number % 2 == 1, queue }
    }

    fn config(&self) -> String {
        let write_back = if self.kernel_writes { "kernel" } else { "ours" };
        let mount = format!("[mount]\nwrite_back = \"{write_back}\"\ndirty_limit = \"1M\"\n");
        match self.queue {
            Queue::Absent => mount,
            Queue::Scheduled(elevator) => format!("{mount}elevator = \"{elevator}\"\n"),
            Queue::Throttled(elevator) => format!(
                "{mount}elevator = \"{elevator}\"\ndepth = 1\n\
                 [[tenant]]\nname = \"clients\"\ncomm = \"*\"\nlimit = \"16M\"\nlimit_iops = 2000\n"
            ),
        }
    }
}

/// A running mount. Dropping it kills and detaches it.
#[derive(Debug)]
pub struct MountedProgram {
    child: Child,
    at: PathBuf,
    log: PathBuf,
}

impl MountedProgram {
    /// Mounts the directory `below` of a place at its directory `mounted` and waits until that is
    /// done. The place also receives the configuration and the log.
    ///
    /// # Errors
    ///
    /// The program does not start or mounts nothing; the text contains its log.
    pub fn start(hoistway: &Path, set_up: &MountSetUp, place: &Path) -> Result<MountedProgram, String> {
        let (config, at, log) = (place.join("config.toml"), place.join("mounted"), place.join("log"));
        fs::write(&config, set_up.config()).map_err(|error| error.to_string())?;
        let output = fs::File::create(&log).map_err(|error| error.to_string())?;
        let before = fs::metadata(&at).map_err(|error| error.to_string())?.dev();
        let mut command = Command::new(hoistway);
        command.arg("mount").arg(place.join("below")).arg(&at).arg("--config").arg(&config);
        if set_up.queue == Queue::Absent {
            command.args(["--elevator", "none"]);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .map_err(|error| format!("{}: {error}", hoistway.display()))?;
        let mut mounted = MountedProgram { child, at, log };
        let began = Instant::now();
        while fs::metadata(&mounted.at).map_or(before, |now| now.dev()) == before {
            if !mounted.is_alive() {
                return Err(format!("the mount ended: {}", mounted.log()));
            }
            if began.elapsed() > START_MAX {
                return Err(format!("the mount is not ready after {} s", START_MAX.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(mounted)
    }

    /// Returns true while the process runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns what the process has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills the process (SIGKILL). The directory remains mounted, and its users get errors.
    pub fn kill(&mut self) {
        // Fails if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for MountedProgram {
    fn drop(&mut self) {
        self.kill();
        let _ = Command::new("umount").arg("-l").arg(&self.at).stderr(Stdio::null()).status();
    }
}
