//! The steps of a process from one request to the next.

use std::collections::HashSet;

use hoistway_fio::{Direction, Ioengine, job::BlocksType};

use super::process::{CurrentRequest, Stage, SyncReason};
use super::state::{Flow, World};
use super::task::ProcessId;
use crate::error::Defect;
use crate::events::{EventKind, HORIZON_NS};
use crate::host::page::PAGE_BYTES;
use crate::record::Observer;
use hoistway_workload::{IoUnit, Work};

impl<S: Observer> World<S> {
    /// Runs a process until it sleeps or has to pay for CPU time.
    pub(super) fn run_process(&mut self, id: ProcessId) -> Result<(), Defect> {
        loop {
            if self.pay(id.into()) {
                return Ok(());
            }
            self.watchdog.steps_at_once += 1;
            if self.processes[id].has_to_leave() {
                self.processes[id].stage = Stage::Leave;
            }
            let flow = match self.processes[id].stage {
                Stage::NotStarted => Flow::Block,
                Stage::Starting => self.begin_job(id)?,
                Stage::Choose => self.choose(id)?,
                Stage::Think => self.think(id),
                Stage::Walk => self.walk(id)?,
                Stage::Metadata => self.wait_for_metadata(id)?,
                Stage::Read => self.read_page(id)?,
                Stage::Write => self.write_page(id)?,
                Stage::WriteThrough => self.begin_sync(id, SyncReason::Write)?,
                Stage::Submit => self.submit(id)?,
                Stage::Direct => self.wait_direct(id)?,
                Stage::Finish => self.finish(id)?,
                Stage::Sync => self.wait_sync(id)?,
                Stage::Commit => self.wait_commit(id)?,
                Stage::Synced => self.synced(id),
                Stage::Leave => self.leave(id)?,
                Stage::Done => Flow::Block,
            };
            let process = &mut self.processes[id];
            if flow == Flow::Block {
                process.task.is_blocked = true;
                process.stats.sleeps += 1;
                return Ok(());
            }
            if self.watchdog.steps_at_once > super::event_loop::STEPS_AT_ONCE_MAX {
                process.task.is_blocked = true;
                return Ok(());
            }
        }
    }

    fn begin_job(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        if self.now_ns < process.wake_ns && process.plan.delay_ns > 0 {
            return Ok(Flow::Block);
        }
        process.start(self.now_ns);
        if let Some(reservation) = process.plan.reservation {
            for device in self.devices.iter_mut() {
                device.reserve(process.task.submitter, reservation, self.now_ns)?;
            }
        }
        self.drop_cached_files(id);
        self.fill_cache(id);
        self.join_shares(id);
        Ok(Flow::On)
    }

    /// Drops the cached pages of a process's files, as fio does when it opens them.
    pub(super) fn drop_cached_files(&mut self, id: ProcessId) {
        if self.processes[id].walk.is_some() {
            return self.begin_walk(id);
        }
        let process = &self.processes[id];
        if !process.job.cache.direct && process.job.cache.invalidate {
            for open in &process.files {
                self.cache.invalidate(open.file);
            }
        }
    }

    fn choose(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &self.processes[id];
        let reaps_late = (self.works_first || process.job.syncs.are_between_requests()) && process.has_room();
        if !reaps_late {
            self.reap(id)?;
        }
        let process = &self.processes[id];
        if process.task.debt_ns > 0 {
            return Ok(Flow::On);
        }
        let mut others = process.submission.priorities.iter().map(|known| known.1);
        if self.devices.are_full_for(process.task.submitter)
            || others.any(|submitter| self.devices.are_full_for(submitter))
        {
            return Ok(Flow::Block);
        }
        if process.player.is_some() {
            return self.choose_recorded(id);
        }
        if self.now_ns >= process.deadline_ns {
            self.processes[id].stage = Stage::Leave;
            return Ok(Flow::On);
        }
        if self.is_too_slow(id) {
            return Ok(Flow::On);
        }
        let process = &mut self.processes[id];
        if std::mem::take(&mut process.limits.drops_cache) {
            self.drop_cached_files(id);
        }
        let flow = self.choose_next(id)?;
        if reaps_late && flow == Flow::Block {
            self.reap(id)?;
            if self.processes[id].task.debt_ns > 0 {
                return Ok(Flow::On);
            }
        }
        Ok(flow)
    }

    /// Chooses between a pause, a sync and the next request.
    fn choose_next(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        if process.has_to_think(self.now_ns) {
            if process.in_flight > 0 && process.job.pauses.thinktime_blocks_type == BlocksType::Complete {
                return self.block(id);
            }
            return Ok(self.begin_thinking(id));
        }
        if process.in_flight + process.submission.batch.len() as u32 >= process.depth {
            process.submission.drains = process.low() < process.depth;
            return self.block(id);
        }
        if process.submission.drains && process.in_flight > process.low() {
            return Ok(Flow::Block);
        }
        process.submission.drains = false;
        if process.sync.due.is_none() && process.chosen.is_none() {
            process.sync.due = process.generator.next_sync();
        }
        if process.sync.due.is_some() && !process.submission.batch.is_empty() {
            self.submit_batch(id)?;
            return Ok(Flow::On);
        }
        if let Some(sync) = process.sync.due.take() {
            return self.begin_due_sync(id, sync);
        }
        if process.walk.is_some() {
            return self.pace_walk(id);
        }
        if let Some(flow) = self.wait_for_share(id) {
            return Ok(flow);
        }
        let process = &mut self.processes[id];
        let (pacing, since_ns) = (&process.pacing, self.now_ns - process.start_ns.min(self.now_ns));
        let next = || process.generator.next_of(|drawn| pacing.direction(drawn, since_ns));
        let Some(unit) = process.chosen.or_else(next) else {
            return self.next_pass(id);
        };
        process.chosen = Some(unit);
        let due_ns = process.start_ns.saturating_add(process.pacing.due_ns(unit.direction));
        if due_ns > self.now_ns {
            let until_ns = due_ns.min(process.deadline_ns);
            if !process.submission.batch.is_empty() {
                return self.block(id);
            }
            return Ok(self.sleep_until(id, until_ns));
        }
        self.begin(id, unit)
    }

    /// Sleeps until a request completes, after the batch of chosen requests is submitted.
    fn block(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        if self.processes[id].submission.batch.is_empty() {
            return Ok(Flow::Block);
        }
        self.submit_batch(id)?;
        Ok(Flow::On)
    }

    fn next_pass(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        if process.in_flight > 0 || !process.submission.batch.is_empty() {
            return self.block(id);
        }
        if process.generator.begin_verification() {
            if process.job.cache.direct {
                return Ok(Flow::On);
            }
            // What is verified comes from the disk: it is written, and dropped from the cache.
            process.limits.drops_cache = true;
            return self.begin_sync(id, SyncReason::Verification);
        }
        match process.generator.next_pass() {
            Some(_) => {
                if process.job.files.unlink_each_loop {
                    self.remove_files(id);
                }
                self.drop_cached_files(id);
            }
            None => process.stage = Stage::Leave,
        }
        Ok(Flow::On)
    }

    /// Drops what the cache has of the files of a process, as the kernel does when a file is
    /// removed that no other process has open. The files keep their places on the disk.
    fn remove_files(&mut self, id: ProcessId) {
        let others = self
            .processes
            .enumerate()
            .filter(|(other, process)| *other != id && process.stage.has_begun() && process.stage != Stage::Done);
        let open: HashSet<u32> = others.flat_map(|(_, process)| process.files.iter().map(|open| open.file)).collect();
        let files = self.processes[id].files.iter().map(|open| open.file);
        let removed: HashSet<u32> = files.filter(|file| !open.contains(file)).collect();
        self.cache.discard(&removed);
        self.wake_throttled();
    }

    /// Sleeps until `at_ns`; a completion may wake the process earlier.
    pub(super) fn sleep_until(&mut self, id: ProcessId, at_ns: u64) -> Flow {
        let at_ns = at_ns.min(HORIZON_NS);
        let process = &mut self.processes[id];
        if process.wake_ns != at_ns {
            process.wake_ns = at_ns;
            self.events.schedule(at_ns, EventKind::Wake(id.into()));
        }
        Flow::Block
    }

    fn begin_thinking(&mut self, id: ProcessId) -> Flow {
        let process = &mut self.processes[id];
        process.think_after = process.job.pauses.thinktime_blocks;
        process.stage = Stage::Think;
        let job = &process.job;
        if job.rates.rate_ignore_thinktime {
            process.pacing.pause(self.now_ns - process.start_ns.min(self.now_ns), job.pauses.thinktime_ns);
        }
        process.task.debt_ns += job.pauses.thinktime_spin_ns.min(job.pauses.thinktime_ns);
        let end_ns = self.now_ns.saturating_add(job.pauses.thinktime_ns).min(process.deadline_ns).min(HORIZON_NS);
        process.wake_ns = end_ns;
        self.events.schedule(end_ns, EventKind::Wake(id.into()));
        Flow::On
    }

    fn think(&mut self, id: ProcessId) -> Flow {
        let process = &mut self.processes[id];
        if self.now_ns < process.wake_ns {
            return Flow::Block;
        }
        process.limits.thought_ns = self.now_ns;
        process.stage = Stage::Choose;
        Flow::On
    }

    /// Starts a request.
    pub(super) fn begin(&mut self, id: ProcessId, unit: IoUnit) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        process.chosen = None;
        process.pacing.made(unit.direction, unit.bytes, &mut process.rate_rng);
        process.think_after = process.think_after.saturating_sub(1);
        process.stats.level.record_level(process.in_flight + process.submission.batch.len() as u32 + 1);
        let is_null = process.job.submission.ioengine == Ioengine::Null;
        let is_direct = (process.job.cache.direct || unit.direction == Direction::Trim) && !is_null;
        let is_batched = is_direct && process.batch_size() > 1 && unit.direction != Direction::Trim;
        self.count_share(id);
        let process = &mut self.processes[id];
        if is_batched {
            process.submission.batch.push(unit);
            if process.submission.batch.len() as u32 >= process.batch_size() {
                self.submit_batch(id)?;
            }
            return Ok(Flow::On);
        }
        process.stats.submit.record_batch(1);
        if is_direct {
            return self.begin_direct(id, unit);
        }
        let page = unit.offset / PAGE_BYTES;
        process.current = CurrentRequest {
            unit,
            start_ns: self.now_ns,
            page,
            last_page: (unit.offset + unit.bytes - 1) / PAGE_BYTES,
            planned: page,
            waited: false,
        };
        process.stage = match (process.job.submission.ioengine, unit.direction) {
            (Ioengine::Null, _) => Stage::Finish,
            (_, Direction::Read) => Stage::Read,
            (_, Direction::Write | Direction::Trim) => Stage::Write,
        };
        if process.stage == Stage::Finish {
            process.task.debt_ns += self.host.costs.system_call_ns;
        }
        Ok(Flow::On)
    }

    /// Records a request whose work is done and paid for.
    fn finish(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        let CurrentRequest { unit, start_ns, .. } = process.current;
        process.generator.completed(Work::Request);
        process.record(&unit, start_ns, start_ns, self.now_ns);
        process.stats.complete.record_batch(1);
        process.stage = Stage::Choose;
        self.check_completed(id, &unit, start_ns)?;
        Ok(Flow::On)
    }

    fn leave(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        self.reap(id)?;
        let process = &self.processes[id];
        if process.task.debt_ns > 0 {
            return Ok(Flow::On);
        }
        if process.in_flight > 0 || self.devices.are_full_for(process.task.submitter) {
            return Ok(Flow::Block);
        }
        let process = &mut self.processes[id];
        if std::mem::take(&mut process.sync.at_end) {
            return self.begin_sync(id, SyncReason::End);
        }
        process.stage = Stage::Done;
        process.end_ns = if process.player.is_some() { self.now_ns.min(process.deadline_ns) } else { self.now_ns };
        let job = process.plan.job;
        if process.job.files.unlink || process.job.files.unlink_each_loop {
            self.remove_files(id);
        }
        self.leave_shares(id);
        self.count_ended(id)?;
        self.end_others(id)?;
        if self.unfinished.by_job[job] == 0 {
            self.start_processes();
        }
        Ok(Flow::Block)
    }
}
