//! The cost of a mount between a process and its files: throughput, latency and CPU time.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::programs;

use super::load::{Figures, Load};
use super::ways::{Reached, Way};
use super::{Bench, Section};
use crate::emulated::Mounted;
use crate::goals::Goal;

/// The elevators whose cost the page shows. The rates of the others are divided by that of the
/// first.
const ELEVATORS: [&str; 5] = ["mq-deadline", "noop", "kyber", "bfq", "cfq"];
/// The size of the file in bytes.
const FILE_BYTES: u64 = 2 << 30;
/// The name of the file.
const FILE: &str = "data";

const READ: Load = Load { title: "read, 1 MiB, sequential", options: &["--rw=read", "--bs=1m"] };
const WRITE: Load =
    Load { title: "write, 1 MiB, sequential", options: &["--rw=write", "--bs=1m", "--size=1g", "--end_fsync=1"] };
const RANDOM: Load = Load {
    title: "read, 4 KiB, random, in memory",
    options: &["--rw=randread", "--bs=4k", "--fadvise_hint=random", "--io_size=400m"],
};
const DIRECT: Load = Load {
    title: "read, 4 KiB, random, O_DIRECT",
    options: &["--rw=randread", "--bs=4k", "--direct=1", "--time_based", "--runtime=2"],
};
const DIRECT_WRITE: Load = Load {
    title: "write, 4 KiB, random, O_DIRECT",
    options: &["--rw=randwrite", "--bs=4k", "--direct=1", "--time_based", "--runtime=2"],
};

/// Measures all loads on a file system in memory, so that only the cost of the path to the file
/// counts.
pub fn in_memory(bench: &Bench) -> Result<Section> {
    let folder = PathBuf::from(format!("/dev/shm/hoistway-mount-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let found = compared(bench, &folder, &[READ, WRITE, RANDOM, DIRECT, DIRECT_WRITE], &ways(), false);
    let _ = fs::remove_dir_all(&folder);
    let found = found?;
    let mut text = format!(
        "```console\n$ cargo xtask bench-mount --only cost\n```\n\nAn ext4 on a loop device in memory; medians of {} rounds, in which the kinds of access alternate. CPU time is that of fio and of the \
         process that serves the mount, system time included.\n\n",
        bench.rounds
    );
    for (load, row) in &found {
        table(&mut text, load, row);
    }
    let mut goals = goals(&found);
    scheduling(bench, &mut text, &mut goals)?;
    Ok(Section { text, goals })
}

/// Measures sequential reads from the machine's own disk with cold caches.
pub fn cold(bench: &Bench) -> Result<Section> {
    let ways = [Way::Plain, Way::Bindfs, Way::Unscheduled, Way::Under(ELEVATORS[0]), Way::Under("bfq")];
    let found = compared(bench, &bench.folder, &[READ], &ways, true)?;
    let mut text = format!(
        "```console\n$ cargo xtask bench-mount --only cold\n```\n\nAn ext4 on a loop device over a file on the machine's own disk, with cold caches; medians of {} rounds.\n\n",
        bench.rounds
    );
    let mut goals = Vec::new();
    for (load, row) in &found {
        table(&mut text, load, row);
        goals.push(rate_goal("cold", load, row, &ways));
    }
    Ok(Section { text, goals })
}

fn ways() -> Vec<Way> {
    [Way::Plain, Way::Bindfs, Way::Unscheduled].into_iter().chain(ELEVATORS.map(Way::Under)).collect()
}

type Row = Vec<(Way, Figures)>;

/// Runs each load on each path, in rounds.
fn compared(bench: &Bench, folder: &Path, loads: &[Load], ways: &[Way], is_cold: bool) -> Result<Vec<(Load, Row)>> {
    let image = image(folder)?;
    let mut found = Vec::new();
    for load in loads {
        let mut measured = vec![Vec::new(); ways.len()];
        for _ in 0..bench.rounds {
            for (way, measured) in ways.iter().zip(&mut measured) {
                let mounted = Mounted::writable(&image, &folder.join("source"))?;
                if !is_cold {
                    programs::run(Command::new("cat").arg(mounted.at.join(FILE)).stdout(std::process::Stdio::null()))?;
                }
                let reached = Reached::new(*way, &bench.hoistway, &mounted.at, &folder.join("seen"))?;
                let figures = load.run(&reached, FILE).with_context(|| format!("{}: {}", way.name(), load.title));
                drop(reached);
                measured.push(figures?);
            }
        }
        let row = ways.iter().zip(&measured).map(|(way, measured)| (*way, Figures::medians(measured))).collect();
        found.push((*load, row));
    }
    fs::remove_file(&image)?;
    Ok(found)
}

/// Creates an image of an ext4 with one written file.
fn image(folder: &Path) -> Result<PathBuf> {
    let image = folder.join("disk.img");
    fs::File::create(&image)?.set_len(FILE_BYTES + (1 << 30))?;
    programs::run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096"]).arg(&image))?;
    let mounted = Mounted::writable(&image, &folder.join("source"))?;
    let mut file = fs::File::create(mounted.at.join(FILE))?;
    let mut block = vec![0u8; 1 << 20];
    for number in 0..FILE_BYTES >> 20 {
        for (at, byte) in block.iter_mut().enumerate() {
            *byte = (at as u64 ^ number) as u8;
        }
        file.write_all(&block)?;
    }
    file.sync_all()?;
    Ok(image)
}

/// Measures the cost of scheduling alone, because the differences between rows of the tables above
/// are below their noise.
fn scheduling(bench: &Bench, text: &mut String, goals: &mut Vec<Goal>) -> Result<()> {
    let mut bench = Command::new(&bench.hoistway);
    bench.args(["bench", "mount", "--json", "--elevators", &ELEVATORS.join(",")]);
    let document: serde_json::Value =
        serde_json::from_str(&programs::output(&mut bench)?).context("the output of hoistway bench mount")?;
    text.push_str(
        "### cost of scheduling\n\n```console\n$ hoistway bench mount\n```\n\n| elevator | read, ns | fsync, ns | lookup, ns |\n|---|---|---|---|\n",
    );
    for row in document["elevators"].as_array().context("no list of elevators")? {
        let name = row["name"].as_str().unwrap_or_default();
        let [read, sync, look] = ["read_ns", "sync_ns", "look_ns"].map(|key| row[key].as_f64().unwrap_or(f64::NAN));
        let _ = writeln!(text, "| {name} | {read:.0} | {sync:.0} | {look:.0} |");
        let goal = format!("{name}: scheduling costs <= 1 us per operation");
        goals.push(Goal::found(&goal, format!("{:.2} us", read / 1e3), read <= 1000.0));
    }
    text.push('\n');
    Ok(())
}

fn table(text: &mut String, load: &Load, row: &Row) {
    let _ = write!(
        text,
        "### {}\n\n| access | MB/s | operations/s | median, us | CPU time, us per operation |\n|---|---|---|---|---|\n",
        load.title
    );
    for (way, figures) in row {
        let rate = figures.bytes_per_second;
        let size = if load.options.contains(&"--bs=4k") { 4096.0 } else { 1_048_576.0 };
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {:.1} | {:.2} |",
            way.name(),
            rate / 1e6,
            rate / size,
            figures.median_us,
            figures.cpu_us()
        );
    }
    text.push('\n');
}

fn of(row: &Row, way: Way) -> Figures {
    row.iter().find(|(other, _)| *other == way).map_or_else(Figures::default, |(_, figures)| *figures)
}

fn rate_goal(where_from: &str, load: &Load, row: &Row, against: &[Way]) -> Goal {
    let rate = |way: Way| of(row, way).bytes_per_second / 1e6;
    let ours = rate(Way::Under(ELEVATORS[0]));
    let others = against.iter().copied().filter(|way| !matches!(way, Way::Under(_)));
    let best = others.map(rate).fold(0.0, f64::max);
    let text =
        format!("{where_from}: {}: under {} >= 90 % of the best access without scheduling", load.title, ELEVATORS[0]);
    Goal::found(&text, format!("{ours:.0} of {best:.0} MB/s = {:.0} %", ours / best * 100.0), ours >= 0.9 * best)
}

fn goals(found: &[(Load, Row)]) -> Vec<Goal> {
    let mut goals = Vec::new();
    let passed_through = [Way::Bindfs, Way::Unscheduled];
    for (load, row) in found {
        match load.title {
            title if title == READ.title || title == WRITE.title => {
                goals.push(rate_goal("in memory", load, row, &passed_through));
            }
            title if title == RANDOM.title => {
                let cpu = |way: Way| of(row, way).cpu_us();
                let (ours, best) =
                    (cpu(Way::Under(ELEVATORS[0])), passed_through.into_iter().map(cpu).fold(f64::MAX, f64::min));
                let text = format!("{title}: CPU time per operation <= 1.5 times the lowest without scheduling");
                goals.push(Goal::found(
                    &text,
                    format!("{ours:.2} : {best:.2} us = {:.2}", ours / best),
                    ours <= 1.5 * best,
                ));
            }
            _ => {}
        }
    }
    goals
}
