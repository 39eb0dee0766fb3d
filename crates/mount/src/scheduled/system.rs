//! What a gate needs from the operating system besides the descriptors of open files: the clock,
//! threads, facts about processes, and write-back.
//!
//! With the feature `simulated`, a [`Host`](simulated::Host) that a thread has entered answers for
//! the system on that thread. Without it every function here is the system call.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::{fs::OpenOptions, io, os::unix::fs::OpenOptionsExt as _};

use rustix::fs::fstat;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::Backing;

#[cfg(feature = "simulated")]
pub mod simulated;

/// A deliberate fault of the gate. Simulated worlds have to find each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write-back error is not recorded.
    ErrorNotRecorded,
    /// A write-back error is recorded for another file.
    ErrorOfOtherFile,
    /// A write that waited for dirty memory is dropped.
    ThrottledWriteDropped,
    /// A chunk is written without its first page.
    ChunkRangeWrong,
    /// A write-back error `ENOSPC` is not recorded.
    SpaceErrorNotRecorded,
    /// The end of a chunk does not reduce the dirty bytes.
    ChunkStaysDirty,
    /// A sync does not wait for chunks that were dispatched before it.
    SyncIgnoresDispatchedChunks,
    /// The ranges of a sync that failed are no longer dirty.
    FailedSyncDropsRanges,
    /// The ranges that a cancelled sync awaited are no longer dirty.
    CancelledSyncDropsRanges,
    /// The dirty state of a removed file is kept.
    UnlinkKeepsDirtyBytes,
}

/// Returns true if the simulated host of this thread requests a fault.
#[inline]
pub(super) fn has_fault(fault: Fault) -> bool {
    #[cfg(feature = "simulated")]
    return simulated::host().is_some_and(|host| host.fault() == Some(fault));
    #[cfg(not(feature = "simulated"))]
    {
        let _ = fault;
        false
    }
}

/// Returns the time in ns on the clock of the devices.
#[inline]
pub(super) fn now_ns() -> u64 {
    #[cfg(feature = "simulated")]
    if let Some(host) = simulated::host() {
        return host.now_ns();
    }
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns true if a gate starts threads of its own. Otherwise the simulated host calls their
/// functions.
pub(super) fn has_threads() -> bool {
    #[cfg(feature = "simulated")]
    return simulated::host().is_none();
    #[cfg(not(feature = "simulated"))]
    true
}

/// Returns the maximum number of open descriptors of this process, which may change.
pub(super) fn descriptors_max() -> u64 {
    #[cfg(feature = "simulated")]
    if let Some(host) = simulated::host() {
        return host.descriptors_max();
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns the number of names of an open file, or `None` on an error.
pub(super) fn links(file: &Backing) -> Option<u64> {
    #[cfg(feature = "simulated")]
    if let Some(host) = simulated::host() {
        return Some(host.links(file.fd.as_raw_fd()));
    }
    #[allow(clippy::unnecessary_cast, reason = "the type differs between architectures")]
    fstat(file).ok().map(|status| status.st_nlink as u64)
}

/// Opens a second description of an open file.
pub(super) fn reopen(file: &Backing) -> Option<OwnedFd> {
    #[cfg(feature = "simulated")]
    if let Some(host) = simulated::host() {
        return host.reopen(file.fd.as_raw_fd());
    }
    let path = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    opened.ok().map(OwnedFd::from)
}

/// Has the kernel write a range of a file. With `waits`, returns when it is on the disk.
///
/// # Errors
/// The error of this write, or of an earlier write of the file that this description has not
/// reported.
pub(super) fn write_range(fd: &OwnedFd, (start, end): (u64, u64), waits: bool) -> io::Result<()> {
    #[cfg(feature = "simulated")]
    if let Some(host) = simulated::host() {
        return host.write_range(fd.as_raw_fd(), (start, end), waits);
    }
    let mut flags = libc::SYNC_FILE_RANGE_WRITE;
    if waits {
        flags |= libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    }
    // SAFETY: the arguments are integers, and the descriptor is open.
    match unsafe {
        libc::sync_file_range(fd.as_raw_fd(), start as libc::off64_t, (end - start) as libc::off64_t, flags)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
