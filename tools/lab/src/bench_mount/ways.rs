//! The paths to the same files: the directory without a mount, pass-through mounts, and the mount
//! under an elevator.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::processor::Cpu;

/// The longest time until a mount appears or disappears.
const PATIENCE: Duration = Duration::from_secs(20);

/// A path to the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The directory without a mount.
    Plain,
    /// bindfs: a pass-through mount over libfuse, from Debian.
    Bindfs,
    /// `hoistway mount` without scheduling.
    Unscheduled,
    /// `hoistway mount` under an elevator.
    Under(&'static str),
    /// `hoistway mount` under an elevator, with write-back by the kernel.
    KernelWrites(&'static str),
}

impl Way {
    /// The name of the path in tables.
    pub fn name(self) -> String {
        match self {
            Way::Plain => "the directory without a mount".into(),
            Way::Bindfs => "bindfs".into(),
            Way::Unscheduled => "hoistway mount --elevator none".into(),
            Way::Under(elevator) => format!("hoistway mount --elevator {elevator}"),
            Way::KernelWrites(elevator) => format!("hoistway mount --elevator {elevator} --write-back kernel"),
        }
    }
}

/// A directory that is accessed through one of these paths. Dropping it unmounts it.
#[derive(Debug)]
pub struct Reached {
    /// The directory with the files.
    pub at: PathBuf,
    child: Option<Child>,
}

impl Reached {
    /// Opens this path to the files in `source`; a mount is at `at`.
    pub fn new(way: Way, hoistway: &Path, source: &Path, at: &Path) -> Result<Reached> {
        let command = match way {
            Way::Plain => return Ok(Reached { at: source.to_owned(), child: None }),
            Way::Bindfs => {
                let mut command = Command::new("bindfs");
                command.arg("-f").arg(source).arg(at);
                command
            }
            Way::Unscheduled => mount(hoistway, source, at, &["--elevator", "none"]),
            Way::Under(elevator) => mount(hoistway, source, at, &["--elevator", elevator]),
            Way::KernelWrites(elevator) => {
                mount(hoistway, source, at, &["--elevator", elevator, "--write-back", "kernel"])
            }
        };
        Reached::by(command, at)
    }

    /// Runs a command that serves a mount at `at` until it is unmounted.
    pub fn by(mut command: Command, at: &Path) -> Result<Reached> {
        fs::create_dir_all(at).with_context(|| format!("cannot make {}", at.display()))?;
        let before = fs::metadata(at)?.dev();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let mut reached = Reached { at: at.to_owned(), child: Some(child) };
        let begun = Instant::now();
        while fs::metadata(at).map_or(before, |now| now.dev()) == before {
            if let Some(child) = &mut reached.child
                && let Some(status) = child.try_wait()?
            {
                let mut printed = String::new();
                if let Some(mut stderr) = child.stderr.take() {
                    std::io::Read::read_to_string(&mut stderr, &mut printed)?;
                }
                bail!("{:?} exited ({status}) without a mount: {}", command.get_program(), printed.trim());
            }
            if begun.elapsed() > PATIENCE {
                bail!("{:?} has not mounted after {} s", command.get_program(), PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(reached)
    }

    /// The CPU time of the processes that serve the mount; 0 without a mount.
    pub fn cpu(&self) -> Result<Cpu> {
        self.child.as_ref().map_or(Ok(Cpu::default()), |child| Cpu::of(child.id()))
    }
}

/// `hoistway mount` with additional arguments.
pub fn mount(hoistway: &Path, source: &Path, at: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(hoistway);
    command.arg("mount").arg(source).arg(at).args(words);
    command
}

impl Drop for Reached {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            // A process that still has a file open closes it soon.
            let _ = Command::new("umount").arg(&self.at).stderr(Stdio::null()).status();
            if child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = child.kill();
        let _ = child.wait();
        let _ = Command::new("umount").arg("-l").arg(&self.at).stderr(Stdio::null()).status();
    }
}
