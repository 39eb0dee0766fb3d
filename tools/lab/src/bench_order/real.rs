//! Real runs: an image behind an emulated drive, with a file system that programs read.

use std::cell::Cell;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use hoistway_order::archive::READERS;
use hoistway_order::read_plan::ReadPlan;
use hoistway_workspace::programs;

use super::image;
use super::simulated::{Plans, taken};
use super::timed::{self, Times};
use super::{Bench, Section};
use crate::emulated::{Disk, Mounted, Setup};
use crate::goals::Goal;

const DRIVE: &str = "sata-7200-2006";
/// The elevator sorts and merges, and never keeps the drive idle.
const ELEVATOR: &str = "deadline";
/// The goals: the speedup over tar, and the largest deviation from the simulation.
const FASTER: f64 = 3.9;
const NEAR: f64 = 0.1;
/// The service time of a disk for a distant small read: long enough for a waiting process to sleep.
const EVEN_NS: u64 = 5_000_000;

/// A command and its reads.
struct Case {
    name: &'static str,
    command: String,
    reads: fn(&Plans) -> Vec<(&ReadPlan, usize)>,
}

/// The measurement and the prediction of a case.
struct Found {
    measured: Measured,
    predicted_s: f64,
    pause_ns: u64,
}

/// The figures of a run.
struct Measured {
    times: Times,
    reads: u64,
    bytes: u64,
}

/// Runs tar, tar with the list of `hoistway order`, and `hoistway tar`.
pub fn measure(bench: &Bench) -> Result<Section> {
    let on_disk = image::of_files(&bench.folder, true)?;
    // The image is in memory: only the time of the emulated drive counts.
    let emulation = Emulation::new(&on_disk, bench)?;
    let plans = emulation.plans()?;
    let hoistway = bench.hoistway.display().to_string();
    let mut text = "```console\n$ cargo xtask bench-order --only real\n```\n\n| command | s | predicted | deviation | speedup over tar | pause, ms | reads | MB read |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    let (mut tar_s, mut goals) = (None, Vec::new());
    for case in cases(&hoistway) {
        match emulation.case(&case, &plans) {
            Ok(found) => {
                let first_s = *tar_s.get_or_insert(found.measured.times.wall);
                row(&mut text, &case.command.replace(&hoistway, "hoistway"), &found, first_s);
                goals.extend(wanted(&case, &found, first_s));
            }
            Err(error) => {
                let error = format!("{error:#}");
                let why = error.lines().next().unwrap_or_default();
                goals.push(Goal::not_measured(case.name, why));
            }
        }
    }
    Ok(Section { text, goals })
}

fn cases(hoistway: &str) -> [Case; 5] {
    [
        Case { name: "GNU tar", command: "tar -cf - tree".into(), reads: |plans| vec![(&plans.tar, 1)] },
        Case {
            name: "GNU tar with a list",
            command: format!("{hoistway} order -0 --type f tree | tar -cf - --null --no-recursion -T -"),
            reads: |plans| vec![(&plans.metadata, 1), (&plans.listed, 1)],
        },
        Case {
            name: "hoistway tar, one reader",
            command: format!("{hoistway} tar -cf - --readers 1 tree"),
            reads: |plans| vec![(&plans.metadata, 1), (&plans.data, 1)],
        },
        Case {
            name: "hoistway tar, 8 readers",
            command: format!("{hoistway} tar -cf - --readers 8 tree"),
            reads: |plans| vec![(&plans.metadata, 1), (&plans.data, 8)],
        },
        Case {
            name: "hoistway tar",
            command: format!("{hoistway} tar -cf - tree"),
            reads: |plans| vec![(&plans.metadata, 1), (&plans.data, READERS)],
        },
    ]
}

fn row(text: &mut String, command: &str, found: &Found, first_s: f64) {
    let Found { measured, predicted_s, pause_ns } = found;
    let seconds = measured.times.wall;
    let _ = writeln!(
        text,
        "| `{}` | {seconds:.1} | {predicted_s:.1} | {:+.1} % | {:.2} | {:.2} | {} | {:.0} |",
        command.replace('|', "\\|"),
        (seconds / predicted_s - 1.0) * 100.0,
        first_s / seconds,
        *pause_ns as f64 / 1e6,
        measured.reads,
        measured.bytes as f64 / 1e6
    );
}

fn wanted(case: &Case, found: &Found, first_s: f64) -> Vec<Goal> {
    let off = found.measured.times.wall / found.predicted_s - 1.0;
    let near = format!("{}: within 10 % of the simulation", case.name);
    let mut goals = vec![Goal::found(&near, format!("{:+.1} %", off * 100.0), off.abs() <= NEAR)];
    if case.name.starts_with("hoistway tar") {
        let ratio = first_s / found.measured.times.wall;
        let faster = format!("{}: >= {FASTER} times as fast as GNU tar", case.name);
        goals.push(Goal::found(&faster, format!("{ratio:.2}"), ratio >= FASTER));
    }
    goals
}

/// The image in memory, and the directory of sockets and mounts.
struct Emulation<'p> {
    bench: &'p Bench,
    image: PathBuf,
    folder: PathBuf,
    runs: Cell<u32>,
}

impl<'p> Emulation<'p> {
    fn new(on_disk: &Path, bench: &'p Bench) -> Result<Emulation<'p>> {
        let folder = PathBuf::from(format!("/dev/shm/hoistway-order-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let image = folder.join("disk.img");
        let emulation = Emulation { bench, image, folder, runs: Cell::new(0) };
        programs::run(Command::new("cp").arg("--sparse=always").arg(on_disk).arg(&emulation.image))?;
        Ok(emulation)
    }

    fn plans(&self) -> Result<Plans> {
        let mounted = Mounted::new(&self.image, &self.folder.join("plain"))?;
        Ok(Plans::of(&image::layout(&mounted)?))
    }

    /// Predicts and measures a case. The pause between a completion and the next request is
    /// measured right before, because it depends on other work of the machine.
    fn case(&self, case: &Case, plans: &Plans) -> Result<Found> {
        let pause_ns = self.turnaround_ns()?;
        let predicted_s = taken(DRIVE, &(case.reads)(plans), pause_ns)?.ns as f64 / 1e9;
        let measured = self.run(DRIVE, &case.command)?;
        Ok(Found { measured, predicted_s, pause_ns })
    }

    /// The pause between a completion and the next request: the time per read, one at a time, on a
    /// drive with a service time of [`EVEN_NS`], minus that service time.
    fn turnaround_ns(&self) -> Result<u64> {
        let drive = self.folder.join("even.toml");
        let text = format!(
            "name = \"even\"\nwhat = \"a constant service time\"\nsource = \"none\"\n[null]\nservice_ns = {EVEN_NS}\ndepth = 1\ncapacity_sectors = 390721968\n"
        );
        fs::write(&drive, text)?;
        let measured = self.run(&drive.display().to_string(), "tar -cf - tree/d00[0-5]")?;
        let a_read_ns = (measured.times.wall * 1e9 / measured.reads.max(1) as f64) as u64;
        Ok(a_read_ns.saturating_sub(EVEN_NS))
    }

    /// Runs a command in the mounted file system, with cold caches.
    fn run(&self, drive: &str, command: &str) -> Result<Measured> {
        let disk = Disk::new(&Setup {
            hoistway: &self.bench.hoistway,
            image: &self.image,
            folder: &self.folder,
            drive,
            elevator: ELEVATOR,
            read_only: true,
            number: self.runs.replace(self.runs.get() + 1),
        })?;
        let before = disk.mounted().reads()?;
        let times = timed::run_first(command, &disk.mounted().at)?;
        let after = disk.mounted().reads()?;
        disk.stop()?;
        Ok(Measured { times, reads: after.0 - before.0, bytes: after.1 - before.1 })
    }
}

impl Drop for Emulation<'_> {
    fn drop(&mut self) {
        // Remaining files are in memory; their names show their origin.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
