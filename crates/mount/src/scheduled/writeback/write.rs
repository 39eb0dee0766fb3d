//! How a part of a file comes to the disk.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use super::table::Going;
use crate::Backing;

impl Going {
    /// Has the kernel write it, and waits until the disk has it.
    ///
    /// # Errors
    /// What the kernel says of it, or of an earlier write of the file of which it has told nobody yet.
    pub fn write(&self) -> io::Result<()> {
        const WRITE: libc::c_uint = libc::SYNC_FILE_RANGE_WRITE;
        const ALL: libc::c_uint =
            libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // Whoever waits for a range is told of an error, and the kernel tells it once each time that the file was opened. So this waits by a descriptor of its
        // own: those who have the file open are still told by fsync.
        let own = self.own.get_or_init(|| reopened(&self.backing));
        let (fd, flags) = match own {
            Some(own) => (own.as_raw_fd(), ALL),
            None => (self.backing.fd.as_raw_fd(), WRITE),
        };
        let (offset, bytes) = (self.start as libc::off64_t, (self.end - self.start) as libc::off64_t);
        // SAFETY: a call with numbers alone, on a descriptor that is open.
        match unsafe { libc::sync_file_range(fd, offset, bytes, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The same file, opened once more.
fn reopened(file: &Backing) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    opened.ok().map(OwnedFd::from)
}
