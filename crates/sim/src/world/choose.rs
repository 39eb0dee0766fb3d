//! The steps of a process from one request to the next.

use std::collections::HashSet;

use hoistway_fio::{Direction, Ioengine};

use super::process::{CurrentRequest, Stage, SyncReason};
use super::state::{Flow, World};
use crate::events::{EventKind, HORIZON_NS};
use crate::host::page::PAGE_BYTES;
use crate::record::Observer;
use hoistway_workload::{IoUnit, Work};

impl<S: Observer> World<S> {
    /// Runs a process until it sleeps or has to pay for CPU time.
    pub(super) fn run_process(&mut self, task: u32) {
        loop {
            if self.pay(task) {
                return;
            }
            self.steps_at_once += 1;
            if self.processes[task as usize].has_to_leave() {
                self.processes[task as usize].stage = Stage::Leave;
            }
            let flow = match self.processes[task as usize].stage {
                Stage::NotStarted => self.begin_job(task),
                Stage::Choose => self.choose(task),
                Stage::Think => self.think(task),
                Stage::Walk => self.walk(task),
                Stage::Metadata => self.wait_for_metadata(task),
                Stage::Read => self.read_page(task),
                Stage::Write => self.write_page(task),
                Stage::WriteThrough => self.begin_sync(task, SyncReason::Write),
                Stage::Submit => self.submit(task),
                Stage::Direct => self.wait_direct(task),
                Stage::Finish => self.finish(task),
                Stage::Sync => self.wait_sync(task),
                Stage::Commit => self.wait_commit(task),
                Stage::Synced => self.synced(task),
                Stage::Leave => self.leave(task),
                Stage::Done => Flow::Block,
            };
            let process = &mut self.processes[task as usize];
            if flow == Flow::Block {
                process.blocked = true;
                process.stats.sleeps += 1;
                return;
            }
            if self.steps_at_once > super::event_loop::STEPS_AT_ONCE_MAX {
                process.blocked = true;
                return;
            }
        }
    }

    fn begin_job(&mut self, task: u32) -> Flow {
        let process = &mut self.processes[task as usize];
        if self.now_ns < process.wake_ns && process.plan.delay_ns > 0 {
            return Flow::Block;
        }
        process.start(self.now_ns);
        if let Some(reservation) = process.plan.reservation {
            for device in std::iter::once(&mut self.device).chain(&mut self.further_devices) {
                device.reserve(task, reservation, self.now_ns);
            }
        }
        self.drop_cached_files(task);
        self.fill_cache(task);
        self.join_shares(task);
        Flow::On
    }

    /// Drops the cached pages of a process's files, as fio does when it opens them.
    pub(super) fn drop_cached_files(&mut self, task: u32) {
        if self.processes[task as usize].walk.is_some() {
            return self.begin_walk(task);
        }
        let process = &self.processes[task as usize];
        if !process.job.direct && process.job.invalidate {
            for open in &process.files {
                self.cache.invalidate(open.file);
            }
        }
    }

    fn choose(&mut self, task: u32) -> Flow {
        let process = &self.processes[task as usize];
        let reaps_late = (self.works_first || process.job.syncs_between_requests()) && process.has_room();
        if !reaps_late {
            self.reap(task);
        }
        let process = &self.processes[task as usize];
        if process.debt_ns > 0 {
            return Flow::On;
        }
        let mut others = process.submission.priorities.iter().map(|known| known.1);
        if self.is_held_back(task) || others.any(|submitter| self.is_held_back(submitter)) {
            return Flow::Block;
        }
        if process.player.is_some() {
            return self.choose_recorded(task);
        }
        if self.now_ns >= process.deadline_ns {
            self.processes[task as usize].stage = Stage::Leave;
            return Flow::On;
        }
        if self.is_too_slow(task) {
            return Flow::On;
        }
        let process = &mut self.processes[task as usize];
        if std::mem::take(&mut process.limits.drops_cache) {
            self.drop_cached_files(task);
        }
        let flow = self.choose_next(task);
        if reaps_late && flow == Flow::Block {
            self.reap(task);
            if self.processes[task as usize].debt_ns > 0 {
                return Flow::On;
            }
        }
        flow
    }

    /// Chooses between a pause, a sync and the next request.
    fn choose_next(&mut self, task: u32) -> Flow {
        let process = &mut self.processes[task as usize];
        if process.has_to_think(self.now_ns) {
            if process.in_flight > 0 && !process.job.thinktime_at_issue {
                return self.block(task);
            }
            return self.begin_thinking(task);
        }
        if process.in_flight + process.submission.batch.len() as u32 >= process.depth {
            process.submission.drains = process.low() < process.depth;
            return self.block(task);
        }
        if process.submission.drains && process.in_flight > process.low() {
            return Flow::Block;
        }
        process.submission.drains = false;
        if process.sync_due.is_none() && process.chosen.is_none() {
            process.sync_due = process.generator.next_sync();
        }
        if process.sync_due.is_some() && !process.submission.batch.is_empty() {
            self.submit_batch(task);
            return Flow::On;
        }
        if let Some(sync) = process.sync_due.take() {
            return self.begin_due_sync(task, sync);
        }
        if process.walk.is_some() {
            return self.pace_walk(task);
        }
        if let Some(flow) = self.wait_for_share(task) {
            return flow;
        }
        let process = &mut self.processes[task as usize];
        let (pacing, since_ns) = (&process.pacing, self.now_ns - process.start_ns.min(self.now_ns));
        let next = || process.generator.next_of(|drawn| pacing.direction(drawn, since_ns));
        let Some(unit) = process.chosen.or_else(next) else {
            return self.next_pass(task);
        };
        process.chosen = Some(unit);
        let due_ns = process.start_ns.saturating_add(process.pacing.due_ns(unit.direction));
        if due_ns > self.now_ns {
            let until_ns = due_ns.min(process.deadline_ns);
            if !process.submission.batch.is_empty() {
                return self.block(task);
            }
            return self.sleep_until(task, until_ns);
        }
        self.begin(task, unit)
    }

    /// Sleeps until a request completes, after the batch of chosen requests is submitted.
    fn block(&mut self, task: u32) -> Flow {
        if self.processes[task as usize].submission.batch.is_empty() {
            return Flow::Block;
        }
        self.submit_batch(task);
        Flow::On
    }

    fn next_pass(&mut self, task: u32) -> Flow {
        let process = &mut self.processes[task as usize];
        if process.in_flight > 0 || !process.submission.batch.is_empty() {
            return self.block(task);
        }
        if process.generator.begin_verification() {
            if process.job.direct {
                return Flow::On;
            }
            // What is verified comes from the disk: it is written, and dropped from the cache.
            process.limits.drops_cache = true;
            return self.begin_sync(task, SyncReason::Verification);
        }
        match process.generator.next_pass() {
            Some(_) => {
                if process.job.unlink_each_loop {
                    self.remove_files(task);
                }
                self.drop_cached_files(task);
            }
            None => process.stage = Stage::Leave,
        }
        Flow::On
    }

    /// Drops what the cache has of the files of a process, as the kernel does when a file is
    /// removed that no other process has open. The files keep their places on the disk.
    fn remove_files(&mut self, task: u32) {
        let others = self.processes.iter().enumerate();
        let others = others.filter(|(other, process)| {
            *other != task as usize && !matches!(process.stage, Stage::NotStarted | Stage::Done)
        });
        let open: HashSet<u32> = others.flat_map(|(_, process)| process.files.iter().map(|open| open.file)).collect();
        let files = self.processes[task as usize].files.iter().map(|open| open.file);
        let removed: HashSet<u32> = files.filter(|file| !open.contains(file)).collect();
        self.cache.discard(&removed);
        self.wake_throttled();
    }

    /// Sleeps until `at_ns`; a completion may wake the process earlier.
    pub(super) fn sleep_until(&mut self, task: u32, at_ns: u64) -> Flow {
        let at_ns = at_ns.min(HORIZON_NS);
        let process = &mut self.processes[task as usize];
        if process.wake_ns != at_ns {
            process.wake_ns = at_ns;
            self.events.schedule(at_ns, EventKind::Wake(task));
        }
        Flow::Block
    }

    fn begin_thinking(&mut self, task: u32) -> Flow {
        let process = &mut self.processes[task as usize];
        process.think_after = process.job.thinktime_blocks;
        process.stage = Stage::Think;
        let job = &process.job;
        if job.rate_ignore_thinktime {
            process.pacing.pause(self.now_ns - process.start_ns.min(self.now_ns), job.thinktime_ns);
        }
        process.debt_ns += job.thinktime_spin_ns.min(job.thinktime_ns);
        let end_ns = self.now_ns.saturating_add(job.thinktime_ns).min(process.deadline_ns).min(HORIZON_NS);
        process.wake_ns = end_ns;
        self.events.schedule(end_ns, EventKind::Wake(task));
        Flow::On
    }

    fn think(&mut self, task: u32) -> Flow {
        let process = &mut self.processes[task as usize];
        if self.now_ns < process.wake_ns {
            return Flow::Block;
        }
        process.limits.thought_ns = self.now_ns;
        process.stage = Stage::Choose;
        Flow::On
    }

    /// Starts a request.
    pub(super) fn begin(&mut self, task: u32, unit: IoUnit) -> Flow {
        let process = &mut self.processes[task as usize];
        process.chosen = None;
        process.pacing.made(unit.direction, unit.bytes, &mut process.rate_rng);
        process.think_after = process.think_after.saturating_sub(1);
        process.stats.level.record_level(process.in_flight + process.submission.batch.len() as u32 + 1);
        let is_null = process.job.ioengine == Ioengine::Null;
        let is_direct = (process.job.direct || unit.direction == Direction::Trim) && !is_null;
        let is_batched = is_direct && process.batch_size() > 1 && unit.direction != Direction::Trim;
        self.count_share(task);
        let process = &mut self.processes[task as usize];
        if is_batched {
            process.submission.batch.push(unit);
            if process.submission.batch.len() as u32 >= process.batch_size() {
                self.submit_batch(task);
            }
            return Flow::On;
        }
        process.stats.submit.record_batch(1);
        if is_direct {
            return self.begin_direct(task, unit);
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
        process.stage = match (process.job.ioengine, unit.direction) {
            (Ioengine::Null, _) => Stage::Finish,
            (_, Direction::Read) => Stage::Read,
            (_, Direction::Write | Direction::Trim) => Stage::Write,
        };
        if process.stage == Stage::Finish {
            process.debt_ns += self.host.costs.system_call_ns;
        }
        Flow::On
    }

    /// Records a request whose work is done and paid for.
    fn finish(&mut self, task: u32) -> Flow {
        let process = &mut self.processes[task as usize];
        let CurrentRequest { unit, start_ns, .. } = process.current;
        process.generator.completed(Work::Request);
        process.record(&unit, start_ns, start_ns, self.now_ns);
        process.stats.complete.record_batch(1);
        process.stage = Stage::Choose;
        self.check_completed(task, &unit, start_ns);
        Flow::On
    }

    fn leave(&mut self, task: u32) -> Flow {
        self.reap(task);
        let process = &self.processes[task as usize];
        if process.debt_ns > 0 {
            return Flow::On;
        }
        if process.in_flight > 0 || self.is_held_back(task) {
            return Flow::Block;
        }
        let process = &mut self.processes[task as usize];
        if std::mem::take(&mut process.syncs_end) {
            return self.begin_sync(task, SyncReason::End);
        }
        process.stage = Stage::Done;
        process.end_ns = if process.player.is_some() { self.now_ns.min(process.deadline_ns) } else { self.now_ns };
        let job = process.plan.job;
        if process.job.unlink || process.job.unlink_each_loop {
            self.remove_files(task);
        }
        self.leave_shares(task);
        self.exit_submitters(task);
        self.unfinished -= 1;
        self.unfinished_by_job[job] -= 1;
        self.end_others(task);
        if self.unfinished_by_job[job] == 0 {
            self.start_processes();
        }
        Flow::Block
    }
}
