//! Captures the requests of a block device of this machine, in blktrace's binary format.
//!
//! ```text
//!  tracefs: per_cpu/cpuN/trace_pipe ─┐                           ┌─ one file, in the order of time
//!  or ioctl: debugfs' block/.../traceN ├─▶ whole records ─▶ Sink ─┤
//!  events of system calls (`--vfs`) ─┘     (and lost events)     └─ NAME.blktrace.N, a file a CPU
//! ```
//!
//! The tracer `blk` of tracefs works where blktrace does not: under lockdown, files of debugfs
//! cannot be opened. All changes of the machine's settings are journaled first and restored at the
//! end, also after a panic. After a kill, the next capture finds them ([`stale_captures`]).

mod blktrace_ioctl;
mod calls;
mod device;
mod ioctl_tracer;
mod pipes;
mod records;
mod settings;
mod sink;
mod tracefs_tracer;
mod tracing_files;

use std::io;
use std::path::PathBuf;

pub use device::TracedDevice;
pub use settings::{StaleCapture, stale_captures};
pub use sink::{Output, Sink, SinkSummary};

use hoistway_machine::{ProcessFiles, Root};

use calls::Calls;
use ioctl_tracer::IoctlTracer;
use tracefs_tracer::TracefsTracer;

/// The default memory for unread events, in bytes per CPU: 16 MiB.
pub const BUFFER_BYTES: u64 = 16 << 20;

/// An interface of the kernel for block traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// The tracer `blk` of tracefs.
    Tracefs,
    /// blktrace's ioctls and files in debugfs.
    Ioctl,
}

/// The options of a capture.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface; `None`: the first that works.
    pub by: Option<Interface>,
    /// The memory for unread events, in bytes per CPU.
    pub buffer_bytes: u64,
    /// Marks system calls on files of the device and on the device itself.
    pub calls: bool,
}

/// An error of a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The path names no device that can be traced.
    #[error("{path}: {what}", path = .path.display())]
    Device {
        /// The path as given.
        path: PathBuf,
        /// What is wrong with the device, and what is allowed.
        what: String,
    },
    /// The process lacks privileges.
    #[error("{what}: {cause}; recording needs root privileges (CAP_SYS_ADMIN)")]
    Rights {
        /// The failed action.
        what: String,
        /// The error of the system call.
        cause: io::Error,
    },
    /// Another tool is tracing.
    #[error("{0}")]
    InUse(String),
    /// The system does not support the action.
    #[error("{what}: {cause}")]
    System {
        /// The failed action.
        what: String,
        /// The error of the system call.
        cause: io::Error,
    },
    /// No interface works.
    #[error("nothing can be recorded here. By tracefs: {tracefs}. By ioctl: {ioctl}")]
    NoInterface {
        /// The error of tracefs.
        tracefs: Box<CaptureError>,
        /// The error of the ioctls.
        ioctl: Box<CaptureError>,
    },
    /// The output cannot be written.
    #[error("{path}: {cause}", path = .path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        cause: io::Error,
    },
}

/// A capture in progress. Dropping it restores the changed settings; [`Capture::stop`] also returns
/// its summary.
#[derive(Debug)]
pub struct Capture {
    tracer: Tracer,
    calls: Option<Calls>,
    notices: Vec<String>,
}

/// The summary of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Events that the kernel's buffers could not hold.
    pub lost: u64,
    /// System calls whose file could not be looked up in time.
    pub unmarked: u64,
}

#[derive(Debug)]
enum Tracer {
    Tracefs(Box<TracefsTracer>),
    Ioctl(Box<IoctlTracer>),
}

impl CaptureError {
    /// Creates the error of a failed action.
    fn of(what: impl Into<String>, cause: io::Error) -> CaptureError {
        let what = what.into();
        match cause.kind() {
            // Under lockdown root is refused too: more privileges do not help then.
            io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => {
                CaptureError::Rights { what, cause }
            }
            _ => CaptureError::System { what, cause },
        }
    }
}

impl Capture {
    /// Begins to capture a device, which may be a partition.
    ///
    /// # Errors
    /// No interface works, or the requested one does not. No setting is changed then.
    pub fn start(device: &TracedDevice, options: &Options) -> Result<Capture, CaptureError> {
        let mut notices = Vec::new();
        // The marks begin first, so that the first request has its mark.
        let calls = if options.calls { Some(Calls::start(device, options.buffer_bytes, &mut notices)?) } else { None };
        let tracefs =
            || TracefsTracer::start(device, options.buffer_bytes).map(|tracer| Tracer::Tracefs(Box::new(tracer)));
        let ioctl = || IoctlTracer::start(device, options.buffer_bytes).map(|tracer| Tracer::Ioctl(Box::new(tracer)));
        let tracer = match options.by {
            Some(Interface::Tracefs) => tracefs()?,
            Some(Interface::Ioctl) => ioctl()?,
            None => match tracefs() {
                Ok(tracer) => tracer,
                Err(first) => match ioctl() {
                    Ok(tracer) => {
                        notices.push(format!("not by tracefs: {first}"));
                        tracer
                    }
                    Err(second) => {
                        return Err(CaptureError::NoInterface { tracefs: Box::new(first), ioctl: Box::new(second) });
                    }
                },
            },
        };
        notices.extend(match &tracer {
            Tracer::Tracefs(tracer) => tracer.notices().to_vec(),
            Tracer::Ioctl(_) => Vec::new(),
        });
        Ok(Capture { tracer, calls, notices })
    }

    /// Returns the interface in use.
    pub fn interface(&self) -> Interface {
        match self.tracer {
            Tracer::Tracefs(_) => Interface::Tracefs,
            Tracer::Ioctl(_) => Interface::Ioctl,
        }
    }

    /// Returns notices for the user, as sentences.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Reads the available events without waiting, and writes those whose order is final.
    ///
    /// # Errors
    /// The kernel's files cannot be read, or the output cannot be written.
    pub fn drain(&mut self, sink: &mut Sink) -> Result<(), CaptureError> {
        let complete_to_ns = self.read(sink)?;
        sink.write_until(complete_to_ns)
    }

    /// Stops, reads the remaining events and restores the machine's settings.
    ///
    /// # Errors
    /// As for [`Capture::drain`]; the settings are restored in any case.
    pub fn stop(mut self, sink: &mut Sink) -> Result<CaptureSummary, CaptureError> {
        if let Some(calls) = &mut self.calls {
            calls.pause()?;
        }
        match &mut self.tracer {
            Tracer::Tracefs(tracer) => tracer.pause()?,
            Tracer::Ioctl(tracer) => tracer.pause()?,
        }
        // One round reads a bounded part of a full buffer.
        loop {
            let before = sink.taken();
            self.drain(sink)?;
            if sink.taken() == before {
                break;
            }
        }
        sink.write_until(u64::MAX)?;
        let lost = match &mut self.tracer {
            Tracer::Tracefs(tracer) => {
                tracer.saved_names(sink);
                tracer.lost()?.max(sink.lost())
            }
            Tracer::Ioctl(tracer) => tracer.lost()?,
        };
        Ok(CaptureSummary { lost, unmarked: self.calls.as_ref().map_or(0, Calls::unmarked) })
    }

    /// Reads events. Returns the time in ns before which all events have been read.
    fn read(&mut self, sink: &mut Sink) -> Result<u64, CaptureError> {
        // Calls first: their processes may end soon.
        let calls_until_ns = match &mut self.calls {
            Some(calls) => calls.read(sink)?,
            None => u64::MAX,
        };
        let until_ns = match &mut self.tracer {
            Tracer::Tracefs(tracer) => tracer.read(sink)?,
            Tracer::Ioctl(tracer) => tracer.read(sink)?,
        };
        Ok(until_ns.min(calls_until_ns))
    }
}

/// Returns the time of the clock of traces, in ns.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the wall-clock time in ns since 1970.
fn since_1970_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the name of a running process, at most 15 bytes.
fn name_of(pid: u32) -> Option<String> {
    if pid == 0 {
        return Some("swapper".to_owned());
    }
    Some(ProcessFiles::new(&Root::machine(), pid).comm()).filter(|name| !name.is_empty())
}
