//! `hoistway advise`.

use std::path::PathBuf;

use clap::Args;
use hoistway_advise::Use;
use hoistway_core::Kind;

use crate::names;

/// `hoistway advise`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  hoistway advise                              what is set on each device, and what should be known of it
  hoistway advise sda --for desktop            for a typical use: desktop, database, vm-host, backup, media
  hoistway advise sda --job mine.fio           for a fio job file
  hoistway advise sda --trace capture          for what `hoistway trace record sda -o capture` has recorded
  hoistway advise /srv/films --for media --apply
  hoistway advise sda --for database --tune --objective 'p99(reader) min, throughput >= 90%'
  hoistway advise --job mine.fio --drive cmr-8tb       without a device

Every scheduler that could be set is simulated on a model of the drive, with several seeds; a difference that could be chance \
is not told as one, and the advice is then to leave things as they are. Nothing is written unless --apply is given.

An objective is a list with commas: goals (`FIGURE min`, `FIGURE max`; the first decides, the next among those that it cannot \
tell apart) and constraints (`FIGURE >= BOUND`, `FIGURE <= BOUND`). A figure is p99 or another percentile, mean, longest, \
throughput, iops, fairness, time, sync (p99 of syncs) or misses (seconds in which a paced job came late), with (JOB) behind it \
for one job or (worst) for whichever fares worst. A bound is a value (20ms, 50 MB/s, 0.9), or a share: 90% of what the best \
choice reaches, 90% of now.

Exit codes: 0 there is an answer, 1 there is none (a model that misses the trace by more than 20 % is not believed), 2 the \
command line is wrong.")]
pub struct AdviseArgs {
    /// The device: sda, /dev/sda, or a file or directory on it [default: all, shortly]
    #[arg(value_name = "DEVICE")]
    pub device: Option<String>,
    /// The workload: a typical use
    #[arg(long = "for", value_name = "USE", value_parser = use_of_name, conflicts_with_all = ["job", "trace"], help_heading = "Workload")]
    pub use_: Option<Use>,
    /// The workload: a fio job file
    #[arg(long, value_name = "JOB.fio", conflicts_with = "trace", help_heading = "Workload")]
    pub job: Option<PathBuf>,
    /// The workload: a trace, as `hoistway trace record`, blktrace or `hoistway serve --record` write them
    #[arg(long, value_name = "TRACE", help_heading = "Workload")]
    pub trace: Option<PathBuf>,
    /// The scheduler under which the trace was recorded [default: what the trace tells]
    #[arg(long, value_name = "NAME", value_parser = names::kind, requires = "trace", help_heading = "Workload")]
    pub recorded: Option<Kind>,
    /// What is to be good, as in 'p99(reader) min, throughput >= 90%' [default: what is usual for the use; of job files and
    /// traces 'throughput max, p99(worst) min']
    #[arg(long, value_name = "TEXT", help_heading = "Workload")]
    pub objective: Option<String>,
    /// The model of the drive: a name that `hoistway drives` lists, a profile of your own, `fit` for one that is fitted to the
    /// trace, or `auto` for what is nearest to the device [default: auto; of a trace its own drive, or fit]
    #[arg(long, value_name = "NAME|FILE.toml|fit|auto", help_heading = "Model")]
    pub drive: Option<String>,
    /// The host in this file, as `hoistway compare` takes it [default: Linux 6.1's block layer, 4 processors, 8 GiB]
    #[arg(long, value_name = "FILE.toml", conflicts_with = "trace", help_heading = "Model")]
    pub host: Option<PathBuf>,
    /// Show what the schedulers of other kernels would have made of it, too
    #[arg(long, help_heading = "Model", conflicts_with = "tune")]
    pub all: bool,
    /// With how many seeds each choice is run
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=100), help_heading = "Model")]
    pub seeds: u32,
    /// Where all random numbers begin
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Model")]
    pub seed: u64,
    /// Search the tunables of the schedulers, too
    #[arg(long, help_heading = "Tuning")]
    pub tune: bool,
    /// Search so long, in seconds [default: 60, unless --evaluations is given]
    #[arg(long, value_name = "N", requires = "tune", value_parser = clap::value_parser!(u64).range(1..=86_400), help_heading = "Tuning")]
    pub seconds: Option<u64>,
    /// Try so many things at most: the same number gives the same answer on every machine
    #[arg(long, value_name = "N", requires = "tune", value_parser = clap::value_parser!(u32).range(1..=10_000_000), help_heading = "Tuning")]
    pub evaluations: Option<u32>,
    /// Search these alone, with commas between them: a scheduler with all its tunables (bfq) or one of them (bfq.slice_idle);
    /// read_ahead_kb, nr_requests and queue_depth are searched only when they are named [default: all tunables of all that
    /// can be set]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "tune", help_heading = "Tuning")]
    pub tunables: Vec<String>,
    /// Set what is advised, after asking
    #[arg(long, requires = "device", help_heading = "Result")]
    pub apply: bool,
    /// With --apply: do not ask
    #[arg(long, requires = "apply", help_heading = "Result")]
    pub yes: bool,
    /// Write a page with charts, one HTML file that needs nothing else
    #[arg(long, value_name = "PAGE.html", help_heading = "Result")]
    pub report: Option<PathBuf>,
    /// Print JSON instead of text: docs/advise.md has its fields
    #[arg(long, help_heading = "Result")]
    pub json: bool,
    /// The machine's files lie below this folder
    #[arg(long, value_name = "DIR", hide = true)]
    pub root: Option<PathBuf>,
}

fn use_of_name(name: &str) -> Result<Use, String> {
    Use::from_name(name).ok_or_else(|| {
        let names = Use::ALL.iter().map(|known| known.name());
        let known = names.clone().collect::<Vec<_>>().join(", ");
        format!("there is no use `{name}`{}; there are {known}", names::did_you_mean(name, names))
    })
}
