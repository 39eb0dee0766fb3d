//! Options of `hoistway serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_compare::Named;
use hoistway_core::Kind;
use hoistway_sim::Setting;

use crate::cli::MonitoringArgs;
use crate::exit_status;
use crate::names;

/// `hoistway serve`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = exit_status::appended("\
Examples:
  One file as the default export:
    hoistway serve --export =disk.img
  Two tenants on one disk, weighted 3:1:
    hoistway serve --export db=/dev/sdb,size=100G,weight=300 \\
                   --export backup=/dev/sdb,offset=100G,weight=100
  5 MiB/s reserved for one tenant, a limit of 50 MiB/s for the other:
    hoistway serve --export db=disk.img,reserve=5M,bandwidth=150M,position=12ms \\
                   --export other=disk.img,limit=50M
  An emulated disk while a command runs:
    hoistway serve --export =mem:4G --drive sata-7200-2006 --run 'nbdinfo \"$NBD_URI\"'
  A configuration file (docs/serve-config.md), and the measurement that reservations need:
    hoistway serve --config /etc/hoistway.toml
    hoistway serve --config /etc/hoistway.toml --calibrate

An export is NAME=PATH, NAME=mem:SIZE, NAME=null:SIZE or NAME=nbd://HOST/EXPORT (docs/serve-remote.md); an empty name is the default export. \
Keys follow, separated by commas: of the device (elevator, drive, depth, direct, force-in-use, merge, request-max, bandwidth, position; of a remote \
export connections, timeout, unflushed, tls-authority, tls-certificate, tls-key), of the export (offset, size, read-only, description) and of the \
tenant of its clients (weight, class, level, reserve, limit, limit-iops, burst, burst-iops, parent). A comma in a path is written twice. \
Exports of one path share a device, whose elevator divides it among their clients. Sizes and rates: 4k, 256M, 1T; k is 1024.

Options override the configuration file. SIGHUP reloads the file. SIGTERM completes all requests, flushes the devices and exits.", "hoistway-serve"))]
pub struct ServeArgs {
    /// An export: NAME=PATH|mem:SIZE|null:SIZE|URI[,key=value...]; may be given several times
    #[arg(long = "export", value_name = "NAME=WHERE[,KEY=VALUE...]")]
    pub exports: Vec<String>,
    /// The configuration file
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// The elevator of devices whose exports do not set one [default: paternoster for rotating
    /// devices, otherwise fiops]
    #[arg(long, value_name = "NAME", value_parser = names::kind)]
    pub elevator: Option<Kind>,
    /// Set a tunable of the devices with this elevator, as in bfq.slice_idle=0; may be given
    /// several times
    #[arg(long = "set", value_name = "ELEVATOR.TUNABLE=VALUE", value_parser = Setting::parse_argument)]
    pub settings: Vec<Setting>,
    /// The drive that all devices emulate: a name from `hoistway drives`, or a drive file
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub drive: Option<String>,
    /// Serve files and block devices for writing even if they are in use: mounted, swap, part of a
    /// volume or array, behind a loop device
    #[arg(long)]
    pub force_in_use: bool,
    /// Listen on this Unix socket [default: $XDG_RUNTIME_DIR/hoistway.sock, otherwise
    /// /run/hoistway.sock]; may be given several times
    #[arg(long = "socket", value_name = "PATH", help_heading = "Listening")]
    pub sockets: Vec<PathBuf>,
    /// Listen on this TCP address; the default port is 10809; may be given several times
    #[arg(long = "listen", value_name = "ADDRESS[:PORT]", help_heading = "Listening")]
    pub addresses: Vec<String>,
    /// Listen on addresses other than loopback without requiring TLS
    #[arg(long, help_heading = "Listening")]
    pub insecure: bool,
    /// The certificate chain of the server in PEM, its own certificate first
    #[arg(long, value_name = "FILE.pem", help_heading = "Listening")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate in PEM
    #[arg(long, value_name = "FILE.pem", help_heading = "Listening")]
    pub tls_key: Option<PathBuf>,
    /// Accept only clients with a certificate of an authority in this file
    #[arg(long, value_name = "FILE.pem", help_heading = "Listening")]
    pub tls_ca: Option<PathBuf>,
    /// Refuse connections without TLS
    #[arg(long, help_heading = "Listening")]
    pub tls_required: bool,
    /// The control socket, or `none` [default: beside the Unix socket, a-control.sock for a.sock]
    #[arg(long, value_name = "PATH|none", help_heading = "Monitoring")]
    pub control: Option<PathBuf>,
    #[command(flatten)]
    pub monitoring: MonitoringArgs,
    /// Write the process id to this file when all sockets are open
    #[arg(long, value_name = "FILE", help_heading = "Monitoring")]
    pub pid_file: Option<PathBuf>,
    /// Run this command in a shell, with $NBD_URI and $NBD_SOCKET set; when it ends, exit with its
    /// exit code
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["calibrate", "check"], help_heading = "Other modes")]
    pub run: Option<String>,
    /// Measure the sustained throughput and the positioning time of each device, print them as keys
    /// of a configuration, and exit
    #[arg(long, conflicts_with = "check", help_heading = "Other modes")]
    pub calibrate: bool,
    /// Run a fio job on the emulated drive and in the simulator, compare the results, and exit
    #[arg(long, value_name = "JOB.fio", conflicts_with_all = ["exports", "config", "sockets", "addresses", "control", "metrics", "record", "pid_file"], help_heading = "Other modes")]
    pub check: Option<PathBuf>,
    /// Run time of the job under each elevator, in seconds [default: 20, or the job's own]
    #[arg(long, value_name = "N", requires = "check", value_parser = clap::value_parser!(u32).range(1..=86_400), help_heading = "Other modes")]
    pub check_seconds: Option<u32>,
    /// The elevators to check, separated by commas; history: those of Linux; all: every elevator
    /// [default: noop,deadline,cfq-v3,bfq]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "check", value_parser = Named::parse, help_heading = "Other modes")]
    pub check_elevators: Vec<Named>,
    /// The I/O engine; auto is io_uring if available, otherwise threads
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub engine: EngineChoice,
    /// Poll for the next request for this time before sleeping, as in 50us; 0 disables polling
    #[arg(long, value_name = "TIME", default_value = "32us", value_parser = watch)]
    pub watch: u64,
}

/// Greatest time of polling: beyond it, the cost of a sleep is negligible.
const WATCH_NS_MAX: u64 = 1_000_000;

fn watch(text: &str) -> Result<u64, String> {
    if text.trim() == "0" {
        return Ok(0);
    }
    let ns = hoistway_units::parse_duration_ns(text).map_err(|error| error.to_string())?;
    if ns > WATCH_NS_MAX { Err("at most 1ms; 0 disables polling".to_owned()) } else { Ok(ns) }
}

/// The I/O engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// io_uring if available, otherwise threads
    #[default]
    Auto,
    /// The io_uring of Linux
    Uring,
    /// A pool of threads with blocking calls
    Threads,
}
