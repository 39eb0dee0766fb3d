//! `hoistway serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_core::Kind;
use hoistway_sim::Setting;

use crate::cli::WatchingArgs;
use crate::{names, setting};

/// `hoistway serve`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  One file, for whoever asks for no name:
    hoistway serve --export =disk.img
  Two tenants on one disk, 3:1:
    hoistway serve --export db=/dev/sdb,size=100G,weight=300 \\
                   --export backup=/dev/sdb,offset=100G,weight=100
  5 MiB/s are kept for one, the other has 50 at most:
    hoistway serve --export db=disk.img,reserve=5M,bandwidth=150M,position=12ms \\
                   --export other=disk.img,limit=50M
  A slow disk for as long as a program runs:
    hoistway serve --export =mem:4G --drive sata-7200-2006 --run 'nbdinfo \"$NBD_URI\"'
  All of it from a file (docs/serve-config.md), and what the devices sustain, for reservations:
    hoistway serve --config /etc/hoistway.toml
    hoistway serve --config /etc/hoistway.toml --calibrate

An export is NAME=PATH, NAME=mem:SIZE or NAME=null:SIZE; the name may be empty. Behind it, with commas between them, stand keys of the \
device (elevator, drive, depth, direct, merge, request-max, bandwidth, position), of the export (offset, size, read-only, description) and of the \
tenant that its clients are (weight, class, level, reserve, limit, limit-iops, burst, burst-iops, parent). A comma in a path is written twice. \
Exports of one path share one device, and its elevator divides it among them. Sizes and rates: 4k, 256M, 1T; k is 1024.

What the command line says holds, whatever the file says. SIGHUP reads the file anew; SIGTERM answers what was asked for, flushes and leaves.")]
pub struct ServeArgs {
    /// Serve this: NAME=PATH|mem:SIZE|null:SIZE[,key=value...]; may be given several times
    #[arg(long = "export", value_name = "NAME=WHERE[,KEY=VALUE...]")]
    pub exports: Vec<String>,
    /// Read the configuration in this file
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// The elevator of every device whose export names none [default: bfq where the device rotates,
    /// else fiops]
    #[arg(long, value_name = "NAME", value_parser = names::kind)]
    pub elevator: Option<Kind>,
    /// Set a tunable of the devices with this elevator, as in bfq.slice_idle=0; may be given
    /// several times
    #[arg(long = "set", value_name = "ELEVATOR.TUNABLE=VALUE", value_parser = setting::parse)]
    pub settings: Vec<Setting>,
    /// The drive that every device behaves like: a name that `hoistway drives` lists, or a profile
    /// of your own
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub drive: Option<String>,
    /// Listen to this Unix socket [default: $XDG_RUNTIME_DIR/hoistway.sock, else
    /// /run/hoistway.sock]; may be given several times
    #[arg(long = "socket", value_name = "PATH", help_heading = "Ways in")]
    pub sockets: Vec<PathBuf>,
    /// Listen to this TCP address; the port is 10809 unless given; may be given several times
    #[arg(long = "listen", value_name = "ADDRESS[:PORT]", help_heading = "Ways in")]
    pub addresses: Vec<String>,
    /// Listen to addresses beyond loopback without requiring TLS
    #[arg(long, help_heading = "Ways in")]
    pub insecure: bool,
    /// The server's certificates, PEM, its own first
    #[arg(long, value_name = "FILE.pem", help_heading = "Ways in")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate, PEM
    #[arg(long, value_name = "FILE.pem", help_heading = "Ways in")]
    pub tls_key: Option<PathBuf>,
    /// Let only clients in whose certificate comes from an authority in this file
    #[arg(long, value_name = "FILE.pem", help_heading = "Ways in")]
    pub tls_ca: Option<PathBuf>,
    /// Serve nothing in plain text
    #[arg(long, help_heading = "Ways in")]
    pub tls_required: bool,
    /// The control socket, or `none` [default: beside the Unix socket: a.sock has a-control.sock]
    #[arg(long, value_name = "PATH|none", help_heading = "Watching")]
    pub control: Option<PathBuf>,
    #[command(flatten)]
    pub watching: WatchingArgs,
    /// Write the process's number into this file once all is listened to
    #[arg(long, value_name = "FILE", help_heading = "Watching")]
    pub pid_file: Option<PathBuf>,
    /// Run this command in a shell, with $NBD_URI and $NBD_SOCKET set, and leave with its exit code
    /// when it ends
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["calibrate", "check"], help_heading = "Instead of serving until stopped")]
    pub run: Option<String>,
    /// Measure what each device sustains and what positioning costs, print it as keys of a
    /// configuration, and leave
    #[arg(long, conflicts_with = "check", help_heading = "Instead of serving until stopped")]
    pub calibrate: bool,
    /// Run a fio job against the emulated drive and in the simulator, and say whether they agree
    #[arg(long, value_name = "JOB.fio", conflicts_with_all = ["exports", "config", "sockets", "addresses", "control", "metrics", "record", "pid_file"], help_heading = "Instead of serving until stopped")]
    pub check: Option<PathBuf>,
    /// How long the job runs under each elevator, in seconds [default: 20, or the job's own]
    #[arg(long, value_name = "N", requires = "check", value_parser = clap::value_parser!(u32).range(1..=86_400), help_heading = "Instead of serving until stopped")]
    pub check_seconds: Option<u32>,
    /// The elevators that are checked, with commas between them [default: noop,deadline,cfq-v3,bfq]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "check", value_parser = names::kind, help_heading = "Instead of serving until stopped")]
    pub check_elevators: Vec<Kind>,
    /// What does the I/O: io_uring, threads, or io_uring where the system lets us
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub engine: EngineChoice,
    /// How long to watch for the next request before sleeping, as in 50us; 0 to sleep at once
    #[arg(long, value_name = "TIME", default_value = "32us", value_parser = watch)]
    pub watch: u64,
}

/// The most that anybody may have it watch: beyond, a sleep costs nothing beside the wait.
const WATCH_NS_MAX: u64 = 1_000_000;

fn watch(text: &str) -> Result<u64, String> {
    if text.trim() == "0" {
        return Ok(0);
    }
    let ns = hoistway_units::parse_duration_ns(text).map_err(|error| error.to_string())?;
    if ns > WATCH_NS_MAX { Err("at most 1ms; 0 to sleep at once".to_owned()) } else { Ok(ns) }
}

/// What does the I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// io_uring where it can be had, else threads
    #[default]
    Auto,
    /// io_uring
    Uring,
    /// Threads
    Threads,
}
