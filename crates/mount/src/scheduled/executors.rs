//! Executors of dispatched jobs: io_uring for reads and writes of files that are not on FUSE,
//! worker threads for everything else.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::ring::Ring;
use super::task::Task;
use crate::passthrough::drop_cap_sys_resource;

/// Maximum number of worker threads. Several devices may hang, each with as many requests as its
/// depth.
const THREADS_MAX: usize = 256;

/// Time without a task after which a worker thread ends.
const THREAD_IDLE: Duration = Duration::from_secs(5);

/// The executors of a gate.
#[derive(Clone, Default)]
pub(super) struct Executors {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    pool: Mutex<Pool>,
    /// Wakes a worker thread.
    wake: Condvar,
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

impl Executors {
    /// Starts tasks as soon as possible.
    pub fn submit(&self, tasks: impl IntoIterator<Item = Task>) {
        for task in tasks {
            #[cfg(feature = "simulated")]
            if let Some(host) = super::system::simulated::host() {
                host.start(Box::new(move || task.run()));
                continue;
            }
            let task = match self.inner.ring.get().filter(|_| task.suits_ring()) {
                Some(ring) => ring.submit(task),
                None => Some(task),
            };
            if let Some(task) = task {
                self.submit_to_thread(task);
            }
        }
    }

    /// Starts the io_uring thread for reads and writes. Without io_uring, worker threads read and
    /// write.
    pub fn start_ring(&self) {
        match Ring::start() {
            // Set only once.
            Ok(ring) => drop(self.inner.ring.set(ring)),
            Err(error) => tracing::info!("io_uring cannot be used ({error}): threads read and write instead"),
        }
    }

    /// Returns true if io_uring is available.
    pub fn has_ring(&self) -> bool {
        self.inner.ring.get().is_some()
    }

    /// Accepts no more tasks; those in flight are completed.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.inner.wake.notify_all();
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
            return self.inner.wake.notify_one();
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
            let waited = self.inner.wake.wait_timeout(pool, THREAD_IDLE).unwrap_or_else(PoisonError::into_inner);
            pool = waited.0;
            pool.idle -= 1;
            // A task that was submitted meanwhile counts on this thread.
            if waited.1.timed_out() && pool.tasks.is_empty() {
                pool.threads -= 1;
                return;
            }
        }
    }

    /// Releases memory that is needed only under load.
    pub fn release_memory(&self) {
        if let Some(ring) = self.inner.ring.get() {
            ring.release_memory();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.inner.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
