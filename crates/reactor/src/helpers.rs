//! Helper threads for operations that would block the engine. They start on demand, and wake the
//! engine when an operation has ended.
//!
//! Each file has threads of its own, so that a medium that hangs or has a long queue delays no
//! other.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::engine::{Io, IoDone};
use crate::files::BlockFile;
use crate::wake::Waker;

/// The helper threads of all files.
#[derive(Debug)]
pub(crate) struct HelperThreads {
    results: Arc<Results>,
    files: Vec<FileThreads>,
    threads_max: usize,
}

/// The threads of a file.
#[derive(Debug)]
struct FileThreads {
    shared: Arc<Shared>,
    threads: usize,
}

/// Results of all files, which the engine has not taken yet.
#[derive(Debug)]
struct Results {
    list: Mutex<Vec<(u64, IoDone)>>,
    waker: Waker,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    results: Arc<Results>,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

/// An operation for a helper thread.
#[derive(Debug)]
pub(crate) struct Job {
    pub tag: u64,
    pub file: BlockFile,
    pub io: Io,
    /// Bytes of a read or write that are already done.
    pub at: u64,
}

impl HelperThreads {
    /// Creates the table, without threads. Each file gets at most `threads_max`; they wake the
    /// engine by `waker`.
    pub fn new(threads_max: usize, waker: Waker) -> HelperThreads {
        let results = Arc::new(Results { list: Mutex::default(), waker });
        HelperThreads { results, files: Vec::new(), threads_max }
    }

    /// Starts an operation.
    pub fn start(&mut self, job: Job) {
        let index = job.io.file.0 as usize;
        while self.files.len() <= index {
            let shared = Shared { state: Mutex::default(), work: Condvar::new(), results: self.results.clone() };
            self.files.push(FileThreads { shared: Arc::new(shared), threads: 0 });
        }
        if let Some(threads) = self.files.get_mut(index) {
            threads.start(job, self.threads_max);
        }
    }

    /// Appends the results of ended operations, each with the tag of its job.
    pub fn take_results(&mut self, to: &mut Vec<(u64, IoDone)>) {
        to.append(&mut lock(&self.results.list));
    }
}

impl FileThreads {
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
        let made = std::thread::Builder::new().name("hoistway-io".into()).spawn(move || shared.run());
        match made {
            Ok(_) => self.threads += 1,
            Err(_) if self.threads > 0 => {}
            Err(error) => {
                tracing::warn!(%error, "no thread for block I/O can be started: the engine carries out an operation itself");
                self.shared.run_queued();
            }
        }
    }
}

impl Drop for FileThreads {
    fn drop(&mut self) {
        // The threads end by themselves. The engine does not wait for them, because a medium may
        // hang.
        lock(&self.shared.state).is_closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.is_closed {
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

    /// Carries out all queued operations.
    fn run_queued(&self) {
        loop {
            let Some(job) = lock(&self.state).jobs.pop_front() else { return };
            self.perform(job);
        }
    }

    fn perform(&self, job: Job) {
        let done = job.file.perform(job.io, job.at);
        let mut list = lock(&self.results.list);
        list.push((job.tag, done));
        let is_first = list.len() == 1;
        drop(list);
        // The thread that adds the first result wakes the engine for those that follow.
        if is_first {
            self.results.waker.wake();
        }
    }
}

/// Locks a mutex. A panic of another thread leaves the state consistent, because every change is a
/// single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::buffer::Buffer;
    use crate::engine::{FileId, IoOp};

    /// Returns a read of a pipe that blocks until the writer writes: preadv2(2) at offset -1 reads
    /// like read(2).
    fn hanging_read(file: &BlockFile, tag: u64) -> Job {
        let io = Io { file: FileId(0), op: IoOp::Read, offset: u64::MAX, length: 1, buffer: Some(Buffer::alone(512)) };
        Job { tag, file: file.clone(), io, at: 0 }
    }

    #[test]
    fn a_file_that_hangs_does_not_delay_another() {
        let waker = Waker::new(EventfdFlags::empty()).expect("an eventfd");
        let mut helpers = HelperThreads::new(2, waker.clone());
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let hanging = BlockFile::new(reader);
        (0..40).for_each(|tag| helpers.start(hanging_read(&hanging, tag)));
        let sound = BlockFile::new(tempfile::tempfile().expect("a file").into());
        let io = Io { file: FileId(1), op: IoOp::Flush, offset: 0, length: 0, buffer: None };
        helpers.start(Job { tag: 77, file: sound, io, at: 0 });
        let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
        let woken = poll(&mut [PollFd::new(&waker, PollFlags::IN)], Some(&timeout)).expect("a poll");
        let mut done = Vec::new();
        helpers.take_results(&mut done);
        drop(writer);
        assert_eq!((woken, done.iter().map(|(tag, _)| *tag).collect::<Vec<_>>()), (1, vec![77]));
    }
}
