//! Shares among jobs, checks that end a job, and jobs that end with others.

use hoistway_fio::{Direction, Directions, ExitWhat};
use hoistway_workload::IoUnit;
use hoistway_workload::endings::{Moved, SearchStep};

use super::job_state::Ending;
use super::process::Stage;
use super::state::{Flow, World};
use crate::record::Observer;

impl<S: Observer> World<S> {
    /// Lets a process that starts join the jobs with its `flow_id`.
    pub(super) fn join_shares(&mut self, task: u32) {
        let process = &mut self.processes[task as usize];
        let flow = process.job.flow;
        if flow.weight > 0 {
            process.limits.share = Some(self.flows.entry(flow.id).or_default().shares.join(flow.weight));
        }
    }

    /// Makes a process wait that is ahead of its share; `None` if it is not.
    pub(super) fn wait_for_share(&mut self, task: u32) -> Option<Flow> {
        let process = &mut self.processes[task as usize];
        let (share, flow) = (process.limits.share.as_ref()?, process.job.flow);
        let group = self.flows.get_mut(&flow.id)?;
        if !group.shares.is_ahead(share) {
            return None;
        }
        if flow.sleep_ns > 0 {
            let until_ns = self.now_ns.saturating_add(flow.sleep_ns).min(process.deadline_ns);
            return Some(self.sleep_until(task, until_ns));
        }
        group.waiting.push(task);
        // The deadline ends the wait, too.
        let deadline_ns = process.deadline_ns;
        Some(if deadline_ns < u64::MAX { self.sleep_until(task, deadline_ns) } else { Flow::Block })
    }

    /// Counts a request among the jobs with the same `flow_id`.
    pub(super) fn count_share(&mut self, task: u32) {
        let process = &mut self.processes[task as usize];
        let Some(share) = &mut process.limits.share else { return };
        let Some(group) = self.flows.get_mut(&process.job.flow.id) else { return };
        group.shares.made(share);
        for waiting in std::mem::take(&mut group.waiting) {
            self.wake(waiting);
        }
    }

    pub(super) fn leave_shares(&mut self, task: u32) {
        let process = &mut self.processes[task as usize];
        let Some(share) = process.limits.share.take() else { return };
        let Some(group) = self.flows.get_mut(&process.job.flow.id) else { return };
        group.shares.leave(&share);
        for waiting in std::mem::take(&mut group.waiting) {
            self.wake(waiting);
        }
    }

    /// Returns true if the process was slower than its job accepts: it ends.
    pub(super) fn is_too_slow(&mut self, task: u32) -> bool {
        let process = &mut self.processes[task as usize];
        let Some(floor) = &mut process.limits.floor else { return false };
        let stats = &process.stats;
        let moved = Directions {
            read: Moved { bytes: stats.read.bytes, ios: stats.read.ios },
            write: Moved { bytes: stats.write.bytes, ios: stats.write.ios },
            trim: Moved { bytes: stats.trim.bytes, ios: stats.trim.ios },
        };
        if !floor.is_missed(self.now_ns.saturating_sub(process.start_ns), moved) {
            return false;
        }
        process.limits.ending = Some(Ending::TooSlow);
        process.fail(self.now_ns);
        true
    }

    /// Looks at a completed request for the checks of its job.
    pub(super) fn check_completed(&mut self, task: u32, unit: &IoUnit, start_ns: u64) {
        let now_ns = self.now_ns;
        let process = &mut self.processes[task as usize];
        if !process.limits.watches {
            return;
        }
        let latency_ns = now_ns - start_ns;
        let most_ns = *process.job.max_latency_ns.get(unit.direction);
        if most_ns > 0 && latency_ns > most_ns {
            process.limits.ending = Some(Ending::TooLate);
            process.fail(now_ns);
        }
        let since_ns = now_ns.saturating_sub(process.start_ns);
        if let Some(search) = &mut process.limits.search {
            match search.record(since_ns, latency_ns) {
                SearchStep::Same => {}
                SearchStep::Depth(depth) => process.depth = depth,
                SearchStep::Found(depth) => {
                    process.depth = depth.max(1);
                    process.limits.ending = Some(Ending::Depth(depth));
                    process.limits.ends |= !process.job.latency_target.run;
                }
            }
        }
        if let Some(index) = process.limits.steady {
            self.check_steady(index, task, unit.bytes);
        }
    }

    fn check_steady(&mut self, index: usize, task: u32, bytes: u64) {
        let start_ns = self.processes[task as usize].start_ns;
        let (rate, from_ns) = &mut self.steady[index];
        let from_ns = *from_ns.get_or_insert(start_ns);
        if !rate.record(self.now_ns.saturating_sub(from_ns), bytes) {
            return;
        }
        for other in 0..self.processes.len() as u32 {
            let process = &mut self.processes[other as usize];
            if process.limits.steady == Some(index) {
                process.limits.ending = Some(Ending::Steady);
                self.end_process(other);
            }
        }
    }

    /// Ends the jobs that `exitall` and `exit_what` name, after a process has ended.
    pub(super) fn end_others(&mut self, task: u32) {
        let process = &self.processes[task as usize];
        if !process.job.exitall {
            return;
        }
        let (what, group) = (process.job.exit_what, process.job.groupid);
        for other in 0..self.processes.len() as u32 {
            let process = &self.processes[other as usize];
            // A process in its start delay counts as running.
            let runs = process.stage != Stage::NotStarted || process.wake_ns > 0;
            let is_meant = match what {
                ExitWhat::Group => process.job.groupid == group,
                ExitWhat::Stonewall => runs,
                ExitWhat::All => true,
            };
            if is_meant {
                self.end_process(other);
            }
        }
        self.start_processes();
    }

    /// Makes a process end: after its requests in flight, or at once if it has not started.
    fn end_process(&mut self, task: u32) {
        let process = &mut self.processes[task as usize];
        match process.stage {
            Stage::Done => {}
            Stage::NotStarted => {
                process.stage = Stage::Done;
                (process.start_ns, process.measured_from_ns, process.end_ns) = (self.now_ns, self.now_ns, self.now_ns);
                let job = process.plan.job;
                self.exit_submitters(task);
                self.unfinished -= 1;
                self.unfinished_by_job[job] -= 1;
            }
            _ => {
                process.limits.ends = true;
                self.wake(task);
            }
        }
    }

    /// Fills the page cache with the files of a process (`pre_read`), as far as there is room.
    pub(super) fn fill_cache(&mut self, task: u32) {
        let process = &self.processes[task as usize];
        if !process.job.pre_read || process.job.direct {
            return;
        }
        let files: Vec<u32> = process.files.iter().map(|open| open.file).collect();
        for file in files {
            let pages = self.files[file as usize].pages().min(self.host.cache_pages());
            for page in 0..pages {
                if self.cache.state(file, page) == crate::host::page_cache::PageState::Missing {
                    self.cache.begin_read(file, page);
                    self.cache.end_read(file, page, 1);
                }
            }
        }
    }

    /// Ends the contexts of a process in the queue.
    pub(super) fn exit_submitters(&mut self, task: u32) {
        let others = std::mem::take(&mut self.processes[task as usize].submission.submitters);
        for device in std::iter::once(&mut self.device).chain(&mut self.further_devices) {
            for submitter in std::iter::once(&task).chain(&others) {
                device.exit(*submitter, self.now_ns);
            }
        }
    }

    /// The process that a submitter of the device belongs to.
    pub(super) fn owner_of(&self, submitter: u32) -> u32 {
        let first = self.processes.len() + 1 + usize::from(self.journal.is_some());
        let index = (submitter as usize).checked_sub(first);
        index.and_then(|index| self.owners.get(index)).copied().unwrap_or(submitter)
    }

    /// The submitter of the device for a request: an idle thread of the process, the one with the
    /// request's priority, or the process itself.
    pub(super) fn submitter_of(&mut self, task: u32, unit: &IoUnit) -> u32 {
        let submission = &mut self.processes[task as usize].submission;
        if unit.direction == Direction::Trim {
            return task;
        }
        if let Some(worker) = submission.workers.pop() {
            return worker;
        }
        let own = unit.priority.and_then(|priority| submission.priorities.iter().find(|known| known.0 == priority));
        own.map_or(task, |known| known.1)
    }
}
