//! What becomes of I/O that the drive could not do.

use hoistway_drive::Status;

use super::World;
use super::process::Stage;
use crate::error::SimError;
use crate::record::Observer;

/// What of a run failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// Requests that the drive answered with an error.
    pub requests: u64,
    /// Dirty pages that could not be written: they are lost.
    pub pages_lost: u64,
}

impl<S: Observer> World<S> {
    /// The drive has done something.
    pub(super) fn drive_event(&mut self) {
        let mut tokens = std::mem::take(&mut self.tokens);
        let status = self.device.drive_event(self.now_ns, &mut tokens);
        if status.is_some() {
            self.idle_events = 0;
        }
        let failed = matches!(status, Some(Status::MediaError { .. }));
        self.failures.requests += u64::from(failed);
        for token in tokens.drain(..) {
            self.bio_over(super::Token::decode(token), failed);
        }
        self.tokens = tokens;
    }

    /// A bio that was to read pages failed, and so do they. Who waits for one that was read with others tries it alone; who waits for one that was
    /// read alone gets an error.
    pub(super) fn read_failed(&mut self, file: u32, first: u64, pages: u64) {
        self.cache.fail_read(file, first, pages);
        for (task, page) in &self.page_waiters[file as usize] {
            if pages == 1
                && *page == first
                && let Some(process) = self.processes.get_mut(*task as usize)
            {
                process.fail(self.now_ns);
            }
        }
    }

    /// A bio that was to write pages failed: they are clean and lost, and the next to sync the file is told.
    pub(super) fn write_failed(&mut self, file: u32, pages: u64) {
        self.failures.pages_lost += pages;
        self.files_with_errors.insert(file);
    }

    /// Whether writes of a file that is being synced have failed since the last sync.
    pub(super) fn report_failed_writes(&mut self, task: u32) {
        for open in self.synced_files(task) {
            let process = &mut self.processes[task as usize];
            if process.files.get(open).is_some_and(|open| self.files_with_errors.remove(&open.file)) {
                process.fail(self.now_ns);
            }
        }
    }

    /// Why nothing goes on: the drive does not answer, or the simulator has a defect.
    pub(super) fn stuck(&self) -> SimError {
        let (elevator, seed, now_ns) = (self.elevator.info().name.to_owned(), self.seed, self.now_ns);
        let waiting = self.processes.iter().find(|process| process.stage != Stage::Done);
        let state = waiting.map_or(String::new(), |process| {
            format!("process {} of job `{}` {}", process.plan.pid, process.job.name, process.stage.waits_for())
        });
        match self.device.unanswered() {
            Some(commands) => SimError::DriveHangs { elevator, seed, now_ns, commands, state },
            None => SimError::Stuck { elevator, seed, now_ns, unfinished: self.unfinished, state },
        }
    }
}
