//! Arguments of `hoistway trace record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_units::{TimeUnit, parse_bytes, parse_time_ns};

use crate::exit_status;

/// Arguments of `hoistway trace record`.
#[derive(Args, Debug)]
#[command(after_help = exit_status::appended(RECORD_HELP, "hoistway-trace-record"))]
pub struct RecordArgs {
    /// The block device: /dev/sda, sda, or a partition
    #[arg(value_name = "DEVICE", required_unless_present = "undo")]
    pub device: Option<PathBuf>,
    /// Output file for the records of all CPUs in order of time (- for standard output)
    #[arg(short, long, value_name = "FILE", required_unless_present = "undo")]
    pub output: Option<PathBuf>,
    /// Duration in seconds or with a unit, as in 10, 500ms or 2m [default: until Ctrl-C or the end
    /// of COMMAND]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = duration_ns)]
    pub duration: Option<u64>,
    /// Write one file for each CPU, as blktrace does: FILE.blktrace.0, FILE.blktrace.1, ...
    #[arg(long)]
    pub per_cpu: bool,
    /// Mark the system calls that cause requests in the trace
    #[arg(long)]
    pub vfs: bool,
    /// Size of the kernel's event buffer of each CPU, 64K to 4G
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = buffer_bytes)]
    pub buffer: u64,
    /// Tracing interface of the kernel [default: the first that works]
    #[arg(long, value_enum, value_name = "INTERFACE")]
    pub by: Option<ByChoice>,
    /// Do not record; restore the tracing settings that killed recordings left changed
    #[arg(long, conflicts_with_all = ["device", "output"])]
    pub undo: bool,
    /// Command to run; the recording ends when it exits
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Tracing interfaces of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByChoice {
    /// The tracer `blk` of tracefs, which works under lockdown
    Tracefs,
    /// The ioctls and debugfs files of blktrace
    Ioctl,
}

/// Valid buffer sizes in bytes: 64 KiB, enough for some events, to 4 GiB, which a kernel can still
/// allocate.
const BUFFER_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=4 << 30;

/// Parses a duration to ns. A number without a unit is in seconds.
fn duration_ns(text: &str) -> Result<u64, String> {
    match parse_time_ns(text, TimeUnit::Seconds).map_err(|error| error.to_string())? {
        0 => Err("the duration must not be 0".to_owned()),
        ns => Ok(ns),
    }
}

/// Parses a buffer size to bytes.
fn buffer_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    if BUFFER_BYTES.contains(&bytes) { Ok(bytes) } else { Err("expected 64K to 4G".to_owned()) }
}

const RECORD_HELP: &str = "\
Recording needs root. It changes the kernel's tracing settings and restores them at the end, also after Ctrl-C, SIGTERM, SIGHUP or a \
crash of this program. After a SIGKILL, the next recording or --undo restores them. The trace names the scheduler, its tunables and the settings of the queue.

--vfs marks the reads, writes and syncs of files on the device, as in `call dd[123] pread64 /data/file offset 4096 length 4096`. Calls through \
io_uring and libaio, and page faults of mapped files, are not marked. --vfs works under lockdown=integrity, but not under lockdown=confidentiality, which closes tracefs.

Examples:
  hoistway trace record sda -d 10 -o sda.trace       then: hoistway trace describe sda.trace
  hoistway trace record /dev/nvme0n1p2 -o build.trace --vfs -- make -j8
  hoistway trace record sda -d 10 --per-cpu -o sda   then: blkparse -i sda";
