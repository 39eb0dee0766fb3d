//! `cargo xtask bench-order`: what disk order is worth, on model drives and for real, and what archiving and listing cost: docs/order-benchmarks.md.
//!
//! The page is written whatever was found; a goal that is missed, or could not be measured, is the task's failure.

mod cpu;
mod image;
mod list;
mod real;
mod simulated;
mod timed;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::parts::{self, Part};
use crate::tools;

const PAGE: &str = "docs/order-benchmarks.md";
const PARTS: [&str; 5] = ["simulated", "real", "cpu", "cold", "list"];
const USAGE: &str = "cargo xtask bench-order [--only simulated|real|cpu|cold|list]... [--rounds N] [--files N] [--folder DIR] [--hoistway PROGRAM] [--write]";

/// What is asked for.
struct Options {
    /// Empty: all parts.
    only: Vec<String>,
    /// How often what takes little time is measured.
    rounds: usize,
    /// The names that are listed.
    files: u64,
    /// Where images lie.
    folder: Option<PathBuf>,
    hoistway: Option<PathBuf>,
    /// Into the page, not only to the screen.
    write: bool,
}

/// What is measured, and where.
struct Place {
    hoistway: PathBuf,
    folder: PathBuf,
    rounds: usize,
    files: u64,
}

/// Runs the parts that are asked for, and prints or writes them.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = options(arguments)?;
    let mut parts = Vec::new();
    let mut place = None;
    for name in PARTS {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == name) {
            continue;
        }
        let part = if name == "simulated" {
            simulated::measure()?
        } else {
            let place = match &mut place {
                Some(place) => place,
                none => none.insert(prepare(&options)?),
            };
            match name {
                "real" => real::measure(place)?,
                "cpu" => cpu::warm(place)?,
                "cold" => cpu::cold(place)?,
                _ => list::measure(place)?,
            }
        };
        parts.push((name, part));
    }
    parts::tell(PAGE, parts, options.write)
}

fn options(words: &[&str]) -> Result<Options> {
    let mut options =
        Options { only: Vec::new(), rounds: 7, files: 1_000_000, folder: None, hoistway: None, write: false };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().with_context(|| format!("{word} needs a value\n{USAGE}"));
        match word {
            "--only" => match value()? {
                part if PARTS.contains(&part) => options.only.push(part.to_owned()),
                other => bail!("--only takes {}, not {other:?}", PARTS.join(", ")),
            },
            "--rounds" => options.rounds = value()?.parse().context("--rounds takes a number")?,
            "--files" => options.files = value()?.parse().context("--files takes a number")?,
            "--folder" => options.folder = Some(value()?.into()),
            "--hoistway" => options.hoistway = Some(value()?.into()),
            "--write" => options.write = true,
            other => bail!("{other:?} is no option\n{USAGE}"),
        }
    }
    if options.rounds == 0 || options.files == 0 {
        bail!("--rounds and --files must be at least 1");
    }
    Ok(options)
}

fn prepare(options: &Options) -> Result<Place> {
    if !tools::is_root() {
        bail!("only root can mount images: `--only simulated` is for everybody");
    }
    let hoistway = parts::program(options.hoistway.as_deref())?;
    let folder = parts::folder(options.folder.as_deref(), "order-bench")?;
    Ok(Place { hoistway, folder, rounds: options.rounds, files: options.files })
}
