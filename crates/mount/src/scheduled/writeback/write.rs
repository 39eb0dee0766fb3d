//! Writing a dirty range to the disk.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use super::table::ChunkWrite;
use crate::Backing;

impl ChunkWrite {
    /// Has the kernel write the range, and waits until it is on the disk.
    ///
    /// # Errors
    /// The error of this write, or of an earlier write of the file that this descriptor has not
    /// reported.
    pub fn write(&self) -> io::Result<()> {
        const WRITE: libc::c_uint = libc::SYNC_FILE_RANGE_WRITE;
        const ALL: libc::c_uint =
            libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // The kernel reports a write-back error once per open file description, to any call that
        // waits. Waiting on a second description keeps the error for the fsync calls of the
        // handles. If the file was closed, no handle can lose a report.
        let second = self.second_descriptor.as_ref().map(|second| second.get_or_init(|| reopen(&self.backing)));
        let (fd, flags) = match second {
            Some(Some(second)) => (second.as_raw_fd(), ALL),
            Some(None) => (self.backing.fd.as_raw_fd(), WRITE),
            None => (self.backing.fd.as_raw_fd(), ALL),
        };
        let (offset, bytes) = (self.start as libc::off64_t, (self.end - self.start) as libc::off64_t);
        // SAFETY: the arguments are integers, and the descriptor is open.
        match unsafe { libc::sync_file_range(fd, offset, bytes, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Opens a second description of the same file.
fn reopen(file: &Backing) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    opened.ok().map(OwnedFd::from)
}
