//! What stands between an operation and the disk.

use std::io;
use std::sync::Arc;

use crate::backing::Backing;
use crate::buffer::Buffer;

/// Who asks, as the kernel tells it with each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asker {
    /// The thread's number (`gettid`), in this program's namespace of processes; 0: the kernel itself, or one outside the namespace.
    pub tid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Data of a file are read, and the asker waits.
    Read,
    /// Data are written, and the asker waits for the disk (`O_DIRECT`, `O_SYNC`).
    Write,
    /// Data are put into memory; the disk gets them later, from [`Gate::dirtied`] on.
    Buffered,
    /// The same of pages that the kernel has gathered, those of mappings too. They count for the asker, but he does not wait for them: they have to be written also when he is
    /// killed, and he may hold what can be asked of a process while he waits for something else.
    Gathered,
    /// Data and metadata of a file are made durable (`fsync`, `fdatasync`).
    Sync,
    /// Directories, inodes and attributes are looked at.
    Look,
    /// They are changed (`create`, `rename`, `unlink`, `truncate`, `fallocate` ...).
    Change,
}

/// Something that is to be done for somebody.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Who.
    pub asker: Asker,
    /// What.
    pub operation: Operation,
    /// On which file or directory.
    pub backing: &'a Arc<Backing>,
    /// The first byte, in the file; 0 of what has no place there.
    pub offset: u64,
    /// How many bytes; 0 of what moves none.
    pub length: u64,
}

/// Whether something is done now.
#[must_use]
#[derive(Debug)]
pub enum Entered<P, T> {
    /// The caller does it, and drops the pass when that is over.
    Now(P),
    /// It is not its turn: the caller gives the work away, by [`Gate::park`].
    Later(T),
}

/// Told what was read, or why nothing was.
pub type ReadDone = Box<dyn FnOnce(io::Result<&[u8]>) + Send>;

/// Work that does not need the thread that it came to. What it is told at its end answers the asker.
pub enum Job {
    /// Whatever it is: one or more system calls.
    Call(Box<dyn FnOnce() + Send>),
    /// Reads from the backing file, into memory that is aligned as [`Buffer`] is: the file may be `O_DIRECT`.
    Read {
        /// The file.
        file: Arc<Backing>,
        /// The first byte.
        offset: u64,
        /// How many bytes, at most.
        length: usize,
        /// Told what was read; less than was asked for at the end of the file alone.
        done: ReadDone,
    },
    /// Writes to it.
    Write {
        /// The file.
        file: Arc<Backing>,
        /// The first byte.
        offset: u64,
        /// The data.
        data: Buffer,
        /// `RWF_` flags of `pwritev2`, or 0.
        flags: u32,
        /// Told how many bytes were written.
        done: Box<dyn FnOnce(io::Result<usize>) + Send>,
    },
}

/// Decides whose turn it is. All threads of a session share one.
pub trait Gate: Send + Sync + 'static {
    /// Held while something is done; when it is dropped the device has room for another.
    type Pass<'a>;
    /// Stands for something whose turn has not come. One that is dropped gives its turn up.
    type Ticket<'a>;
    /// Held while a file is made durable; dropped by itself it says that this has failed.
    type Syncing<'a>;
    /// Whether anybody ever waits at it: if so, what lies in memory is found out before it is asked.
    const HOLDS: bool = true;

    /// So many threads are all that ask: were each of them to do what it asked for, nobody would be there to ask for others.
    fn asked_by(&self, threads: usize) {
        let _ = threads;
    }

    /// Asks whether something may be done now.
    fn enter(&self, ask: &Ask<'_>) -> Entered<Self::Pass<'_>, Self::Ticket<'_>>;

    /// Gives away what has to wait. It is done once, by whatever thread, also when the gate is closed.
    fn park(&self, ticket: Self::Ticket<'_>, job: Job);

    /// Has something done that no disk's turn is kept for, and that may wait: what a job of [`Gate::park`] is for beyond its turn.
    fn hand_on(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    /// [`Operation::Buffered`] has put so many bytes into memory: the disk is to get them.
    fn dirtied(&self, ask: &Ask<'_>) {
        let _ = ask;
    }

    /// What was dirtied of a file so far does not exist any more: nothing has to be written back.
    fn cleaned(&self, backing: &Arc<Backing>) {
        let _ = backing;
    }

    /// The turn of an [`Operation::Sync`] has come: what was dirtied of the file by now is about to be made durable.
    fn syncing(&self, backing: &Arc<Backing>) -> Self::Syncing<'_>;

    /// It is durable, and has not to be written back any more.
    fn synced(&self, syncing: Self::Syncing<'_>);

    /// A file was opened, or `is_new`, made: the error of write-back, as `errno` has it, that the next sync by this opening has to tell, as nobody was told of it yet.
    fn owes(&self, backing: &Arc<Backing>, is_new: bool) -> Option<i32> {
        let _ = (backing, is_new);
        None
    }

    /// Somebody was told of the file's errors so far.
    fn told(&self, backing: &Arc<Backing>) {
        let _ = backing;
    }

    /// A file of this file system, as `st_dev` has it, is gone for good, or was just made: of errors of the one that had its number until now nobody is to be told.
    fn gone(&self, device: u64, inode: u64) {
        let _ = (device, inode);
    }
}

/// Lets everything pass: with it scheduling is compiled out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {
    type Pass<'a> = ();
    type Ticket<'a> = std::convert::Infallible;
    type Syncing<'a> = ();
    const HOLDS: bool = false;

    #[inline]
    fn enter(&self, _: &Ask<'_>) -> Entered<(), std::convert::Infallible> {
        Entered::Now(())
    }

    #[inline]
    fn park(&self, ticket: std::convert::Infallible, _: Job) {
        match ticket {}
    }

    #[inline]
    fn syncing(&self, _: &Arc<Backing>) {}

    #[inline]
    fn synced(&self, (): ()) {}
}
