//! A FUSE session: mounting, serving and unmounting.

mod error;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use hoistway_machine::{Root, mounts};
use rustix::fs::{CWD, Mode, OFlags, StatVfs, StatVfsMountFlags, fstatvfs, openat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

pub use self::error::{MountError, UnmountError};
use crate::gate::Gate;
use crate::passthrough::{Counts, Options, Passthrough, SessionHooks, drop_cap_sys_resource};

/// The file system type of these mounts in `/proc/mounts`.
pub const FILE_SYSTEM: &str = "fuse.hoistway";

/// Interval between two attempts to unmount a busy mount.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum number of session threads: one receives requests while another carries one out.
const THREADS_MIN: usize = 2;
/// Default read-ahead in bytes: several requests of the largest size, so that the elevator has one
/// to choose while another is in flight. With a single request in flight a sequential reader's
/// queue would be empty after each completion, and its time slice would pass idle.
const READ_AHEAD: u32 = 4 << 20;
/// Time that the session threads get to end after an unmount of a mount that was not busy. More
/// than a moment is needed only on a loaded machine, or if another mount namespace has a copy of
/// the mount.
const CLEAN_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that the session threads get to end after a lazy unmount.
const DETACHED_TIMEOUT: Duration = Duration::from_millis(500);
/// Time before a lazy unmount at which syncfs(2) is called once more on the mount.
const FINAL_SYNC: Duration = Duration::from_secs(1);

/// The users who may access a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Users {
    /// Only the user who mounted.
    #[default]
    Owner,
    /// All users, subject to the permissions of the files. Without root this requires
    /// `user_allow_other` in `/etc/fuse.conf`.
    All,
}

/// Options of a mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// The users who may access the mount.
    pub users: Users,
    /// Number of session threads, at least 2.
    pub threads: usize,
    /// Gives each thread a FUSE device descriptor and so a request queue of its own.
    pub clone_fd: bool,
    /// Mounts read-only.
    pub read_only: bool,
    /// Unmounts a dead hoistway mount at the same mount point first.
    pub clean: bool,
    /// Read-ahead of the kernel in bytes. More than the kernel's default requires root.
    pub read_ahead: u32,
}

impl Default for MountOptions {
    fn default() -> MountOptions {
        let processors = thread::available_parallelism().map_or(4, usize::from);
        MountOptions {
            users: Users::Owner,
            threads: (2 * processors).clamp(4, 32),
            clone_fd: true,
            read_only: false,
            clean: false,
            read_ahead: READ_AHEAD,
        }
    }
}

/// A mounted directory. Dropping the session unmounts at once, lazily if the mount is in use.
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    mount_point: PathBuf,
    fuse: Mutex<Option<BackgroundSession>>,
    counts: Box<dyn Fn() -> Counts + Send + Sync>,
    connection: Option<u64>,
}

/// The way in which a mount ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// The mount was idle and is gone.
    Clean,
    /// The mount was in use and was detached (lazy unmount). Open files remain usable while this
    /// process runs.
    Detached,
}

/// A handle that unmounts from any thread, for example on a signal.
#[derive(Clone)]
pub struct Unmounter(Arc<Shared>);

impl Session {
    /// Mounts `source` at `mount_point` with all requests scheduled by `gate`.
    ///
    /// # Errors
    /// A [`MountError`] that names the obstacle. Nothing stays mounted then.
    pub fn mount<G: Gate>(
        source: &Path,
        mount_point: &Path,
        gate: Arc<G>,
        options: Options,
        mount_options: &MountOptions,
    ) -> Result<Session, MountError> {
        let source_fd = open_source(source)?;
        let mount_point = check_mount_point(source, &source_fd, mount_point, mount_options.clean)?;
        let flags =
            fstatvfs(&source_fd).map_err(|error| MountError::Source { path: source.into(), error: error.into() })?;
        gate.set_session_threads(mount_options.threads.max(THREADS_MIN));
        let passthrough = Passthrough::new(source_fd, gate, options)
            .map_err(|error| MountError::Source { path: source.into(), error })?;
        let hooks = passthrough.session_hooks();
        let fuse = start_session(passthrough, &mount_point, &flags, mount_options)?;
        Ok(Session::started(fuse, hooks, mount_point, mount_options))
    }

    /// Completes the start of a session: passes the notifier and device to the file system, and
    /// sets the read-ahead.
    fn started(
        fuse: BackgroundSession,
        hooks: SessionHooks,
        mount_point: PathBuf,
        mount_options: &MountOptions,
    ) -> Session {
        let device = fs::metadata(&mount_point).map(|metadata| metadata.dev()).ok();
        (hooks.start)(fuse.notifier(), device.unwrap_or(u64::MAX), &mount_point);
        if let Some(device) = device {
            set_read_ahead(device, mount_options.read_ahead);
        }
        let shared = Arc::new(Shared {
            mount_point,
            fuse: Mutex::new(Some(fuse)),
            counts: hooks.counts,
            connection: device.map(|device| u64::from(rustix::fs::minor(device))),
        });
        Session { shared }
    }

    /// Returns the absolute path of the mount point.
    pub fn mount_point(&self) -> &Path {
        &self.shared.mount_point
    }

    /// Returns current statistics.
    pub fn counts(&self) -> Counts {
        (self.shared.counts)()
    }

    /// Returns a handle that can unmount while another thread is in [`Session::wait`].
    pub fn unmounter(&self) -> Unmounter {
        Unmounter(self.shared.clone())
    }

    /// Blocks until the mount is gone, whether this process or another (`umount`) unmounted.
    ///
    /// # Errors
    /// The error that ended the session, if the cause was not an unmount.
    pub fn wait(&self) -> io::Result<()> {
        self.shared.wait()
    }

    /// Unmounts as [`Unmounter::unmount`] does.
    ///
    /// # Errors
    /// See [`Unmounter::unmount`].
    pub fn unmount(self, grace: Duration) -> Result<Unmounted, UnmountError> {
        self.unmounter().unmount(grace)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Err(error) = Unmounter(self.shared.clone()).unmount(Duration::ZERO) {
            tracing::warn!("{error}");
        }
    }
}

impl Unmounter {
    /// Unmounts. A busy mount is retried for `grace` while syncfs(2) writes out dirty pages of the
    /// mount; after that the mount is detached (lazy unmount). With no grace the sync gets one
    /// second.
    ///
    /// # Errors
    /// [`UnmountError`] if the system refuses; the mount is still in place then.
    pub fn unmount(&self, grace: Duration) -> Result<Unmounted, UnmountError> {
        let shared = &self.0;
        let now = Instant::now();
        let mut retry =
            BusyRetry { deadline: now + grace, running_sync: None, is_final_sync: false, sync_deadline: now };
        let timeout = loop {
            if shared.has_ended_within(RETRY_INTERVAL.min(grace)) {
                return Ok(Unmounted::Clean);
            }
            match unmount_at(&shared.mount_point, false) {
                Ok(()) => break CLEAN_TIMEOUT,
                Err(Errno::BUSY) if retry.should_retry(&shared.mount_point) => thread::sleep(RETRY_INTERVAL),
                Err(Errno::BUSY) => {
                    unmount_at(&shared.mount_point, true)
                        .map_err(|error| UnmountError::new(&shared.mount_point, error))?;
                    break DETACHED_TIMEOUT;
                }
                // Another process has unmounted already, perhaps lazily.
                Err(Errno::INVAL | Errno::NOENT) => break DETACHED_TIMEOUT,
                Err(error) => return Err(UnmountError::new(&shared.mount_point, error)),
            }
        };
        if shared.has_ended_within(timeout) {
            return Ok(Unmounted::Clean);
        }
        // A drop would unmount the path again, where another file system may be mounted by then.
        std::mem::forget(shared.fuse.lock().unwrap_or_else(PoisonError::into_inner).take());
        Ok(Unmounted::Detached)
    }

    /// Aborts the FUSE connection: pending requests and open files return errors. Requires root.
    ///
    /// # Errors
    /// An error of the FUSE control file system, most often because it is not mounted
    /// (`/sys/fs/fuse/connections`).
    pub fn abort(&self) -> io::Result<()> {
        let Some(connection) = self.0.connection else { return Err(Errno::NOENT.into()) };
        fs::write(format!("/sys/fs/fuse/connections/{connection}/abort"), "1")
    }
}

/// The state of an unmount that meets a busy mount.
struct BusyRetry {
    /// Time of the lazy unmount.
    deadline: Instant,
    /// Receives a message when the running syncfs(2) has ended.
    running_sync: Option<mpsc::Receiver<()>>,
    /// True once the final sync, shortly before the lazy unmount, was started.
    is_final_sync: bool,
    /// Time until which the running sync is waited for, whatever the grace.
    sync_deadline: Instant,
}

impl BusyRetry {
    /// Returns true if the unmount is to be retried. The end of the mount would discard dirty pages
    /// above it: a sync starts at once, since it may take long, and again shortly before the end,
    /// when little is left to write.
    fn should_retry(&mut self, mount_point: &Path) -> bool {
        let now = Instant::now();
        let is_written = self
            .running_sync
            .as_ref()
            .is_none_or(|running_sync| running_sync.try_recv() != Err(mpsc::TryRecvError::Empty));
        let is_late = now + FINAL_SYNC >= self.deadline;
        if self.running_sync.is_none() || (is_written && is_late && !self.is_final_sync) {
            self.running_sync = Some(sync_mount(mount_point));
            self.is_final_sync = is_late;
            self.sync_deadline = now + FINAL_SYNC;
            return true;
        }
        if is_written || now < self.deadline.max(self.sync_deadline) {
            return !is_written || now < self.deadline;
        }
        tracing::warn!("not all dirty pages of the mount were written before it was detached");
        false
    }
}

/// Starts syncfs(2) on the mount in a thread of its own. The receiver gets a message at its end.
fn sync_mount(mount_point: &Path) -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    let path = mount_point.to_owned();
    let written = move || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = rustix::fs::open(&path, flags, Mode::empty()).and_then(|directory| rustix::fs::syncfs(&directory));
        if let Err(error) = synced {
            tracing::warn!("dirty pages of {} may be lost: {error}", path.display());
        }
        // After the timeout the receiver no longer exists.
        let _ = sender.send(());
    };
    if let Err(error) = thread::Builder::new().name("mount-sync".into()).spawn(written) {
        tracing::warn!("dirty pages of {} may be lost: {error}", mount_point.display());
    }
    receiver
}

impl Shared {
    /// Returns true if the session threads end within `within`.
    fn has_ended_within(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        loop {
            let fuse = self.fuse.lock().unwrap_or_else(PoisonError::into_inner);
            if fuse.as_ref().is_none_or(|fuse| fuse.guard.is_finished()) {
                return true;
            }
            drop(fuse);
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn wait(&self) -> io::Result<()> {
        loop {
            let mut fuse = self.fuse.lock().unwrap_or_else(PoisonError::into_inner);
            if fuse.as_ref().is_none_or(|fuse| fuse.guard.is_finished()) {
                return fuse.take().map_or(Ok(()), BackgroundSession::join);
            }
            drop(fuse);
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn open_source(path: &Path) -> Result<OwnedFd, MountError> {
    let failed = |error: Errno| match error {
        Errno::NOTDIR if path.exists() => MountError::SourceNotDirectory(path.into()),
        error => MountError::Source { path: path.into(), error: error.into() },
    };
    // The first open checks the permission to read.
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags | OFlags::RDONLY, Mode::empty()).map_err(failed)?;
    openat(CWD, path, flags | OFlags::PATH, Mode::empty()).map_err(failed)
}

/// Checks that `path` can be a mount point for `source`, and returns its canonical path.
fn check_mount_point(source: &Path, source_fd: &OwnedFd, path: &Path, clean: bool) -> Result<PathBuf, MountError> {
    let failed = |error: io::Error| MountError::MountPoint { path: path.into(), error };
    // The kernel may cache the attributes of a dead mount for a while, but not its statfs(2)
    // result.
    if matches!(rustix::fs::statvfs(path), Err(Errno::NOTCONN)) {
        remove_dead_mount(path, clean)?;
    }
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_dir() {
        return Err(MountError::MountPointNotDirectory(path.into()));
    }
    let mount_point = fs::canonicalize(path).map_err(failed)?;
    let source_path = fs::canonicalize(source).map_err(|error| MountError::Source { path: source.into(), error })?;
    let source_stat = rustix::fs::fstat(source_fd)
        .map_err(|error| MountError::Source { path: source.into(), error: error.into() })?;
    if (metadata.dev(), metadata.ino()) == (source_stat.st_dev, source_stat.st_ino) && mount_point == source_path {
        // A directory may be mounted over itself, once: the source stays reachable by its
        // descriptor.
        return match mounted_at(&mount_point) {
            Some((kind, from)) if kind.starts_with("fuse.hoistway") => {
                Err(MountError::Busy { path: mount_point, kind, from })
            }
            _ => Ok(mount_point),
        };
    }
    if mount_point.starts_with(&source_path) {
        return Err(MountError::Inside { mount_point, source_path });
    }
    if source_path.starts_with(&mount_point) {
        return Err(MountError::Covers { mount_point, source_path });
    }
    match mounted_at(&mount_point) {
        Some((kind, from)) => Err(MountError::Busy { path: mount_point, kind, from }),
        None => Ok(mount_point),
    }
}

/// Returns type and source of the topmost mount at exactly this path. An unreadable mount table
/// counts as no mount.
fn mounted_at(path: &Path) -> Option<(String, String)> {
    let mount = mounts(&Root::machine(), "self").into_iter().rfind(|mount| mount.mount_point == path)?;
    Some((mount.file_system, mount.source.to_string_lossy().into_owned()))
}

/// Unmounts a dead hoistway mount at `path` if `clean` is set.
fn remove_dead_mount(path: &Path, clean: bool) -> Result<(), MountError> {
    // stat(2) on the path fails, but the parent directory can be resolved.
    let failed = |error: io::Error| MountError::MountPoint { path: path.into(), error };
    let absolute = std::path::absolute(path).map_err(failed)?;
    let mount_path = match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => fs::canonicalize(parent).map_err(failed)?.join(name),
        _ => absolute,
    };
    match mounted_at(&mount_path) {
        Some((kind, from)) if kind != FILE_SYSTEM => Err(MountError::Busy { path: mount_path, kind, from }),
        _ if !clean => Err(MountError::Dead { path: mount_path }),
        _ => unmount_at(&mount_path, true).map_err(|error| MountError::Mount { path: mount_path, error: error.into() }),
    }
}

/// Mounts and starts the session threads.
fn start_session<G: Gate>(
    passthrough: Passthrough<G>,
    mount_point: &Path,
    source: &StatVfs,
    mount_options: &MountOptions,
) -> Result<BackgroundSession, MountError> {
    let mut config = Config::default();
    config.acl = match mount_options.users {
        Users::Owner => SessionACL::Owner,
        Users::All => SessionACL::All,
    };
    config.n_threads = Some(mount_options.threads.max(THREADS_MIN));
    config.clone_fd = mount_options.clone_fd;
    config.mount_options = vec![
        MountOption::FSName("hoistway".into()),
        MountOption::Subtype("hoistway".into()),
        MountOption::DefaultPermissions,
    ];
    config.mount_options.push(if mount_options.read_only { MountOption::RO } else { MountOption::RW });
    let device = File::options().read(true).write(true).open("/dev/fuse").map_err(MountError::Device)?;
    let as_root = rustix::process::geteuid().is_root();
    if as_root {
        mount_as_root(&device, mount_point, source.f_flag, mount_options)
            .map_err(|error| MountError::Mount { path: mount_point.into(), error })?;
    }
    let mount_point_owned = mount_point.to_path_buf();
    // The session threads inherit the reduced capabilities of the thread that starts them.
    let started = thread::Builder::new().name("mount-begin".into()).spawn(move || {
        drop_cap_sys_resource();
        let session = if as_root {
            fuser::Session::from_fd(passthrough, device.into(), config.acl, config)
        } else {
            fuser::Session::new(passthrough, &mount_point_owned, &config).map_err(|error| trim_error(&error))
        };
        session.and_then(fuser::Session::spawn)
    });
    let started = started
        .and_then(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a session thread has panicked"))));
    started.map_err(|error| {
        if as_root {
            let _ = unmount_at(mount_point, true);
            return MountError::Start { path: mount_point.into(), error };
        }
        MountError::Mount { path: mount_point.into(), error }
    })
}

/// Removes the trailing newline that fusermount prints.
fn trim_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string().trim_end().to_owned()),
    }
}

/// Calls mount(2). The new mount inherits the restrictions of the source's mount.
fn mount_as_root(
    device: &File,
    mount_point: &Path,
    source: StatVfsMountFlags,
    mount_options: &MountOptions,
) -> io::Result<()> {
    let mut flags = MountFlags::empty();
    for (of_source, ours) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
    ] {
        flags.set(ours, source.contains(of_source));
    }
    if mount_options.read_only {
        flags |= MountFlags::RDONLY;
    }
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut data =
        format!("fd={},rootmode=40000,user_id={user},group_id={group},default_permissions", device.as_fd().as_raw_fd());
    if mount_options.users == Users::All {
        data.push_str(",allow_other");
    }
    let data = std::ffi::CString::new(data)?;
    Ok(mount("hoistway", mount_point, FILE_SYSTEM, flags, Some(data.as_c_str()))?)
}

/// Unmounts; `detach` selects a lazy unmount of a busy mount.
fn unmount_at(mount_point: &Path, detach: bool) -> Result<(), Errno> {
    let flags = if detach { UnmountFlags::DETACH | UnmountFlags::NOFOLLOW } else { UnmountFlags::NOFOLLOW };
    match unmount(mount_point, flags) {
        Err(Errno::PERM) => unmount_by_helper(mount_point, detach),
        result => result,
    }
}

/// Unmounts through `fusermount3`, the setuid helper of users other than root.
fn unmount_by_helper(mount_point: &Path, detach: bool) -> Result<(), Errno> {
    let mut command = std::process::Command::new("fusermount3");
    command.arg("-u").args(detach.then_some("-z")).arg("-q").arg("--").arg(mount_point);
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        // The helper reports the reason in prose only.
        Ok(_) if !detach && mounted_at(mount_point).is_some() => Err(Errno::BUSY),
        Ok(_) => Err(Errno::PERM),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::PERM)),
    }
}

/// Sets the read-ahead through sysfs: a FUSE mount itself can request at most the kernel's default
/// of 128 KiB.
fn set_read_ahead(device: u64, bytes: u32) {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let path = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    if let Err(error) = fs::write(&path, (bytes >> 10).to_string()) {
        tracing::debug!("the kernel's default read-ahead stays in effect: {path}: {error}");
    }
}
