//! `fsync` and synchronous writes: writes a file's dirty pages, waits for them, and then for a
//! commit of the journal or a flush of the drive's cache (`journal.rs`).

use hoistway_core::{Flags, Op};
use hoistway_fio::{Direction, WriteSync};
use hoistway_workload::{FileSync, IoUnit, Work};

use super::devices::MAIN;
use super::process::{DirectIo, Stage, SyncReason};
use super::state::{Flow, World};
use super::task::{ProcessId, Task};
use crate::error::Defect;
use crate::record::Observer;

impl<S: Observer> World<S> {
    /// Starts a sync: writes the dirty pages of the files that it syncs.
    pub(super) fn begin_sync(&mut self, id: ProcessId, reason: SyncReason) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        process.stage = Stage::Sync;
        process.sync.reason = reason;
        process.sync.start_ns = self.now_ns;
        let open = self.synced_files(id);
        let files: Vec<u32> = self.processes[id].files[open].iter().map(|open| open.file).collect();
        self.write_dirty(id.into(), &files)?;
        Ok(Flow::On)
    }

    /// Makes the sync that is due between requests.
    pub(super) fn begin_due_sync(&mut self, id: ProcessId, sync: FileSync) -> Result<Flow, Defect> {
        let process = &self.processes[id];
        let file = process.files[sync.file].file;
        // A process that bypasses the cache also syncs the pages of others, and waits for them.
        let has_pages = || self.cache.is_dirty(file) || self.cache.writeback_of(file) > 0;
        if !process.queues_syncs() || has_pages() {
            return self.begin_sync(id, SyncReason::Due(sync));
        }
        self.queue_sync(id, sync, file)?;
        Ok(Flow::On)
    }

    /// Starts a sync that is in flight like a request.
    fn queue_sync(&mut self, id: ProcessId, sync: FileSync, file: u32) -> Result<(), Defect> {
        let unit = IoUnit::new(Direction::Write, sync.file, 0, 0);
        let submitter = self.submitter_for(id, &unit);
        let start_ns = self.now_ns;
        let costs = self.host.costs;
        let process = &mut self.processes[id];
        process.in_flight += 1;
        process.task.debt_ns += process.call_ns(costs.system_call_ns) + costs.bio_ns;
        let issued_ns = start_ns + process.task.debt_ns;
        let slot = self.direct.insert(DirectIo::new(Work::Sync, (id, submitter), unit, start_ns, issued_ns));
        if !self.commit_request(slot, submitter, file, sync.data_only)? {
            self.direct_bio_over(slot, false)?;
        }
        Ok(())
    }

    /// Submits writes for the dirty pages of some files on behalf of a task.
    pub(super) fn write_dirty(&mut self, task: Task, files: &[u32]) -> Result<(), Defect> {
        let mut runs = std::mem::take(&mut self.scratch.runs);
        let submitter = self.submitter_of(task);
        self.devices[MAIN].plug(submitter);
        for file in files {
            self.cache.take_dirty(*file, 0, u64::MAX, u64::MAX, &mut runs);
            for (first, pages) in runs.drain(..) {
                self.submit_pages(task, *file, first, pages, Op::Write, Flags::SYNC)?;
            }
        }
        self.devices[MAIN].finish_plug(submitter, self.now_ns)?;
        self.scratch.runs = runs;
        Ok(())
    }

    /// Sleeps until none of the files' pages is under write-back.
    pub(super) fn wait_sync(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let under_way = self.synced_files(id).any(|open| {
            let file = self.processes[id].files[open].file;
            self.cache.writeback_of(file) > 0
        });
        if under_way || self.devices[MAIN].is_held_back(self.processes[id].task.submitter) {
            self.waiting.syncs.push(id.into());
            self.devices[MAIN].unplug(self.now_ns)?;
            return Ok(Flow::Block);
        }
        let costs = self.host.costs;
        let process = &mut self.processes[id];
        // `msync` is a system call, too.
        process.task.debt_ns += costs.system_call_ns;
        let data_only = match process.sync.reason {
            SyncReason::Due(sync) => sync.data_only,
            SyncReason::Write => process.job.syncs.sync == WriteSync::Dsync,
            SyncReason::Verification | SyncReason::End => false,
        };
        let stage = self.begin_commit(id, self.synced_files(id), data_only)?;
        let process = &mut self.processes[id];
        process.stage = stage;
        if stage == Stage::Synced {
            process.pay_completion();
        }
        Ok(Flow::On)
    }

    pub(super) fn synced(&mut self, id: ProcessId) -> Flow {
        self.report_failed_writes(id);
        let process = &mut self.processes[id];
        process.stage = process.sync.reason.then();
        if matches!(process.sync.reason, SyncReason::Due(_)) {
            process.generator.completed(Work::Sync);
            process.record_sync(process.sync.start_ns, self.now_ns);
        }
        Flow::On
    }

    /// Wakes the tasks that wait for the write-back of a file, or for fewer dirty pages.
    pub(super) fn written(&mut self, file: u32) {
        if self.cache.writeback_of(file) == 0 {
            while let Some(task) = self.waiting.syncs.pop() {
                self.wake(task);
            }
        }
        self.wake_throttled();
    }

    /// Wakes the writers that wait for fewer dirty pages, if there are few enough.
    pub(super) fn wake_throttled(&mut self) {
        if !self.waiting.throttled.is_empty() && !self.has_too_much_dirty() {
            while let Some(id) = self.waiting.throttled.pop() {
                self.wake(id.into());
            }
        }
    }

    pub(super) fn synced_files(&self, id: ProcessId) -> std::ops::Range<usize> {
        let process = &self.processes[id];
        let one = |file: usize| file..file + 1;
        match process.sync.reason {
            SyncReason::Due(sync) => one(sync.file),
            SyncReason::Write => one(process.current.unit.file),
            SyncReason::Verification | SyncReason::End => 0..process.files.len(),
        }
    }
}
