//! `cargo xtask bench-mount`: what a mount costs beside other ways to the same files, and how processes share a disk through it:
//! docs/mount-benchmarks.md.
//!
//! The page is written whatever was found; a goal that is missed, or could not be measured, is the task's failure.

mod cost;
mod load;
mod sharing;
mod ways;
mod writing;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::parts::{self, Part};
use crate::tools;

const PAGE: &str = "docs/mount-benchmarks.md";
const PARTS: [&str; 4] = ["cost", "cold", "writing", "sharing"];
const USAGE: &str = "cargo xtask bench-mount [--only cost|cold|writing|sharing]... [--rounds N] [--seconds S] [--folder DIR] [--hoistway PROGRAM] [--write]";

/// What is asked for.
struct Options {
    /// Empty: all parts.
    only: Vec<String>,
    rounds: usize,
    seconds: u32,
    folder: Option<PathBuf>,
    hoistway: Option<PathBuf>,
    /// Into the page, not only to the screen.
    write: bool,
}

/// What is measured, and where.
struct Place {
    hoistway: PathBuf,
    /// On the machine's own disk.
    folder: PathBuf,
    /// How often what takes little time is measured.
    rounds: usize,
    /// How long a run takes in which processes share a disk.
    seconds: u32,
}

/// Runs the parts that are asked for, and prints or writes them.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = options(arguments)?;
    let place = prepare(&options)?;
    let mut parts = Vec::new();
    for name in PARTS {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == name) {
            continue;
        }
        let part = match name {
            "cost" => cost::in_memory(&place)?,
            "cold" => cost::cold(&place)?,
            "writing" => writing::measure(&place)?,
            _ => sharing::measure(&place)?,
        };
        parts.push((name, part));
    }
    parts::tell(PAGE, parts, options.write)
}

fn options(words: &[&str]) -> Result<Options> {
    let mut options = Options { only: Vec::new(), rounds: 5, seconds: 20, folder: None, hoistway: None, write: false };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().with_context(|| format!("{word} needs a value\n{USAGE}"));
        match word {
            "--only" => match value()? {
                part if PARTS.contains(&part) => options.only.push(part.to_owned()),
                other => bail!("--only takes {}, not {other:?}", PARTS.join(", ")),
            },
            "--rounds" => options.rounds = value()?.parse().context("--rounds takes a number")?,
            "--seconds" => options.seconds = value()?.parse().context("--seconds takes a number")?,
            "--folder" => options.folder = Some(value()?.into()),
            "--hoistway" => options.hoistway = Some(value()?.into()),
            "--write" => options.write = true,
            other => bail!("{other:?} is no option\n{USAGE}"),
        }
    }
    if options.rounds == 0 || options.seconds == 0 {
        bail!("--rounds and --seconds must be at least 1");
    }
    Ok(options)
}

fn prepare(options: &Options) -> Result<Place> {
    if !tools::is_root() {
        bail!("only root can mount what is compared");
    }
    for (program, package) in
        [("fio", "fio"), ("bindfs", "bindfs"), ("nbdfuse", "libnbd-bin"), ("mkfs.ext4", "e2fsprogs")]
    {
        if tools::find(program).is_none() {
            tools::install(&[package])?;
        }
    }
    let hoistway = parts::program(options.hoistway.as_deref())?;
    let folder = parts::folder(options.folder.as_deref(), "mount-bench")?;
    Ok(Place { hoistway, folder, rounds: options.rounds, seconds: options.seconds })
}
