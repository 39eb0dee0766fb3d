//! Executors of dispatched jobs: io_uring for reads and writes, worker threads for everything else.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use hoistway_reactor::Buffer;
use rustix::io::ReadWriteFlags;

use super::Shared;
use super::queue::Queue;
use super::ring::Ring;
use crate::passthrough::drop_cap_sys_resource;
use crate::{Backing, Job};

/// Maximum number of worker threads. Several devices may hang, each with as many requests as its
/// depth.
const THREADS_MAX: usize = 256;

/// The executors of a gate.
#[derive(Clone, Default)]
pub(super) struct Executors {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    pool: Mutex<Pool>,
    device_request: Condvar,
    /// Unset if the system has no io_uring.
    ring: OnceLock<Ring>,
}

#[derive(Default)]
struct Pool {
    tasks: VecDeque<Task>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

/// A dispatched job. Dropping it completes the request in the device queue.
pub(super) struct Task {
    job: Option<Job>,
    queue_entry: Option<(Arc<Shared>, Arc<Queue>, usize)>,
    failed: bool,
}

impl Task {
    /// Creates the task of a request in a device queue.
    pub fn new(shared: &Arc<Shared>, queue: &Arc<Queue>, index: usize, job: Job) -> Task {
        Task { job: Some(job), queue_entry: Some((shared.clone(), queue.clone(), index)), failed: false }
    }

    /// Creates a task that occupies no device.
    pub fn unscheduled(job: Job) -> Task {
        Task { job: Some(job), queue_entry: None, failed: false }
    }

    /// Creates a task that answers a job with `EINTR` instead of running it, because the issuer was
    /// killed.
    pub fn cancelled(job: Job) -> Task {
        let killed = || io::Error::from_raw_os_error(libc::EINTR);
        Task::unscheduled(Job::Call(match job {
            // Dropping the closure drops the reply, which answers the request.
            Job::Call(call) => Box::new(move || drop(call)),
            Job::Read { done, .. } => Box::new(move || done(Err(killed()))),
            Job::Write { done, .. } => Box::new(move || done(Err(killed()))),
        }))
    }

    /// Removes the job.
    pub fn take_job(&mut self) -> Option<Job> {
        self.job.take()
    }

    /// Marks the request as failed.
    pub fn mark_failed(&mut self) {
        self.failed = true;
    }

    fn uses_ring(&self) -> bool {
        matches!(self.job, Some(Job::Read { .. } | Job::Write { .. }))
    }

    /// Runs the job on this thread.
    pub fn run(mut self) {
        match self.job.take() {
            Some(Job::Call(call)) => call(),
            Some(Job::Read { file, offset, length, done }) => {
                let mut buffer = Buffer::alone(length.max(1));
                let read = file.read_all(offset, buffer.get_mut(..length).unwrap_or_default());
                self.failed = read.is_err();
                done(read.map(|read| buffer.get(..read).unwrap_or_default()));
            }
            Some(Job::Write { file, offset, data, flags, done }) => {
                let written = write(&file, offset, &data, flags);
                self.failed = written.is_err();
                done(written);
            }
            None => {}
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // A job that was never run (no thread could be started) runs now, because its reply is
        // awaited.
        if let Some(job) = self.job.take() {
            Task { job: Some(job), queue_entry: None, failed: false }.run();
        }
        if let Some((shared, queue, index)) = self.queue_entry.take() {
            shared.complete(&queue, index, self.failed);
        }
    }
}

impl Executors {
    /// Starts tasks as soon as possible.
    pub fn submit(&self, tasks: impl IntoIterator<Item = Task>) {
        for task in tasks {
            let task = match self.inner.ring.get().filter(|_| task.uses_ring()) {
                Some(ring) => ring.submit(task),
                None => Some(task),
            };
            if let Some(task) = task {
                self.submit_to_thread(task);
            }
        }
    }

    /// Uses `ring` for reads and writes from now on.
    pub fn set_ring(&self, ring: Ring) {
        // Set only once.
        let _ = self.inner.ring.set(ring);
    }

    /// Returns true if io_uring is available.
    pub fn has_ring(&self) -> bool {
        self.inner.ring.get().is_some()
    }

    /// Accepts no more tasks; those in flight are completed.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.inner.device_request.notify_all();
        if let Some(ring) = self.inner.ring.get() {
            ring.close();
        }
    }

    fn submit_to_thread(&self, task: Task) {
        let mut pool = self.lock();
        if pool.is_closed {
            drop(pool);
            return task.run();
        }
        pool.tasks.push_back(task);
        let must_start = pool.idle < pool.tasks.len() && pool.threads < THREADS_MAX;
        if must_start {
            pool.threads += 1;
        }
        drop(pool);
        if !must_start {
            return self.inner.device_request.notify_one();
        }
        let executors = self.clone();
        if thread::Builder::new().name("hoistway-io".into()).spawn(move || executors.run_worker()).is_err() {
            let mut pool = self.lock();
            pool.threads -= 1;
            // Another thread takes the task; without any, this thread has to run it.
            let task = if pool.threads == 0 { pool.tasks.pop_front() } else { None };
            drop(pool);
            if let Some(task) = task {
                task.run();
            }
        }
    }

    fn run_worker(&self) {
        drop_cap_sys_resource();
        let mut pool = self.lock();
        loop {
            if let Some(task) = pool.tasks.pop_front() {
                drop(pool);
                task.run();
                pool = self.lock();
                continue;
            }
            if pool.is_closed {
                pool.threads -= 1;
                return;
            }
            pool.idle += 1;
            pool = self.inner.device_request.wait(pool).unwrap_or_else(PoisonError::into_inner);
            pool.idle -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.inner.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(file: &Backing, offset: u64, data: &[u8], flags: u32) -> io::Result<usize> {
    let flags = ReadWriteFlags::from_bits_retain(flags);
    let mut written = 0;
    while let Some(rest) = data.get(written..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pwritev2(&file.fd, &[io::IoSlice::new(rest)], offset + written as u64, flags) {
            Ok(0) => break,
            Ok(more) => written += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) if written > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}
