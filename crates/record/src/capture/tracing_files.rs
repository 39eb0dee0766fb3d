//! The kernel's tracing files, wherever they are mounted, or nowhere.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::CaptureError;

/// A file system of the kernel's: tracefs or debugfs.
#[derive(Debug)]
pub(super) struct KernelFiles {
    root: PathBuf,
    /// A mount of our own that lies nowhere and is gone when this is.
    _mount: Option<OwnedFd>,
}

impl KernelFiles {
    /// tracefs: where it is mounted already, or mounted for this process alone, at no place.
    ///
    /// # Errors
    /// When it is not there and cannot be mounted.
    pub fn tracefs() -> Result<KernelFiles, CaptureError> {
        KernelFiles::of("tracefs", &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"], "current_tracer")
    }

    /// The same of debugfs.
    ///
    /// # Errors
    /// The same.
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

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What a file says, without white space around it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, name: &str) -> Result<String, CaptureError> {
        let text = fs::read_to_string(self.path(name)).map_err(|cause| CaptureError::of(name, cause))?;
        Ok(text.trim().to_owned())
    }

    /// Opens a file that events are read from, without ever waiting for one.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open_pipe(&self, name: &str) -> Result<File, CaptureError> {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.path(name));
        opened.map_err(|cause| CaptureError::of(name, cause))
    }

    /// The CPUs of which there are buffers, in a directory of tracefs (`""` for the main one).
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn cpus(&self, instance: &str) -> Result<Vec<u32>, CaptureError> {
        let directory = self.path(instance).join("per_cpu");
        let entries = fs::read_dir(directory).map_err(|cause| CaptureError::of("per_cpu", cause))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut cpus: Vec<u32> = names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

/// A mount that no path leads to but this descriptor (Linux 5.2).
fn mount(kind: &str) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}
