//! Releasing memory of an idle mount.
//!
//! Under load the mount takes memory for inodes that the kernel caches, for data in transfer and
//! for the most requests at once. A thread releases it when the mount is idle. At intervals it also
//! releases file systems below of which no inode is known any more.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fspick};
use rustix::time::{ClockId, clock_gettime};

use super::FsState;
use super::fs_mounts::{FileId, stat_fd};
use crate::buffer::free_spare_buffers;
use crate::gate::Gate;
use crate::memory::trim_heap;

/// CPU time of this process in an interval up to which the mount is idle, as a fraction of the
/// interval: 1 %.
const IDLE_PART: u32 = 100;
/// CPU time of this process after which memory is released again: 100 ms, some thousand requests.
const ACTIVE: Duration = Duration::from_millis(100);
/// Number of inodes that an idle mount keeps. Each takes 150 to 400 bytes here, and the kernel's
/// inode a kilobyte.
const INODES_KEPT: u64 = 65_536;
/// Interval between two checks whether the kernel still evicts inodes.
const EVICTION_INTERVAL: Duration = Duration::from_millis(50);

/// Starts the thread that releases memory. It ends with the file system.
pub(super) fn start<G: Gate>(fs: &Arc<FsState<G>>, mount_point: &Path) {
    let interval = fs.options.idle;
    let (weak, mount_point) = (Arc::downgrade(fs), mount_point.to_owned());
    let run = move || {
        let mut before = cpu_time();
        let mut released = before;
        loop {
            thread::sleep(interval);
            let Some(fs) = weak.upgrade() else { return };
            fs.nodes.fs_mounts.release_all_unused();
            fs.nodes.age_recent();
            let now = cpu_time();
            let is_idle = now.saturating_sub(before) < interval / IDLE_PART;
            before = now;
            if is_idle && now.saturating_sub(released) >= ACTIVE {
                fs.release_memory(&mount_point);
                before = cpu_time();
                released = before;
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("mount-idle".into()).spawn(run) {
        tracing::warn!("the mount will not release memory when it is idle: {error}");
    }
}

impl<G: Gate> FsState<G> {
    /// Releases memory that only an active mount needs.
    fn release_memory(&self, mount_point: &Path) {
        if self.nodes.counts().0 > INODES_KEPT {
            match evict_unused_inodes(mount_point, self.own_device.load(Ordering::Relaxed)) {
                Ok(()) => self.wait_for_eviction(),
                // Only root may do so.
                Err(error) => tracing::debug!("the kernel keeps the inodes of the idle mount: {error}"),
            }
        }
        self.nodes.shrink();
        self.open_files.shrink();
        self.open_directories.shrink();
        free_spare_buffers();
        self.gate.release_memory();
        trim_heap();
        tracing::debug!(inodes = self.nodes.counts().0, "memory of the idle mount was released");
    }

    /// Waits while the kernel reports inodes that it has evicted.
    fn wait_for_eviction(&self) {
        let mut known = self.nodes.counts().0;
        loop {
            thread::sleep(EVICTION_INTERVAL);
            let now = self.nodes.counts().0;
            if now >= known {
                return;
            }
            known = now;
        }
    }
}

/// Has the kernel evict the inodes of the mount that no process uses. It does so when a mount is
/// reconfigured; this reconfiguration changes nothing.
fn evict_unused_inodes(mount_point: &Path, device: u64) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(CWD, mount_point, flags, Mode::empty())?;
    if FileId::of(&stat_fd(&root)?).device != device {
        return Err(io::Error::other("another file system is mounted over it"));
    }
    let context = fspick(&root, c"", FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_CLOEXEC)?;
    Ok(fsconfig_reconfigure(&context)?)
}

/// Returns the CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
