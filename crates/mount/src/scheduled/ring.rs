//! The io_uring thread, which reads and writes files for requests that were not dispatched at once.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use hoistway_reactor::{Buffer, Pool};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use slab::Slab;

use super::executors::{Executors, Task};
use crate::passthrough::drop_cap_sys_resource;
use crate::{Backing, Job};

/// Submission queue entries, more than devices usually have in flight.
const ENTRIES: u32 = 256;
/// Size in bytes of the pool of read buffers: 16 reads of the largest size. Further buffers are
/// allocated.
const POOL_BYTES: usize = 16 << 20;
/// User data of the eventfd completion, which announces submitted tasks.
const WAKE: u64 = u64::MAX;

/// A handle for submitting tasks to the io_uring thread.
#[derive(Clone)]
pub(super) struct Ring {
    inner: Arc<Inner>,
}

struct Inner {
    submitted: Mutex<Submitted>,
    wake: OwnedFd,
    thread: OnceLock<ThreadId>,
}

#[derive(Default)]
struct Submitted {
    tasks: VecDeque<Task>,
    is_closed: bool,
}

impl Ring {
    /// Submits a task, or returns it after [`Ring::close`].
    pub fn submit(&self, task: Task) -> Option<Task> {
        let mut submitted = self.inner.submitted.lock().unwrap_or_else(PoisonError::into_inner);
        if submitted.is_closed {
            return Some(task);
        }
        let was_empty = submitted.tasks.is_empty();
        submitted.tasks.push_back(task);
        drop(submitted);
        // The io_uring thread itself checks before it sleeps.
        if was_empty && self.inner.thread.get() != Some(&thread::current().id()) {
            self.wake();
        }
        None
    }

    /// Ends the thread after the tasks in flight.
    pub fn close(&self) {
        self.inner.submitted.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.wake();
    }

    /// Ends submission, and runs the remaining tasks on this thread.
    fn end(&self) {
        let tasks = {
            let mut submitted = self.inner.submitted.lock().unwrap_or_else(PoisonError::into_inner);
            submitted.is_closed = true;
            std::mem::take(&mut submitted.tasks)
        };
        tasks.into_iter().for_each(Task::run);
    }

    fn wake(&self) {
        // The write fails only if the counter would overflow; the thread is awake then.
        let _ = rustix::io::write(&self.inner.wake, &1u64.to_ne_bytes());
    }
}

/// Starts the thread if the system supports io_uring; otherwise worker threads do its work.
pub(super) fn start(executors: &Executors) {
    let made = IoUring::new(ENTRIES).and_then(|ring| Ok((ring, eventfd(0, EventfdFlags::CLOEXEC)?)));
    let (uring, wake) = match made {
        Ok(made) => made,
        Err(error) => return tracing::info!("io_uring cannot be used ({error}): threads read and write instead"),
    };
    let inner = Inner { submitted: Mutex::default(), wake, thread: OnceLock::new() };
    let ring = Ring { inner: Arc::new(inner) };
    let worker_ring = ring.clone();
    let spawned = thread::Builder::new().name("hoistway-ring".into()).spawn(move || {
        drop_cap_sys_resource();
        let _ = worker_ring.inner.thread.set(thread::current().id());
        let mut worker = Worker {
            uring,
            ring: worker_ring,
            in_flight: Slab::new(),
            pool: Pool::new(POOL_BYTES),
            wake_count: Box::new(0),
            is_armed: false,
        };
        if let Err(error) = worker.work() {
            // Operations in flight may still write to these buffers.
            tracing::error!("io_uring does not work any more, threads read and write from now on: {error}");
            let ring = worker.ring.clone();
            std::mem::forget(worker);
            ring.end();
        }
    });
    match spawned {
        Ok(_) => executors.set_ring(ring),
        Err(error) => tracing::info!("there is no thread for io_uring ({error})"),
    }
}

struct Worker {
    uring: IoUring,
    ring: Ring,
    in_flight: Slab<InFlightRequest>,
    pool: Pool,
    wake_count: Box<u64>,
    is_armed: bool,
}

/// A read or write in flight.
struct InFlightRequest {
    task: Task,
    file: Arc<Backing>,
    offset: u64,
    length: usize,
    /// Bytes transferred so far; the kernel may transfer fewer than requested.
    done: usize,
    kind: RequestKind,
}

/// Callbacks of reads and writes.
type ReadDone = Box<dyn FnOnce(io::Result<&[u8]>) + Send>;
type WriteDone = Box<dyn FnOnce(io::Result<usize>) + Send>;

enum RequestKind {
    Read { buffer: Buffer, done: ReadDone },
    Write { data: crate::Buffer, flags: u32, done: WriteDone },
}

impl Worker {
    /// Runs until the ring is closed and nothing is in flight.
    fn work(&mut self) -> io::Result<()> {
        let mut complete = Vec::new();
        loop {
            let (tasks, is_closed) = {
                let mut submitted = self.ring.inner.submitted.lock().unwrap_or_else(PoisonError::into_inner);
                (std::mem::take(&mut submitted.tasks), submitted.is_closed)
            };
            let has_more = !tasks.is_empty();
            for task in tasks {
                self.begin(task)?;
            }
            if is_closed && !has_more && self.in_flight.is_empty() {
                return Ok(());
            }
            if !self.is_armed {
                let read =
                    opcode::Read::new(Fd(self.ring.inner.wake.as_raw_fd()), (&raw mut *self.wake_count).cast(), 8);
                self.push(&read.build().user_data(WAKE))?;
                self.is_armed = true;
            }
            match self.uring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {}
                Err(error) => return Err(error),
            }
            complete.extend(self.uring.completion().map(|entry| (entry.user_data(), entry.result())));
            for (number, result) in complete.drain(..) {
                match number {
                    WAKE => self.is_armed = false,
                    at => self.complete(at as usize, result)?,
                }
            }
        }
    }

    fn begin(&mut self, mut task: Task) -> io::Result<()> {
        let (file, offset, length, kind) = match task.take_job() {
            Some(Job::Read { file, offset, length, done }) => {
                (file, offset, length, RequestKind::Read { buffer: self.pool.buffer(length.max(1)), done })
            }
            Some(Job::Write { file, offset, data, flags, done }) => {
                let length = data.len();
                (file, offset, length, RequestKind::Write { data, flags, done })
            }
            Some(Job::Call(call)) => {
                call();
                return Ok(());
            }
            None => return Ok(()),
        };
        let at = self.in_flight.insert(InFlightRequest { task, file, offset, length, done: 0, kind });
        self.submit(at)
    }

    /// Submits the rest of a request.
    fn submit(&mut self, at: usize) -> io::Result<()> {
        let Some(request) = self.in_flight.get_mut(at) else { return Ok(()) };
        let fd = Fd(request.file.fd.as_raw_fd());
        let offset = request.offset + request.done as u64;
        let bytes = (request.length - request.done) as u32;
        let entry = match &mut request.kind {
            RequestKind::Read { buffer, .. } => {
                let to = buffer.get_mut(request.done..).unwrap_or_default().as_mut_ptr();
                opcode::Read::new(fd, to, bytes).offset(offset).build()
            }
            RequestKind::Write { data, flags, .. } => {
                let from = data.get(request.done..).unwrap_or_default().as_ptr();
                opcode::Write::new(fd, from, bytes).offset(offset).rw_flags(*flags as _).build()
            }
        };
        self.push(&entry.user_data(at as u64))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the memory that the entry points to (the buffer or data of a request, the
            // eventfd counter) stays in place until the completion: only a completion removes a
            // request, and a failed worker is never dropped.
            if unsafe { self.uring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            match self.uring.submit() {
                Ok(_) => {}
                // The completion queue is full at present.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {
                    thread::yield_now();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Handles a completion, which may cover a part of the request.
    fn complete(&mut self, at: usize, result: i32) -> io::Result<()> {
        let Some(request) = self.in_flight.get_mut(at) else { return Ok(()) };
        if matches!(-result, libc::EINTR | libc::EAGAIN) {
            return self.submit(at);
        }
        request.done += usize::try_from(result).unwrap_or(0);
        if result > 0 && request.done < request.length {
            return self.submit(at);
        }
        let mut request = self.in_flight.remove(at);
        // A partial write counts. A short read means the end of the file.
        let is_write = matches!(request.kind, RequestKind::Write { .. });
        let is_over = result < 0
            && request.done > 0
            && (is_write || request.file.is_end_of_file(Errno::from_raw_os_error(-result)));
        let error = (result < 0 && !is_over).then(|| io::Error::from_raw_os_error(-result));
        if error.is_some() {
            request.task.mark_failed();
        }
        let bytes = request.done;
        match request.kind {
            RequestKind::Read { buffer, done } => {
                done(error.map_or_else(|| Ok(buffer.get(..bytes).unwrap_or_default()), Err));
            }
            RequestKind::Write { done, .. } => done(error.map_or(Ok(bytes), Err)),
        }
        Ok(())
    }
}
