//! The command line of `hoistway mount`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_core::Kind;
use hoistway_sim::Setting;

use crate::cli::MonitoringArgs;
use crate::exit_status;
use crate::names;

/// Arguments of `hoistway mount`.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit_status::appended("\
Examples:
  Mount a media library, scheduled with time slices on its disk:
    hoistway mount /srv/media /media --elevator cfq --depth 1
  Mount a directory over itself, so that programs keep their paths:
    hoistway mount /srv/media /srv/media --elevator cfq --depth 1
  Set the I/O priority of a process, before or while it runs:
    ionice -c3 cp -a /media/films /backup &  ionice -c1 -p $(pidof mpv)
  Set priorities by rules (docs/mount.md, examples/mount), and monitor the mount:
    hoistway mount /srv/media /media --config media-server.toml --control /run/media.sock
    hoistway top --control /run/media.sock
  Check a configuration file:
    hoistway mount --check-config media-server.toml

The elevator schedules the requests of every thread that reads or writes below MOUNTPOINT by the thread's I/O priority, nice value and control group, or by \
the terms of the first matching rule. Cached data are read without scheduling.

SIGINT, SIGTERM, SIGHUP and `umount MOUNTPOINT` unmount. A mount with open files is detached ten seconds after the signal, or at once by a second signal. \
If the process is killed, users of the mount get errors, and `hoistway mount --clean` removes the dead mount.", "hoistway-mount"))]
pub struct MountArgs {
    /// The directory to mount
    #[arg(value_name = "SOURCE", required_unless_present = "check_config")]
    pub source: Option<PathBuf>,
    /// The mount point: a directory outside of SOURCE, or SOURCE itself
    #[arg(value_name = "MOUNTPOINT", required_unless_present = "check_config")]
    pub mount_point: Option<PathBuf>,
    /// Read rules, tenants and devices from this file
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// The elevator of every device, or `none` for no scheduling [default: paternoster for
    /// rotational devices, otherwise fiops]
    #[arg(long, value_name = "NAME|none", value_parser = elevator)]
    pub elevator: Option<Elevator>,
    /// Set a tunable of the devices with this elevator, such as bfq.slice_idle=0; may be repeated
    #[arg(long = "set", value_name = "ELEVATOR.TUNABLE=VALUE", value_parser = Setting::parse_argument)]
    pub settings: Vec<Setting>,
    /// The device of all files, by name or path [default: auto: the device of each file system]
    #[arg(long, value_name = "auto|NAME")]
    pub device: Option<String>,
    /// Number of requests in flight per device [default: 2 for rotational devices, otherwise 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub depth: Option<u32>,
    /// Which component writes cached data to the disk: the mount (`ours`), as requests of the
    /// process that wrote the data, or the kernel [default: ours]
    #[arg(long, value_name = "MODE")]
    pub write_back: Option<WriteBackArg>,
    /// Allow all users, subject to the permissions of the files [default for root]
    #[arg(long, conflicts_with = "owner_only")]
    pub allow_other: bool,
    /// Allow only the mounting user [default unless root]
    #[arg(long)]
    pub owner_only: bool,
    /// Mount read-only
    #[arg(long)]
    pub read_only: bool,
    /// Remove a dead hoistway mount at the mount point first
    #[arg(long)]
    pub clean: bool,
    /// Number of threads that receive requests from the kernel [default: twice the processors, 4 to
    /// 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Option<u32>,
    /// Path of the control socket for `hoistway ctl` and `hoistway top`, or `none` [default: none]
    #[arg(long, value_name = "PATH|none", help_heading = "Monitoring")]
    pub control: Option<PathBuf>,
    #[command(flatten)]
    pub monitoring: MonitoringArgs,
    /// Report all errors of a configuration file and exit
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["source", "config", "record"], help_heading = "Other modes")]
    pub check_config: Option<PathBuf>,
}

/// The value of `--elevator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elevator {
    /// Schedule with this elevator.
    Kind(Kind),
    /// Dispatch every request at once.
    None,
}

fn elevator(text: &str) -> Result<Elevator, String> {
    if text == "none" { Ok(Elevator::None) } else { names::kind(text).map(Elevator::Kind) }
}

/// The value of `--write-back`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WriteBackArg {
    /// By the mount, as requests of the writing process
    Ours,
    /// By the kernel's flusher threads
    Kernel,
}

impl WriteBackArg {
    /// Returns the value of `mount.write_back` in a configuration file.
    pub fn name(self) -> &'static str {
        match self {
            WriteBackArg::Ours => "ours",
            WriteBackArg::Kernel => "kernel",
        }
    }
}
