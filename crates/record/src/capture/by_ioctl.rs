//! By blktrace's own ioctls, and the files in debugfs that they make.
//!
//! Under lockdown those files cannot be opened, even by root; `ByTracefs` works there.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::CaptureError;
use super::device::Traced;
use super::pipes::{Pipe, take_records};
use super::settings::Settings;
use super::sink::Sink;
use super::tracing_files::KernelFiles;

/// A part of the buffer, in bytes: what the kernel hands over at once.
const PART_BYTES: u32 = 512 << 10;
/// `_IOWR(0x12, 115, struct blk_user_trace_setup)` of 72 bytes, and `_IO(0x12, 116..=118)`: the
/// kernel's user interface.
const SETUP: libc::c_ulong = 0xc048_1273;
const START: libc::c_ulong = 0x1274;
const STOP: libc::c_ulong = 0x1275;
const TEARDOWN: libc::c_ulong = 0x1276;

/// `struct blk_user_trace_setup` of `linux/blktrace_api.h`.
#[repr(C)]
struct Setup {
    /// What the kernel calls the device: it fills this in.
    name: [u8; 32],
    action_mask: u16,
    part_bytes: u32,
    parts: u32,
    start_sector: u64,
    end_sector: u64,
    pid: u32,
}

const _: () = assert!(size_of::<Setup>() == 72);

/// A recording by ioctl.
#[derive(Debug)]
pub(super) struct ByIoctl {
    cpus: Vec<Pipe>,
    /// The kernel's count of events that found no room.
    dropped: PathBuf,
    files: KernelFiles,
    tracing: File,
    settings: Settings,
    paused: bool,
}

impl ByIoctl {
    pub fn start(device: &Traced, buffer_bytes: u64) -> Result<ByIoctl, CaptureError> {
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
        // SAFETY: the kernel reads and writes the struct, whose layout is its own, and keeps no
        // pointer.
        let failed = unsafe { libc::ioctl(tracing.as_raw_fd(), SETUP as _, &raw mut setup) } != 0;
        if failed {
            let cause = io::Error::last_os_error();
            return Err(match cause.raw_os_error() {
                Some(libc::EBUSY) => CaptureError::InUse(format!(
                    "{} is being traced already; `blktrace -k -d {}` ends that",
                    device.name,
                    node.display()
                )),
                _ => CaptureError::of(format!("{}: BLKTRACESETUP", node.display()), cause),
            });
        }
        // Only now: what somebody else has set up is not ours to tear down.
        let noted = settings.will_setup(&node);
        let directory = format!("block/{}", device.name);
        let mut recording = ByIoctl {
            cpus: Vec::new(),
            dropped: files.path(&format!("{directory}/dropped")),
            files,
            tracing,
            settings,
            paused: true,
        };
        noted?;
        recording.open(&directory)?;
        recording.call(START, "BLKTRACESTART")?;
        recording.paused = false;
        Ok(recording)
    }

    /// Reads what is there of each CPU; answers the time before which nothing more will come.
    pub fn read(&mut self, sink: &mut Sink) -> Result<u64, CaptureError> {
        take_records(self.cpus.iter_mut(), sink)
    }

    /// Ends the recording of further events.
    pub fn pause(&mut self) -> Result<(), CaptureError> {
        self.paused = true;
        self.call(STOP, "BLKTRACESTOP")
    }

    /// Events that the buffers could not hold.
    pub fn lost(&self) -> Result<u64, CaptureError> {
        let text = std::fs::read_to_string(&self.dropped);
        let text = text.map_err(|cause| CaptureError::of(self.dropped.display().to_string(), cause))?;
        Ok(text.trim().parse().unwrap_or(0))
    }

    /// Opens the files of the CPUs.
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
            let cause = io::Error::new(io::ErrorKind::NotFound, "there is no file of a CPU");
            return Err(CaptureError::of(at.display().to_string(), cause));
        }
        Ok(())
    }

    fn call(&self, number: libc::c_ulong, name: &str) -> Result<(), CaptureError> {
        call(&self.tracing, number).map_err(|cause| CaptureError::of(name, cause))
    }
}

impl Drop for ByIoctl {
    /// The settings tear it down; it has to be stopped before.
    fn drop(&mut self) {
        self.cpus.clear();
        if !self.paused {
            let _ = self.pause();
        }
        tracing::debug!(settings = ?self.settings, "the recording ends");
    }
}

/// Root may open any file but those of debugfs in a kernel that is locked down.
fn refused(error: CaptureError) -> CaptureError {
    match error {
        CaptureError::System { what, cause } if cause.kind() == io::ErrorKind::PermissionDenied => {
            let what =
                format!("debugfs' {what} (a kernel under lockdown lets nobody open it; --by tracefs works there)");
            CaptureError::System { what, cause }
        }
        other => other,
    }
}

/// Ends the tracing of a device, if there is any.
pub(super) fn tear_down(device: &Path) -> io::Result<()> {
    let file = match File::open(device) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    for number in [STOP, TEARDOWN] {
        match call(&file, number) {
            // It is not being traced, or is stopped.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            other => other?,
        }
    }
    Ok(())
}

fn call(device: &File, number: libc::c_ulong) -> io::Result<()> {
    // SAFETY: calls with a number alone.
    if unsafe { libc::ioctl(device.as_raw_fd(), number as _) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
