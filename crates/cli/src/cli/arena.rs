//! Arguments of `hoistway arena`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_arena::{Drive, Workload};
use hoistway_core::Kind;
use hoistway_sim::Setting;

use crate::exit_status;
use crate::names::{self, did_you_mean};

/// Arguments of `hoistway arena`.
#[derive(Args, Debug)]
#[command(after_help = exit_status::appended("\
Examples:
  hoistway arena -o results                                 all cases; after an interruption run it again to continue
  hoistway arena -o results --report arena.html             and a page: standings, each measure by drives and by workloads
  hoistway arena -o quick --drives ssd-nvme-tlc --seeds 1   one drive, one seed
  hoistway arena --list                                     the workloads and the drives

A case is a workload on a drive. In each case every elevator runs with its default tunables, unless --set changes them. Its throughput is divided by that of \
the best elevator with an isolation of at least 0.8, its latency (99th percentile of the job for which latency matters) by the lowest of \
all. Isolation is the throughput of the process that is served least, divided by that process's share of its throughput alone. docs/arena.md has the figures of all \
elevators.", "hoistway-arena"))]
pub struct ArenaArgs {
    /// The folder of the results; runs that have a result there are not simulated again
    #[arg(short, long, value_name = "DIR", required_unless_present = "list")]
    pub output: Option<PathBuf>,
    /// The elevators to compare, separated by commas [default: all]
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',', value_parser = names::kind)]
    pub elevators: Vec<Kind>,
    /// The drives, separated by commas [default: all of the arena]
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',', value_parser = drive)]
    pub drives: Vec<Drive>,
    /// The workloads, separated by commas [default: all of the arena]
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',', value_parser = workload)]
    pub workloads: Vec<Workload>,
    /// Set a tunable of an elevator, as in cfq.slice_idle=0; may be given several times
    #[arg(long = "set", value_name = "ELEVATOR.TUNABLE=VALUE", value_parser = Setting::parse_argument)]
    pub settings: Vec<Setting>,
    /// The number of seeds
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub first_seed: u64,
    /// The part of the cases: those with which elevators are designed, those that test the design,
    /// or both
    #[arg(long, value_name = "PART", value_enum, default_value_t = ArenaSplit::All)]
    pub split: ArenaSplit,
    /// Also measure the CPU time of a request under each elevator
    #[arg(long)]
    pub cpu: bool,
    /// Simulations at a time [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
    /// Write a page of the standings: one self-contained HTML file
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// List workloads and drives, and run nothing
    #[arg(long, conflicts_with_all = ["output", "report", "cpu", "tables"])]
    pub list: bool,
    /// Print all tables as Markdown
    #[arg(long, conflicts_with = "json")]
    pub tables: bool,
    /// Print JSON instead: the standings, and the figures of all cases
    #[arg(long)]
    pub json: bool,
}

/// The part of the cases.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaSplit {
    /// Workloads and drives with which elevators are designed
    Design,
    /// Cases whose workload or drive was not used in the design
    #[value(alias = "held")]
    Test,
    /// All cases
    All,
}

fn drive(name: &str) -> Result<Drive, String> {
    let names = || Drive::ALL.iter().map(|drive| drive.name);
    Drive::from_name(name).ok_or_else(|| unknown("drive", name, names))
}

fn workload(name: &str) -> Result<Workload, String> {
    let names = || Workload::ALL.iter().map(|workload| workload.name);
    Workload::from_name(name).ok_or_else(|| unknown("workload", name, names))
}

/// The message for a name that the arena does not have.
fn unknown<N: Iterator<Item = &'static str>>(what: &str, name: &str, names: impl Fn() -> N) -> String {
    let known = names().collect::<Vec<_>>().join(", ");
    format!("the arena has no {what} `{name}`{}; it has {known}", did_you_mean(name, names()))
}
