//! A reader beside four bulk copies on an emulated disk: the rate that it keeps, on the file system
//! itself and through the mount.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use hoistway_workspace::programs::{self, Background};
use serde_json::Value;

use super::ways::{Reached, Way, mount};
use super::{Bench, Section};
use crate::emulated::{Disk, Mounted, Setup};
use crate::goals::Goal;

const DRIVE: &str = "sata-7200-2006";
/// The size of the file that the reader streams: more than it reads in a run.
const STREAM_BYTES: u64 = 1600 << 20;
/// The size of the file that each copying process copies.
const COPIED_BYTES: u64 = 600 << 20;
const COPIES: usize = 4;
/// The reservation of the reader, in bytes a second: twice the rate of a film of high quality.
/// Reservations include positioning for each request, so a disk can guarantee only a part of its
/// streaming rate.
const RESERVED: u64 = 20_000_000;
/// The rate of the inner tracks of the disk and its positioning time, for the admission of
/// reservations.
const FIGURES: &str = "bandwidth = \"35MB/s\"\nposition = \"10ms\"";
/// The rate of a paced reader, in bytes a second.
const PACE: u64 = 20_000_000;

/// The load of a run and the path to its files.
#[derive(Clone, Copy, Debug)]
struct Case {
    what: &'static str,
    /// The elevator of the mount; `None` without a mount.
    elevator: Option<&'static str>,
    /// The command prefix of the reader.
    reader: &'static [&'static str],
    /// The command prefix of each copy; `None` without copies.
    copies: Option<&'static [&'static str]>,
    /// Whether the reader has a reservation of [`RESERVED`].
    reserves: bool,
    /// Whether the reader is limited to [`PACE`].
    is_paced: bool,
    wanted: Wanted,
}

/// The goal for the reader.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    Nothing,
    /// 90 % of its rate alone.
    Rate,
    /// 90 % of its reservation.
    Reserved,
    /// 98 % of its pace, while the copies continue.
    Pace,
}

const REAL_TIME: &[&str] = &["ionice", "-c1", "-n4"];
const IDLE: &[&str] = &["ionice", "-c3"];

fn cases() -> Vec<Case> {
    let plain = Case {
        what: "the reader alone",
        elevator: None,
        reader: &[],
        copies: None,
        reserves: false,
        is_paced: false,
        wanted: Wanted::Nothing,
    };
    let mut cases = vec![plain, Case { what: "with the copies", copies: Some(&[]), ..plain }];
    for elevator in ["paternoster", "bfq", "cfq"] {
        let ours = Case { elevator: Some(elevator), ..plain };
        let beside = Case { copies: Some(&[]), wanted: Wanted::Rate, ..ours };
        cases.extend([
            Case { what: "the reader alone", ..ours },
            Case { what: "with the copies, all with equal priority", wanted: Wanted::Nothing, ..beside },
            Case { what: "the reader with `ionice -c1`", reader: REAL_TIME, ..beside },
            Case { what: "the copies with `ionice -c3`", copies: Some(IDLE), ..beside },
            Case {
                what: "the copies with `ionice -c3`, the reader at 20 MB/s",
                copies: Some(IDLE),
                is_paced: true,
                wanted: Wanted::Pace,
                ..ours
            },
            Case { what: "the reader with 20 MB/s reserved", reserves: true, wanted: Wanted::Reserved, ..beside },
        ]);
    }
    cases
}

/// The rates of a case, in bytes a second.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    reader: f64,
    copies: f64,
}

/// Runs all cases and returns the section of the page.
pub fn measure(bench: &Bench) -> Result<Section> {
    let folder = PathBuf::from(format!("/dev/shm/hoistway-mount-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = all(bench, &folder);
    let _ = fs::remove_dir_all(&folder);
    measured
}

fn all(bench: &Bench, folder: &Path) -> Result<Section> {
    let image = image(folder)?;
    let mut text = format!(
        "```console\n$ cargo xtask bench-mount --only sharing\n```\n\nAn ext4 on `{DRIVE}`, emulated in real time behind nbdfuse and a loop device, which the mount's configuration declares rotational. For {} s a reader streams a file while {COPIES} processes copy one file each.\n\n\
         | access | case | reader, MB/s | share of its rate alone | copies, MB/s in total |\n|---|---|---|---|---|\n",
        bench.seconds
    );
    let (mut alone, mut goals) = (None, Vec::new());
    for (number, case) in cases().into_iter().enumerate() {
        let through = case
            .elevator
            .map_or("the directory without a mount".to_owned(), |elevator| format!("`hoistway mount`, {elevator}"));
        let rates = match run(bench, folder, &image, &case, number as u32) {
            Ok(rates) => rates,
            Err(error) => {
                let error = format!("{error:#}");
                goals.push(Goal::not_measured(
                    &format!("{through}: {}", case.what),
                    error.lines().next().unwrap_or_default(),
                ));
                continue;
            }
        };
        let alone = *alone.get_or_insert(rates.reader);
        let _ = writeln!(
            text,
            "| {through} | {} | {:.1} | {:.0} % | {:.1} |",
            case.what,
            rates.reader / 1e6,
            rates.reader / alone * 100.0,
            rates.copies / 1e6
        );
        goals.extend(goal(&case, &through, rates, alone));
    }
    Ok(Section { text, goals })
}

fn goal(case: &Case, through: &str, rates: Rates, alone: f64) -> Option<Goal> {
    let (text, of, least) = match case.wanted {
        Wanted::Nothing => return None,
        Wanted::Rate => ("the reader keeps >= 90 % of its rate", alone, 0.9),
        Wanted::Reserved => ("the reader gets >= 90 % of its reservation", RESERVED as f64, 0.9),
        Wanted::Pace => ("the reader keeps its pace, and the copies proceed", PACE as f64, 0.98),
    };
    let part = rates.reader / of;
    let holds = part >= least && (case.wanted != Wanted::Pace || rates.copies > 0.0);
    Some(Goal::found(&format!("{through}: {}: {text}", case.what), format!("{:.0} %", part * 100.0), holds))
}

fn run(bench: &Bench, folder: &Path, image: &Path, case: &Case, number: u32) -> Result<Rates> {
    let disk = Disk::new(&Setup {
        hoistway: &bench.hoistway,
        image,
        folder,
        drive: DRIVE,
        elevator: "noop",
        read_only: false,
        number,
    })?;
    let source = &disk.mounted().at;
    let reached = match case.elevator {
        None => Reached::new(Way::Plain, &bench.hoistway, source, source)?,
        Some(elevator) => {
            let at = folder.join("seen");
            let mut command = mount(&bench.hoistway, source, &at, &["--elevator", elevator]);
            command.arg("--config").arg(config(folder, &disk.mounted().device, case.reserves)?);
            Reached::by(command, &at)?
        }
    };
    let copies = case.copies.map(|words| copies(&reached.at, words)).transpose()?.unwrap_or_default();
    let reader = stream(&reached.at, case, bench.seconds);
    let copied =
        (0..COPIES).map(|copy| fs::metadata(reached.at.join(format!("copy-{copy}"))).map_or(0, |file| file.len()));
    let copied: u64 = copied.sum();
    drop(copies);
    for copy in 0..COPIES {
        let _ = fs::remove_file(reached.at.join(format!("copy-{copy}")));
    }
    drop(reached);
    disk.stop()?;
    Ok(Rates { reader: reader?, copies: copied as f64 / f64::from(bench.seconds) })
}

/// Runs the reader and returns its rate in bytes a second.
fn stream(at: &Path, case: &Case, seconds: u32) -> Result<f64> {
    let words: Vec<&str> = case.reader.iter().copied().chain(["fio"]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command.args([
        "--name=stream",
        "--rw=read",
        "--bs=128k",
        "--ioengine=psync",
        "--output-format=json",
        "--time_based",
    ]);
    command.args(["--allow_file_create=0", "--loops=1"]);
    command.arg(format!("--runtime={seconds}")).arg(format!("--filename={}", at.join("stream").display()));
    if case.is_paced {
        command.arg(format!("--rate={PACE}"));
    }
    let document: Value = serde_json::from_str(&programs::output(&mut command)?).context("the output of fio")?;
    document["jobs"][0]["read"]["bw_bytes"].as_f64().context("the output of fio has no rate")
}

/// Starts the processes that copy files.
fn copies(at: &Path, words: &[&str]) -> Result<Vec<Background>> {
    let mut copies = Vec::new();
    for copy in 0..COPIES {
        let words: Vec<&str> = words.iter().copied().chain(["cp"]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(at.join(format!("source-{copy}"))).arg(at.join(format!("copy-{copy}")));
        copies.push(Background(command.stderr(Stdio::null()).spawn().context("cannot start cp")?));
    }
    Ok(copies)
}

/// Writes a configuration with the properties that the loop device hides: the disk is rotational,
/// and its rate and positioning time. With `reserves`, processes named fio have a reservation of
/// [`RESERVED`] in requests of 1 MiB, the size of the read-ahead.
fn config(folder: &Path, device: &str, reserves: bool) -> Result<PathBuf> {
    let file = folder.join("mount.toml");
    let mut text = format!("[[device]]\nname = \"{device}\"\nrotational = true\n{FIGURES}\n");
    if reserves {
        let _ = write!(
            text,
            "\n[[tenant]]\nname = \"stream\"\ncomm = \"fio\"\nreserve = {{ rate = \"{RESERVED}\", request = \"1M\" }}\n"
        );
    }
    fs::write(&file, text)?;
    Ok(file)
}

/// Creates an image of an ext4 with the files that are read and copied.
fn image(folder: &Path) -> Result<PathBuf> {
    let image = folder.join("disk.img");
    let all = STREAM_BYTES + 2 * COPIES as u64 * COPIED_BYTES;
    fs::File::create(&image)?.set_len(all + all / 4)?;
    programs::run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096"]).arg(&image))?;
    let mounted = Mounted::writable(&image, &folder.join("plain"))?;
    let files = std::iter::once(("stream".to_owned(), STREAM_BYTES))
        .chain((0..COPIES).map(|copy| (format!("source-{copy}"), COPIED_BYTES)));
    for (name, bytes) in files {
        let mut file = fs::File::create(mounted.at.join(&name))?;
        let block: Vec<u8> = (0..1 << 20).map(|at: u32| (at ^ at >> 8) as u8).collect();
        for _ in 0..bytes >> 20 {
            file.write_all(&block)?;
        }
        file.sync_all()?;
        ensure!(file.metadata()?.len() == bytes, "{name} is too short");
    }
    Ok(image)
}
