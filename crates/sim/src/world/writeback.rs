//! Dirty throttling: what a writer does before it makes another page dirty.

use hoistway_core::{Flags, Op};

use super::devices::MAIN;
use super::state::{Flow, World};
use super::task::{ProcessId, Task};
use super::threads::Dirtying;
use crate::config::WriteBack;
use crate::error::Defect;
use crate::events::EventKind;
use crate::host::dirty::{DirtyLimits, PAUSE_NS_MAX, PauseDecision};
use crate::record::Observer;

/// Longest wait of a writer or pdflush for an uncongested queue, in ns.
const CONGESTION_WAIT_NS: u64 = 100_000_000;
/// Bounds in pages of the interval between two checks of a writer; the interval is 1/32 of memory
/// per processor.
const RATE_LIMIT_PAGES: (u64, u64) = (16, 1024);
/// Pages between two checks of a writer while the limit is exceeded.
const RATE_LIMIT_PAGES_EXCEEDED: u64 = 8;
impl<S: Observer> World<S> {
    pub(super) fn dirty_limits(&self) -> DirtyLimits {
        let share = |percent: u8| self.host.cache_pages() * u64::from(percent) / 100;
        let most = share(self.host.dirty_percent).max(1);
        let background = share(self.host.dirty_background_percent);
        // A background limit at or above the other limit would never be reached: the kernel takes
        // half of the limit then.
        DirtyLimits { background: if background >= most { most / 2 } else { background }, most }
    }

    /// Throttles a writer before it makes a page dirty: `None` lets the writer continue, otherwise
    /// the flow says how it waits.
    pub(super) fn throttle_writer(&mut self, id: ProcessId) -> Result<Option<Flow>, Defect> {
        match self.host.write_back {
            WriteBack::Waiting => Ok(self.has_too_much_dirty().then(|| {
                self.waiting.throttled.push(id);
                self.devices[MAIN].dirty_sleep(self.now_ns);
                self.wake_flusher();
                Flow::Block
            })),
            WriteBack::Pdflush => self.write_back_itself(id),
            WriteBack::Pauses => Ok(self.pause_writer(id)),
        }
    }

    /// Wakes the tasks that wait for an uncongested queue, if the congestion is over.
    pub(super) fn wake_congestion_waiters(&mut self) {
        if self.devices[MAIN].take_end_of_congestion() {
            for task in std::mem::take(&mut self.waiting.congestion) {
                *self.congestion_end_of(task) = 0;
                self.wake(task);
            }
        }
    }

    /// Lets a task wait until the queue is no longer congested for writes, for 100 ms at most.
    pub(super) fn wait_for_congestion(&mut self, task: Task) {
        let until_ns = self.now_ns + CONGESTION_WAIT_NS;
        self.waiting.congestion.push(task);
        *self.congestion_end_of(task) = until_ns;
        self.events.schedule(until_ns, EventKind::Wake(task));
    }

    /// The time until which a task that writes pages back waits for an uncongested queue.
    fn congestion_end_of(&mut self, task: Task) -> &mut u64 {
        match task {
            Task::Process(id) => &mut self.processes[id].dirtying.until_ns,
            Task::Flusher | Task::Journal => &mut self.flusher.until_ns,
        }
    }

    /// Throttling up to 2.6.31: a writer over the limit writes some pages back itself, waits for
    /// the queue, and checks again.
    fn write_back_itself(&mut self, id: ProcessId) -> Result<Option<Flow>, Defect> {
        let process = &self.processes[id];
        let dirtying = process.dirtying;
        if self.devices[MAIN].is_held_back(process.task.submitter) || self.now_ns < dirtying.until_ns {
            return Ok(Some(Flow::Block));
        }
        let often = self.rate_limit_pages();
        let limits = self.dirty_limits();
        if dirtying.writing.is_none() {
            let exceeded = self.cache.unwritten() > limits.most;
            let look_after = if exceeded { often.min(RATE_LIMIT_PAGES_EXCEEDED) } else { often };
            if u64::from(dirtying.pages) < look_after {
                return Ok(None);
            }
        }
        if process.task.debt_ns > 0 {
            return Ok(Some(Flow::On));
        }
        let (written, most) = (dirtying.writing.unwrap_or(0), often + often / 2);
        let is_over = self.cache.unwritten() > limits.most;
        if !is_over || written >= most {
            self.processes[id].dirtying = Dirtying::default();
            if self.cache.dirty() > limits.background {
                self.wake_flusher();
            }
            return Ok(None);
        }
        let now_written =
            if self.cache.dirty() > 0 { self.flush_pages(id.into(), most - written, u64::MAX)? } else { 0 };
        self.processes[id].dirtying.writing = Some(written + now_written);
        if now_written > 0 && written + now_written >= most {
            return Ok(Some(Flow::On));
        }
        self.wait_for_congestion(id.into());
        self.devices[MAIN].unplug(self.now_ns)?;
        Ok(Some(Flow::Block))
    }

    /// Pages between two checks of a writer.
    fn rate_limit_pages(&self) -> u64 {
        let (least, most) = RATE_LIMIT_PAGES;
        (self.host.cache_pages() / (u64::from(self.host.cpus) * 32)).clamp(least, most)
    }

    /// Throttling from 3.2 on: a writer is paused for as long as its pages should have taken.
    fn pause_writer(&mut self, id: ProcessId) -> Option<Flow> {
        let Dirtying { pages, look_after, paused_ns, until_ns, .. } = self.processes[id].dirtying;
        if self.now_ns < until_ns {
            return Some(Flow::Block);
        }
        if pages < look_after {
            return None;
        }
        if self.processes[id].task.debt_ns > 0 {
            return Some(Flow::On);
        }
        let (now_ns, limits) = (self.now_ns, self.dirty_limits());
        let dirty = self.cache.unwritten();
        let dirtying = &mut self.processes[id].dirtying;
        if dirty <= limits.free_run() {
            *dirtying = Dirtying { look_after: limits.poll_interval(dirty), paused_ns: now_ns, ..Dirtying::default() };
            return None;
        }
        self.update_balance();
        let PauseDecision { period_ns, pause_ns_max, pages: next } = self.balance.decide(pages, dirty, limits);
        let dirtying = &mut self.processes[id].dirtying;
        let Some(period_ns) = period_ns else {
            // Over the limit: the writer checks again after the pause.
            dirtying.until_ns = now_ns + pause_ns_max;
            dirtying.paused_ns = dirtying.until_ns;
            self.devices[MAIN].dirty_sleep(now_ns);
            self.events.schedule(now_ns + pause_ns_max, EventKind::Wake(id.into()));
            self.wake_flusher();
            return Some(Flow::Block);
        };
        let due_ns = paused_ns.max(now_ns.saturating_sub(1_000_000_000)) + period_ns;
        (dirtying.pages, dirtying.look_after) = (0, next);
        if due_ns <= now_ns {
            dirtying.paused_ns = due_ns;
            return None;
        }
        // The rest of a pause that exceeds the longest pause is carried over, up to one more pause.
        let pause_ns = (due_ns - now_ns).min(pause_ns_max.min(PAUSE_NS_MAX));
        dirtying.until_ns = now_ns + pause_ns;
        dirtying.paused_ns = due_ns.min(now_ns + pause_ns + pause_ns_max);
        self.devices[MAIN].dirty_sleep(now_ns);
        self.events.schedule(now_ns + pause_ns, EventKind::Wake(id.into()));
        self.wake_flusher();
        Some(Flow::Block)
    }

    /// Updates the estimates of the device's and the writers' rates, if the host uses them.
    pub(super) fn update_balance(&mut self) {
        if self.host.write_back == WriteBack::Pauses {
            let dirty = self.cache.unwritten();
            let limits = self.dirty_limits();
            self.balance.update(self.now_ns, dirty, limits, self.cache.dirtied(), self.cache.written());
        }
    }

    /// Submits writes for up to `most` pages that became dirty by `until_ns`, file after file.
    /// Returns the number of pages.
    pub(super) fn flush_pages(&mut self, task: Task, most: u64, until_ns: u64) -> Result<u64, Defect> {
        let mut runs = std::mem::take(&mut self.scratch.runs);
        let submitter = self.submitter_of(task);
        let mut submitted = 0;
        // One round over all files, and the first file again from its beginning.
        for _ in 0..=self.files.len() {
            let file = self.flusher.file;
            let next = self.cache.take_dirty(file, self.flusher.chunk, most, until_ns, &mut runs);
            self.flusher.chunk = next.unwrap_or(0);
            if next.is_none() || !runs.is_empty() {
                self.flusher.file = (file + 1) % self.files.len() as u32;
                self.flusher.chunk = 0;
            }
            if !runs.is_empty() {
                self.devices[MAIN].plug(submitter);
                for (first, pages) in runs.drain(..) {
                    submitted += pages;
                    self.submit_pages(task, file, first, pages, Op::Write, Flags::NONE)?;
                }
                self.devices[MAIN].finish_plug(submitter, self.now_ns)?;
                break;
            }
        }
        self.scratch.runs = runs;
        Ok(submitted)
    }
}
