//! `cargo xtask bench-mount`: the cost of a mount compared with other paths to the same files, and
//! the shares of processes that use a disk through a mount: docs/mount-benchmarks.md.
//!
//! The page is written even if goals are missed; then the task fails.

mod cost;
mod load;
mod sharing;
pub(crate) mod ways;
mod writing;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use hoistway_workspace::programs;

use crate::sections::{self, Section};

const PAGE: &str = "docs/mount-benchmarks.md";
/// The programs that measure or are compared, each with its Debian package.
const PROGRAMS: [(&str, &str); 4] =
    [("fio", "fio"), ("bindfs", "bindfs"), ("nbdfuse", "libnbd-bin"), ("mkfs.ext4", "e2fsprogs")];

/// Options of `cargo xtask bench-mount`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Measure only this part; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Rounds of the runs that take little time
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of a run in which processes share a disk
    #[arg(long, default_value_t = 20, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// The directory for images, on the disk that is measured; the default is cargo's target
    /// directory
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The program to measure, instead of the one that is built with the profile `dist`
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Write the tables to docs/mount-benchmarks.md instead of printing them
    #[arg(long)]
    write: bool,
    /// Install missing programs (as root on Debian)
    #[arg(long)]
    install: bool,
}

/// The parts of the page, in order.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Cost,
    Cold,
    Writing,
    Sharing,
}

/// The program, the directory and the repetitions of a measurement.
struct Bench {
    hoistway: PathBuf,
    /// A directory on the machine's own disk.
    folder: PathBuf,
    /// Repetitions of the runs that take little time.
    rounds: usize,
    /// Seconds of a run in which processes share a disk.
    seconds: u32,
}

/// Measures the selected parts and prints or writes them. Fails if a goal is missed or not
/// measured.
pub fn run(options: &Options) -> Result<()> {
    let bench = prepare(options)?;
    let mut sections = Vec::new();
    for part in Part::value_variants() {
        if !options.only.is_empty() && !options.only.contains(part) {
            continue;
        }
        sections.push(match part {
            Part::Cost => ("cost", cost::in_memory(&bench)?),
            Part::Cold => ("cold", cost::cold(&bench)?),
            Part::Writing => ("writing", writing::measure(&bench)?),
            Part::Sharing => ("sharing", sharing::measure(&bench)?),
        });
    }
    sections::publish(PAGE, sections, options.write)
}

fn prepare(options: &Options) -> Result<Bench> {
    if !programs::is_root() {
        bail!("only root can mount the file systems that are compared");
    }
    programs::require_all(&PROGRAMS, options.install)?;
    let hoistway = sections::program(options.hoistway.as_deref())?;
    let folder = sections::folder(options.folder.as_deref(), "mount-bench")?;
    Ok(Bench { hoistway, folder, rounds: options.rounds as usize, seconds: options.seconds })
}
