//! `cargo xtask bench-order`: the gain of disk order, on model drives and real ones, and the cost
//! of archiving and listing: docs/order-benchmarks.md.
//!
//! The page is written even if goals are missed; then the task fails.

mod cpu;
mod image;
mod list;
mod real;
mod simulated;
mod timed;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use hoistway_workspace::programs;

use crate::sections::{self, Section};

const PAGE: &str = "docs/order-benchmarks.md";

/// Options of `cargo xtask bench-order`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Measure only this part; may be repeated. All parts but `simulated` need root
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Rounds of the runs that take little time
    #[arg(long, default_value_t = 7, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Number of names that are listed
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    files: u64,
    /// The directory for images, on the disk that is measured; the default is cargo's target
    /// directory
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The program to measure, instead of the one that is built with the profile `dist`
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Write the tables to docs/order-benchmarks.md instead of printing them
    #[arg(long)]
    write: bool,
    /// Install missing programs (as root on Debian)
    #[arg(long)]
    install: bool,
}

/// The parts of the page, in order.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Simulated,
    Real,
    Cpu,
    Cold,
    List,
}

/// The program, the directory and the repetitions of a measurement.
struct Bench {
    hoistway: PathBuf,
    folder: PathBuf,
    rounds: usize,
    files: u64,
}

/// Measures the selected parts and prints or writes them. Fails if a goal is missed or not
/// measured.
pub fn run(options: &Options) -> Result<()> {
    let mut sections = Vec::new();
    let mut prepared = None;
    for part in Part::value_variants() {
        if !options.only.is_empty() && !options.only.contains(part) {
            continue;
        }
        if *part == Part::Simulated {
            sections.push(("simulated", simulated::measure()?));
            continue;
        }
        if *part == Part::Real {
            programs::require_all(&[("nbdfuse", "libnbd-bin"), ("losetup", "mount")], options.install)?;
        }
        let bench = match &mut prepared {
            Some(bench) => bench,
            none => none.insert(prepare(options)?),
        };
        sections.push(match part {
            Part::Simulated | Part::Real => ("real", real::measure(bench)?),
            Part::Cpu => ("cpu", cpu::warm(bench)?),
            Part::Cold => ("cold", cpu::cold(bench)?),
            Part::List => ("list", list::measure(bench)?),
        });
    }
    sections::publish(PAGE, sections, options.write)
}

fn prepare(options: &Options) -> Result<Bench> {
    if !programs::is_root() {
        bail!("only root can mount images: `--only simulated` needs no root");
    }
    let hoistway = sections::program(options.hoistway.as_deref())?;
    let folder = sections::folder(options.folder.as_deref(), "order-bench")?;
    Ok(Bench { hoistway, folder, rounds: options.rounds as usize, files: options.files })
}
