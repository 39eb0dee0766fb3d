//! The ways to the same files: the directory itself, pass-throughs, and the mount under an
//! elevator.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::processor::Cpu;

/// How long a mount may take to be there, or to be gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The directory itself.
    Plain,
    /// libfuse's pass-through as Debian has it.
    Bindfs,
    /// `hoistway mount` without scheduling.
    Unscheduled,
    /// Under an elevator.
    Under(&'static str),
    /// The same, and the kernel gathers what is written.
    KernelWrites(&'static str),
}

impl Way {
    /// What it is called in tables.
    pub fn name(self) -> String {
        match self {
            Way::Plain => "the directory itself".into(),
            Way::Bindfs => "bindfs".into(),
            Way::Unscheduled => "hoistway mount --elevator none".into(),
            Way::Under(elevator) => format!("hoistway mount --elevator {elevator}"),
            Way::KernelWrites(elevator) => format!("hoistway mount --elevator {elevator} --write-back kernel"),
        }
    }
}

/// A directory that is reached in one of these ways. A mount is undone when it is dropped.
#[derive(Debug)]
pub struct Reached {
    /// Where the files are seen.
    pub at: PathBuf,
    child: Option<Child>,
}

impl Reached {
    /// Opens that way to the files in `source`; a mount is at `at`.
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

    /// Runs a command that stays until the mount is undone.
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
                bail!("{:?} has ended ({status}) without a mount: {}", command.get_program(), printed.trim());
            }
            if begun.elapsed() > PATIENCE {
                bail!("{:?} has mounted nothing after {} s", command.get_program(), PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(reached)
    }

    /// The processor time of the processes that serve the mount; 0 for the directory itself.
    pub fn cpu(&self) -> Result<Cpu> {
        self.child.as_ref().map_or(Ok(Cpu::default()), |child| Cpu::of(child.id()))
    }
}

/// `hoistway mount` with further words.
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
            // A process that still has a file open there closes it soon.
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
