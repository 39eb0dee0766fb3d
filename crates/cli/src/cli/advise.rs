//! `hoistway advise`.

use std::path::PathBuf;

use clap::Args;
use hoistway_advise::Use;
use hoistway_core::Kind;

use crate::cli::trace::TraceReading;
use crate::exit_status;
use crate::names;

/// `hoistway advise`.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit_status::appended("\
Examples:
  hoistway advise                              the settings of each device, with warnings
  hoistway advise sda --for desktop            for a typical use: desktop, database, vm-host, backup, media
  hoistway advise sda --job mine.fio           for a fio job file
  hoistway advise sda --trace capture          for a recording by `hoistway trace record sda -o capture`
  hoistway advise /srv/films --for media --apply
  hoistway advise sda --for database --tune --objective 'p99(reader) min, throughput >= 90%'
  hoistway advise --job mine.fio --drive cmr-8tb       without a device

The command simulates every scheduler that can be set on a model of the drive, with several seeds. If no difference is \
significant, the advice is to change nothing. The command changes no setting without --apply, and writes no file but that \
of --report.

An objective is a list separated by commas. Its goals are `FIGURE min` or `FIGURE max`: the first goal decides, and the next \
one decides among choices that do not differ in it. Its constraints are `FIGURE >= BOUND` or `FIGURE <= BOUND`. A figure is p99 or \
another percentile, mean, longest, throughput, iops, fairness, time, sync (p99 of syncs) or misses (seconds in which a job with a \
rate was late), followed by (JOB) for one job or (worst) for the process with the worst value. A bound is a value (20ms, 50 MB/s, \
0.9), a share of the value of the best choice (90%), or a share of the present value (90% of now).", "hoistway-advise"))]
pub struct AdviseArgs {
    /// The device: sda, /dev/sda, or a file or directory on it [default: an overview of all]
    #[arg(value_name = "DEVICE")]
    pub device: Option<String>,
    /// The workload: a typical use
    #[arg(long = "for", value_name = "USE", value_parser = use_of_name, conflicts_with_all = ["job", "trace"], help_heading = "Workload")]
    pub use_: Option<Use>,
    /// The workload: a fio job file
    #[arg(long, value_name = "JOB.fio", conflicts_with = "trace", help_heading = "Workload")]
    pub job: Option<PathBuf>,
    /// The workload: a trace of `hoistway trace record`, blktrace or `hoistway serve --record`
    #[arg(long, value_name = "TRACE", help_heading = "Workload")]
    pub trace: Option<PathBuf>,
    /// The scheduler under which the trace was recorded [default: the one that the trace names]
    #[arg(long, value_name = "NAME", value_parser = names::kind, requires = "trace", help_heading = "Workload")]
    pub recorded: Option<Kind>,
    /// How the trace is read
    #[command(flatten)]
    pub reading: TraceReading,
    /// The objective, as in 'p99(reader) min, throughput >= 90%' [default: that of the use, or for
    /// job files and traces 'throughput max, p99(worst) min']
    #[arg(long, value_name = "TEXT", help_heading = "Workload")]
    pub objective: Option<String>,
    /// The model of the drive: a name from `hoistway drives`, a drive file, `fit` for a model
    /// that is fitted to the trace, or `auto` for the one that is most like the device [default:
    /// auto; for a trace the drive that it names, or fit]
    #[arg(long, value_name = "NAME|FILE.toml|fit|auto", help_heading = "Model")]
    pub drive: Option<String>,
    /// A host file, as for `hoistway compare` [default: the block layer of Linux 6.1, 4 processors,
    /// 8 GiB]
    #[arg(long, value_name = "FILE.toml", conflicts_with = "trace", help_heading = "Model")]
    pub host: Option<PathBuf>,
    /// Also simulate the schedulers of other kernels, for comparison
    #[arg(long, help_heading = "Model", conflicts_with = "tune")]
    pub all: bool,
    /// The number of seeds for each choice
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=100), help_heading = "Model")]
    pub seeds: u32,
    /// The seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Model")]
    pub seed: u64,
    /// Also search the tunables of the schedulers
    #[arg(long, help_heading = "Tuning")]
    pub tune: bool,
    /// The duration of the search in seconds [default: 60, unless --evaluations is given]
    #[arg(long, value_name = "N", requires = "tune", value_parser = clap::value_parser!(u64).range(1..=86_400), help_heading = "Tuning")]
    pub seconds: Option<u64>,
    /// Maximum number of trials; the same number gives the same advice on every machine
    #[arg(long, value_name = "N", requires = "tune", value_parser = clap::value_parser!(u32).range(1..=10_000_000), help_heading = "Tuning")]
    pub evaluations: Option<u32>,
    /// The tunables to search, separated by commas: all of a scheduler (bfq) or one of them
    /// (bfq.slice_idle); read_ahead_kb, nr_requests and queue_depth are searched only if named
    /// [default: all tunables of all schedulers that can be set]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "tune", help_heading = "Tuning")]
    pub tunables: Vec<String>,
    /// Apply the advice after a confirmation
    #[arg(long, requires = "device", help_heading = "Result")]
    pub apply: bool,
    /// With --apply: do not ask for a confirmation
    #[arg(long, requires = "apply", help_heading = "Result")]
    pub yes: bool,
    /// Write a page with charts, one self-contained HTML file
    #[arg(long, value_name = "PAGE.html", help_heading = "Result")]
    pub report: Option<PathBuf>,
    /// Print JSON instead of text; docs/advise.md describes its fields
    #[arg(long, help_heading = "Result")]
    pub json: bool,
    /// The directory that holds the files of the machine
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
