//! `hoistway mount`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_core::Kind;
use hoistway_sim::Setting;

use crate::cli::WatchingArgs;
use crate::{names, setting};

/// `hoistway mount`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  A media library, on the disk that it lies on, with time slices:
    hoistway mount /srv/media /media --elevator cfq --depth 1
  The same over itself: programs go on with the paths they know
    hoistway mount /srv/media /srv/media --elevator cfq --depth 1
  What a process is worth it says itself, before or while it runs:
    ionice -c3 cp -a /media/films /backup &  ionice -c1 -p $(pidof mpv)
  Or rules say it (docs/mount.md, examples/mount), and a socket shows it:
    hoistway mount /srv/media /media --config media-server.toml --control /run/media.sock
    hoistway top --control /run/media.sock
  Is a file of rules right?
    hoistway mount --check-config media-server.toml

Every thread that reads or writes below MOUNTPOINT is an I/O context of the disk that SOURCE lies on: the elevator gives it turns by its own I/O priority, \
nice value and control group, or by the terms that rules give it. What lies in memory is answered at once.

SIGINT, SIGTERM and SIGHUP unmount; who has files open is waited for ten seconds, and a second signal cuts him off. `umount MOUNTPOINT` does as well. \
If it is killed, who uses the mount gets errors, and `hoistway mount --clean` takes the dead mount away.")]
pub struct MountArgs {
    /// The directory that is passed through
    #[arg(value_name = "SOURCE", required_unless_present = "check_config")]
    pub source: Option<PathBuf>,
    /// Where it is mounted: a directory outside of SOURCE, or SOURCE itself
    #[arg(value_name = "MOUNTPOINT", required_unless_present = "check_config")]
    pub mount_point: Option<PathBuf>,
    /// Read rules, tenants and devices from this file
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// The elevator of every device, or `none`: nothing is scheduled [default: bfq where the device rotates, else fiops]
    #[arg(long, value_name = "NAME|none", value_parser = elevator)]
    pub elevator: Option<Elevator>,
    /// Set a tunable of the devices with this elevator, as in bfq.slice_idle=0; may be given several times
    #[arg(long = "set", value_name = "ELEVATOR.TUNABLE=VALUE", value_parser = setting::parse)]
    pub settings: Vec<Setting>,
    /// The device that everything lies on, by name or path [default: auto: found for each file system]
    #[arg(long, value_name = "auto|NAME")]
    pub device: Option<String>,
    /// How many requests a device is given at once [default: 2 where it rotates, else 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub depth: Option<u32>,
    /// Who writes back what was written: `ours`, as requests of who wrote it, or the kernel [default: ours]
    #[arg(long, value_name = "WHO")]
    pub write_back: Option<WriteBackArg>,
    /// Let everybody use the mount, as the permissions of the files say [default for root]
    #[arg(long, conflicts_with = "owner_only")]
    pub allow_other: bool,
    /// Let only who mounts use it [default unless root]
    #[arg(long)]
    pub owner_only: bool,
    /// Let nothing be changed through the mount
    #[arg(long)]
    pub read_only: bool,
    /// Take a dead mount of ours at the same place away first
    #[arg(long)]
    pub clean: bool,
    /// How many threads take requests from the kernel [default: twice the processors, 4 to 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Option<u32>,
    /// The control socket, for `hoistway ctl` and `hoistway top`, or `none` [default: none]
    #[arg(long, value_name = "PATH|none", help_heading = "Watching")]
    pub control: Option<PathBuf>,
    #[command(flatten)]
    pub watching: WatchingArgs,
    /// Say what is wrong with a configuration, and leave
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["source", "config", "record"], help_heading = "Instead of mounting")]
    pub check_config: Option<PathBuf>,
}

/// An elevator, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elevator {
    /// This one.
    Kind(Kind),
    /// Everything passes at once.
    None,
}

fn elevator(text: &str) -> Result<Elevator, String> {
    if text == "none" { Ok(Elevator::None) } else { names::kind(text).map(Elevator::Kind) }
}

/// Who writes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WriteBackArg {
    /// The mount, as requests of who wrote it
    Ours,
    /// The kernel, when it sees fit
    Kernel,
}

impl WriteBackArg {
    /// As a configuration has it.
    pub fn name(self) -> &'static str {
        match self {
            WriteBackArg::Ours => "ours",
            WriteBackArg::Kernel => "kernel",
        }
    }
}
