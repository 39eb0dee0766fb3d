//! A mount from its beginning to its end.

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
use crate::passthrough::{Counts, Options, Passthrough, View, give_up_reserves};

/// What `/proc/mounts` calls the type of these mounts.
pub const FILE_SYSTEM: &str = "fuse.hoistway";

/// How often a mount that is busy is tried again.
const RETRY: Duration = Duration::from_millis(50);
/// One thread is to take requests while another does what it took.
const THREADS_MIN: usize = 2;
/// How far the kernel reads ahead unless it is told: several requests of the largest size, so that there is always one of them for the elevator to choose while
/// another is on its way. With one alone a reader would have nothing queued whenever one ends, and time slices would go by in waiting for him.
const READ_AHEAD: u32 = 4 << 20;
/// How long a mount that is out of sight may take to end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// So long before a busy mount goes out of sight the kernel is asked once more for what it has gathered above it.
const LAST_SYNC: Duration = Duration::from_secs(1);

/// Who may use a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Users {
    /// Who made it alone.
    #[default]
    Owner,
    /// Everybody, as the permissions of the files say. For who is not root the system's own setting has to allow it (`user_allow_other` in `/etc/fuse.conf`).
    All,
}

/// How a mount is made.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Who may use it.
    pub users: Users,
    /// How many threads take requests; at least two.
    pub threads: usize,
    /// Each thread has a queue of its own to take from.
    pub own_queues: bool,
    /// Nothing can be changed through it.
    pub read_only: bool,
    /// A mount of ours at the same place, whose program was killed, is taken away first.
    pub clean: bool,
    /// How far the kernel reads ahead in a file that is read in order, in bytes. It takes root to make it more than the kernel's default.
    pub read_ahead: u32,
}

impl Default for MountOptions {
    fn default() -> MountOptions {
        let processors = thread::available_parallelism().map_or(4, usize::from);
        MountOptions {
            users: Users::Owner,
            threads: (2 * processors).clamp(4, 32),
            own_queues: true,
            read_only: false,
            clean: false,
            read_ahead: READ_AHEAD,
        }
    }
}

/// A directory that is mounted. When it is dropped the mount is taken away, at once and from under those who use it.
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    mount_point: PathBuf,
    fuse: Mutex<Option<BackgroundSession>>,
    counts: Box<dyn Fn() -> Counts + Send + Sync>,
    connection: Option<u64>,
}

/// How a mount was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// Nobody uses it any more.
    Clean,
    /// It was in use, and is out of sight now; who has files open in it can go on for as long as this process lives.
    Detached,
}

/// Takes a mount away from wherever it is called: from a signal's thread.
#[derive(Clone)]
pub struct Unmounter(Arc<Shared>);

impl Session {
    /// Mounts `source` at `mount_point`, through `gate`.
    ///
    /// # Errors
    /// A [`MountError`] that says what is in the way. Nothing is left mounted then.
    pub fn mount<G: Gate>(
        source: &Path,
        mount_point: &Path,
        gate: Arc<G>,
        options: Options,
        how: &MountOptions,
    ) -> Result<Session, MountError> {
        let source_fd = open_source(source)?;
        let mount_point = check_mount_point(source, &source_fd, mount_point, how.clean)?;
        let flags =
            fstatvfs(&source_fd).map_err(|error| MountError::Source { path: source.into(), error: error.into() })?;
        gate.asked_by(how.threads.max(THREADS_MIN));
        let through = Passthrough::new(source_fd, gate, options)
            .map_err(|error| MountError::Source { path: source.into(), error })?;
        let view = through.view();
        let fuse = begin(through, &mount_point, &flags, how)?;
        Ok(Session::watch(fuse, view, mount_point, how))
    }

    fn watch(fuse: BackgroundSession, view: View, mount_point: PathBuf, how: &MountOptions) -> Session {
        let device = fs::metadata(&mount_point).map(|found| found.dev()).ok();
        (view.begin)(fuse.notifier(), device.unwrap_or(u64::MAX));
        if let Some(device) = device {
            read_ahead(device, how.read_ahead);
        }
        let shared = Arc::new(Shared {
            mount_point,
            fuse: Mutex::new(Some(fuse)),
            counts: view.counts,
            connection: device.map(|device| u64::from(rustix::fs::minor(device))),
        });
        Session { shared }
    }

    /// Where it is mounted.
    pub fn mount_point(&self) -> &Path {
        &self.shared.mount_point
    }

    /// Figures of it now.
    pub fn counts(&self) -> Counts {
        (self.shared.counts)()
    }

    /// Something that can take the mount away while another thread waits for its end.
    pub fn unmounter(&self) -> Unmounter {
        Unmounter(self.shared.clone())
    }

    /// Waits until the mount is gone: taken away by us or by somebody else (`umount`).
    ///
    /// # Errors
    /// What ended the session, if that was no unmount.
    pub fn wait(&self) -> io::Result<()> {
        self.shared.wait()
    }

    /// Takes the mount away, as [`Unmounter::unmount`] does.
    ///
    /// # Errors
    /// As there.
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
    /// Takes the mount away. While it is busy it is tried for as long as `grace`, and what the kernel has in memory above it is written meanwhile; then it is taken
    /// out of sight. Where there is no grace the writing has a second.
    ///
    /// # Errors
    /// [`UnmountError`], if the system does not let us: the mount is still there then.
    pub fn unmount(&self, grace: Duration) -> Result<Unmounted, UnmountError> {
        let shared = &self.0;
        let now = Instant::now();
        let mut busy = Busy { until: now + grace, above: None, is_last: false, written_by: now };
        loop {
            if shared.is_over(RETRY.min(grace)) {
                return Ok(Unmounted::Clean);
            }
            match take_away(&shared.mount_point, false) {
                Ok(()) => break,
                Err(Errno::BUSY) if busy.goes_on(&shared.mount_point) => thread::sleep(RETRY),
                Err(Errno::BUSY) => {
                    take_away(&shared.mount_point, true)
                        .map_err(|error| UnmountError::new(&shared.mount_point, error))?;
                    break;
                }
                // Somebody else was faster.
                Err(Errno::INVAL | Errno::NOENT) => break,
                Err(error) => return Err(UnmountError::new(&shared.mount_point, error)),
            }
        }
        if shared.is_over(LAST_WORDS) {
            return Ok(Unmounted::Clean);
        }
        // It would unmount what is at this place by the time when it is dropped, and that may be somebody else's.
        std::mem::forget(shared.fuse.lock().unwrap_or_else(PoisonError::into_inner).take());
        Ok(Unmounted::Detached)
    }

    /// Ends the connection at once: whoever waits for an answer gets an error, and whoever has a file open too. It takes root.
    ///
    /// # Errors
    /// What the system says, most often that its file system for this is not mounted (`/sys/fs/fuse/connections`).
    pub fn abort(&self) -> io::Result<()> {
        let Some(connection) = self.0.connection else { return Err(Errno::NOENT.into()) };
        fs::write(format!("/sys/fs/fuse/connections/{connection}/abort"), "1")
    }
}

/// A mount that cannot be taken away yet.
struct Busy {
    /// It goes out of sight then.
    until: Instant,
    /// Told when the kernel has handed over what it had gathered above the mount.
    above: Option<mpsc::Receiver<()>>,
    /// That was asked for as late as could be.
    is_last: bool,
    /// What was asked for last is waited for until then, whatever the grace.
    written_by: Instant,
}

impl Busy {
    /// Whether it is to be tried once more. What the kernel has gathered above the mount would be lost with its end: it is asked for at once, as that may take a while, and again
    /// shortly before the end, when there is little of it.
    fn goes_on(&mut self, mount_point: &Path) -> bool {
        let now = Instant::now();
        let is_written = self.above.as_ref().is_none_or(|above| above.try_recv() != Err(mpsc::TryRecvError::Empty));
        let is_late = now + LAST_SYNC >= self.until;
        if self.above.is_none() || (is_written && is_late && !self.is_last) {
            self.above = Some(written_above(mount_point));
            self.is_last = is_late;
            self.written_by = now + LAST_SYNC;
            return true;
        }
        if is_written || now < self.until.max(self.written_by) {
            return !is_written || now < self.until;
        }
        tracing::warn!("what the kernel has gathered above the mount was not all written");
        false
    }
}

/// Has the kernel hand over what it has gathered above the mount. Nobody has to wait for it: it is told when it is over.
fn written_above(mount_point: &Path) -> mpsc::Receiver<()> {
    let (tell, told) = mpsc::channel();
    let path = mount_point.to_owned();
    let written = move || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = rustix::fs::open(&path, flags, Mode::empty()).and_then(|directory| rustix::fs::syncfs(&directory));
        if let Err(error) = synced {
            tracing::warn!("what was gathered above {} may be lost: {error}", path.display());
        }
        // Who has waited long enough listens no more.
        let _ = tell.send(());
    };
    if let Err(error) = thread::Builder::new().name("mount-sync".into()).spawn(written) {
        tracing::warn!("what was gathered above {} may be lost: {error}", mount_point.display());
    }
    told
}

impl Shared {
    /// Whether the session's threads end within so much time.
    fn is_over(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            let fuse = self.fuse.lock().unwrap_or_else(PoisonError::into_inner);
            if fuse.as_ref().is_none_or(|fuse| fuse.guard.is_finished()) {
                return true;
            }
            drop(fuse);
            if Instant::now() >= until {
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
    // It is opened once to be read, since that is what it has to allow.
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags | OFlags::RDONLY, Mode::empty()).map_err(failed)?;
    openat(CWD, path, flags | OFlags::PATH, Mode::empty()).map_err(failed)
}

/// Sees to it that something can be mounted there, and says where that is without links and dots.
fn check_mount_point(source: &Path, source_fd: &OwnedFd, path: &Path, clean: bool) -> Result<PathBuf, MountError> {
    let failed = |error: io::Error| MountError::MountPoint { path: path.into(), error };
    // The kernel may believe in the attributes of a dead mount for a while, but not in its figures.
    if matches!(rustix::fs::statvfs(path), Err(Errno::NOTCONN)) {
        bury(path, clean)?;
    }
    let found = fs::metadata(path);
    let found = found.map_err(failed)?;
    if !found.is_dir() {
        return Err(MountError::MountPointNotDirectory(path.into()));
    }
    let mount_point = fs::canonicalize(path).map_err(failed)?;
    let source_path = fs::canonicalize(source).map_err(|error| MountError::Source { path: source.into(), error })?;
    let source_found = rustix::fs::fstat(source_fd)
        .map_err(|error| MountError::Source { path: source.into(), error: error.into() })?;
    if (found.dev(), found.ino()) == (source_found.st_dev, source_found.st_ino) && mount_point == source_path {
        // A directory may be mounted over itself, once: what is below is held open.
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

/// The kind and source of the mount that is seen at exactly this place: of the last one of those made there. A table that cannot be read says nothing
/// against a mount.
fn mounted_at(path: &Path) -> Option<(String, String)> {
    let mount = mounts(&Root::machine(), "self").into_iter().rfind(|mount| mount.mount_point == path)?;
    Some((mount.file_system, mount.source.to_string_lossy().into_owned()))
}

/// Takes a mount away whose program has died, if that is wanted and it was ours.
fn bury(path: &Path, clean: bool) -> Result<(), MountError> {
    // The path cannot be looked at, but the directory that it is in can.
    let failed = |error: io::Error| MountError::MountPoint { path: path.into(), error };
    let absolute = std::path::absolute(path).map_err(failed)?;
    let place = match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => fs::canonicalize(parent).map_err(failed)?.join(name),
        _ => absolute,
    };
    match mounted_at(&place) {
        Some((kind, from)) if kind != FILE_SYSTEM => Err(MountError::Busy { path: place, kind, from }),
        _ if !clean => Err(MountError::Dead { path: place }),
        _ => take_away(&place, true).map_err(|error| MountError::Mount { path: place, error: error.into() }),
    }
}

/// Mounts, and begins to take requests.
fn begin<G: Gate>(
    through: Passthrough<G>,
    mount_point: &Path,
    source: &StatVfs,
    how: &MountOptions,
) -> Result<BackgroundSession, MountError> {
    let mut config = Config::default();
    config.acl = match how.users {
        Users::Owner => SessionACL::Owner,
        Users::All => SessionACL::All,
    };
    config.n_threads = Some(how.threads.max(THREADS_MIN));
    config.clone_fd = how.own_queues;
    config.mount_options = vec![
        MountOption::FSName("hoistway".into()),
        MountOption::Subtype("hoistway".into()),
        MountOption::DefaultPermissions,
    ];
    config.mount_options.push(if how.read_only { MountOption::RO } else { MountOption::RW });
    let device = File::options().read(true).write(true).open("/dev/fuse").map_err(MountError::Device)?;
    let as_root = rustix::process::geteuid().is_root();
    if as_root {
        mount_as_root(&device, mount_point, source.f_flag, how)
            .map_err(|error| MountError::Mount { path: mount_point.into(), error })?;
    }
    let mount_point_owned = mount_point.to_path_buf();
    // The threads of the session are begun by one that has given up what they are not to have.
    let begun = thread::Builder::new().name("mount-begin".into()).spawn(move || {
        give_up_reserves();
        let session = if as_root {
            fuser::Session::from_fd(through, device.into(), config.acl, config)
        } else {
            fuser::Session::new(through, &mount_point_owned, &config).map_err(|error| without_line_end(&error))
        };
        session.and_then(fuser::Session::spawn)
    });
    let begun = begun.and_then(|thread| {
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the session has panicked")))
    });
    begun.map_err(|error| {
        if as_root {
            let _ = take_away(mount_point, true);
            return MountError::Begin { path: mount_point.into(), error };
        }
        MountError::Mount { path: mount_point.into(), error }
    })
}

/// What fusermount prints ends in a newline.
fn without_line_end(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string().trim_end().to_owned()),
    }
}

/// The mount itself. What the source's own mount forbids stays forbidden, and what it allows is allowed: whoever can mount may also use the source.
fn mount_as_root(device: &File, mount_point: &Path, source: StatVfsMountFlags, how: &MountOptions) -> io::Result<()> {
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
    if how.read_only {
        flags |= MountFlags::RDONLY;
    }
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut data =
        format!("fd={},rootmode=40000,user_id={user},group_id={group},default_permissions", device.as_fd().as_raw_fd());
    if how.users == Users::All {
        data.push_str(",allow_other");
    }
    let data = std::ffi::CString::new(data)?;
    Ok(mount("hoistway", mount_point, FILE_SYSTEM, flags, Some(data.as_c_str()))?)
}

/// Unmounts; `detach` takes a busy mount out of sight.
fn take_away(mount_point: &Path, detach: bool) -> Result<(), Errno> {
    let flags = if detach { UnmountFlags::DETACH | UnmountFlags::NOFOLLOW } else { UnmountFlags::NOFOLLOW };
    match unmount(mount_point, flags) {
        Err(Errno::PERM) => by_helper(mount_point, detach),
        result => result,
    }
}

/// Who is not root unmounts by the program that mounted.
fn by_helper(mount_point: &Path, detach: bool) -> Result<(), Errno> {
    let mut command = std::process::Command::new("fusermount3");
    command.arg("-u").args(detach.then_some("-z")).arg("-q").arg("--").arg(mount_point);
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        // It says why in words only.
        Ok(_) if !detach && mounted_at(mount_point).is_some() => Err(Errno::BUSY),
        Ok(_) => Err(Errno::PERM),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::PERM)),
    }
}

/// The kernel lets a mount ask for no more than its default of 128 KiB; afterwards root may set what he likes.
fn read_ahead(device: u64, bytes: u32) {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let path = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    if let Err(error) = fs::write(&path, (bytes >> 10).to_string()) {
        tracing::debug!("the kernel reads ahead as far as it does by default: {path}: {error}");
    }
}
