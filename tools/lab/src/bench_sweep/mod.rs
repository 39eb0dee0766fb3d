//! `cargo xtask bench-sweep`: the speed and the memory of `hoistway sweep`, the overhead of
//! engines, and what the figures mean for 1,000 processors: the section "Figures" of
//! docs/sweeps.md.
//!
//! The page is written even if goals are missed; then the task fails.

mod cluster;
mod engines;
mod memory;
mod rate;
mod run;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;

use crate::sections::{self, Section};

const PAGE: &str = "docs/sweeps.md";

/// Options of `cargo xtask bench-sweep`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Measure only this part; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Rounds, in which the ways alternate
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The greatest number of points of the measurements of memory and of engines
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    points: u64,
    /// The directory of the results; the default is cargo's target directory
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The program to measure, instead of the one that is built with the profile `release`
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Write the figures to docs/sweeps.md instead of printing them
    #[arg(long)]
    write: bool,
}

/// The parts of the section, in order.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Points a second, against a loop of the shell
    Rate,
    /// Memory by the number of points
    Memory,
    /// Overhead of Dask and Ray a point, and the memory of their processes
    Engines,
    /// What 1,000 processors would do, from the cost of a point and of a file
    Cluster,
}

/// The program, the directory and the repetitions of a measurement.
struct Bench {
    hoistway: PathBuf,
    folder: PathBuf,
    rounds: u32,
    points: u64,
}

/// Measures the selected parts and prints or writes them. Fails if a goal is missed.
pub fn run(options: &Options) -> Result<()> {
    let hoistway = sections::simulator(options.hoistway.as_deref())?;
    let folder = sections::folder(options.folder.as_deref(), "sweep-bench")?;
    let bench = Bench { hoistway, folder, rounds: options.rounds, points: options.points };
    let mut found = Vec::new();
    for part in Part::value_variants() {
        if !options.only.is_empty() && !options.only.contains(part) {
            continue;
        }
        let (name, section): (&str, Section) = match part {
            Part::Rate => ("rate", rate::measure(&bench)?),
            Part::Memory => ("memory", memory::measure(&bench)?),
            Part::Engines => ("engines", engines::measure(&bench)?),
            Part::Cluster => ("cluster", cluster::measure(&bench)?),
        };
        found.push((name, section));
    }
    sections::publish(PAGE, found, options.write)
}
