//! The io_uring thread, which reads and writes files for requests that were not dispatched at once.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use hoistway_reactor::{BlockOp, BlockRing, BlockTarget, Buffer, Ended, Pool, Waker};
use rustix::io::Errno;

use super::task::Task;
use crate::passthrough::drop_cap_sys_resource;
use crate::{Backing, Job, ReadDone};

/// Submission queue entries, more than devices usually have in flight.
const ENTRIES: u32 = 256;
/// Size in bytes of the pool of read buffers: 16 reads of the largest size. Further buffers are
/// allocated.
const POOL_BYTES: usize = 16 << 20;

/// A handle for submitting tasks to the io_uring thread.
#[derive(Clone)]
pub(super) struct Ring {
    inner: Arc<Inner>,
}

struct Inner {
    submitted: Mutex<Submitted>,
    waker: Waker,
    thread: ThreadId,
}

#[derive(Default)]
struct Submitted {
    tasks: VecDeque<Task>,
    is_closed: bool,
    /// The pool of read buffers has to be released.
    releases_pool: bool,
}

impl Ring {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system does not permit io_uring, or the thread cannot be started.
    pub fn start() -> io::Result<Ring> {
        // The thread that uses a ring also has to create it.
        let (sender, created) = sync_channel(1);
        thread::Builder::new().name("hoistway-ring".into()).spawn(move || {
            drop_cap_sys_resource();
            let transfers = match BlockRing::new(ENTRIES) {
                Ok(transfers) => transfers,
                Err(error) => return drop(sender.send(Err(error))),
            };
            let thread = thread::current().id();
            let inner = Inner { submitted: Mutex::default(), waker: transfers.waker(), thread };
            let ring = Ring { inner: Arc::new(inner) };
            if sender.send(Ok(ring.clone())).is_ok() {
                Worker { transfers, ring, pool: Pool::new(POOL_BYTES) }.run();
            }
        })?;
        created.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }

    /// Submits a task, or returns it after [`Ring::close`].
    pub fn submit(&self, task: Task) -> Option<Task> {
        let mut submitted = self.submitted();
        if submitted.is_closed {
            return Some(task);
        }
        let was_empty = submitted.tasks.is_empty();
        submitted.tasks.push_back(task);
        drop(submitted);
        // The io_uring thread itself checks before it sleeps.
        if was_empty && self.inner.thread != thread::current().id() {
            self.inner.waker.wake();
        }
        None
    }

    /// Releases the pool of read buffers once no transfer uses it.
    pub fn release_memory(&self) {
        self.submitted().releases_pool = true;
        self.inner.waker.wake();
    }

    /// Ends the thread after the tasks in flight.
    pub fn close(&self) {
        self.submitted().is_closed = true;
        self.inner.waker.wake();
    }

    /// Ends submission, and runs the remaining tasks on this thread.
    fn end(&self) {
        let tasks = {
            let mut submitted = self.submitted();
            submitted.is_closed = true;
            std::mem::take(&mut submitted.tasks)
        };
        tasks.into_iter().for_each(Task::run);
    }

    fn submitted(&self) -> MutexGuard<'_, Submitted> {
        self.inner.submitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Worker {
    transfers: BlockRing<Transfer>,
    ring: Ring,
    pool: Pool,
}

/// A read or write in flight.
struct Transfer {
    task: Task,
    file: Arc<Backing>,
    kind: TransferKind,
}

enum TransferKind {
    Read { buffer: Buffer, done: ReadDone },
    Write { data: crate::Buffer, done: Box<dyn FnOnce(io::Result<usize>) + Send> },
}

// SAFETY: the transfer shares ownership of the file and owns the memory, which is on the heap or in
// the pool and does not move with the transfer.
unsafe impl BlockTarget for Transfer {
    fn fd(&self) -> BorrowedFd<'_> {
        self.file.fd.as_fd()
    }

    fn memory(&mut self) -> &mut [u8] {
        match &mut self.kind {
            TransferKind::Read { buffer, .. } => buffer,
            TransferKind::Write { data, .. } => data,
        }
    }
}

impl Worker {
    /// Runs until the ring is closed and no transfer is in flight, or the ring fails.
    fn run(mut self) {
        if let Err(error) = self.serve() {
            tracing::error!("io_uring failed, worker threads read and write from now on: {error}");
            self.ring.end();
        }
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        loop {
            let (tasks, is_closed, releases_pool) = {
                let mut submitted = self.ring.submitted();
                let releases_pool = std::mem::take(&mut submitted.releases_pool);
                (std::mem::take(&mut submitted.tasks), submitted.is_closed, releases_pool)
            };
            if releases_pool {
                // The memory is unmapped with the last buffer in use.
                self.pool = Pool::new(POOL_BYTES);
            }
            let has_more = !tasks.is_empty();
            for task in tasks {
                self.begin(task);
            }
            if is_closed && !has_more && self.transfers.in_flight() == 0 {
                return Ok(());
            }
            self.transfers.turn(&mut ended)?;
            ended.drain(..).for_each(finish);
        }
    }

    fn begin(&mut self, mut task: Task) {
        let (op, file, offset, length, kind) = match task.take_job() {
            Some(Job::Read { file, offset, length, done }) => {
                let buffer = self.pool.buffer(length.max(1));
                (BlockOp::Read, file, offset, length, TransferKind::Read { buffer, done })
            }
            Some(Job::Write { file, offset, data, flags, done }) => {
                let (op, length) = (BlockOp::Write { rw_flags: flags as i32 }, data.len());
                (op, file, offset, length, TransferKind::Write { data, done })
            }
            Some(Job::Call(call)) => return call(),
            None => return,
        };
        self.transfers.start(op, offset, length as u64, Transfer { task, file, kind });
    }
}

/// Completes a transfer: a partial write counts, and a read is short at the end of the file.
fn finish(ended: Ended<Transfer>) {
    let Ended { target: Transfer { mut task, file, kind }, bytes, error } = ended;
    let is_write = matches!(kind, TransferKind::Write { .. });
    let ends_early = |error| is_write || file.is_end_of_file(Errno::from_raw_os_error(error));
    let error = error.filter(|error| bytes == 0 || !ends_early(*error)).map(io::Error::from_raw_os_error);
    if error.is_some() {
        task.mark_failed();
    }
    let bytes = bytes as usize;
    match kind {
        TransferKind::Read { buffer, done } => {
            done(error.map_or_else(|| Ok(buffer.get(..bytes).unwrap_or_default()), Err));
        }
        TransferKind::Write { done, .. } => done(error.map_or(Ok(bytes), Err)),
    }
}
