//! The process's own descriptors as `/proc` paths, through which an `O_PATH` descriptor is reopened
//! for I/O.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// `/proc/self/fd`. A name in it leads to exactly the open file, whatever happened to its path.
#[derive(Debug)]
pub(super) struct Descriptors(OwnedFd);

impl Descriptors {
    /// Opens the directory.
    ///
    /// # Errors
    /// The error of the system, for example if `/proc` is not mounted.
    pub(super) fn open() -> io::Result<Descriptors> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Descriptors(openat(CWD, c"/proc/self/fd", flags, Mode::empty())?))
    }

    /// Reopens the file of `fd` with other flags.
    pub(super) fn reopen(&self, fd: impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(openat(&self.0, name(&fd).as_c_str(), (flags | OFlags::CLOEXEC) - OFlags::NOFOLLOW, Mode::empty())?)
    }

    /// Calls `act` with the directory and the name of `fd` in it. The call must follow symbolic
    /// links.
    pub(super) fn with<T>(&self, fd: impl AsFd, act: impl FnOnce(&OwnedFd, &std::ffi::CStr) -> T) -> T {
        act(&self.0, name(&fd).as_c_str())
    }

    /// Returns the path of `fd`, for system calls without a directory argument.
    pub(super) fn path(&self, fd: impl AsFd) -> CString {
        CString::new(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).unwrap_or_default()
    }
}

fn name(fd: &impl AsFd) -> CString {
    CString::new(fd.as_fd().as_raw_fd().to_string()).unwrap_or_default()
}
