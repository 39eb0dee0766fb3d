//! Recording what passes through a block device of this machine, in blktrace's binary format.
//!
//! ```text
//!  tracefs: per_cpu/cpuN/trace_pipe ─┐                           ┌─ one file, in the order of time
//!  or ioctl: debugfs' block/.../traceN ├─▶ whole records ─▶ Sink ─┤
//!  events of system calls (`--vfs`) ─┘     (and what was lost)   └─ NAME.blktrace.N, a file a CPU
//! ```
//!
//! The tracer `blk` of tracefs works where blktrace does not: under lockdown, where files of
//! debugfs cannot be opened. All that is changed of the machine's settings is written down first
//! and put back at the end, by a panic too; what a killed recording left behind, the next one finds
//! ([`left_behind`]).

mod by_ioctl;
mod by_tracefs;
mod calls;
mod device;
mod pipes;
mod records;
mod settings;
mod sink;
mod tracing_files;

use std::io;
use std::path::PathBuf;

pub use device::Traced;
pub use settings::{LeftBehind, left_behind};
pub use sink::{Output, Sink, Written};

use hoistway_machine::{ProcessFiles, Root};

use by_ioctl::ByIoctl;
use by_tracefs::ByTracefs;
use calls::Calls;

/// The memory for events that were not read yet, in bytes a CPU, unless told: 16 MiB.
pub const BUFFER_BYTES: u64 = 16 << 20;

/// By which of the kernel's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The tracer `blk` of tracefs.
    Tracefs,
    /// blktrace's own ioctls and files in debugfs.
    Ioctl,
}

/// What is recorded, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// By which interface; none: the first that works.
    pub by: Option<By>,
    /// Memory for events that were not read yet, in bytes a CPU.
    pub buffer_bytes: u64,
    /// Marks for the system calls on files that lie on the device, and on itself.
    pub calls: bool,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It is no device that can be traced.
    #[error("{path}: {what}", path = .path.display())]
    Device {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// Only the administrator may.
    #[error("{what}: {cause}; recording needs the rights of root (CAP_SYS_ADMIN)")]
    Rights {
        /// What was tried.
        what: String,
        /// The system's words.
        cause: io::Error,
    },
    /// Somebody else is tracing.
    #[error("{0}")]
    InUse(String),
    /// It does not work here.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// The system's words.
        cause: io::Error,
    },
    /// No way works.
    #[error("nothing can be recorded here. By tracefs: {tracefs}. By ioctl: {ioctl}")]
    NoWay {
        /// Why not by tracefs.
        tracefs: Box<CaptureError>,
        /// Why not by ioctl.
        ioctl: Box<CaptureError>,
    },
    /// What was recorded cannot be written.
    #[error("{path}: {cause}", path = .path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
}

/// A recording under way. What it changed is put back when it is dropped; [`Capture::stop`] tells
/// how it went.
#[derive(Debug)]
pub struct Capture {
    way: Way,
    calls: Option<Calls>,
    told: Vec<String>,
}

/// How a recording went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Events that the kernel's buffers could not hold.
    pub lost: u64,
    /// Calls of which it could not be found out any more what file they were on.
    pub unmarked: u64,
}

#[derive(Debug)]
enum Way {
    Tracefs(Box<ByTracefs>),
    Ioctl(Box<ByIoctl>),
}

impl CaptureError {
    /// The error of something that was tried.
    fn of(what: impl Into<String>, cause: io::Error) -> CaptureError {
        let what = what.into();
        match cause.kind() {
            // Under lockdown root is refused as well: then more rights do not help.
            io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => {
                CaptureError::Rights { what, cause }
            }
            _ => CaptureError::System { what, cause },
        }
    }
}

impl Capture {
    /// Begins to record a device, which may be a partition.
    ///
    /// # Errors
    /// When that is not possible by any way, or not by the one that was demanded. Then everything
    /// is as it was.
    pub fn start(device: &Traced, options: &Options) -> Result<Capture, CaptureError> {
        let mut told = Vec::new();
        // Calls first: the first request is not to come without its mark.
        let calls = if options.calls { Some(Calls::start(device, options.buffer_bytes, &mut told)?) } else { None };
        let tracefs = || ByTracefs::start(device, options.buffer_bytes).map(|way| Way::Tracefs(Box::new(way)));
        let ioctl = || ByIoctl::start(device, options.buffer_bytes).map(|way| Way::Ioctl(Box::new(way)));
        let way = match options.by {
            Some(By::Tracefs) => tracefs()?,
            Some(By::Ioctl) => ioctl()?,
            None => match tracefs() {
                Ok(way) => way,
                Err(first) => match ioctl() {
                    Ok(way) => {
                        told.push(format!("not by tracefs: {first}"));
                        way
                    }
                    Err(second) => {
                        return Err(CaptureError::NoWay { tracefs: Box::new(first), ioctl: Box::new(second) });
                    }
                },
            },
        };
        told.extend(match &way {
            Way::Tracefs(way) => way.told().to_vec(),
            Way::Ioctl(_) => Vec::new(),
        });
        Ok(Capture { way, calls, told })
    }

    /// By which interface it records.
    pub fn by(&self) -> By {
        match self.way {
            Way::Tracefs(_) => By::Tracefs,
            Way::Ioctl(_) => By::Ioctl,
        }
    }

    /// What should be known about it, as sentences.
    pub fn told(&self) -> &[String] {
        &self.told
    }

    /// Takes what the kernel has by now, and writes what is in order. It does not wait.
    ///
    /// # Errors
    /// When the kernel's files cannot be read, or the output cannot be written.
    pub fn take(&mut self, sink: &mut Sink) -> Result<(), CaptureError> {
        let complete_to_ns = self.read(sink)?;
        sink.write_until(complete_to_ns)
    }

    /// Stops, takes the rest and puts the machine's settings back. Answers how that went.
    ///
    /// # Errors
    /// As [`Capture::take`]; the settings are put back all the same.
    pub fn stop(mut self, sink: &mut Sink) -> Result<Stopped, CaptureError> {
        if let Some(calls) = &mut self.calls {
            calls.pause()?;
        }
        match &mut self.way {
            Way::Tracefs(way) => way.pause()?,
            Way::Ioctl(way) => way.pause()?,
        }
        // A round takes a bounded part of a full buffer.
        loop {
            let before = sink.taken();
            self.take(sink)?;
            if sink.taken() == before {
                break;
            }
        }
        sink.write_until(u64::MAX)?;
        let lost = match &mut self.way {
            Way::Tracefs(way) => {
                way.saved_names(sink);
                way.lost()?.max(sink.lost())
            }
            Way::Ioctl(way) => way.lost()?,
        };
        Ok(Stopped { lost, unmarked: self.calls.as_ref().map_or(0, Calls::unmarked) })
    }

    /// Reads; answers the time in ns before which nothing more will come.
    fn read(&mut self, sink: &mut Sink) -> Result<u64, CaptureError> {
        // Calls first: their processes may be gone in a moment.
        let calls_until_ns = match &mut self.calls {
            Some(calls) => calls.read(sink)?,
            None => u64::MAX,
        };
        let until_ns = match &mut self.way {
            Way::Tracefs(way) => way.read(sink)?,
            Way::Ioctl(way) => way.read(sink)?,
        };
        Ok(until_ns.min(calls_until_ns))
    }
}

/// The time of the clock that traces are recorded with, in ns.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What the time of the day is, in ns since 1970.
fn since_1970_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The name of a process that runs now, at most 15 bytes.
fn name_of(pid: u32) -> Option<String> {
    if pid == 0 {
        return Some("swapper".to_owned());
    }
    Some(ProcessFiles::new(&Root::machine(), pid).comm()).filter(|name| !name.is_empty())
}
