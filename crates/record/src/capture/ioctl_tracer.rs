//! Captures by blktrace's ioctls and the files that they create in debugfs.
//!
//! Under lockdown these files cannot be opened, even by root; the tracefs tracer works there.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::CaptureError;
use super::blktrace_ioctl::{self, START, STOP, Setup};
use super::device::TracedDevice;
use super::pipes::{Pipe, take_records};
use super::settings::Settings;
use super::sink::Sink;
use super::tracing_files::KernelFiles;

/// The size of a sub-buffer in bytes, which the kernel passes on as a whole.
const PART_BYTES: u32 = 512 << 10;

/// A capture by ioctl.
#[derive(Debug)]
pub(super) struct IoctlTracer {
    cpus: Vec<Pipe>,
    /// The file with the kernel's count of dropped events.
    dropped: PathBuf,
    files: KernelFiles,
    tracing: File,
    settings: Settings,
    paused: bool,
}

impl IoctlTracer {
    pub fn start(device: &TracedDevice, buffer_bytes: u64) -> Result<IoctlTracer, CaptureError> {
        let node = Path::new("/dev").join(&device.name);
        let node = if node.exists() { node } else { device.path.clone() };
        let tracing = File::open(&node).map_err(|cause| CaptureError::of(node.display().to_string(), cause))?;
        let files = KernelFiles::debugfs()?;
        let mut settings = Settings::new("ioctl")?;
        let mut setup = Setup {
            name: [0; 32],
            action_mask: u16::MAX,
            part_bytes: PART_BYTES,
            parts: u32::try_from(buffer_bytes.div_ceil(PART_BYTES.into())).unwrap_or(u32::MAX).clamp(2, 4096),
            start_sector: 0,
            end_sector: u64::MAX,
            pid: 0,
        };
        if let Err(cause) = blktrace_ioctl::set_up(&tracing, &mut setup) {
            return Err(match cause.raw_os_error() {
                Some(libc::EBUSY) => CaptureError::InUse(format!(
                    "{} is already being traced; `blktrace -k -d {}` ends it",
                    device.name,
                    node.display()
                )),
                _ => CaptureError::of(format!("{}: BLKTRACESETUP", node.display()), cause),
            });
        }
        // Noted only now: the setup of another process must not be torn down.
        let journaled = settings.note_setup(&node);
        let directory = format!("block/{}", device.name);
        let mut recording = IoctlTracer {
            cpus: Vec::new(),
            dropped: files.path(&format!("{directory}/dropped")),
            files,
            tracing,
            settings,
            paused: true,
        };
        journaled?;
        recording.open(&directory)?;
        recording.call(START, "BLKTRACESTART")?;
        recording.paused = false;
        Ok(recording)
    }

    /// Reads the available events of each CPU. Returns the time in ns before which all events have
    /// been read.
    pub fn read(&mut self, sink: &mut Sink) -> Result<u64, CaptureError> {
        take_records(self.cpus.iter_mut(), sink)
    }

    /// Stops the tracing of further events.
    pub fn pause(&mut self) -> Result<(), CaptureError> {
        self.paused = true;
        self.call(STOP, "BLKTRACESTOP")
    }

    /// Returns the number of events that the buffers could not hold.
    pub fn lost(&self) -> Result<u64, CaptureError> {
        let text = std::fs::read_to_string(&self.dropped);
        let text = text.map_err(|cause| CaptureError::of(self.dropped.display().to_string(), cause))?;
        Ok(text.trim().parse().unwrap_or(0))
    }

    /// Opens the trace files of the CPUs.
    fn open(&mut self, directory: &str) -> Result<(), CaptureError> {
        let mut number = 0;
        let at = self.files.path(directory);
        let entries = std::fs::read_dir(&at).map_err(|cause| CaptureError::of(at.display().to_string(), cause))?;
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        for name in names.iter().filter(|name| name.starts_with("trace")) {
            let pipe = self.files.open_pipe(&format!("{directory}/{name}")).map_err(refused)?;
            number = name.trim_start_matches("trace").parse().unwrap_or(number);
            self.cpus.push(Pipe::new(number, pipe));
        }
        if self.cpus.is_empty() {
            let cause = io::Error::new(io::ErrorKind::NotFound, "no CPU has a trace file");
            return Err(CaptureError::of(at.display().to_string(), cause));
        }
        Ok(())
    }

    fn call(&self, number: libc::c_ulong, name: &str) -> Result<(), CaptureError> {
        blktrace_ioctl::call(&self.tracing, number).map_err(|cause| CaptureError::of(name, cause))
    }
}

impl Drop for IoctlTracer {
    /// Stops the tracing. The settings, which are dropped next, tear it down.
    fn drop(&mut self) {
        self.cpus.clear();
        if !self.paused {
            let _ = self.pause();
        }
        tracing::debug!(settings = ?self.settings, "the capture ends");
    }
}

/// Adds the likely reason to an error: under lockdown root may not open files of debugfs.
fn refused(error: CaptureError) -> CaptureError {
    match error {
        CaptureError::System { what, cause } if cause.kind() == io::ErrorKind::PermissionDenied => {
            let what = format!("debugfs' {what} (a kernel under lockdown refuses it; --by tracefs works there)");
            CaptureError::System { what, cause }
        }
        other => other,
    }
}
