//! This process's own descriptors as paths: how one that only knows a file (`O_PATH`) becomes one that can read it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// `/proc/self/fd`. Names in it lead to exactly what is open, whatever happened to its path: no link can be put in the way.
#[derive(Debug)]
pub(super) struct Descriptors(OwnedFd);

impl Descriptors {
    /// Opens the directory.
    ///
    /// # Errors
    /// What the system says, where `/proc` is not mounted.
    pub(super) fn open() -> io::Result<Descriptors> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Descriptors(openat(CWD, c"/proc/self/fd", flags, Mode::empty())?))
    }

    /// Opens once more what `fd` is.
    pub(super) fn reopen(&self, fd: impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(openat(&self.0, name(&fd).as_c_str(), (flags | OFlags::CLOEXEC) - OFlags::NOFOLLOW, Mode::empty())?)
    }

    /// Does something to the name of `fd` in this directory; it has to follow links.
    pub(super) fn with<T>(&self, fd: impl AsFd, act: impl FnOnce(&OwnedFd, &std::ffi::CStr) -> T) -> T {
        act(&self.0, name(&fd).as_c_str())
    }

    /// The same as a path, for calls that take no directory.
    pub(super) fn path(&self, fd: impl AsFd) -> CString {
        CString::new(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).unwrap_or_default()
    }
}

fn name(fd: &impl AsFd) -> CString {
    CString::new(fd.as_fd().as_raw_fd().to_string()).unwrap_or_default()
}
