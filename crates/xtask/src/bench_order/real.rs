//! For real: the image behind an emulated drive, a file system on it as any other, and programs that read it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::image::{self, Mounted};
use super::simulated::{Plans, taken};
use super::timed::{self, Times};
use super::{Part, Place};
use crate::goals::Goal;
use crate::server::Server;
use crate::tools;

const DRIVE: &str = "sata-7200-2006";
/// It sorts and merges, and keeps the drive idle for nobody.
const ELEVATOR: &str = "deadline";
/// How much faster than tar, and how near to what was simulated.
const FASTER: f64 = 3.9;
const NEAR: f64 = 0.1;
/// How long FUSE may take to show the file.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is run.
struct Case {
    name: &'static str,
    command: String,
    predicted_s: f64,
}

/// What came of it.
struct Measured {
    times: Times,
    reads: u64,
    bytes: u64,
}

/// Runs tar, tar with the list of `hoistway order`, and `hoistway tar`.
pub fn measure(place: &Place) -> Result<Part> {
    for (program, package) in [("nbdfuse", "libnbd-bin"), ("losetup", "mount")] {
        if tools::find(program).is_none() {
            tools::install(&[package])?;
        }
    }
    let on_disk = image::of_files(&place.folder, true)?;
    // In memory: what the emulated drive takes is all that is to be seen.
    let bench = Bench::new(&on_disk, place)?;
    let turnaround_ns = bench.turnaround_ns()?;
    let hoistway = place.hoistway.display();
    let plans = bench.plans()?;
    let predicted = |plans: &[(&hoistway_order::plan::Plan, usize)]| -> Result<f64> {
        Ok(taken(DRIVE, plans, turnaround_ns)?.ns as f64 / 1e9)
    };
    let passes = |depth| predicted(&[(&plans.metadata, 1), (&plans.data, depth)]);
    let cases = [
        Case { name: "GNU tar", command: "tar -cf - tree".into(), predicted_s: predicted(&[(&plans.tar, 1)])? },
        Case {
            name: "GNU tar with `hoistway order`'s list",
            command: format!("{hoistway} order -0 --type f tree | tar -cf - --null --no-recursion -T -"),
            predicted_s: predicted(&[(&plans.metadata, 1), (&plans.listed, 1)])?,
        },
        Case {
            name: "hoistway tar, one reader",
            command: format!("{hoistway} tar -cf - --readers 1 tree"),
            predicted_s: passes(1)?,
        },
        Case {
            name: "hoistway tar, 8 readers",
            command: format!("{hoistway} tar -cf - --readers 8 tree"),
            predicted_s: passes(8)?,
        },
        Case { name: "hoistway tar", command: format!("{hoistway} tar -cf - tree"), predicted_s: passes(READERS)? },
    ];
    let mut text = format!(
        "```console\n$ cargo xtask bench-order --only real\n```\n\nBetween the drive's answer and the next request pass {:.2} ms: that is what a read takes here without a drive. The same pause is in the predictions.\n\n\
         | what is run | s | predicted | off | tar : this | reads | MB read |\n|---|---|---|---|---|---|---|\n",
        turnaround_ns as f64 / 1e6
    );
    let (mut tar_s, mut goals) = (None, Vec::new());
    for case in cases {
        let near = format!("{}: within 10 % of what is simulated", case.name);
        let shown = case.command.replace(&hoistway.to_string(), "hoistway");
        let measured = match bench.run(Some(DRIVE), &case.command) {
            Ok(measured) => measured,
            Err(error) => {
                goals.push(Goal::not_measured(&near, &format!("{error:#}")));
                continue;
            }
        };
        let seconds = measured.times.wall;
        let first_s = *tar_s.get_or_insert(seconds);
        let off = seconds / case.predicted_s - 1.0;
        let _ = writeln!(
            text,
            "| {}: `{shown}` | {seconds:.1} | {:.1} | {:+.1} % | {:.2} | {} | {:.0} |",
            case.name,
            case.predicted_s,
            off * 100.0,
            first_s / seconds,
            measured.reads,
            measured.bytes as f64 / 1e6
        );
        goals.push(Goal::found(&near, format!("{:+.1} %", off * 100.0), off.abs() <= NEAR));
        if case.name.starts_with("hoistway tar") {
            let ratio = first_s / seconds;
            let faster = format!("{}: >= {FASTER} times as fast as GNU tar", case.name);
            goals.push(Goal::found(&faster, format!("{ratio:.2}"), ratio >= FASTER));
        }
    }
    Ok(Part { text, goals })
}

/// As many as `hoistway tar` has unless told.
const READERS: usize = 2;

/// The image in memory, and where sockets and mounts are.
struct Bench<'p> {
    place: &'p Place,
    image: PathBuf,
    folder: PathBuf,
}

impl<'p> Bench<'p> {
    fn new(on_disk: &Path, place: &'p Place) -> Result<Bench<'p>> {
        let folder = PathBuf::from(format!("/dev/shm/hoistway-order-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let image = folder.join("disk.img");
        let bench = Bench { place, image, folder };
        tools::run(Command::new("cp").arg("--sparse=always").arg(on_disk).arg(&bench.image))?;
        Ok(bench)
    }

    fn plans(&self) -> Result<Plans> {
        let mounted = Mounted::new(&self.image, &self.folder.join("plain"))?;
        Ok(Plans::of(&image::laid(&mounted)?))
    }

    /// What a read takes when the drive takes nothing, one at a time.
    fn turnaround_ns(&self) -> Result<u64> {
        let measured = self.run(None, "tar -cf - tree")?;
        Ok((measured.times.wall * 1e9 / measured.reads.max(1) as f64) as u64)
    }

    /// Runs a command where the file system is mounted, of which nothing is in memory.
    fn run(&self, drive: Option<&str>, command: &str) -> Result<Measured> {
        let socket = self.folder.join("nbd.sock");
        let mut serve = Command::new("chrt");
        serve
            .args(["--fifo", "10"])
            .arg(&self.place.hoistway)
            .arg("serve")
            .arg("--export")
            .arg(format!("={},read-only", self.image.display()));
        serve.args(["--elevator", ELEVATOR, "--socket"]).arg(&socket);
        if let Some(drive) = drive {
            serve.args(["--drive", drive]);
        }
        let server = Server::start(&mut serve, &self.folder.join("serve.log"))?;
        let fuse = Fuse::new(&self.folder.join("fuse"), &socket)?;
        let mounted = Mounted::new(&fuse.file(), &self.folder.join("mnt"))?;
        let before = mounted.reads()?;
        let times = timed::run_first(command, &mounted.at)?;
        let after = mounted.reads()?;
        drop(mounted);
        drop(fuse);
        server.leave()?;
        Ok(Measured { times, reads: after.0 - before.0, bytes: after.1 - before.1 })
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // What is left is in memory, and seen by whoever looks there.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// An export as a file.
struct Fuse {
    at: PathBuf,
    child: Child,
}

impl Fuse {
    fn new(at: &Path, socket: &Path) -> Result<Fuse> {
        fs::create_dir_all(at)?;
        let mut command = Command::new("chrt");
        command.args(["--fifo", "8", "nbdfuse", "-r"]).arg(at.join("disk")).arg("--unix").arg(socket);
        let child = command.stdout(Stdio::null()).spawn().context("cannot start nbdfuse")?;
        let fuse = Fuse { at: at.to_owned(), child };
        let begun = Instant::now();
        while !fuse.file().exists() {
            if begun.elapsed() > PATIENCE {
                bail!("nbdfuse shows no file after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(fuse)
    }

    fn file(&self) -> PathBuf {
        self.at.join("disk")
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // nbdfuse ends when it is unmounted; a loop device may hold it for a moment.
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let unmounted = Command::new("umount").arg(&self.at).stderr(Stdio::null()).status();
            if unmounted.is_ok_and(|status| status.success()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if begun.elapsed() >= PATIENCE {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
