//! `cargo xtask bench-nbd`: hoistway's server compared with other NBD servers:
//! docs/serve-benchmarks.md.
//!
//! Each run starts its server anew, the runs of a table are interleaved, and figures are medians
//! over the rounds. Compare only figures of one table. The page is written even if goals are
//! missed; then the task fails.

mod connections;
mod goals;
pub(crate) mod load;
mod page;
mod remote;
pub(crate) mod servers;
mod sharing;
mod transport;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use hoistway_workspace::{cargo, parts, programs, server};

use crate::{goals as targets, processor};
use servers::{Bench, EXPORT_BYTES};

/// The programs that are measured or that measure, each with its Debian package.
const PACKAGES: [(&str, &str); 5] = [
    ("fio", "fio"),
    ("nbdkit", "nbdkit"),
    ("nbd-server", "nbd-server"),
    ("qemu-nbd", "qemu-utils"),
    ("qemu-storage-daemon", "qemu-system-common"),
];

/// Options of `cargo xtask bench-nbd`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Rounds; figures are medians over them
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of a run that measures the cost of a request
    #[arg(long, default_value_t = 1.5, value_name = "S")]
    seconds: f64,
    /// Seconds of a run that measures shares
    #[arg(long, default_value_t = 10.0, value_name = "S")]
    share_seconds: f64,
    /// Measure only this part; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// The program to measure, instead of the one that is built with the profile `dist`
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Write the tables to docs/serve-benchmarks.md instead of printing them
    #[arg(long)]
    write: bool,
    /// Install missing servers; otherwise the tables leave them out
    #[arg(long)]
    install: bool,
}

/// The parts of the page.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Cost,
    Sharing,
    Crowd,
    Remote,
}

impl Options {
    fn includes(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Measures the selected parts and prints or writes them. Fails if a goal is missed or not
/// measured.
pub fn run(options: &Options) -> Result<()> {
    if let Err(error) = programs::require_all(&PACKAGES, options.install) {
        eprintln!("the tables leave out servers: {error:#}");
    }
    let hoistway = match &options.hoistway {
        Some(program) => program.clone(),
        None => cargo::packaged()?,
    };
    let bench = prepare(hoistway)?;
    let (mut sections, mut goals) = (Vec::new(), Vec::new());
    if options.includes(Part::Cost) {
        let elevators = server::elevators(&bench.hoistway)?;
        let mut tables = Vec::new();
        for workload in transport::workloads(options.seconds, &elevators) {
            let medians = transport::measure(&workload, &bench, options.rounds)?;
            tables.push((workload, medians));
        }
        let found = goals::of_cost(&tables);
        sections.push(("cost", page::cost(&tables, &found, options.rounds, options.seconds)));
        goals.extend(found);
    }
    if options.includes(Part::Sharing) {
        let results = sharing::measure(&bench, options.share_seconds)?;
        sections.push(("sharing", page::sharing(&results)));
        goals.extend(goals::of_sharing(&results));
    }
    if options.includes(Part::Crowd) {
        let figures = connections::measure(&bench, options.share_seconds)?;
        let found = goals::of_connections(&figures);
        sections.push(("crowd", page::connections(&figures, &found)));
        goals.extend(found);
    }
    if options.includes(Part::Remote) {
        let machine = processor::machine("");
        let tables = remote::run(&bench, options.seconds, options.rounds)?;
        sections.push(("remote", page::in_front(&tables, &machine, options.rounds, options.seconds)));
    }
    fs::remove_dir_all(&bench.directory)?;
    if options.write {
        parts::put(page::PAGE, &sections)?;
    } else {
        sections.iter().for_each(|(_, section)| println!("{section}"));
    }
    targets::judge(&goals)
}

/// Creates a directory on tmpfs with an image that is filled, so that no server reads holes.
pub(crate) fn prepare(hoistway: PathBuf) -> Result<Bench> {
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
    Ok(Bench { directory, socket, image, hoistway })
}
