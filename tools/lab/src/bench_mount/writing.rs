//! The cost of write-back by the mount instead of the kernel: a large file in small writes, and
//! many small files.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use hoistway_workspace::programs;

use super::ways::{Reached, Way};
use super::{Bench, Section};
use crate::emulated::Mounted;
use crate::processor::Cpu;

/// The size of the large file, and of each write to it.
const FILE_BYTES: u64 = 2 << 30;
const WRITE_BYTES: usize = 64 << 10;
/// The number and size of the small files, and their number per directory.
const FILES: usize = 20_000;
const SMALL_BYTES: usize = 4096;
const A_FOLDER: usize = 200;

/// The compared paths; write-back by the kernel has the same elevator.
const WAYS: [Way; 4] = [Way::Plain, Way::Unscheduled, Way::Under("mq-deadline"), Way::KernelWrites("mq-deadline")];

/// The times of a load.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    /// The time until the last call returned, in s.
    written_s: f64,
    /// The time until all data were on the disk, in s.
    durable_s: f64,
    /// The CPU time of this program and of the processes that serve the mount, in s, without kernel
    /// threads.
    cpu_s: f64,
}

/// Measures all paths on a file system in memory, so that only the cost of the path counts.
pub fn measure(bench: &Bench) -> Result<Section> {
    let folder = PathBuf::from(format!("/dev/shm/hoistway-mount-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let found = all(bench, &folder);
    let _ = fs::remove_dir_all(&folder);
    let found = found?;
    let mut text = format!(
        "```console\n$ cargo xtask bench-mount --only writing\n```\n\nAn ext4 on a loop device in memory; medians of {} rounds, in which the kinds of access alternate. *Written*: until the last call has returned; *durable*: until \
         everything is on the disk (`fsync` of the large file, `sync -f` of the file system below for the small ones). CPU time is that of the writing process and of the process that serves the mount, without kernel threads.\n\n",
        bench.rounds
    );
    for (what, row) in found {
        let _ = write!(text, "### {what}\n\n| access | written, s | durable, s | CPU time, s |\n|---|---|---|---|\n");
        for (way, took) in row {
            let Took { written_s, durable_s, cpu_s } = took;
            let _ = writeln!(text, "| {} | {written_s:.2} | {durable_s:.2} | {cpu_s:.2} |", way.name());
        }
        text.push('\n');
    }
    Ok(Section { text, goals: Vec::new() })
}

type Load = fn(&Reached, &Path) -> Result<Took>;
type Row = Vec<(Way, Took)>;

fn all(bench: &Bench, folder: &Path) -> Result<Vec<(String, Row)>> {
    let loads: [(String, Load); 2] = [
        (format!("a file of {} GiB, in writes of {} KiB", FILE_BYTES >> 30, WRITE_BYTES >> 10), large),
        (format!("{FILES} files of {} KiB", SMALL_BYTES >> 10), small),
    ];
    let mut found = Vec::new();
    for (what, load) in loads {
        let mut measured = vec![Vec::new(); WAYS.len()];
        for _ in 0..bench.rounds {
            for (way, measured) in WAYS.iter().zip(&mut measured) {
                let took = once(bench, folder, *way, load);
                measured.push(took.with_context(|| format!("{}: {what}", way.name()))?);
            }
        }
        let row = WAYS.iter().zip(&measured).map(|(way, measured)| (*way, medians(measured))).collect();
        found.push((what, row));
    }
    Ok(found)
}

/// Runs one load on a new file system.
fn once(bench: &Bench, folder: &Path, way: Way, load: Load) -> Result<Took> {
    let image = folder.join("disk.img");
    File::create(&image)?.set_len(FILE_BYTES + (1 << 30))?;
    programs::run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096"]).arg(&image))?;
    let mounted = Mounted::writable(&image, &folder.join("source"))?;
    let reached = Reached::new(way, &bench.hoistway, &mounted.at, &folder.join("seen"))?;
    let took = load(&reached, &mounted.at);
    drop(reached);
    drop(mounted);
    fs::remove_file(&image)?;
    took
}

fn large(reached: &Reached, _: &Path) -> Result<Took> {
    timed(
        || {
            let mut file = File::create(reached.at.join("large"))?;
            let block = vec![7; WRITE_BYTES];
            for _ in 0..FILE_BYTES / WRITE_BYTES as u64 {
                file.write_all(&block)?;
            }
            Ok(file)
        },
        |file| Ok(file.sync_all()?),
    )
}

fn small(reached: &Reached, below: &Path) -> Result<Took> {
    timed(
        || {
            let data = vec![7; SMALL_BYTES];
            for number in 0..FILES {
                let folder = reached.at.join(format!("d{}", number / A_FOLDER));
                if number % A_FOLDER == 0 {
                    fs::create_dir(&folder)?;
                }
                fs::write(folder.join(format!("f{number}")), &data)?;
            }
            Ok(())
        },
        |()| programs::run(Command::new("sync").arg("-f").arg(below)),
    )
}

/// Measures writes and the time until they are durable.
fn timed<T>(write: impl FnOnce() -> Result<T>, make_durable: impl FnOnce(T) -> Result<()>) -> Result<Took> {
    // The CPU time of this program includes its children, which serve the mount.
    let me = std::process::id();
    let (before, begun) = (Cpu::of(me)?, Instant::now());
    let written = write()?;
    let written_s = begun.elapsed().as_secs_f64();
    make_durable(written)?;
    let durable_s = begun.elapsed().as_secs_f64();
    Ok(Took { written_s, durable_s, cpu_s: Cpu::of(me)?.since(before) })
}

fn medians(of: &[Took]) -> Took {
    let median = |figure: fn(&Took) -> f64| {
        let mut figures: Vec<f64> = of.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(0.0)
    };
    Took {
        written_s: median(|took| took.written_s),
        durable_s: median(|took| took.durable_s),
        cpu_s: median(|took| took.cpu_s),
    }
}
