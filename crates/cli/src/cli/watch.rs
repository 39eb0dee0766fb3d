//! Options of `hoistway ctl` and `hoistway top`, and the options of `serve` and `mount` for
//! monitoring.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use crate::exit_status;

/// `hoistway ctl`.
#[derive(Args, Debug)]
#[command(
    disable_help_subcommand = true,
    after_help = exit_status::appended("\
Examples:
  hoistway ctl ls                                            list the root: devices, exports, tenants ...
  hoistway ctl get devices/sda/queue/scheduler               linus noop ... [bfq] kyber paternoster
  hoistway ctl set devices/sda/queue/scheduler cfq           change the elevator, also under load
  hoistway ctl set devices/sda/queue/iosched/slice_idle 0    set a tunable, with the kernel's name and unit
  hoistway ctl set tenants/backup/weight 10
  hoistway ctl set tenants/backup/limit 50M                  bytes per second; max removes the limit
  hoistway ctl get -r tenants/backup                         print all values of a tenant
  hoistway ctl help tenants                                  explain the paths below tenants

If the kernel has the same attribute, its name, values and unit are those of the kernel: devices/NAME/queue corresponds to /sys/block/NAME/queue. A value \
that was set stays until the server ends or reloads its configuration.

The protocol consists of lines of text, so `socat - UNIX-CONNECT:SOCKET` can replace this command; docs/serve-control.md describes it.", "hoistway-ctl")
)]
pub struct CtlArgs {
    /// The action
    #[command(subcommand)]
    pub command: CtlCommand,
    /// The server's control socket [default: hoistway-control.sock in $XDG_RUNTIME_DIR, then in
    /// /run, then /run/hoistway/control.sock]
    #[arg(long, value_name = "SOCKET", global = true)]
    pub control: Option<PathBuf>,
}

/// The actions of `hoistway ctl`.
#[derive(Debug, Subcommand)]
pub enum CtlCommand {
    /// List a directory of the tree
    Ls {
        /// List all paths below the directory
        #[arg(short, long)]
        recursive: bool,
        /// The directory; the default is the root
        #[arg(value_name = "PATH", default_value = "")]
        path: String,
    },
    /// Print the values of paths
    Get {
        /// Print the values of all paths below, as PATH: VALUE
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
    /// Explain paths; needs no server
    Help {
        /// The beginning of the paths, as in tenants or devices/NAME/queue
        #[arg(value_name = "PATH", default_value = "")]
        path: String,
        /// Print the Markdown table of docs/serve-control.md
        #[arg(long, conflicts_with = "path")]
        markdown: bool,
    },
}

/// `hoistway top`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hoistway top                                               the screen; h lists the keys
  hoistway top --control /run/user/1000/hoistway-control.sock
  hoistway top --once                                        one sample as a table, for a log
  hoistway top --json | jq '.devices[].tenants[] | {name, bytes_per_second, share, entitlement}'

Each row is a tenant. MB/s and IOPS are its throughput. QUEUE is the waiting time of its requests and DEVICE their service time, as median and 99th \
percentile. SHARE is its part of the bytes that the device transferred in the last ten seconds; DUE is the part that it should get by reservation, class, \
weight and limit among the tenants that used the device. IN is the number of its requests in the device, WAIT the number in the queue, including requests that \
its limits delay. An exclamation mark precedes a SHARE below nine tenths of DUE while requests wait. An arrow precedes the tenant that has the elevator's slice.

Keys: q quits, left and right choose the sort column, r reverses the order, up and down scroll, Tab or d shows the next device, space or p freezes \
the screen, h shows help.

Latencies are those of the interval, with an accuracy of an eighth. A narrow terminal shows fewer columns; a shortened name ends with an ellipsis. Without a terminal, the command works as with --once.")]
pub struct TopArgs {
    /// The server's control socket [default: hoistway-control.sock in $XDG_RUNTIME_DIR, then in
    /// /run, then /run/hoistway/control.sock]
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    /// Interval between samples, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    pub interval: f64,
    /// The device to show first
    #[arg(short, long, value_name = "NAME")]
    pub device: Option<String>,
    /// Print one sample over one interval, and exit
    #[arg(long)]
    pub once: bool,
    /// Print that sample as JSON
    #[arg(long)]
    pub json: bool,
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected 0.1 to 3600 seconds".to_owned()),
    }
}

/// Options of `hoistway serve` and `hoistway mount` for metrics, recordings and the log.
#[derive(Args, Clone, Debug, Default)]
pub struct MonitoringArgs {
    /// Serve metrics over HTTP at this address, for Prometheus
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Monitoring")]
    pub metrics: Option<String>,
    /// Record the requests of all queues in this file, in blktrace's format
    #[arg(long, value_name = "FILE", help_heading = "Monitoring")]
    pub record: Option<PathBuf>,
    /// Log more; twice: log everything
    #[arg(short, long, action = ArgAction::Count, conflicts_with = "quiet", help_heading = "Monitoring")]
    pub verbose: u8,
    /// Log errors only
    #[arg(short, long, help_heading = "Monitoring")]
    pub quiet: bool,
}
