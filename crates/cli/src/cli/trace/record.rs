//! `hoistway trace record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_units::{TimeUnit, parse_bytes, parse_time_ns};

/// `hoistway trace record`.
#[derive(Args, Debug)]
#[command(after_help = RECORD_HELP)]
pub struct RecordArgs {
    /// The block device: /dev/sda, sda, or a partition
    #[arg(value_name = "DEVICE", required_unless_present = "undo")]
    pub device: Option<PathBuf>,
    /// Output file for the records of all CPUs in order of time (- for standard output)
    #[arg(short, long, value_name = "FILE", required_unless_present = "undo")]
    pub output: Option<PathBuf>,
    /// Duration, as in 10, 500ms or 2m [default: until Ctrl-C or the end of COMMAND]
    #[arg(short = 'd', long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<u64>,
    /// Write one file for each CPU, as blktrace does: FILE.blktrace.0, FILE.blktrace.1, ...
    #[arg(long)]
    pub per_cpu: bool,
    /// Record the system calls that cause requests as marks
    #[arg(long)]
    pub vfs: bool,
    /// Buffer for unwritten events, for each CPU
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = buffer)]
    pub buffer: u64,
    /// Interface of the kernel [default: the first that works]
    #[arg(long, value_enum, value_name = "WAY")]
    pub by: Option<ByChoice>,
    /// Only restore the tracing settings that killed recordings left changed
    #[arg(long, conflicts_with_all = ["device", "output"])]
    pub undo: bool,
    /// Command to run; the recording ends with it
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Interfaces of the kernel for recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByChoice {
    /// The tracer `blk` of tracefs, which works under lockdown
    Tracefs,
    /// The ioctls and debugfs files of blktrace
    Ioctl,
}

/// Valid buffer sizes in bytes: enough for some events, and small enough for the kernel to
/// allocate.
const BUFFER_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=4 << 30;

fn seconds(text: &str) -> Result<u64, String> {
    match parse_time_ns(text, TimeUnit::Seconds).map_err(|error| error.to_string())? {
        0 => Err("the duration must not be 0".to_owned()),
        ns => Ok(ns),
    }
}

fn buffer(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    if BUFFER_BYTES.contains(&bytes) { Ok(bytes) } else { Err("expected 64K to 4G".to_owned()) }
}

const RECORD_HELP: &str = "\
Recording needs root. Changes of the kernel's tracing settings are restored at the end, also after Ctrl-C, SIGTERM, SIGHUP or a crash of \
this program; after a SIGKILL, the next recording or --undo restores them.

--vfs marks reads, writes and syncs on files on the device, as in `call dd[123] pread64 /data/file offset 4096 length 4096`. Calls through \
io_uring and libaio, and page faults of mapped files, are not marked. It works under lockdown=integrity; under lockdown=confidentiality tracefs is closed.

Examples:
  hoistway trace record sda -d 10 -o sda.trace       then: hoistway trace describe sda.trace
  hoistway trace record /dev/nvme0n1p2 -o build.trace --vfs -- make -j8
  hoistway trace record sda -d 10 --per-cpu -o sda   then: blkparse -i sda

Exit code: that of COMMAND, if given; 1 if nothing was recorded or events were dropped.";
