//! Who does what had to wait: io_uring what reads and writes a file, a few threads everything else.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use hoistway_serve::buffer::Buffer;
use rustix::io::ReadWriteFlags;

use super::Shared;
use super::queue::Queue;
use super::ring::Ring;
use crate::passthrough::give_up_reserves;
use crate::{Backing, Job};

/// So many threads do what blocks, at most: devices are given fewer at once.
const THREADS_MAX: usize = 64;

/// Those who do things.
#[derive(Clone, Default)]
pub(super) struct Executors {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    pool: Mutex<Pool>,
    wanted: Condvar,
    /// There is none where the system has no io_uring.
    ring: OnceLock<Ring>,
}

#[derive(Default)]
struct Pool {
    runs: VecDeque<Run>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

/// A job whose turn it is. When it is dropped, the device has room for another.
pub(super) struct Run {
    job: Option<Job>,
    of: Option<(Arc<Shared>, Arc<Queue>, usize)>,
    failed: bool,
}

impl Run {
    /// A job of an operation of a queue.
    pub fn new(shared: &Arc<Shared>, queue: &Arc<Queue>, at: usize, job: Job) -> Run {
        Run { job: Some(job), of: Some((shared.clone(), queue.clone(), at)), failed: false }
    }

    /// A job that no device waits for.
    pub fn free(job: Job) -> Run {
        Run { job: Some(job), of: None, failed: false }
    }

    /// Answers a job without doing it: who waits for it has been killed.
    pub fn given_up(job: Job) -> Run {
        let killed = || io::Error::from_raw_os_error(libc::EINTR);
        Run::free(Job::Call(match job {
            // What it would have answered by answers as it goes.
            Job::Call(call) => Box::new(move || drop(call)),
            Job::Read { done, .. } => Box::new(move || done(Err(killed()))),
            Job::Write { done, .. } => Box::new(move || done(Err(killed()))),
        }))
    }

    /// The job.
    pub fn take(&mut self) -> Option<Job> {
        self.job.take()
    }

    /// What was done by it has failed.
    pub fn has_failed(&mut self) {
        self.failed = true;
    }

    fn is_for_ring(&self) -> bool {
        matches!(self.job, Some(Job::Read { .. } | Job::Write { .. }))
    }

    /// Does it, in this thread.
    pub fn go(mut self) {
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

impl Drop for Run {
    fn drop(&mut self) {
        // One that nobody has done - the threads could not be started - is done now: somebody waits for it.
        if let Some(job) = self.job.take() {
            Run { job: Some(job), of: None, failed: false }.go();
        }
        if let Some((shared, queue, at)) = self.of.take() {
            shared.over(&queue, at, self.failed);
        }
    }
}

impl Executors {
    /// Has these done, as soon as can be.
    pub fn give(&self, runs: impl IntoIterator<Item = Run>) {
        for run in runs {
            let run = match self.inner.ring.get().filter(|_| run.is_for_ring()) {
                Some(ring) => ring.give(run),
                None => Some(run),
            };
            if let Some(run) = run {
                self.give_thread(run);
            }
        }
    }

    /// Reads and writes are done by this from now on.
    pub fn set_ring(&self, ring: Ring) {
        // It is set once.
        let _ = self.inner.ring.set(ring);
    }

    /// The ring is there.
    pub fn has_ring(&self) -> bool {
        self.inner.ring.get().is_some()
    }

    /// Nothing more will come but what is under way; that is done.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.inner.wanted.notify_all();
        if let Some(ring) = self.inner.ring.get() {
            ring.close();
        }
    }

    fn give_thread(&self, run: Run) {
        let mut pool = self.lock();
        if pool.is_closed {
            drop(pool);
            return run.go();
        }
        pool.runs.push_back(run);
        let starts = pool.idle < pool.runs.len() && pool.threads < THREADS_MAX;
        if starts {
            pool.threads += 1;
        }
        drop(pool);
        if !starts {
            return self.inner.wanted.notify_one();
        }
        let executors = self.clone();
        if thread::Builder::new().name("hoistway-io".into()).spawn(move || executors.work()).is_err() {
            let mut pool = self.lock();
            pool.threads -= 1;
            // Some thread there is will take it; where there is none this one has to.
            let run = if pool.threads == 0 { pool.runs.pop_front() } else { None };
            drop(pool);
            if let Some(run) = run {
                run.go();
            }
        }
    }

    fn work(&self) {
        give_up_reserves();
        let mut pool = self.lock();
        loop {
            if let Some(run) = pool.runs.pop_front() {
                drop(pool);
                run.go();
                pool = self.lock();
                continue;
            }
            if pool.is_closed {
                pool.threads -= 1;
                return;
            }
            pool.idle += 1;
            pool = self.inner.wanted.wait(pool).unwrap_or_else(PoisonError::into_inner);
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
