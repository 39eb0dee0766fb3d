//! Threads for what would block: they are started when there is work for them, and wake the engine
//! when it is done.
//!
//! Each file has threads of its own, so that a medium that hangs, or has a long queue before it,
//! keeps none from the others.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::engine::{Io, IoDone};
use crate::files::BlockFile;

/// Threads that do block I/O, by file.
#[derive(Debug)]
pub(crate) struct Helpers {
    done: Arc<Done>,
    files: Vec<Crew>,
    threads_max: usize,
}

/// The threads of a file.
#[derive(Debug)]
struct Crew {
    shared: Arc<Shared>,
    threads: usize,
}

/// What is done, of all files.
#[derive(Debug)]
struct Done {
    list: Mutex<Vec<(u64, IoDone)>>,
    wake: Arc<OwnedFd>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    done: Arc<Done>,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    over: bool,
}

/// Block I/O for a thread.
#[derive(Debug)]
pub(crate) struct Job {
    pub tag: u64,
    pub file: BlockFile,
    pub io: Io,
    /// How much of it is done already.
    pub at: u64,
}

impl Helpers {
    /// None yet, at most so many for each file. They write to this eventfd.
    pub fn new(threads_max: usize, wake: Arc<OwnedFd>) -> Helpers {
        Helpers { done: Arc::new(Done { list: Mutex::default(), wake }), files: Vec::new(), threads_max }
    }

    pub fn start(&mut self, job: Job) {
        let place = job.io.file.0 as usize;
        while self.files.len() <= place {
            let shared = Shared { state: Mutex::default(), work: Condvar::new(), done: self.done.clone() };
            self.files.push(Crew { shared: Arc::new(shared), threads: 0 });
        }
        if let Some(crew) = self.files.get_mut(place) {
            crew.start(job, self.threads_max);
        }
    }

    /// Takes what is done.
    pub fn take_done(&mut self, into: &mut Vec<(u64, IoDone)>) {
        into.append(&mut lock(&self.done.list));
    }
}

impl Crew {
    fn start(&mut self, job: Job, threads_max: usize) {
        let mut state = lock(&self.shared.state);
        state.jobs.push_back(job);
        let all_busy = state.jobs.len() > state.idle;
        drop(state);
        if all_busy && self.threads < threads_max {
            self.add_thread();
        }
        self.shared.work.notify_one();
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

impl Drop for Crew {
    fn drop(&mut self) {
        // The threads end by themselves: one that waits for a medium that hangs is not waited for.
        lock(&self.shared.state).over = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        let mut state = lock(&self.state);
        while !state.over {
            let Some(job) = state.jobs.pop_front() else {
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            drop(state);
            self.perform(job);
            state = lock(&self.state);
        }
    }

    fn work_off(&self) {
        loop {
            let Some(job) = lock(&self.state).jobs.pop_front() else { return };
            self.perform(job);
        }
    }

    fn perform(&self, job: Job) {
        let done = job.file.perform(job.io, job.at);
        let mut list = lock(&self.done.list);
        list.push((job.tag, done));
        let first = list.len() == 1;
        drop(list);
        // Whoever put the first one there has woken the engine, or is about to.
        if first {
            wake(&self.done.wake);
        }
    }
}

/// Nothing is left half-done by a thread that panics with one of these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An eventfd for waking an engine.
pub(crate) fn waker(flags: EventfdFlags) -> std::io::Result<Arc<OwnedFd>> {
    Ok(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | flags)?))
}

/// Wakes the engine that waits for this eventfd. It can fail only when 2^64 - 2 wakes were not
/// heeded yet.
pub(crate) fn wake(eventfd: &OwnedFd) {
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::buffer::Buffer;
    use crate::engine::{FileId, IoOp};

    /// A read of a pipe at the place where preadv2(2) has it read like any reader: it waits for the
    /// writer.
    fn hanging_read(file: &BlockFile, tag: u64) -> Job {
        let io = Io { file: FileId(0), op: IoOp::Read, offset: u64::MAX, length: 1, buffer: Some(Buffer::alone(512)) };
        Job { tag, file: file.clone(), io, at: 0 }
    }

    #[test]
    fn a_file_that_hangs_keeps_no_other_from_being_served() {
        let wake = waker(EventfdFlags::empty()).expect("an eventfd");
        let mut helpers = Helpers::new(2, wake.clone());
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let hanging = BlockFile::new(reader);
        (0..40).for_each(|tag| helpers.start(hanging_read(&hanging, tag)));
        let sound = BlockFile::new(tempfile::tempfile().expect("a file").into());
        let io = Io { file: FileId(1), op: IoOp::Flush, offset: 0, length: 0, buffer: None };
        helpers.start(Job { tag: 77, file: sound, io, at: 0 });
        let patience = Timespec { tv_sec: 20, tv_nsec: 0 };
        let woken = poll(&mut [PollFd::new(&wake, PollFlags::IN)], Some(&patience)).expect("a poll");
        let mut done = Vec::new();
        helpers.take_done(&mut done);
        drop(writer);
        assert_eq!((woken, done.iter().map(|(tag, _)| *tag).collect::<Vec<_>>()), (1, vec![77]));
    }
}
