//! Shares among jobs, checks that end a job, and jobs that end with others.

use hoistway_fio::{Direction, Directions, ExitWhat};
use hoistway_workload::IoUnit;
use hoistway_workload::endings::{Moved, SearchStep};

use super::job_state::Ending;
use super::process::Stage;
use super::state::{Flow, World};
use super::task::{ProcessId, SubmitterId};
use crate::error::Defect;
use crate::record::Observer;

impl<S: Observer> World<S> {
    /// Lets a process that starts join the jobs with its `flow_id`.
    pub(super) fn join_shares(&mut self, id: ProcessId) {
        let process = &mut self.processes[id];
        let flow = process.job.flow;
        if flow.weight > 0 {
            process.limits.share = Some(self.flows.entry(flow.id).or_default().shares.join(flow.weight));
        }
    }

    /// Makes a process wait that is ahead of its share; `None` if it is not.
    pub(super) fn wait_for_share(&mut self, id: ProcessId) -> Option<Flow> {
        let process = &mut self.processes[id];
        let (share, flow) = (process.limits.share.as_ref()?, process.job.flow);
        let group = self.flows.get_mut(&flow.id)?;
        if !group.shares.is_ahead(share) {
            return None;
        }
        if flow.sleep_ns > 0 {
            let until_ns = self.now_ns.saturating_add(flow.sleep_ns).min(process.deadline_ns);
            return Some(self.sleep_until(id, until_ns));
        }
        group.waiting.push(id);
        // The deadline ends the wait, too.
        let deadline_ns = process.deadline_ns;
        Some(if deadline_ns < u64::MAX { self.sleep_until(id, deadline_ns) } else { Flow::Block })
    }

    /// Counts a request among the jobs with the same `flow_id`.
    pub(super) fn count_share(&mut self, id: ProcessId) {
        let process = &mut self.processes[id];
        let Some(share) = &mut process.limits.share else { return };
        let Some(group) = self.flows.get_mut(&process.job.flow.id) else { return };
        group.shares.made(share);
        self.wake_sharing(id);
    }

    pub(super) fn leave_shares(&mut self, id: ProcessId) {
        let process = &mut self.processes[id];
        let Some(share) = process.limits.share.take() else { return };
        let Some(group) = self.flows.get_mut(&process.job.flow.id) else { return };
        group.shares.leave(&share);
        self.wake_sharing(id);
    }

    /// Wakes the processes that wait until others with the `flow_id` of this one have made
    /// requests.
    fn wake_sharing(&mut self, id: ProcessId) {
        let Some(group) = self.flows.get_mut(&self.processes[id].job.flow.id) else { return };
        for waiting in std::mem::take(&mut group.waiting) {
            self.wake(waiting.into());
        }
    }

    /// Returns true if the process was slower than its job accepts: it ends.
    pub(super) fn is_too_slow(&mut self, id: ProcessId) -> bool {
        let process = &mut self.processes[id];
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
    pub(super) fn check_completed(&mut self, id: ProcessId, unit: &IoUnit, start_ns: u64) -> Result<(), Defect> {
        let now_ns = self.now_ns;
        let process = &mut self.processes[id];
        if !process.limits.watches {
            return Ok(());
        }
        let latency_ns = now_ns - start_ns;
        let most_ns = *process.job.end.max_latency_ns.get(unit.direction);
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
            self.check_steady(index, id, unit.bytes)?;
        }
        Ok(())
    }

    fn check_steady(&mut self, index: usize, id: ProcessId, bytes: u64) -> Result<(), Defect> {
        let start_ns = self.processes[id].start_ns;
        let (rate, from_ns) = &mut self.steady[index];
        let from_ns = *from_ns.get_or_insert(start_ns);
        if !rate.record(self.now_ns.saturating_sub(from_ns), bytes) {
            return Ok(());
        }
        for other in self.processes.ids() {
            let process = &mut self.processes[other];
            if process.limits.steady == Some(index) {
                process.limits.ending = Some(Ending::Steady);
                self.end_process(other)?;
            }
        }
        Ok(())
    }

    /// Ends the jobs that `exitall` and `exit_what` name, after a process has ended.
    pub(super) fn end_others(&mut self, id: ProcessId) -> Result<(), Defect> {
        let process = &self.processes[id];
        if !process.job.end.exitall {
            return Ok(());
        }
        let (what, group) = (process.job.end.exit_what, process.job.groupid);
        for other in self.processes.ids() {
            let process = &self.processes[other];
            // A process in its start delay counts as running.
            let runs = process.stage != Stage::NotStarted;
            let is_meant = match what {
                ExitWhat::Group => process.job.groupid == group,
                ExitWhat::Stonewall => runs,
                ExitWhat::All => true,
            };
            if is_meant {
                self.end_process(other)?;
            }
        }
        self.start_processes();
        Ok(())
    }

    /// Makes a process end: after its requests in flight, or at once if it has not started.
    fn end_process(&mut self, id: ProcessId) -> Result<(), Defect> {
        let process = &mut self.processes[id];
        match process.stage {
            Stage::Done => {}
            Stage::NotStarted | Stage::Starting => {
                process.stage = Stage::Done;
                (process.start_ns, process.measured_from_ns, process.end_ns) = (self.now_ns, self.now_ns, self.now_ns);
                self.count_ended(id)?;
            }
            _ => {
                process.limits.ends = true;
                self.wake(id.into());
            }
        }
        Ok(())
    }

    /// Fills the page cache with the files of a process (`pre_read`), as far as there is room.
    pub(super) fn fill_cache(&mut self, id: ProcessId) {
        let process = &self.processes[id];
        if !process.job.files.pre_read || process.job.cache.direct {
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

    /// Counts a process that has ended, and ends its submitters.
    pub(super) fn count_ended(&mut self, id: ProcessId) -> Result<(), Defect> {
        let process = &mut self.processes[id];
        self.unfinished.all -= 1;
        self.unfinished.by_job[process.plan.job] -= 1;
        let (own, others) = (process.task.submitter, std::mem::take(&mut process.submission.submitters));
        for device in self.devices.iter_mut() {
            for submitter in std::iter::once(&own).chain(&others) {
                device.exit(*submitter, self.now_ns)?;
            }
        }
        Ok(())
    }

    /// The submitter for a request: an idle thread of the process, the one with the request's
    /// priority, or the process itself.
    pub(super) fn submitter_for(&mut self, id: ProcessId, unit: &IoUnit) -> SubmitterId {
        let process = &mut self.processes[id];
        let (own, submission) = (process.task.submitter, &mut process.submission);
        if unit.direction == Direction::Trim {
            return own;
        }
        if let Some(worker) = submission.workers.pop() {
            return worker;
        }
        let of_request =
            unit.priority.and_then(|priority| submission.priorities.iter().find(|known| known.0 == priority));
        of_request.map_or(own, |known| known.1)
    }
}
