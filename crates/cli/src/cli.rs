//! The declaration of the command line, from which help, completions and manual pages are made.

mod advise;
mod arena;
mod devices;
mod drives;
mod mount;
mod order;
mod serve;
mod sweep;
mod tar;
pub mod trace;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use hoistway_bench::sim::Pattern;
use hoistway_compare::{HostChoice, Named, Shortening};
use hoistway_core::Kind;
use hoistway_sim::Setting;

use crate::failure::UsageError;
use crate::{exit_status, names};
pub use advise::AdviseArgs;
pub use arena::{ArenaArgs, ArenaSplit};
pub use devices::{DevicesArgs, DevicesCommand, ForgetArgs, IoniceArgs, ResetArgs, SetArgs, refuse};
pub use drives::{DriveKind, DrivesArgs};
pub use mount::{Elevator, MountArgs};
pub use order::{ByChoice, OrderArgs};
pub use serve::{EngineChoice, ServeArgs};
pub use sweep::SweepArgs;
pub use tar::{FormatChoice, SortBy, Source, TarArgs, is_standard, with_dashes};
pub use watch::{CtlArgs, CtlCommand, MonitoringArgs, TopArgs};

/// The text after the help of the whole program.
const EXAMPLES: &str = "\
Examples:
  hoistway                                  compare the example job and write hoistway-report.html
  hoistway compare mine.fio                 compare a job of your own
  hoistway advise sda --for desktop         recommend a scheduler for a disk of this machine
  hoistway elevators cfq-v3                 explain an elevator and its tunables
  hoistway drives sata-7200-2006            describe a drive model

Without a command, hoistway runs `hoistway compare --report hoistway-report.html`.";

/// Find the best I/O scheduler for a disk and a workload.
///
/// hoistway simulates a workload (a fio job file) under the I/O schedulers of Linux, also called
/// elevators, on the model of an SSD or of a hard disk. It reports which scheduler to choose, and
/// why. The simulation does not read or write any disk of this machine.
#[derive(Debug, Parser)]
#[command(name = "hoistway", version, long_version = env!("HOISTWAY_VERSION"), after_help = exit_status::appended(EXAMPLES, "hoistway"), max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    /// The command to run; without one, the example job is compared and a page is written.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate a workload under several elevators; report which one to choose, and why
    Compare(CompareArgs),
    /// Simulate many combinations of drives, elevators, tunables and seeds; write Parquet files
    Sweep(SweepArgs),
    /// Compare every elevator on many drives and workloads: the choice for an unknown workload
    Arena(Box<ArenaArgs>),
    /// Recommend a scheduler for a device of this machine and a workload, with reasons and the
    /// command to set it
    Advise(Box<AdviseArgs>),
    /// Replay recorded decisions of the kernels' schedulers, and count identical scenarios
    Conform(ConformArgs),
    /// List the elevators, or explain one with its tunables
    Elevators(ElevatorsArgs),
    /// List, describe, probe, fit and validate drive models
    Drives(DrivesArgs),
    /// Show this machine's block devices with their schedulers, and set them
    Devices(DevicesArgs),
    /// Show or change I/O priorities, run a command with one, explain its effect
    Ionice(IoniceArgs),
    /// Divide a disk among clients: an NBD server with an elevator
    Serve(Box<ServeArgs>),
    /// Divide a disk among the processes that use a directory: a mount with an elevator
    Mount(Box<MountArgs>),
    /// Record, analyse and draw block traces, and predict the effect of other elevators
    Trace(Box<trace::TraceArgs>),
    /// List files in physical disk order, for tar, sha256sum, xargs
    Order(Box<OrderArgs>),
    /// Archive files in physical disk order
    Tar(Box<TarArgs>),
    /// Simulate published experiments, and report which results are reproduced
    Reproduce(ReproduceArgs),
    /// Measure hoistway itself: the cost of its elevators and its simulator
    Bench(BenchArgs),
    /// Inspect and change a running server through its control socket
    Ctl(CtlArgs),
    /// Monitor a running server: bandwidth and latency of each client on its devices
    Top(TopArgs),
    /// Print the script that completes commands, options and names in a shell
    #[command(after_help = "\
Examples:
  hoistway completions bash > ~/.local/share/bash-completion/completions/hoistway
  hoistway completions zsh > ~/.zfunc/_hoistway              in a directory of $fpath
  hoistway completions fish > ~/.config/fish/completions/hoistway.fish

The script calls the program for the names of elevators, drives, tunables and files. Print it again after an upgrade.")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands into a folder
    #[command(after_help = "Examples:\n  hoistway man | man -l -\n  hoistway man ~/.local/share/man/man1")]
    Man(ManArgs),
}

/// `hoistway compare`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  hoistway compare                                    the example: a reader beside a writer
  hoistway compare mine.fio --report mine.html        a job of your own, with a page of charts
  hoistway compare mine.fio --drive cmr-8tb           the same on a disk of 7200 rpm and 8 TB
  hoistway compare --drive sata-7200-2006 --elevators history
                                                      the example on a disk of 2006, with all elevators of Linux
  hoistway compare mine.fio --seeds 8                 with spreads, and the differences that may be chance
  hoistway compare mine.fio --scale 0.1               a tenth of its requests and of its time, for a first look
  hoistway compare mine.fio --elevators deadline,cfq-v3 --set cfq-v3.slice_idle=0
  hoistway compare mine.fio --json | jq '.elevators[] | {name, bytes_per_s}'
  hoistway compare --drive cmr-8tb -- --name=x --rw=randread --size=1g --direct=1 --runtime=10
                                                      the jobs of a command line of fio

If a job names a device of this machine (filename=/dev/nvme0n1), the default drive is the built-in model that is most like \
the device, and the default elevators are those that can be set on it. Otherwise they are ssd-sata-consumer, a SATA SSD, \
and the elevators of a current kernel: none, mq-deadline, kyber, bfq. The output states the choice and the reason. `none` \
and `noop` are names of the same elevator.

Jobs can run in control groups, as in fio: cgroup=users/alice with cgroup_weight=300, or with 200/300 for the weights \
of both groups. Weights are 1 to 1000, by default 100. hoistway_reserve=10m reserves 10 MiB/s for each \
process of a job, if the elevator supports reservations.

Ctrl-C ends the runs and prints the results so far, marked as partial; a second Ctrl-C ends the program at once. --runtime \
and --scale shorten a long job.

The same job, drive and seed give the same figures on every machine.")]
pub struct CompareArgs {
    /// The workload: a fio job file; the default is the example examples/reader-and-writer.fio
    #[arg(value_name = "JOB.fio")]
    pub job: Option<PathBuf>,
    /// The drive: a name from `hoistway drives`, or a drive file [default: the model that is most
    /// like the device that a job names, else ssd-sata-consumer]
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub drive: Option<String>,
    /// The elevators to compare, separated by commas; `history`: all that were part of Linux, in
    /// the order of its versions; `all`: also those that were only posted, and hoistway's own
    /// [default: those that the device of the job offers, else none, mq-deadline, kyber, bfq]
    #[arg(long, value_name = "NAME,...|history|all", value_delimiter = ',', value_parser = Named::parse)]
    pub elevators: Vec<Named>,
    /// Set a tunable, as in cfq-v3.slice_idle=8ms; may be given several times
    #[arg(long = "set", value_name = "ELEVATOR.TUNABLE=VALUE", value_parser = Setting::parse_argument)]
    pub settings: Vec<Setting>,
    /// The kernel of the host: 2.4, 2.6.18, 2.6.24, 3.2, 4.19, 6.1, 6.3 or 6.12; `own`: 2.6.18,
    /// with each elevator in the block layer of its own kernel [default: 6.1 if it has all of the
    /// elevators, else own]
    #[arg(long, value_name = "VERSION|own", value_parser = HostChoice::parse)]
    pub kernel: Option<HostChoice>,
    /// A host file; docs/hosts.md lists its keys: kernel, memory, hz, read_ahead_kib ...
    #[arg(long, value_name = "FILE.toml", conflicts_with = "kernel")]
    pub host: Option<PathBuf>,
    /// The seed of all random numbers; with --seeds the first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run with N seeds, and report spreads, and which differences may be chance
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub seeds: Option<u32>,
    /// End every job after this time, as in 30s or 2min; jobs that end earlier do not change
    #[arg(long, value_name = "TIME", value_parser = Shortening::parse_runtime)]
    pub runtime: Option<u64>,
    /// Simulate only this part of the requests and of the time of each job, as in 0.1; files keep
    /// their sizes
    #[arg(long, value_name = "PART", value_parser = Shortening::parse_scale)]
    pub scale: Option<f64>,
    /// Write a page with charts: one self-contained HTML file
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write the bandwidth logs of jobs with write_bw_log to this folder, as
    /// ELEVATOR-NAME_bw.N.log
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Print JSON instead of the table; the keys below `jobs` are those of fio
    #[arg(long)]
    pub json: bool,
    /// The directory that holds the files of the machine
    #[arg(long, value_name = "DIR", hide = true)]
    pub root: Option<PathBuf>,
    /// The workload as arguments of fio, after `--`: options such as --name=x and --rw=randread, or
    /// a job file
    #[arg(last = true, value_name = "FIO ARGUMENT", conflicts_with = "job")]
    pub fio: Vec<String>,
}

impl CompareArgs {
    /// Drops the word `fio` from the arguments of fio. `arguments` are those of the program.
    ///
    /// # Errors
    /// If nothing follows `--` or the word.
    pub fn drop_word_fio(&mut self, arguments: &[OsString]) -> Result<(), UsageError> {
        let has_line = !self.fio.is_empty() || self.job.is_none() && arguments.last().is_some_and(|last| last == "--");
        self.fio = hoistway_fio::without_program(&self.fio).to_vec();
        if has_line && self.fio.is_empty() {
            let what = "the options of fio or a job file, as in -- --name=x --rw=randread --size=1g";
            return Err(UsageError(format!("nothing follows `--`: {what}")));
        }
        Ok(())
    }
}

/// `hoistway conform`.
#[derive(Args, Debug)]
#[command(after_help = exit_status::appended("\
Examples:
  hoistway conform testdata/decisions/*.jsonl.gz
  hoistway conform -v recorded.jsonl.gz               with the first difference of each scenario that differs", "hoistway-conform"))]
pub struct ConformArgs {
    /// Decision files (.jsonl or .jsonl.gz, one scenario per line), or recordings of the kernel
    /// module, which gzip may have compressed
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Also print each difference, with the last ten events before it
    #[arg(short, long)]
    pub verbose: bool,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
    /// Print Markdown instead: the tables of docs/conformance.md
    #[arg(long, conflicts_with_all = ["json", "verbose"])]
    pub markdown: bool,
    /// Print the records of recordings of the kernel module instead, one per line
    #[arg(long, conflicts_with_all = ["json", "verbose", "markdown"])]
    pub print: bool,
}

/// `hoistway elevators`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hoistway elevators\n  hoistway elevators deadline\n  hoistway elevators cfq-v3 --json"
)]
pub struct ElevatorsArgs {
    /// The elevator to explain
    #[arg(value_name = "NAME", value_parser = names::kind)]
    pub name: Option<Kind>,
    /// Print its tunables as the Markdown table of its page in docs/elevators
    #[arg(long, requires = "name", conflicts_with = "json")]
    pub markdown: bool,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// `hoistway reproduce`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hoistway reproduce                        all rows: a minute or two
  hoistway reproduce S1-06                  eight readers under three elevators, published in 2006
  hoistway reproduce S1 S2-04 --json | jq '.rows[] | {id, verdict}'

A row is one published result. A row with a number is reproduced if all its figures are within their tolerances, the \
simulation shows the published mechanism, and no parameter was fitted to the row. Rows that describe a drive are inputs \
and are not counted. A row that differs runs again with other values of parameters that the publication does not state. \
If it matches with one of these values, it is `decided by` that parameter, and still not counted.")]
pub struct ReproduceArgs {
    /// The rows: ids (S1-06), all rows of a publication (S1), or `all` [default: all]
    #[arg(value_name = "ID|SEED|all")]
    pub ids: Vec<String>,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
    /// Also write the page with its charts to this folder: reproduced.md and reproduced/ID.svg
    #[arg(long, value_name = "DIR")]
    pub page: Option<PathBuf>,
}

/// `hoistway bench`.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// The measurement to run.
    #[command(subcommand)]
    pub what: BenchCommand,
}

/// The measurements of `hoistway bench`.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// CPU time per request of each elevator, for insert, dispatch and complete
    Elevators(BenchElevatorsArgs),
    /// CPU time that a mount needs to schedule an operation
    Mount(BenchMountArgs),
    /// Simulated requests per second on one core, and peak memory
    Sim(BenchSimArgs),
    /// Trace events per second on one core, read and written as text
    Trace(BenchTraceArgs),
}

/// `hoistway bench mount`.
#[derive(Args, Debug)]
#[command(after_help = "\
One thread enters the queue of a mount and leaves it again without any I/O, on a temporary file. Each figure is the minimum of \
five runs. It includes the system call that returns the thread's I/O priority.")]
pub struct BenchMountArgs {
    /// The elevators to measure, separated by commas, or `all` [default: all]
    #[arg(long, value_name = "NAME,...|all", value_delimiter = ',', value_parser = Named::parse)]
    pub elevators: Vec<Named>,
    /// Operations per run
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub operations: u64,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// `hoistway bench trace`.
#[derive(Args, Debug)]
#[command(after_help = "\
A synthetic blktrace capture, with five events per request and the files of two CPUs, is written to a temporary folder and read \
back. Each row is the fastest of the runs, on one core. The machine's blkparse and btt are measured too if they are installed.")]
pub struct BenchTraceArgs {
    /// Requests in the capture
    #[arg(long, value_name = "N", default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub requests: u64,
    /// Runs per row
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub runs: u16,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// `hoistway bench elevators`.
#[derive(Args, Debug)]
#[command(after_help = "\
Each process keeps 4 random 4 KiB reads outstanding; the device takes 32 requests at once and serves each in 200 us of \
virtual time; merging, plugging and idling are off. Each figure is the median of the runs, in ns of CPU time per request. If \
perf_event_open is permitted, further tables have the instructions, cache misses and mispredicted branches per request.")]
pub struct BenchElevatorsArgs {
    /// Numbers of processes, separated by commas
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 8, 128, 1024, 8192],
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub processes: Vec<u32>,
    /// The elevators to measure, separated by commas, or `all` [default: all]
    #[arg(long, value_name = "NAME,...|all", value_delimiter = ',', value_parser = Named::parse)]
    pub elevators: Vec<Named>,
    /// Requests per run
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub requests: u64,
    /// Runs per figure
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub runs: u16,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// `hoistway bench sim`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hoistway bench sim                                      the default drives
  hoistway bench sim --drive mine.toml --rw randwrite
  hoistway bench sim --scaling                            cost by the number of requests and of processes
  hoistway bench sim --sweep 8                            eight simulations on one core, and on all cores

The workload has random direct requests of 4 KiB, 32 outstanding in all, at least one per process. Each row is measured in a \
separate process; requests a second are per second of CPU time on one core.")]
pub struct BenchSimArgs {
    /// The drives, separated by commas: names, or drive files [default: sata-7200-2006, cmr-8tb,
    /// and ssd-nvme-tlc with random writes]
    #[arg(long = "drive", value_name = "NAME|FILE.toml,...", value_delimiter = ',')]
    pub drives: Vec<String>,
    /// The pattern of the requests [default: randread; without --drive randwrite for ssd-nvme-tlc]
    #[arg(long = "rw", value_name = "PATTERN")]
    pub pattern: Option<PatternChoice>,
    /// The elevator
    #[arg(long, value_name = "NAME", default_value = "noop", value_parser = names::kind)]
    pub elevator: Kind,
    /// The number of processes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub processes: u32,
    /// The number of requests to simulate
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub requests: u64,
    /// Measure the cost per request from 10^5 to --requests requests, and from 1 to 4096 processes
    #[arg(long, conflicts_with = "sweep")]
    pub scaling: bool,
    /// Measure the speed-up of N simulations on all cores over one core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub sweep: Option<u32>,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
    /// Measure one row, given as JSON, in this process
    #[arg(long, hide = true, value_name = "JSON")]
    pub row: Option<String>,
}

/// The pattern of a load's requests.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum PatternChoice {
    /// Random reads
    Randread,
    /// Random writes
    Randwrite,
    /// Random reads and writes, half and half
    Randrw,
}

impl From<PatternChoice> for Pattern {
    fn from(choice: PatternChoice) -> Pattern {
        match choice {
            PatternChoice::Randread => Pattern::Randread,
            PatternChoice::Randwrite => Pattern::Randwrite,
            PatternChoice::Randrw => Pattern::Randrw,
        }
    }
}

/// `hoistway completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// `hoistway man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The folder for the pages; it is created if it does not exist
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print the reference of all commands as Markdown instead
    #[arg(long, conflicts_with = "folder")]
    pub markdown: bool,
}

impl Default for CompareArgs {
    /// The arguments of `hoistway compare` without options.
    fn default() -> Self {
        CompareArgs {
            job: None,
            fio: Vec::new(),
            drive: None,
            elevators: Vec::new(),
            settings: Vec::new(),
            kernel: None,
            host: None,
            seed: 1,
            seeds: None,
            runtime: None,
            scale: None,
            report: None,
            logs: None,
            json: false,
            root: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_declaration_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_default_arguments_are_those_of_compare_without_options() {
        let Some(Command::Compare(parsed)) = Cli::parse_from(["hoistway", "compare"]).command else {
            panic!("the command is compare");
        };
        assert_eq!(format!("{parsed:?}"), format!("{:?}", CompareArgs::default()));
    }
}
