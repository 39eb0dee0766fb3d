//! `hoistway ctl` and `hoistway top`, and how `serve` and `mount` are watched.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

/// `hoistway ctl`.
#[derive(Args, Debug)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Examples:
  hoistway ctl ls                                            what there is: devices, exports, tenants ...
  hoistway ctl get devices/sda/queue/scheduler               linus noop deadline ... [bfq] kyber
  hoistway ctl set devices/sda/queue/scheduler cfq           another elevator, under load
  hoistway ctl set devices/sda/queue/iosched/slice_idle 0    a tunable, by the kernel's name and in its unit
  hoistway ctl set tenants/backup/weight 10
  hoistway ctl set tenants/backup/limit 50M                  bytes a second; max is none
  hoistway ctl get -r tenants/backup                         all that there is to know of one tenant
  hoistway ctl help tenants                                  what the paths mean

The tree is the kernel's, with its names, texts and units, where the kernel has such: devices/NAME/queue is laid out as /sys/block/NAME/queue is. What \
is set here holds until the server ends or reads its configuration anew.

The protocol is lines of text, so `socat - UNIX-CONNECT:SOCKET` will do in place of this command: docs/serve-control.md describes it.

Exit codes: 0 it was done, 1 it was not (standard error says why), 2 the command line is wrong."
)]
pub struct CtlArgs {
    /// What to do
    #[command(subcommand)]
    pub command: CtlCommand,
    /// The server's control socket [default: hoistway-control.sock in $XDG_RUNTIME_DIR, then in
    /// /run, then /run/hoistway/control.sock]
    #[arg(long, value_name = "SOCKET", global = true)]
    pub control: Option<PathBuf>,
}

/// What `hoistway ctl` does.
#[derive(Debug, Subcommand)]
pub enum CtlCommand {
    /// List what lies in a directory of the tree
    Ls {
        /// All paths below it
        #[arg(short, long)]
        recursive: bool,
        /// The directory; without it, the root
        #[arg(value_name = "PATH", default_value = "")]
        path: String,
    },
    /// Print what paths tell
    Get {
        /// What all paths below tell, as PATH: VALUE
        #[arg(short, long)]
        recursive: bool,
        /// The paths, as in devices/sda/queue/scheduler
        #[arg(value_name = "PATH", required_unless_present = "recursive")]
        paths: Vec<String>,
    },
    /// Set a path to a value
    Set {
        /// The path, as in tenants/backup/weight
        #[arg(value_name = "PATH")]
        path: String,
        /// The value
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
    },
    /// Say what the paths mean; no server is needed
    Help {
        /// Those that begin like this, as in tenants or devices/NAME/queue
        #[arg(value_name = "PATH", default_value = "")]
        path: String,
        /// As the table of docs/serve-control.md
        #[arg(long, conflicts_with = "path")]
        markdown: bool,
    },
}

/// `hoistway top`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hoistway top                                               the screen; h there tells the keys
  hoistway top --control /run/user/1000/hoistway-control.sock
  hoistway top --once                                        one sample as a table, for a log
  hoistway top --json | jq '.devices[].tenants[] | {name, bytes_per_second, share, entitlement}'

A row is a tenant: bytes and requests a second; half and 99 of 100 of its requests waited (QUEUE) and were in the device (DEVICE) no longer than so; SHARE \
is its part of the bytes that the device moved in the last ten seconds, DUE the part that reservation, class, weight and limit entitle it to among those who used \
the device; IN and WAIT are its requests in the device and above it, those included that its limits hold back. An exclamation mark stands before a share that \
is less than nine tenths of what is due, while requests wait. The arrow stands before the tenant that the elevator serves alone at this moment.

Keys: q leaves, left and right choose the column to sort by, r turns the order round, up and down scroll, Tab or d shows the next device, space or p holds \
the screen, h helps.

Latencies are those of the interval, known to an eighth. Without a terminal, it does what --once does.")]
pub struct TopArgs {
    /// The server's control socket [default: hoistway-control.sock in $XDG_RUNTIME_DIR, then in
    /// /run, then /run/hoistway/control.sock]
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    /// How often to look, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    pub interval: f64,
    /// The device to show first
    #[arg(short, long, value_name = "NAME")]
    pub device: Option<String>,
    /// Print one sample over one interval, and leave
    #[arg(long)]
    pub once: bool,
    /// Print that sample as JSON
    #[arg(long)]
    pub json: bool,
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("it takes 0.1 to 3600 seconds".to_owned()),
    }
}

/// What `hoistway serve` and `hoistway mount` let others see of them.
#[derive(Args, Clone, Debug, Default)]
pub struct WatchingArgs {
    /// Serve metrics over HTTP at this address, for Prometheus
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Watching")]
    pub metrics: Option<String>,
    /// Record what passes through the queues in this file, in blktrace's format
    #[arg(long, value_name = "FILE", help_heading = "Watching")]
    pub record: Option<PathBuf>,
    /// Tell more; twice: everything
    #[arg(short, long, action = ArgAction::Count, conflicts_with = "quiet", help_heading = "Watching")]
    pub verbose: u8,
    /// Tell errors only
    #[arg(short, long, help_heading = "Watching")]
    pub quiet: bool,
}
