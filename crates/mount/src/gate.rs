//! The interface between FUSE operations and the scheduler.

use std::io;
use std::sync::Arc;

use crate::backing::Backing;
use crate::buffer::Buffer;

/// Maximum size in bytes of a read or write request, the default of FUSE: 1 MiB. A larger transfer
/// is charged as one of this size.
pub(crate) const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// The thread that issued a FUSE request, from the request header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Thread ID (`gettid`) in this process's PID namespace; 0 for the kernel itself or a thread
    /// outside the namespace.
    pub tid: u32,
    /// User ID for file system access (`fsuid`).
    pub uid: u32,
    /// Group ID for file system access (`fsgid`).
    pub gid: u32,
}

/// The kind of a request, as the scheduler distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads file data; the caller waits for the disk.
    Read,
    /// Writes file data; the caller waits for the disk (`O_DIRECT`, `O_SYNC`).
    Write,
    /// Writes file data into the page cache; the disk gets them after [`Gate::note_dirty`].
    BufferedWrite,
    /// Writes pages from the kernel's FUSE write-back cache, those of mappings included. They are
    /// charged to the caller, but the caller does not wait: the pages must be written even if the
    /// caller is killed, and the caller may hold locks that reading its `/proc` files needs.
    KernelWriteback,
    /// Makes data and metadata of a file durable (`fsync`, `fdatasync`).
    Sync,
    /// Reads directories, inodes or attributes.
    MetadataRead,
    /// Changes directories, inodes or attributes (`create`, `rename`, `unlink`, `truncate`,
    /// `fallocate` ...).
    MetadataWrite,
}

/// A request to the gate.
#[derive(Clone, Copy, Debug)]
pub struct GateRequest<'a> {
    /// The thread that issued the request.
    pub caller: Caller,
    /// The kind of the request.
    pub operation: Operation,
    /// The file or directory.
    pub backing: &'a Arc<Backing>,
    /// The first byte in the file; 0 for a request without a position in file data.
    pub offset: u64,
    /// Length in bytes; 0 for a request that moves no data.
    pub length: u64,
}

/// The gate's answer to a request.
#[must_use]
#[derive(Debug)]
pub enum Admission<P, T> {
    /// The request may run now: the caller carries it out and then drops the slot.
    Now(P),
    /// The request has to wait: the caller passes its work to [`Gate::park`].
    Later(T),
}

/// Callback that receives the data of a read, or its error.
pub type ReadDone = Box<dyn FnOnce(io::Result<&[u8]>) + Send>;

/// Work that any thread can carry out. Its callback answers the FUSE request.
pub enum Job {
    /// A sequence of system calls.
    Call(Box<dyn FnOnce() + Send>),
    /// Reads from the backing file into memory aligned as [`Buffer`] is, as `O_DIRECT` requires.
    Read {
        /// The file.
        file: Arc<Backing>,
        /// Offset of the first byte.
        offset: u64,
        /// Maximum length in bytes.
        length: usize,
        /// Receives the data; fewer bytes than requested only at the end of the file.
        done: ReadDone,
    },
    /// Writes to the backing file.
    Write {
        /// The file.
        file: Arc<Backing>,
        /// Offset of the first byte.
        offset: u64,
        /// The data.
        data: Buffer,
        /// `RWF_` flags of `pwritev2`, or 0.
        flags: u32,
        /// Receives the number of bytes written.
        done: Box<dyn FnOnce(io::Result<usize>) + Send>,
    },
}

/// Schedules requests. All threads of a session share one gate.
pub trait Gate: Send + Sync + 'static {
    /// The dispatch slot of a running request; dropping it completes the request.
    type Slot<'a>;
    /// A queued request without its work; dropping it withdraws the request.
    type Ticket<'a>;
    /// The state of a running sync; dropping it reports a failed sync.
    type SyncGuard<'a>;
    /// True if requests may have to wait. The page cache is then queried before the gate.
    const MAY_QUEUE: bool = true;

    /// Sets the number of session threads. If all of them carried out I/O themselves, none would be
    /// left to receive requests.
    fn set_session_threads(&self, threads: usize) {
        let _ = threads;
    }

    /// Decides whether a request runs now or is queued.
    fn admit(&self, request: &GateRequest<'_>) -> Admission<Self::Slot<'_>, Self::Ticket<'_>>;

    /// Attaches the work of a queued request. The work runs exactly once, on any thread, also after
    /// the gate was closed.
    fn park(&self, ticket: Self::Ticket<'_>, job: Job);

    /// Runs work that may block and occupies no device, such as the second half of a parked job.
    fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    /// Records that `request.length` bytes were written into the page cache and await write-back.
    fn note_dirty(&self, request: &GateRequest<'_>) {
        let _ = request;
    }

    /// Returns true if a file may have data that await write-back.
    fn has_dirty_files(&self) -> bool {
        false
    }

    /// Drops the dirty state of a file of file system `device` (`st_dev`) whose data no longer
    /// exist.
    fn discard_dirty(&self, device: u64, inode: u64) {
        let _ = (device, inode);
    }

    /// Begins a sync of all data of the file that are dirty now. Called when an [`Operation::Sync`]
    /// is dispatched.
    fn begin_sync(&self, backing: &Arc<Backing>) -> Self::SyncGuard<'_>;

    /// Ends a successful sync: the data that it covered are durable.
    fn finish_sync(&self, guard: Self::SyncGuard<'_>);

    /// Returns the write-back error (`errno`) that the first sync of a new handle has to report
    /// because no handle has reported it (errseq semantics). `is_new`: the file was just created.
    fn pending_writeback_error(&self, backing: &Arc<Backing>, is_new: bool) -> Option<i32> {
        let _ = (backing, is_new);
        None
    }

    /// Marks all write-back errors of the file as reported.
    fn clear_writeback_error(&self, backing: &Arc<Backing>) {
        let _ = backing;
    }

    /// Drops the state of an inode of file system `device` (`st_dev`) that was deleted or just
    /// created, so that no error of its predecessor is reported.
    fn forget_inode(&self, device: u64, inode: u64) {
        let _ = (device, inode);
    }

    /// Releases memory that is needed only under load. Called when the mount is idle.
    fn release_memory(&self) {}
}

/// The gate that admits every request at once: the compiler removes scheduling.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unscheduled;

impl Gate for Unscheduled {
    type Slot<'a> = ();
    type Ticket<'a> = std::convert::Infallible;
    type SyncGuard<'a> = ();
    const MAY_QUEUE: bool = false;

    #[inline]
    fn admit(&self, _: &GateRequest<'_>) -> Admission<(), std::convert::Infallible> {
        Admission::Now(())
    }

    #[inline]
    fn park(&self, ticket: std::convert::Infallible, _: Job) {
        match ticket {}
    }

    #[inline]
    fn begin_sync(&self, _: &Arc<Backing>) {}

    #[inline]
    fn finish_sync(&self, (): ()) {}
}
