//! Threads for what would block: they are started when there is work for them, and wake the engine when it is done.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::files::BlockFile;
use super::{Io, IoDone};

/// Threads that do block I/O.
#[derive(Debug)]
pub(super) struct Helpers {
    shared: Arc<Shared>,
    threads: usize,
    threads_max: usize,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    wake: Arc<OwnedFd>,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    done: Vec<(u64, IoDone)>,
    idle: usize,
    over: bool,
}

/// Block I/O for a thread.
#[derive(Debug)]
pub(super) struct Job {
    pub tag: u64,
    pub file: BlockFile,
    pub io: Io,
    /// How much of it is done already.
    pub at: u64,
}

impl Helpers {
    /// None yet, at most so many. They write to this eventfd.
    pub fn new(threads_max: usize, wake: Arc<OwnedFd>) -> Helpers {
        let shared = Shared { state: Mutex::default(), work: Condvar::new(), wake };
        Helpers { shared: Arc::new(shared), threads: 0, threads_max }
    }

    pub fn start(&mut self, job: Job) {
        let mut state = self.shared.lock();
        state.jobs.push_back(job);
        let all_busy = state.jobs.len() > state.idle;
        drop(state);
        if all_busy && self.threads < self.threads_max {
            self.add_thread();
        }
        self.shared.work.notify_one();
    }

    /// Takes what is done.
    pub fn take_done(&mut self, into: &mut Vec<(u64, IoDone)>) {
        into.append(&mut self.shared.lock().done);
    }

    fn add_thread(&mut self) {
        let shared = self.shared.clone();
        let made = std::thread::Builder::new().name("hoistway-io".into()).spawn(move || shared.work());
        match made {
            Ok(_) => self.threads += 1,
            Err(_) if self.threads > 0 => {}
            Err(error) => {
                // Without any thread it is done here, late but not never.
                tracing::warn!(%error, "no thread for block I/O can be started");
                self.shared.work_off();
            }
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        // The threads end by themselves: one that waits for a medium that hangs is not waited for.
        self.shared.lock().over = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        while !state.over {
            let Some(job) = state.jobs.pop_front() else {
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            drop(state);
            self.perform(job);
            state = self.lock();
        }
    }

    fn work_off(&self) {
        loop {
            let Some(job) = self.lock().jobs.pop_front() else { return };
            self.perform(job);
        }
    }

    fn perform(&self, job: Job) {
        let done = job.file.perform(job.io, job.at);
        let mut state = self.lock();
        state.done.push((job.tag, done));
        let first = state.done.len() == 1;
        drop(state);
        // Whoever put the first one there has woken the engine, or is about to.
        if first {
            wake(&self.wake);
        }
    }
}

/// An eventfd for waking an engine.
pub(super) fn waker(flags: EventfdFlags) -> std::io::Result<Arc<OwnedFd>> {
    Ok(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | flags)?))
}

/// Wakes the engine that waits for this eventfd. It can fail only when 2^64 - 2 wakes were not heeded yet.
pub(super) fn wake(eventfd: &OwnedFd) {
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}
