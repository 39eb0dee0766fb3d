//! The directory as the kernel's queue sees it: what each operation is, and whom the gate is asked for.
//!
//! Everything is reached from descriptors, never by a path: what is renamed, replaced or linked meanwhile cannot lead out of the source.

mod attributes;
mod bypass;
mod change;
mod copy;
mod data;
mod descriptors;
mod directory;
mod files;
mod filesystem;
mod handle;
mod identity;
mod ioctl;
mod look;
mod nodes;
mod open;
mod partial;
mod places;
mod room;
mod xattr;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{Errno, Notifier, Request};

use self::directory::OpenDirectory;
use self::files::{Files, Open, OpenFile};
use self::nodes::Nodes;
use crate::backing::Backing;
use crate::gate::{Ask, Asker, Entered, Gate, Job, Operation};

pub(crate) use self::identity::give_up_reserves;

/// Who brings written data to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// Each write goes to the file below at once, in the name of its process; the gate has it written back ([`Gate::dirtied`]).
    #[default]
    Ours,
    /// The kernel gathers writes in its cache and hands them over later, in large pieces; they count for who opened the file for writing last.
    Kernel,
}

/// Says of a file that is opened whether it goes past the gate: its reads and writes are then the kernel's own, and cost no more than without a mount.
pub type Bypass = Box<dyn Fn(&Asker, &Backing) -> bool + Send + Sync>;

/// How a directory is passed through.
pub struct Options {
    /// Who writes back.
    pub write_back: WriteBack,
    /// For how long the kernel may believe names and attributes before it asks again: changes made beside the mount are seen after that.
    pub valid: Duration,
    /// Reach inodes by file handles where that works. Without it every known file holds a descriptor.
    pub handles: bool,
    /// Files that need no scheduling. It needs a kernel from 6.9, root, and [`WriteBack::Ours`]; elsewhere the files are ordinary ones.
    pub bypass: Option<Bypass>,
}

impl Default for Options {
    fn default() -> Options {
        Options { write_back: WriteBack::Ours, valid: Duration::from_secs(1), handles: true, bypass: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { write_back, valid, handles, bypass } = self;
        let bypass = bypass.is_some();
        f.debug_struct("Options")
            .field("write_back", write_back)
            .field("valid", valid)
            .field("handles", handles)
            .field("bypass", &bypass)
            .finish()
    }
}

/// A directory, passed through a gate: what [`fuser`] calls a file system.
pub struct Passthrough<G: Gate>(Arc<Through<G>>);

/// What all operations share.
struct Through<G> {
    gate: Arc<G>,
    options: Options,
    nodes: Nodes,
    files: Files,
    open_files: Open<OpenFile>,
    open_directories: Open<OpenDirectory>,
    /// Set when the session has begun.
    notifier: OnceLock<Notifier>,
    /// `st_dev` of the mount itself: below it nothing can be reached but by asking ourselves.
    own_device: AtomicU64,
    /// The kernel takes files that go past us.
    can_bypass: AtomicBool,
    room: Arc<room::Room>,
}

/// Figures of a mount, for whoever looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inodes that the kernel knows.
    pub known: u64,
    /// Those of them that hold a descriptor.
    pub held: u64,
}

impl<G: Gate> Passthrough<G> {
    /// Passes `source` - a directory, opened as `O_PATH` or otherwise - through `gate`.
    ///
    /// # Errors
    /// What the system says of the directory, or of `/proc` where it is not mounted.
    pub fn new(source: OwnedFd, gate: Arc<G>, options: Options) -> io::Result<Passthrough<G>> {
        let nodes = Nodes::new(source, options.handles)?;
        Ok(Passthrough(Arc::new(Through {
            gate,
            options,
            nodes,
            files: Files::default(),
            open_files: Open::new(),
            open_directories: Open::new(),
            notifier: OnceLock::new(),
            own_device: AtomicU64::new(u64::MAX),
            can_bypass: AtomicBool::new(false),
            room: Arc::default(),
        })))
    }

    /// Something that outlives the file system's move into its session.
    pub(crate) fn view(&self) -> View {
        let (begun, counted) = (self.0.clone(), self.0.clone());
        View {
            begin: Box::new(move |notifier, device| begun.begin(notifier, device)),
            counts: Box::new(move || {
                let (known, held) = counted.nodes.counts();
                Counts { known, held }
            }),
        }
    }
}

/// What a session does with its file system.
pub(crate) struct View {
    pub(crate) begin: Box<dyn FnOnce(Notifier, u64) + Send>,
    pub(crate) counts: Box<dyn Fn() -> Counts + Send + Sync>,
}

impl<G: Gate> Through<G> {
    fn begin(self: &Arc<Self>, notifier: Notifier, device: u64) {
        self.own_device.store(device, Ordering::Relaxed);
        let _ = self.notifier.set(notifier);
        room::keep(self);
    }

    /// Does something when its turn has come: now and by this thread, or later by one of the gate's.
    fn run(self: &Arc<Self>, ask: Ask<'_>, work: impl FnOnce(&Arc<Self>) + Send + 'static) {
        match self.gate.enter(&ask) {
            Entered::Now(pass) => {
                work(self);
                drop(pass);
            }
            Entered::Later(ticket) => {
                let through = self.clone();
                self.gate.park(ticket, Job::Call(Box::new(move || work(&through))));
            }
        }
    }

    /// [`Through::run`] for what has no place in a file's data.
    fn run_on(
        self: &Arc<Self>,
        asker: Asker,
        operation: Operation,
        on: &Arc<Backing>,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        self.run(Ask { asker, operation, backing: on, offset: 0, length: 0 }, work);
    }
}

/// Who asks.
fn asker_of(request: &Request) -> Asker {
    Asker { tid: request.pid(), uid: request.uid(), gid: request.gid() }
}

/// An error as the kernel's queue takes it. One that has no number is an input or output error.
fn errno(error: impl Into<io::Error>) -> Errno {
    match error.into().raw_os_error() {
        // It is this process that has no descriptor left, and not who asks.
        Some(libc::EMFILE) => {
            static TOLD: AtomicBool = AtomicBool::new(false);
            if !TOLD.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "there is no descriptor left: files cannot be opened until others are closed; `ulimit -n` before the mount is started says how many there may be"
                );
            }
            Errno::ENFILE
        }
        number => Errno::from_i32(number.unwrap_or(libc::EIO)),
    }
}

/// Names and links as system calls take them. The kernel sends none with a zero in it.
fn c_string(bytes: &[u8]) -> io::Result<std::ffi::CString> {
    std::ffi::CString::new(bytes).map_err(|_| rustix::io::Errno::INVAL.into())
}
