//! `cargo xtask kernel player`: a player beside four copies on a slow disk, under several
//! schedulers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_guest::plan::{Campaign, PlayerSetup};
use hoistway_guest::protocol::Counts;
use hoistway_units::figures::grouped;
use hoistway_vm::boot::{Backing, Disk};

use hoistway_vm::architecture;
use hoistway_workspace::{parts, programs};

use super::plans::{self, Choice};
use super::test::Session;
use super::{Selection, build};

/// The page with the table.
const PAGE: &str = "docs/kernel.md";
/// The bytes of the disk's file.
const DISK_BYTES: u64 = 1 << 30;
/// The bytes of a file that is copied; they do not fit in the memory of the guest four times.
const SOURCE_BYTES: usize = 96 << 20;
const FILM_BYTES: usize = 160 << 20;

/// Options of `cargo xtask kernel player`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// The duration of each run
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    seconds: u64,
    /// Only runs with this text in their names
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "write")]
    only: String,
    /// Write the table to docs/kernel.md; for one kernel
    #[arg(long)]
    write: bool,
}

/// A run: its row in the table, and its parameters.
struct Run {
    row: &'static str,
    setup: PlayerSetup,
}

/// The slow disk and a faster one, each with a player that needs a quarter or a half of it.
fn runs(seconds: u64) -> Vec<Run> {
    let film = |row, elevator: &str, io_class, reserved_bytes_per_second| {
        let tunables = vec![("rotational".to_owned(), "1".to_owned())];
        let (serial, elevator) = ("slow".to_owned(), elevator.to_owned());
        let bytes_per_second = 4_200_000;
        let setup =
            PlayerSetup { serial, elevator, tunables, io_class, bytes_per_second, reserved_bytes_per_second, seconds };
        Run { row, setup }
    };
    let fast = |row, elevator: &str, reserved_bytes_per_second| {
        let mut run = film(row, elevator, 2, reserved_bytes_per_second);
        run.setup.serial = "fast".to_owned();
        run.setup.bytes_per_second = 20_000_000;
        // At that rate the window of read-ahead lasts 6 ms by default, less than a queue of writes.
        run.setup.tunables.push(("read_ahead_kb".to_owned(), "1024".to_owned()));
        if reserved_bytes_per_second > 0 {
            let tunables = [("device_bandwidth", "40000"), ("device_position", "1000"), ("device_return", "0")];
            run.setup.tunables.extend(tunables.map(|(name, value)| (format!("iosched/{name}"), value.to_owned())));
        }
        run
    };
    vec![
        film("`none`", "none", 2, 0),
        film("`mq-deadline`", "mq-deadline", 2, 0),
        film("`bfq`, real time", "bfq", 1, 0),
        film("`cfq`, real time", "cfq", 1, 0),
        film("`cfq`, best effort", "cfq", 2, 0),
        fast("`none`", "none", 0),
        fast("`cfq-bw`, nothing reserved", "cfq-bw", 0),
        fast("`cfq-bw`, 21 MB/s reserved", "cfq-bw", 21_000_000),
    ]
}

/// Runs the player under each scheduler in one boot.
pub fn run(options: &Options) -> Result<()> {
    super::test::require_programs(architecture::BUILD, false, true)?;
    programs::require_all(&[("mkfs.ext4", "e2fsprogs")], true)?;
    let session = Session::new("player", 512, "")?;
    let image = image(session.folder())?;
    let disk = |serial, bytes_per_second, requests_per_second| Disk {
        serial,
        backing: Backing::File { path: session.folder().join(serial), depth: 4, bytes_per_second, requests_per_second },
    };
    let disks = vec![disk("slow", 16_000_000, 200), disk("fast", 40_000_000, 700)];
    for disk in &disks {
        fs::copy(&image, session.folder().join(disk.serial))
            .with_context(|| format!("cannot copy {}", image.display()))?;
    }
    let session = session.with_disks(disks);
    for fetched in super::present(&options.selection.kernels()?, session.folder())? {
        println!("{}: {}", fetched.kernel.name, fetched.release);
        let built = build::build(&fetched, session.folder())?;
        let mut runs = runs(options.seconds);
        runs.retain(|run| name(run).contains(&options.only));
        let choice = Choice { subject: Some(plans::registered()), elevators: Vec::new(), full: true, seed: 1 };
        let campaigns = runs.iter().map(|run| (name(run), Campaign::Player(run.setup.clone())));
        let plan = plans::of_campaigns(&choice, options.seconds + 240, campaigns);
        let boot = session.boot(&fetched, Some(&built.file), plan, true)?;
        if !boot.failures.is_empty() {
            bail!("{}\nthe logs are in {}", boot.failures.join("\n"), boot.directory.display());
        }
        let table = table(&runs, &boot.counts)?;
        println!("{table}");
        if options.write {
            let text = format!("Linux {}, {} s each:\n\n{table}", fetched.release, options.seconds);
            parts::put(PAGE, &[("player", text)])?;
        }
    }
    Ok(())
}

/// The name of the step of a run.
fn name(run: &Run) -> String {
    format!("{} {}", run.setup.serial, run.row.replace('`', ""))
}

/// Makes a file system with a film and four files for the copies.
fn image(folder: &Path) -> Result<PathBuf> {
    let (files, image) = (folder.join("films"), folder.join("films.ext4"));
    fs::create_dir_all(&files).with_context(|| format!("cannot make {}", files.display()))?;
    let sizes = (0..4).map(|number| (format!("source-{number}"), SOURCE_BYTES));
    for (name, bytes) in sizes.chain([("film".to_owned(), FILM_BYTES)]) {
        // No block is empty, so that every read reaches the disk.
        fs::write(files.join(name), vec![0x5a; bytes])?;
    }
    fs::File::create(&image)?.set_len(DISK_BYTES)?;
    let mut format = Command::new("mkfs.ext4");
    format.args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d"]).arg(&files).arg(&image);
    programs::run(format.stdout(Stdio::null()))?;
    fs::remove_dir_all(&files)?;
    Ok(image)
}

fn table(runs: &[Run], counts: &BTreeMap<String, Counts>) -> Result<String> {
    let mut lines = vec![
        "| disk | scheduler | the player reads | of its rate | 99 % of its reads take at most | longest |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for run in runs {
        let figures = counts.get(&name(run)).with_context(|| format!("no figures of {}", name(run)))?;
        let figure = |name: &str| figures.get(name).copied().unwrap_or(0);
        let (read, rate) = (figure("player_kb_s"), figure("rate_kb_s").max(1));
        let disk = if run.setup.serial == "slow" { "16 MB/s, 200 IOPS" } else { "40 MB/s, 700 IOPS" };
        lines.push(format!(
            "| {disk} | {} | {}.{:02} MB/s | {} % | {} ms | {} ms |",
            run.row,
            read / 1000,
            read % 1000 / 10,
            read * 100 / rate,
            grouped(figure("player_p99_us") / 1000),
            grouped(figure("player_longest_us") / 1000),
        ));
    }
    Ok(lines.join("\n"))
}
