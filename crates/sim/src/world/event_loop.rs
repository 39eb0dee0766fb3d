//! The event loop: takes events in the order of their times and runs the tasks that they wake.

use super::device::Device;
use super::devices::MAIN;
use super::process::Stage;
use super::request::{Stop, WorldProgress, WorldResult};
use super::state::{PageIo, Token, World};
use super::task::Task;
use crate::error::{Defect, SimError};
use crate::events::{EventKind, HORIZON_NS};
use crate::host::page::PAGE_BYTES;
use crate::record::Observer;

/// Limits beyond which the simulation counts as stuck: events without progress, and steps at one
/// instant.
pub(super) const IDLE_EVENTS_MAX: u32 = 100_000;
pub(super) const STEPS_AT_ONCE_MAX: u32 = 4_000_000;
/// Time that a task keeps a processor for which others wait, on hosts where the CPU time of a
/// submission passes first: the shortest slice of Linux's scheduler on ten processors.
const TIME_SLICE_NS: u64 = 3_000_000;
/// Events between two checks of the stop flag, in all and per process: a check visits every
/// process.
const EVENTS_BETWEEN_LOOKS: u32 = 4096;
const EVENTS_BETWEEN_LOOKS_EACH: u32 = 64;

impl<S: Observer> World<S> {
    pub(super) fn run(
        mut self,
        stop: &dyn Fn() -> Option<Stop>,
        progress: &mut dyn FnMut(WorldProgress),
    ) -> Result<WorldResult, SimError> {
        self.start_processes();
        self.run_ready().map_err(|defect| self.defect(defect))?;
        let between_looks = EVENTS_BETWEEN_LOOKS.max(EVENTS_BETWEEN_LOOKS_EACH * self.processes.len() as u32);
        let mut until_look = 0u32;
        while self.unfinished.all > 0 {
            if until_look == 0 {
                match stop() {
                    Some(Stop::Cancel) => return Err(SimError::Cancelled),
                    Some(Stop::Keep) => {
                        self.end_processes();
                        break;
                    }
                    None => {}
                }
                progress(self.progress());
                until_look = between_looks;
            }
            until_look -= 1;
            self.step()?;
            if let Some(error) = self.devices.violation(self.seed) {
                return Err(error);
            }
        }
        progress(self.progress());
        Ok(self.outcome())
    }

    /// Handles the next event or timer, and runs the tasks that become ready at the same instant.
    pub(super) fn step(&mut self) -> Result<(), SimError> {
        let has_event = self.next_event().map_err(|defect| self.defect(defect))?;
        if !has_event || self.watchdog.idle_events > IDLE_EVENTS_MAX || self.watchdog.steps_at_once > STEPS_AT_ONCE_MAX
        {
            return Err(self.stuck());
        }
        Ok(())
    }

    /// Does what [`Self::step`] says. Returns false if there is no event.
    fn next_event(&mut self) -> Result<bool, Defect> {
        let never = u64::MAX;
        let event_ns = self.events.next_ns().unwrap_or(never);
        let (timer_ns, timer_drive) = self.devices.earliest(Device::next_timer);
        let (drive_ns, drive) = self.devices.earliest(Device::next_drive_event);
        self.watchdog.idle_events += 1;
        if drive_ns <= event_ns.min(timer_ns) && drive_ns < never {
            self.advance_to(drive_ns);
            self.drive_event(drive)?;
        } else if timer_ns < event_ns {
            self.advance_to(timer_ns);
            let now_ns = self.now_ns;
            self.devices[timer_drive].timer(now_ns)?;
        } else if let Some((at_ns, what)) = self.events.pop() {
            self.advance_to(at_ns);
            self.handle_event(what)?;
        } else {
            return Ok(false);
        }
        self.wake_resumed();
        if !self.ready.is_empty() {
            self.run_ready()?;
        }
        Ok(true)
    }

    fn advance_to(&mut self, at_ns: u64) {
        if at_ns > self.now_ns {
            self.now_ns = at_ns;
            self.watchdog.steps_at_once = 0;
        }
    }

    fn handle_event(&mut self, what: EventKind) -> Result<(), Defect> {
        match what {
            EventKind::CpuDone(task) => {
                self.watchdog.idle_events = 0;
                if self.works_first {
                    return self.continue_task(task);
                }
                if let Some((next, burst_ns)) = self.cpus.leave() {
                    self.occupy(next, burst_ns);
                }
                self.run_task(task)?;
            }
            EventKind::Wake(task) => {
                self.watchdog.idle_events = 0;
                self.wake(task);
            }
            EventKind::Answered(slot) => {
                self.watchdog.idle_events = 0;
                self.answered(slot);
            }
            EventKind::FlushTick => self.flush_tick(),
            EventKind::JournalTick(id) => self.journal_tick(id),
        }
        Ok(())
    }

    pub(super) fn complete_bio(&mut self, token: Token, failed: bool) -> Result<(), Defect> {
        match token {
            Token::Direct(slot) => self.direct_bio_over(slot, failed)?,
            Token::PageRead(slot) => {
                let PageIo { file, first, pages } = self.page_ios.remove(slot);
                match failed {
                    true => self.read_failed(file, first, pages),
                    false => self.cache.end_read(file, first, pages),
                }
                let mut waiters = std::mem::take(&mut self.waiting.pages[file as usize]);
                waiters.retain(|(process, page)| {
                    let there = (first..first + pages).contains(page);
                    if there {
                        self.wake((*process).into());
                    }
                    !there
                });
                self.waiting.pages[file as usize] = waiters;
            }
            Token::Logged => self.logged(failed),
            Token::Flushed(process) => self.flushed(process, failed),
            Token::PageWrite(slot) => {
                let PageIo { file, first, pages } = self.page_ios.remove(slot);
                self.cache.end_write(file, first, pages);
                match failed {
                    true => self.write_failed(file, pages),
                    false => self.record_written(file, (first + pages) * PAGE_BYTES),
                }
                self.written(file);
            }
        }
        Ok(())
    }

    /// Wakes a sleeping task: it runs at this instant, after the tasks that are ready already, and
    /// checks the condition of its wait itself.
    pub(super) fn wake(&mut self, task: Task) {
        if std::mem::take(&mut self.task_mut(task).is_blocked) {
            self.ready.push_back(task);
        }
    }

    /// Wakes the tasks that the devices have something for.
    #[inline]
    fn wake_resumed(&mut self) {
        if self.devices.wakes_tasks() {
            self.wake_sleepers();
        }
    }

    #[inline(never)]
    fn wake_sleepers(&mut self) {
        while let Some(submitter) = self.devices.next_resumed() {
            self.wake(self.task_of(submitter));
        }
        self.wake_congestion_waiters();
    }

    pub(super) fn run_ready(&mut self) -> Result<(), Defect> {
        while let Some(task) = self.ready.pop_front() {
            self.run_task(task)?;
            self.wake_resumed();
        }
        Ok(())
    }

    #[inline]
    fn run_task(&mut self, task: Task) -> Result<(), Defect> {
        match task {
            Task::Process(id) => self.run_process(id)?,
            Task::Flusher => self.run_flusher()?,
            Task::Journal => self.run_journal()?,
        }
        Ok(())
    }

    /// Occupies a processor for the CPU time that a task owes; the task continues afterwards.
    /// Returns false if the task owes none.
    #[inline]
    pub(super) fn pay(&mut self, task: Task) -> bool {
        let burst_ns = std::mem::take(&mut self.task_mut(task).debt_ns);
        if burst_ns > 0 {
            self.spend(task, burst_ns);
        }
        burst_ns > 0
    }

    #[inline(never)]
    fn spend(&mut self, task: Task, burst_ns: u64) {
        if let Task::Process(id) = task {
            self.processes[id].stats.cpu_ns += burst_ns;
        }
        if self.on_cpu == Some(task) {
            self.on_cpu = None;
            self.occupy(task, burst_ns);
        } else if self.cpus.take(task, burst_ns) {
            if self.works_first {
                self.begin_slice(task);
            }
            self.occupy(task, burst_ns);
        }
    }

    /// Runs a task whose CPU time has passed. It keeps its processor until it sleeps, or until its
    /// time slice is over while others wait.
    #[inline(never)]
    fn continue_task(&mut self, task: Task) -> Result<(), Defect> {
        let since_ns = self.task_mut(task).on_cpu_since_ns;
        if self.cpus.has_waiting() && self.now_ns.saturating_sub(since_ns) >= TIME_SLICE_NS {
            self.give_up_processor();
            return self.run_task(task);
        }
        self.on_cpu = Some(task);
        self.run_task(task)?;
        if self.on_cpu.take().is_some() {
            self.give_up_processor();
        }
        Ok(())
    }

    /// Gives a processor to the next task that waits for one.
    fn give_up_processor(&mut self) {
        if let Some((next, burst_ns)) = self.cpus.leave() {
            self.begin_slice(next);
            self.occupy(next, burst_ns);
        }
    }

    fn begin_slice(&mut self, task: Task) {
        self.task_mut(task).on_cpu_since_ns = self.now_ns;
    }

    /// Schedules the end of the CPU time of a task that has got a processor: `burst_ns`, and the
    /// elevator's work that the task then does.
    #[inline]
    fn occupy(&mut self, task: Task, burst_ns: u64) {
        let elevator_ns = if self.works_first { self.elevator_work(task, burst_ns) } else { 0 };
        let until_ns = self.now_ns.saturating_add(burst_ns).saturating_add(elevator_ns);
        self.events.schedule(until_ns, EventKind::CpuDone(task));
    }

    /// The time of the elevator's work that a task does after `burst_ns` from now.
    #[inline(never)]
    fn elevator_work(&mut self, task: Task, burst_ns: u64) -> u64 {
        let Task::Process(id) = task else { return 0 };
        let process = &mut self.processes[id];
        let Some((drive, bios)) = process.submission.elevator.take() else { return 0 };
        let (submitter, at_ns) = (process.task.submitter, self.now_ns.saturating_add(burst_ns));
        let work_ns = self.devices[drive].elevator_work(submitter, at_ns, bios);
        self.processes[id].stats.cpu_ns += work_ns;
        work_ns
    }

    /// Starts the processes whose start conditions hold.
    pub(super) fn start_processes(&mut self) {
        for id in self.processes.ids() {
            let process = &self.processes[id];
            if process.stage != Stage::NotStarted {
                continue;
            }
            let start_condition = process.plan.start_condition;
            let walled = self.unfinished.by_job[..start_condition.jobs_before].iter().any(|unfinished| *unfinished > 0);
            if walled || start_condition.job.is_some_and(|job| self.unfinished.by_job[job] > 0) {
                continue;
            }
            let start_ns = self.now_ns.saturating_add(process.plan.delay_ns).min(HORIZON_NS);
            let process = &mut self.processes[id];
            (process.stage, process.wake_ns) = (Stage::Starting, start_ns);
            self.events.schedule(start_ns, EventKind::Wake(id.into()));
        }
    }

    fn progress(&self) -> WorldProgress {
        let done: f64 = self.processes.iter().map(|process| process.done(self.now_ns)).sum();
        WorldProgress { now_ns: self.now_ns, done: done / self.processes.len().max(1) as f64 }
    }

    /// Ends the measured time of all processes now.
    fn end_processes(&mut self) {
        let now_ns = self.now_ns;
        for process in self.processes.iter_mut().filter(|process| process.stage != Stage::Done) {
            if !process.stage.has_begun() || process.measured_from_ns > now_ns {
                process.measured_from_ns = now_ns;
            }
            process.end_ns = now_ns;
        }
    }

    fn outcome(mut self) -> WorldResult {
        let start_ns = self.processes.iter().map(|process| process.measured_from_ns).min().unwrap_or(0);
        let end_ns = self.processes.iter().map(|process| process.end_ns).max().unwrap_or(start_ns).max(start_ns);
        let drive = self.devices[MAIN].meter.time(start_ns, end_ns);
        let requests = self.devices.iter().map(|device| device.meter.requests).sum();
        let bytes = self.devices.iter().map(|device| device.meter.bytes).sum();
        let turns = self.devices.iter().map(|device| device.meter.turns).sum();
        let mut recording = self.devices[MAIN].recording(end_ns);
        if self.processes.iter().any(|process| process.player.is_some()) {
            // Requests that were in flight when the recorded workload ended do not belong to it.
            recording.cut(end_ns);
        }
        let refused = std::mem::take(&mut self.devices[MAIN].refused_reservations);
        WorldResult {
            is_partial: self.unfinished.all > 0,
            divides_by_groups: self.devices[MAIN].divides_by_groups(),
            processes: self.processes.into_vec(),
            start_ns,
            end_ns,
            drive,
            requests,
            bytes,
            dirty_pages_max: self.cache.dirty_max(),
            turns,
            failures: self.failures,
            refused,
            recording,
        }
    }

    pub(super) fn defect(&self, defect: Defect) -> SimError {
        SimError::Defect { seed: self.seed, now_ns: self.now_ns, problem: defect.into_problem() }
    }
}
