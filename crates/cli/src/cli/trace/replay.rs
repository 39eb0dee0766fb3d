//! `hoistway trace replay`.

use clap::{Args, ValueEnum};
use hoistway_core::Kind;
use hoistway_sim::Setting;
use hoistway_trace::DeviceId;

use super::{TraceInput, device};
use crate::exit_status;
use crate::names;

/// `hoistway trace replay`.
#[derive(Args, Debug)]
#[command(after_help = exit_status::appended(REPLAY_HELP, "hoistway-trace-replay"))]
pub struct ReplayArgs {
    #[command(flatten)]
    pub input: TraceInput,
    /// Target: a file or block device, or an nbd:// or nbd+unix:// URI
    #[arg(long, value_name = "TARGET", required_unless_present = "drive")]
    pub on: Option<String>,
    /// Target: a drive model in virtual time, a name from `hoistway drives` or a drive file
    #[arg(long, value_name = "NAME|FILE.toml", conflicts_with = "on")]
    pub drive: Option<String>,
    /// When requests are submitted
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub timing: TimingChoice,
    /// Factor for the times between requests: 0.5 is twice as fast
    #[arg(long, value_name = "X", default_value = "1", value_parser = scale)]
    pub scale: f64,
    /// Replay the requests as programs submitted them (Q), or as the driver received them, merged
    /// and sorted (D)
    #[arg(long, value_enum, default_value_t, value_name = "LAYER")]
    pub layer: LayerChoice,
    /// Maximum number of outstanding requests with --timing asap [default: the recorded maximum]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub depth: Option<u32>,
    /// Device whose requests are replayed, as in 8,0 [default: the one with the most requests]
    #[arg(long, value_name = "MAJOR,MINOR", value_parser = device)]
    pub device: Option<DeviceId>,
    /// Include writes, discards and flushes: THE DATA ON THE TARGET ARE LOST
    #[arg(long, conflicts_with = "reads_only", help_heading = "Target")]
    pub write: bool,
    /// Omit writes, discards and flushes
    #[arg(long, help_heading = "Target")]
    pub reads_only: bool,
    /// Write to the target even if it is in use: mounted, swap, part of a volume or array, behind a
    /// loop device
    #[arg(long, requires = "write", help_heading = "Target")]
    pub force_in_use: bool,
    /// Value added to each offset, as in 1G or -512M
    #[arg(long, value_name = "BYTES", default_value = "0", allow_hyphen_values = true, value_parser = shift, help_heading = "Target")]
    pub shift: i64,
    /// Wrap requests beyond the end of the target to its beginning
    #[arg(long, help_heading = "Target")]
    pub wrap: bool,
    /// Elevator of a drive model [default: noop]
    #[arg(long, value_name = "NAME", value_parser = names::kind, help_heading = "Target")]
    pub elevator: Option<Kind>,
    /// Tunable of that elevator
    #[arg(long = "set", value_name = "ELEVATOR.TUNABLE=VALUE", value_parser = Setting::parse_argument, help_heading = "Target")]
    pub settings: Vec<Setting>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl ReplayArgs {
    /// The drive model of the replay; `None` for a file, a device or a server. `--on drive:NAME` is
    /// the older form of `--drive NAME`.
    pub fn drive(&self) -> Option<&str> {
        self.drive.as_deref().or_else(|| self.on.as_deref()?.strip_prefix("drive:"))
    }

    /// The target as it was given.
    pub fn target(&self) -> &str {
        self.drive.as_deref().or(self.on.as_deref()).unwrap_or_default()
    }
}

/// When requests are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimingChoice {
    /// At the times at which they were recorded
    #[default]
    Recorded,
    /// As fast as the target accepts them, in the recorded order
    Asap,
    /// After the completions that the requests waited for, with the recorded pauses
    Dependent,
}

/// Layer from which requests are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LayerChoice {
    /// As programs and file systems submitted them
    #[default]
    Queue,
    /// As the driver received them
    Issue,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale.is_finite() && (0.0..=1e6).contains(&scale) => Ok(scale),
        _ => Err("expected a number from 0 to 1000000, as in 0.5".to_owned()),
    }
}

fn shift(text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let bytes = hoistway_units::parse_bytes(digits).map_err(|error| error.to_string())?;
    if !bytes.is_multiple_of(512) {
        return Err(format!("{bytes} bytes are not a multiple of 512"));
    }
    i64::try_from(bytes).map(|bytes| sign * bytes).map_err(|_| format!("{bytes} bytes exceed the size of any device"))
}

const REPLAY_HELP: &str = "\
The output has percentiles of the lag of submissions. If the lag is a considerable part of the latency, the target is \
too slow for the recorded times; --timing dependent keeps the pauses of the programs instead.

The command writes to the target only with --write, and to a file or device that is mounted or otherwise in use only with --force-in-use. The data of writes are pseudo-random. \
Flushes make the target write back its cache. If the target does not support discards, they are omitted and counted.

Examples:
  hoistway trace replay sda.trace --drive sata-7200-2006 --elevator bfq --timing dependent
  hoistway trace replay sda.trace --on /dev/sdb --reads-only
  hoistway trace replay sda.trace --on nbd+unix:///disk?socket=/run/hoistway.sock --write --timing asap --depth 32";
