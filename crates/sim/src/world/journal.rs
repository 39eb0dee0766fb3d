//! The journal's thread, and the processes that wait for commits.
//!
//! A commit writes the ordered data first and waits for it. Next it writes the descriptor and the
//! metadata, and last the commit block, with PREFLUSH and FUA if the file system uses barriers.
//! After that the metadata blocks are dirty in their final places, where the flusher writes them. A
//! process that syncs a file waits for the transaction that contains the file's inode. If there is
//! none, or no journal, it waits for a flush of the drive's cache.

use hoistway_core::{Bio, Flags, Op};
use hoistway_fio::Ioengine;

use super::devices::MAIN;
use super::process::Stage;
use super::state::{Flow, Token, World};
use super::task::{ProcessId, SubmitterId, Task};
use super::threads::{Allocation, Commit, CommitStep};
use crate::error::Defect;
use crate::events::EventKind;
use crate::host::files::File;
use crate::host::journal::Transaction;
use crate::host::page::PAGE_SECTORS;
use crate::record::Observer;

/// The journal thread's process id.
pub(super) const PID: u32 = 101;

impl<S: Observer> World<S> {
    /// Records a write up to byte `end` of a file in the running transaction: the inode has
    /// changed, and block allocations if the file grew and its blocks are allocated now.
    pub(super) fn record_change(&mut self, file: u32, end: u64) {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.covers(file)) else { return };
        let length = &mut journal.lengths[file as usize];
        length.written = end.max(length.written);
        let grows = journal.allocation == Allocation::AtWrite && length.grow();
        self.add_change(file, grows);
    }

    /// Records that data up to byte `end` of a file, or up to its end, have reached the drive: the
    /// blocks that they filled first are marked as written.
    pub(super) fn record_written(&mut self, file: u32, end: u64) {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.covers(file)) else { return };
        let length = &mut journal.lengths[file as usize];
        if journal.allocation == Allocation::AtCompletion && length.grow_to(end) {
            self.add_change(file, true);
        }
    }

    /// Adds the change of a file to the running transaction.
    fn add_change(&mut self, file: u32, grows: bool) {
        let Some(journal) = &mut self.journal else { return };
        if journal.running.add(file, grows) {
            let at_ns = self.now_ns + journal.config.commit_interval_ms * 1_000_000;
            self.events.schedule(at_ns, EventKind::JournalTick(journal.running.id));
        }
    }

    /// Requests the commit of a transaction whose interval is over, unless it was committed before.
    pub(super) fn journal_tick(&mut self, id: u64) {
        let Some(journal) = &mut self.journal else { return };
        if journal.running.id == id && !journal.running.files.is_empty() {
            journal.wanted = true;
            self.wake(Task::Journal);
        }
    }

    /// Decides what a process waits for after the data of these files has reached the drive, and
    /// requests it. With `data_only`, a change of timestamps alone does not count.
    pub(super) fn begin_commit(
        &mut self,
        id: ProcessId,
        open: std::ops::Range<usize>,
        data_only: bool,
    ) -> Result<Stage, Defect> {
        let process = &self.processes[id];
        if process.job.submission.ioengine == Ioengine::Null {
            return Ok(Stage::Synced);
        }
        let files: Vec<u32> = process.files[open].iter().map(|open| open.file).collect();
        let commit = self.needed_commit(&files, data_only);
        self.processes[id].sync.commit = commit;
        match commit {
            Commit::Nothing => return Ok(Stage::Synced),
            Commit::Transaction(_) => self.wake(Task::Journal),
            Commit::Flush => {
                let submitter = self.processes[id].task.submitter;
                if !self.devices[MAIN].flush(submitter, Token::Flushed(id).encode(), self.now_ns)? {
                    self.processes[id].sync.commit = Commit::Nothing;
                    return Ok(Stage::Synced);
                }
                self.processes[id].task.debt_ns += self.host.costs.bio_ns;
            }
        }
        Ok(Stage::Commit)
    }

    /// The commit, or the flush of the drive's cache, that makes the written data of files safe. A
    /// transaction with one of the files is requested to be committed. Without a journal, and for
    /// the disk itself, the cache is flushed.
    pub(super) fn needed_commit(&mut self, files: &[u32], data_only: bool) -> Commit {
        let Some(journal) = &mut self.journal else { return Commit::Flush };
        let has = |transaction: &Transaction| {
            files.iter().any(|file| transaction.files.get(file).is_some_and(|grew| *grew || !data_only))
        };
        if has(&journal.running) {
            journal.wanted = true;
            Commit::Transaction(journal.running.id)
        } else if has(&journal.committing) {
            Commit::Transaction(journal.committing.id)
        } else if journal.config.barriers || files.iter().any(|file| !journal.covers(*file)) {
            Commit::Flush
        } else {
            Commit::Nothing
        }
    }

    /// Lets a direct request, whose data have reached the drive, wait until they are safe. Returns
    /// false if they are. With `data_only`, a change of timestamps alone does not count.
    pub(super) fn commit_request(
        &mut self,
        slot: u32,
        submitter: SubmitterId,
        file: u32,
        data_only: bool,
    ) -> Result<bool, Defect> {
        match self.needed_commit(&[file], data_only) {
            Commit::Nothing => Ok(false),
            Commit::Flush => {
                let (drive, now_ns) = (self.files[file as usize].drive, self.now_ns);
                self.devices[drive].flush(submitter, Token::Direct(slot).encode(), now_ns)
            }
            Commit::Transaction(id) => {
                if let Some(journal) = &mut self.journal {
                    journal.requests.push((id, slot));
                }
                self.wake(Task::Journal);
                Ok(true)
            }
        }
    }

    /// Sleeps until the transaction is committed, or the drive's cache is flushed.
    pub(super) fn wait_commit(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        let is_over = match (process.sync.commit, &self.journal) {
            (Commit::Transaction(id), Some(journal)) => journal.committed >= id,
            (Commit::Flush, _) => false,
            _ => true,
        };
        if is_over {
            process.sync.commit = Commit::Nothing;
            process.stage = Stage::Synced;
            process.pay_completion();
            return Ok(Flow::On);
        }
        if let (Commit::Transaction(_), Some(journal)) = (process.sync.commit, &mut self.journal) {
            journal.waiters.push(id);
        }
        self.devices[MAIN].unplug(self.now_ns)?;
        Ok(Flow::Block)
    }

    /// Records that the drive's cache was flushed for a process, or that the flush failed.
    pub(super) fn flushed(&mut self, id: ProcessId, failed: bool) {
        let process = &mut self.processes[id];
        process.sync.commit = Commit::Nothing;
        if failed {
            process.fail(self.now_ns);
        }
        self.wake(id.into());
    }

    /// Records the completion of a bio of the journal's thread.
    pub(super) fn logged(&mut self, failed: bool) {
        let Some(journal) = &mut self.journal else { return };
        journal.failed |= failed;
        journal.pending = journal.pending.saturating_sub(1);
        if journal.pending == 0 {
            self.wake(Task::Journal);
        }
    }

    /// Runs the journal's thread until it has to sleep.
    pub(super) fn run_journal(&mut self) -> Result<(), Defect> {
        loop {
            if self.pay(Task::Journal) {
                return Ok(());
            }
            let submitter = self.submitter_of(Task::Journal);
            if self.devices[MAIN].is_held_back(submitter) || !self.journal_step()? {
                self.task_mut(Task::Journal).is_blocked = true;
                return Ok(());
            }
        }
    }

    /// Does one step of a commit. Returns false if there is nothing to do now.
    fn journal_step(&mut self) -> Result<bool, Defect> {
        let Some(journal) = &mut self.journal else { return Ok(false) };
        match journal.step {
            CommitStep::Idle => return self.close_transaction(),
            CommitStep::Data => {
                if self.ordered_files().iter().any(|file| self.cache.writeback_of(*file) > 0) {
                    self.waiting.syncs.push(Task::Journal);
                    self.devices[MAIN].unplug(self.now_ns)?;
                    return Ok(false);
                }
                self.write_log(CommitStep::Log)?;
            }
            _ if journal.pending > 0 => return Ok(false),
            CommitStep::Log => self.write_log(CommitStep::Commit)?,
            CommitStep::Commit => self.committed()?,
        }
        Ok(true)
    }

    /// Closes the running transaction if its commit is wanted, and submits the data that have to be
    /// on the disk before it. Returns false if there is nothing to commit.
    fn close_transaction(&mut self) -> Result<bool, Defect> {
        let Some(journal) = &mut self.journal else { return Ok(false) };
        if !std::mem::take(&mut journal.wanted) || journal.running.files.is_empty() {
            return Ok(false);
        }
        let next = Transaction { id: journal.running.id + 1, ..Transaction::default() };
        journal.committing = std::mem::replace(&mut journal.running, next);
        journal.step = CommitStep::Data;
        let files = self.ordered_files();
        self.write_dirty(Task::Journal, &files)?;
        Ok(true)
    }

    /// Files whose data has to be on the disk before the transaction.
    fn ordered_files(&self) -> Vec<u32> {
        let Some(journal) = &self.journal else { return Vec::new() };
        let all = journal.config.all_data;
        journal.committing.files.iter().filter(|(_, grew)| all || **grew).map(|(file, _)| *file).collect()
    }

    /// Writes descriptor and metadata, or the commit block.
    fn write_log(&mut self, step: CommitStep) -> Result<(), Defect> {
        let submitter = self.submitter_of(Task::Journal);
        let context = self.devices[MAIN].context(submitter);
        let most = u64::from(self.host.queue.max_sectors) / PAGE_SECTORS;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.step = step;
        let blocks = if step == CommitStep::Log { journal.committing.log_blocks() } else { 1 };
        let is_ordered = step == CommitStep::Commit && journal.config.barriers;
        if step == CommitStep::Log {
            self.devices[MAIN].plug(submitter);
        }
        for (first, blocks) in journal.log.take(blocks) {
            for start in (first..first + blocks).step_by(most.max(1) as usize) {
                let count = most.max(1).min(first + blocks - start);
                let (sector, sectors) = (start * PAGE_SECTORS, (count * PAGE_SECTORS) as u32);
                let (token, flags) = (Token::Logged.encode(), Flags::SYNC);
                let bio = Bio { token, context, op: Op::Write, sector, sectors, flags };
                journal.task.debt_ns += self.host.costs.bio_ns;
                journal.pending += 1;
                match is_ordered {
                    true => self.devices[MAIN].submit_forced(submitter, bio, true, self.now_ns)?,
                    false => self.devices[MAIN].submit(submitter, bio, self.now_ns)?,
                }
            }
        }
        if step == CommitStep::Log {
            self.devices[MAIN].finish_plug(submitter, self.now_ns)?;
        }
        self.devices[MAIN].unplug(self.now_ns)
    }

    /// Ends a commit: wakes the waiting processes, and marks the metadata as dirty in its final
    /// place.
    fn committed(&mut self) -> Result<(), Defect> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.step = CommitStep::Idle;
        journal.task.debt_ns += journal.completion.draw_ns();
        journal.committed = journal.committing.id;
        let id = journal.committed;
        let (disk, files) = (journal.disk, std::mem::take(&mut journal.committing.files));
        let waiters = std::mem::take(&mut journal.waiters);
        let failed = std::mem::take(&mut journal.failed);
        for (file, grew) in files {
            for page in self.metadata_of(file, grew) {
                self.cache.make_dirty(disk, page, self.now_ns);
            }
        }
        self.dirtied();
        for waiter in waiters {
            let process = &mut self.processes[waiter];
            if failed && process.sync.commit == Commit::Transaction(id) {
                process.fail(self.now_ns);
            }
            self.wake(waiter.into());
        }
        self.end_requests(id, failed)
    }

    /// Completes the direct requests that waited for this transaction.
    fn end_requests(&mut self, id: u64, failed: bool) -> Result<(), Defect> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let (ended, waiting) = journal.requests.iter().partition(|(transaction, _)| *transaction <= id);
        journal.requests = waiting;
        let ended: Vec<(u64, u32)> = ended;
        for (_, slot) in ended {
            self.direct_bio_over(slot, failed)?;
        }
        Ok(())
    }

    /// The blocks of a file's metadata, in the head of its group: an inode, and if it grew a bitmap
    /// and the descriptors of all groups.
    fn metadata_of(&self, file: u32, grew: bool) -> Vec<u64> {
        // The disk itself is the last file.
        let pages = self.files.last().map_or(0, File::pages);
        let group_pages = (pages / u64::from(self.host.groups)).max(1);
        let page = self.files[file as usize].locate(0).map_or(0, |(sector, _)| sector / PAGE_SECTORS);
        let head = page / group_pages * group_pages;
        // 250 blocks of the table have room after the bitmaps in the first MiB of a group.
        let inode = head + 4 + u64::from(file) % 250;
        if grew { vec![inode, head + 2, 1] } else { vec![inode] }
    }
}
