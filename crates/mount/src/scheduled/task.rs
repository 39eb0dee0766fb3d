//! A dispatched job, with the request that its end completes.

use std::io;
use std::sync::Arc;

use hoistway_reactor::{Buffer, suits_ring};
use rustix::io::ReadWriteFlags;

use super::Shared;
use super::queue::{Queue, QueuedRequest};
use crate::{Backing, Job};

/// A dispatched job. Dropping it completes the request in the device queue.
pub(super) struct Task {
    job: Option<Job>,
    queued: Option<(Arc<Shared>, Arc<Queue>, QueuedRequest)>,
    failed: bool,
}

impl Task {
    /// Creates the task of a request in a device queue.
    pub fn new(shared: &Arc<Shared>, queue: &Arc<Queue>, queued: QueuedRequest, job: Job) -> Task {
        Task { job: Some(job), queued: Some((shared.clone(), queue.clone(), queued)), failed: false }
    }

    /// Creates a task that occupies no device.
    pub fn unscheduled(job: Job) -> Task {
        Task { job: Some(job), queued: None, failed: false }
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

    /// Returns true if io_uring can carry out the job: a read or write of a file on a file system
    /// that permits it ([`suits_ring`]).
    pub fn suits_ring(&self) -> bool {
        match &self.job {
            Some(Job::Read { file, .. } | Job::Write { file, .. }) => {
                file.identity().is_none_or(|identity| suits_ring(identity.magic))
            }
            _ => false,
        }
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
            Task { job: Some(job), queued: None, failed: false }.run();
        }
        if let Some((shared, queue, queued)) = self.queued.take() {
            shared.complete(&queue, &queued, self.failed);
        }
    }
}

/// Writes all data, unless an error or the end of the medium stops it after the first bytes.
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
