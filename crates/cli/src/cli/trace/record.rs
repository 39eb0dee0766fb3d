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
    /// Where to: a file with the records of all CPUs in the order of time (- for standard output)
    #[arg(short, long, value_name = "FILE", required_unless_present = "undo")]
    pub output: Option<PathBuf>,
    /// For how long, as in 10, 500ms or 2m; otherwise until Ctrl-C or COMMAND's end
    #[arg(short = 'd', long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<u64>,
    /// Write a file a CPU, as blktrace does: FILE.blktrace.0, FILE.blktrace.1, ...
    #[arg(long)]
    pub per_cpu: bool,
    /// Put marks between the requests for the system calls that they come from
    #[arg(long)]
    pub vfs: bool,
    /// Memory for events that were not written yet, for each CPU
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = buffer)]
    pub buffer: u64,
    /// By which of the kernel's interfaces; otherwise the first that works
    #[arg(long, value_enum, value_name = "WAY")]
    pub by: Option<ByChoice>,
    /// Put back what recordings that were killed have left behind, and do nothing else
    #[arg(long, conflicts_with_all = ["device", "output"])]
    pub undo: bool,
    /// Run this, and record until it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// By what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByChoice {
    /// The tracer `blk` of tracefs, which works under lockdown
    Tracefs,
    /// The ioctls and debugfs files of blktrace
    Ioctl,
}

/// A buffer holds a few events at least, and the kernel has to find its memory.
const BUFFER_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=4 << 30;

fn seconds(text: &str) -> Result<u64, String> {
    match parse_time_ns(text, TimeUnit::Seconds).map_err(|error| error.to_string())? {
        0 => Err("in no time nothing can be recorded".to_owned()),
        ns => Ok(ns),
    }
}

fn buffer(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    if BUFFER_BYTES.contains(&bytes) { Ok(bytes) } else { Err("it takes 64K to 4G".to_owned()) }
}

const RECORD_HELP: &str = "\
Recording needs root. What is changed of the machine's tracing settings is put back at the end, also on Ctrl-C, SIGTERM, SIGHUP or a crash of \
this program; after a SIGKILL the next recording, or --undo, finds and undoes it.

--vfs marks reads, writes and syncs on files that lie on the device, as in `call dd[123] pread64 /data/file offset 4096 length 4096`. Calls through \
io_uring and libaio, and page faults of mapped files, leave no marks. It works under lockdown=integrity; under lockdown=confidentiality tracefs is closed.

Examples:
  hoistway trace record sda -d 10 -o sda.trace       then: hoistway trace describe sda.trace
  hoistway trace record /dev/nvme0n1p2 -o build.trace --vfs -- make -j8
  hoistway trace record sda -d 10 --per-cpu -o sda   then: blkparse -i sda

Exit code: COMMAND's if there is one; 1 if nothing could be recorded, or events were dropped.";
