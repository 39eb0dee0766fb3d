//! FUSE operations on the source directory, each of them scheduled by a gate.
//!
//! All files are reached from descriptors, never by path: a concurrent rename, replacement or
//! symbolic link cannot lead out of the source.

mod attributes;
mod bypass;
mod copy;
mod data;
mod descriptor_limit;
mod descriptors;
mod directory;
mod files;
mod filesystem;
mod fs_mounts;
mod handle;
mod held_descriptor;
mod identity;
mod idle;
mod ioctl;
mod locks;
mod lookup;
mod namespace;
mod nodes;
mod numbers;
mod open;
mod partial;
mod recent;
mod seek;
mod xattr;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{Errno, Notifier, Request};

use self::directory::OpenDirectory;
use self::files::{HandleTable, OpenFile};
use self::nodes::NodeTable;
use crate::backing::Backing;
use crate::gate::{Admission, Caller, Gate, GateRequest, Job, Operation};

pub(crate) use self::identity::drop_cap_sys_resource;

/// Selects where written data are cached and who schedules their write-back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// Each write goes to the source's page cache at once, with the identity of the writing
    /// process; the gate schedules write-back ([`Gate::note_dirty`]).
    #[default]
    Ours,
    /// The kernel's FUSE write-back cache collects writes and sends them later in large requests,
    /// which are charged to the last process that opened the file for writing.
    Kernel,
}

/// Decides whether a file that is opened bypasses the gate. The kernel then reads and writes the
/// file below directly (FUSE passthrough), at the cost of a file outside the mount.
pub type Bypass = Box<dyn Fn(&Caller, &Backing) -> bool + Send + Sync>;

/// Options of the pass-through file system.
pub struct Options {
    /// Where written data are cached.
    pub write_back: WriteBack,
    /// Time for which the kernel may cache names and attributes. Changes made outside the mount
    /// become visible after that time.
    pub valid: Duration,
    /// Reaches inodes by file handles where the file system supports them. Without it every known
    /// inode holds a descriptor.
    pub handles: bool,
    /// Selects files that bypass the gate. Requires Linux 6.9, root and [`WriteBack::Ours`];
    /// otherwise no file does.
    pub bypass: Option<Bypass>,
    /// Time without activity after which memory is released.
    pub idle: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            write_back: WriteBack::Ours,
            valid: Duration::from_secs(1),
            handles: true,
            bypass: None,
            idle: Duration::from_secs(5),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { write_back, valid, handles, bypass, idle } = self;
        let bypass = bypass.is_some();
        f.debug_struct("Options")
            .field("write_back", write_back)
            .field("valid", valid)
            .field("handles", handles)
            .field("bypass", &bypass)
            .field("idle", idle)
            .finish()
    }
}

/// The [`fuser`] file system that passes a directory through a gate.
pub struct Passthrough<G: Gate>(Arc<FsState<G>>);

/// State shared by all operations.
struct FsState<G> {
    gate: Arc<G>,
    options: Options,
    nodes: NodeTable,
    open_files: HandleTable<OpenFile>,
    open_directories: HandleTable<OpenDirectory>,
    /// Set when the session has started.
    notifier: OnceLock<Notifier>,
    /// `st_dev` of the mount itself. A request below it would wait for this process itself.
    own_device: AtomicU64,
    /// The kernel supports FUSE passthrough for this mount.
    supports_bypass: AtomicBool,
    descriptor_limit: Arc<descriptor_limit::DescriptorLimit>,
}

/// Statistics of a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inodes in the kernel's inode cache.
    pub known: u64,
    /// Inodes of these that hold a descriptor.
    pub held: u64,
}

impl<G: Gate> Passthrough<G> {
    /// Creates the file system for `source`, a directory that is open as `O_PATH` or otherwise.
    ///
    /// # Errors
    /// The system's error for the directory, or for `/proc` if it is not mounted.
    pub fn new(source: OwnedFd, gate: Arc<G>, options: Options) -> io::Result<Passthrough<G>> {
        let nodes = NodeTable::new(source, options.handles)?;
        Ok(Passthrough(Arc::new(FsState {
            gate,
            options,
            nodes,
            open_files: HandleTable::new(),
            open_directories: HandleTable::new(),
            notifier: OnceLock::new(),
            own_device: AtomicU64::new(u64::MAX),
            supports_bypass: AtomicBool::new(false),
            descriptor_limit: Arc::default(),
        })))
    }

    /// Returns callbacks that remain valid after the session has taken ownership of the file
    /// system.
    pub(crate) fn session_hooks(&self) -> SessionHooks {
        let (started, counted) = (self.0.clone(), self.0.clone());
        SessionHooks {
            start: Box::new(move |notifier, device, mount_point| started.start(notifier, device, mount_point)),
            counts: Box::new(move || {
                let (known, held) = counted.nodes.counts();
                Counts { known, held }
            }),
        }
    }
}

/// Callback at the start of a session: the notifier, `st_dev` and path of the mount.
type StartHook = Box<dyn FnOnce(Notifier, u64, &Path) + Send>;

/// Callbacks of a session into its file system.
pub(crate) struct SessionHooks {
    pub(crate) start: StartHook,
    pub(crate) counts: Box<dyn Fn() -> Counts + Send + Sync>,
}

impl<G: Gate> FsState<G> {
    fn start(self: &Arc<Self>, notifier: Notifier, device: u64, mount_point: &Path) {
        self.own_device.store(device, Ordering::Relaxed);
        let _ = self.notifier.set(notifier);
        descriptor_limit::apply(self);
        idle::start(self, mount_point);
    }

    /// Runs `work` when the gate dispatches the request: on this thread now, or on one of the
    /// gate's threads later.
    fn run(self: &Arc<Self>, request: GateRequest<'_>, work: impl FnOnce(&Arc<Self>) + Send + 'static) {
        match self.gate.admit(&request) {
            Admission::Now(slot) => {
                work(self);
                drop(slot);
            }
            Admission::Later(ticket) => {
                let fs = self.clone();
                self.gate.park(ticket, Job::Call(Box::new(move || work(&fs))));
            }
        }
    }

    /// Runs [`FsState::run`] with a request that has no position in file data.
    fn run_on(
        self: &Arc<Self>,
        caller: Caller,
        operation: Operation,
        target: &Arc<Backing>,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        self.run(GateRequest { caller, operation, backing: target, offset: 0, length: 0 }, work);
    }
}

/// Returns the thread that issued a FUSE request.
fn caller_of(request: &Request) -> Caller {
    Caller { tid: request.pid(), uid: request.uid(), gid: request.gid() }
}

/// Converts an error to a FUSE error. An error without a number becomes `EIO`.
fn errno(error: impl Into<io::Error>) -> Errno {
    match error.into().raw_os_error() {
        // The limit is that of this process, not of the caller.
        Some(libc::EMFILE) => {
            static LOGGED: AtomicBool = AtomicBool::new(false);
            if !LOGGED.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "no file descriptors left: opening files fails until others are closed; raise `ulimit -n` before starting the mount"
                );
            }
            Errno::ENFILE
        }
        number => Errno::from_i32(number.unwrap_or(libc::EIO)),
    }
}

/// Converts a name or link target to a C string. The kernel never sends one that contains a NUL.
fn c_string(bytes: &[u8]) -> io::Result<std::ffi::CString> {
    std::ffi::CString::new(bytes).map_err(|_| rustix::io::Errno::INVAL.into())
}
