//! `cargo xtask bench-nbd`: hoistway's server beside others, and how it shares: docs/serve-benchmarks.md.
//!
//! Every server is started afresh for each run, the runs of a table are interleaved, and figures are medians over the rounds: what counts are ratios
//! in one table. The page is written whatever was found; a goal that is missed, or could not be measured, is the task's failure.

mod crowd;
mod goals;
mod load;
mod page;
mod servers;
mod sharing;
mod transport;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{goals as wanted, pages, server, tools};
use servers::{EXPORT_BYTES, Place};

/// The packages of the peers, on Debian.
const PACKAGES: [(&str, &str); 5] = [
    ("fio", "fio"),
    ("nbdkit", "nbdkit"),
    ("nbd-server", "nbd-server"),
    ("qemu-nbd", "qemu-utils"),
    ("qemu-storage-daemon", "qemu-system-common"),
];

pub const USAGE: &str = "cargo xtask bench-nbd [--rounds N] [--seconds S] [--share-seconds S] [--only cost|sharing|crowd]... [--hoistway PROGRAM] \
                         [--write]";

/// What is asked for.
#[derive(Debug)]
struct Options {
    rounds: u32,
    seconds: f64,
    share_seconds: f64,
    /// Empty: all parts.
    only: Vec<String>,
    hoistway: Option<PathBuf>,
    /// Into docs/serve-benchmarks.md, not only to the screen.
    write: bool,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Options> {
        let mut options =
            Options { rounds: 5, seconds: 1.5, share_seconds: 10.0, only: Vec::new(), hoistway: None, write: false };
        let mut words = arguments.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().copied().with_context(|| format!("{word} needs a value\n{USAGE}"));
            match word {
                "--rounds" => options.rounds = value()?.parse().context("--rounds takes a number")?,
                "--seconds" => options.seconds = value()?.parse().context("--seconds takes a number")?,
                "--share-seconds" => {
                    options.share_seconds = value()?.parse().context("--share-seconds takes a number")?
                }
                "--only" => match value()? {
                    part @ ("cost" | "sharing" | "crowd") => options.only.push(part.to_owned()),
                    other => bail!("--only takes cost, sharing or crowd, not {other:?}"),
                },
                "--hoistway" => options.hoistway = Some(value()?.into()),
                "--write" => options.write = true,
                other => bail!("{other:?} is no option\n{USAGE}"),
            }
        }
        if options.rounds == 0 {
            bail!("--rounds must be at least 1");
        }
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

/// Runs the parts that are asked for, and prints or writes their page.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    install_peers();
    let hoistway = match &options.hoistway {
        Some(program) => program.clone(),
        None => server::build()?,
    };
    let place = prepare(hoistway)?;
    let (mut sections, mut goals) = (Vec::new(), Vec::new());
    if options.wants("cost") {
        let elevators = server::elevators(&place.hoistway)?;
        let mut tables = Vec::new();
        for workload in transport::workloads(options.seconds, &elevators) {
            let medians = transport::measure(&workload, &place, options.rounds)?;
            tables.push((workload, medians));
        }
        let found = goals::of_cost(&tables);
        sections.push(("cost", page::cost(&tables, &found, options.rounds, options.seconds)));
        goals.extend(found);
    }
    if options.wants("sharing") {
        let results = sharing::measure(&place, options.share_seconds)?;
        sections.push(("sharing", page::sharing(&results)));
        goals.extend(goals::of_sharing(&results));
    }
    if options.wants("crowd") {
        let crowd = crowd::measure(&place, options.share_seconds)?;
        let found = goals::of_crowd(&crowd);
        sections.push(("crowd", page::crowd(&crowd, &found)));
        goals.extend(found);
    }
    fs::remove_dir_all(&place.directory)?;
    if options.write {
        pages::put_parts(page::PAGE, &sections)?;
    } else {
        sections.iter().for_each(|(_, section)| println!("{section}"));
    }
    wanted::judge(&goals)
}

/// Peers that cannot be installed are left out of the tables, which say so; goals that name them are not measured then.
fn install_peers() {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(program, _)| tools::find(program).is_none()).map(|(_, package)| *package).collect();
    if !missing.is_empty()
        && let Err(error) = tools::install(&missing)
    {
        eprintln!("left out of the tables: {} ({error:#})", missing.join(", "));
    }
}

/// A directory of its own on tmpfs, with a file that is filled, so that no server reads holes.
fn prepare(hoistway: PathBuf) -> Result<Place> {
    let directory = PathBuf::from("/dev/shm").join(format!("hoistway-bench-{}", std::process::id()));
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let image = directory.join("disk.img");
    let block: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    let mut bytes = Vec::new();
    for _ in 0..EXPORT_BYTES / block.len() as u64 / 16 {
        bytes.clear();
        (0..16).for_each(|_| bytes.extend_from_slice(&block));
        use std::io::Write;
        fs::OpenOptions::new().create(true).append(true).open(&image)?.write_all(&bytes)?;
    }
    let socket = directory.join("nbd.sock");
    Ok(Place { directory, socket, image, hoistway })
}
