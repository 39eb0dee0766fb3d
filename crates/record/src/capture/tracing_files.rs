//! The kernel's tracing file systems, mounted or not.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::CaptureError;

/// A file system of the kernel: tracefs or debugfs.
#[derive(Debug)]
pub(super) struct KernelFiles {
    root: PathBuf,
    /// A private mount without a path, which ends with this value.
    _mount: Option<OwnedFd>,
}

impl KernelFiles {
    /// Opens tracefs where it is mounted, or mounts it for this process alone, without a path.
    ///
    /// # Errors
    /// tracefs is not mounted and cannot be mounted.
    pub fn tracefs() -> Result<KernelFiles, CaptureError> {
        KernelFiles::of("tracefs", &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"], "current_tracer")
    }

    /// Opens debugfs in the same way.
    ///
    /// # Errors
    /// debugfs is not mounted and cannot be mounted.
    pub fn debugfs() -> Result<KernelFiles, CaptureError> {
        KernelFiles::of("debugfs", &["/sys/kernel/debug"], "block")
    }

    fn of(kind: &str, places: &[&str], sign: &str) -> Result<KernelFiles, CaptureError> {
        if let Some(place) = places.iter().find(|place| Path::new(place).join(sign).exists()) {
            return Ok(KernelFiles { root: PathBuf::from(place), _mount: None });
        }
        let mount = mount(kind).map_err(|cause| {
            let place = places.first().unwrap_or(&"/mnt");
            CaptureError::of(
                format!("{kind} is not mounted and cannot be mounted (mount -t {kind} {kind} {place})"),
                cause,
            )
        })?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        if !root.join(sign).exists() {
            let cause = io::Error::new(io::ErrorKind::NotFound, format!("there is no {sign} in it"));
            return Err(CaptureError::of(format!("{kind} was mounted"), cause));
        }
        Ok(KernelFiles { root, _mount: Some(mount) })
    }

    /// Returns the path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the contents of a file without surrounding white space.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, name: &str) -> Result<String, CaptureError> {
        let text = fs::read_to_string(self.path(name)).map_err(|cause| CaptureError::of(name, cause))?;
        Ok(text.trim().to_owned())
    }

    /// Opens an event file for reads that never block.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_pipe(&self, name: &str) -> Result<File, CaptureError> {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.path(name));
        opened.map_err(|cause| CaptureError::of(name, cause))
    }

    /// Lists the CPUs that have a buffer in a directory of tracefs (`""` for the main one).
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn cpus(&self, instance: &str) -> Result<Vec<u32>, CaptureError> {
        let directory = self.path(instance).join("per_cpu");
        let entries = fs::read_dir(directory).map_err(|cause| CaptureError::of("per_cpu", cause))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut cpus: Vec<u32> = names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

/// Creates a mount that is reachable only by the descriptor (Linux 5.2).
fn mount(kind: &str) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}
