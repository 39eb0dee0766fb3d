//! The world: processes, host and disk in virtual time.
//!
//! Events happen in a total order - by time, completions before everything else at one instant, the queue's timers
//! after everything else, and otherwise in the order in which they were arranged - so that a seed replays a run.

mod buffered;
mod choose;
mod device;
mod direct;
mod failing;
mod faults;
mod flusher;
mod journal;
mod layout;
mod plug;
mod process;
mod recorded;
mod slab;
mod sync;
mod walk;
mod writeback;

use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hoistway_core::{
    Capacity, ElevatorStorage, GroupId, Kind, NoSink, Owned, Priority, QueueConfig, RequestQueue, ReserveError, Storage,
};
use hoistway_drive::{Drive, Profile};
use hoistway_fio::{Job, JobFile};

use crate::config::{HostConfig, PAGE_BYTES, PAGE_SECTORS, Plugging};
use crate::error::SimError;
use crate::events::{Events, HORIZON_NS, What};
use crate::groups::GroupPlan;
use crate::host::cpu::Cpus;
use crate::host::dirty::Balance;
use crate::host::files::File;
use crate::host::page_cache::PageCache;
use crate::measure::windows_of_each;
use crate::record::{Observer, Recording, SliceRecorder};
use crate::settings::Setting;
use crate::workload::distribution::unit;
use crate::workload::plan::Plan;
use crate::workload::recorded::{Player, Script};
use crate::workload::stream;
use device::Device;
pub use device::DriveTime;
pub(crate) use failing::Failures;
use flusher::Flusher;
use journal::Journal;
use process::{DirectIo, Stage};
pub(crate) use process::{DirectionStats, Process, Stats};
use slab::Slab;

/// What a world is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorldRequest<'a> {
    pub jobs: &'a JobFile,
    pub profile: &'a Profile,
    pub host: &'a HostConfig,
    pub elevator: Kind,
    pub settings: &'a [Setting],
    pub seed: u64,
    pub record: bool,
    /// Of a recorded workload: what each process did, a job each; none of one that fio describes.
    pub scripts: &'a [Arc<Script>],
    /// The drive is given no more requests at once than this, nor than it takes.
    pub depth_max: Option<u32>,
}

/// What is left of a world.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub processes: Vec<Process>,
    /// From the first start to the last end, without ramp times.
    pub start_ns: u64,
    pub end_ns: u64,
    pub drive: DriveTime,
    pub requests: u64,
    pub bytes: u64,
    pub dirty_pages_max: u64,
    pub turns: u64,
    pub failures: Failures,
    /// Whether the elevator, as it was tuned, divided the disk among groups.
    pub divides_by_groups: bool,
    /// Reservations that the elevator refused: the process, and why.
    pub refused: Vec<(u32, ReserveError)>,
    pub recording: Recording,
}

/// How far a world has come: virtual time, bytes moved, and bytes to move when that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headway {
    pub now_ns: u64,
    pub bytes: u64,
    pub bytes_total: u64,
}

/// Runs a world to its end, or until `stop` says so.
pub(crate) fn run(
    request: &WorldRequest,
    stop: &dyn Fn() -> bool,
    headway: &mut dyn FnMut(Headway),
) -> Result<Outcome, SimError> {
    match request.record {
        true => World::<SliceRecorder>::new(request)?.run(stop, headway),
        false => World::<NoSink>::new(request)?.run(stop, headway),
    }
}

/// So many events without anything done by anybody, or so many steps at one instant, are a defect.
const IDLE_EVENTS_MAX: u32 = 100_000;
const STEPS_AT_ONCE_MAX: u32 = 4_000_000;
/// How many events pass between looks at whether to stop, and as many for each process: a look goes over all of them.
const EVENTS_BETWEEN_LOOKS: u32 = 4096;
const EVENTS_BETWEEN_LOOKS_EACH: u32 = 64;

pub(crate) struct World<S: Observer> {
    host: HostConfig,
    elevator: Kind,
    seed: u64,
    now_ns: u64,
    events: Events,
    cpus: Cpus,
    device: Device<S>,
    cache: PageCache,
    files: Vec<File>,
    /// Tasks that wait for a page, by file.
    page_waiters: Vec<Vec<(u32, u64)>>,
    /// Tasks that wait until nothing of any file is being written any more.
    sync_waiters: Vec<u32>,
    /// Writers that wait until fewer pages are dirty.
    throttled: Vec<u32>,
    /// Tasks that wait until the queue takes writes again.
    congestion_waiters: Vec<u32>,
    balance: Balance,
    processes: Vec<Process>,
    flusher: Flusher,
    journal: Option<Journal>,
    /// Tasks that go on at this instant.
    ready: VecDeque<u32>,
    direct: Slab<DirectIo>,
    page_ios: Slab<PageIo>,
    tokens: Vec<u64>,
    failures: Failures,
    /// Files of which pages were lost that no sync has told of.
    files_with_errors: BTreeSet<u32>,
    runs: Vec<(u64, u64)>,
    /// Processes of each job that have not ended.
    unfinished_by_job: Vec<u32>,
    unfinished: usize,
    idle_events: u32,
    steps_at_once: u32,
}

/// A bio between disk and page cache.
#[derive(Clone, Copy, Debug)]
struct PageIo {
    file: u32,
    first: u64,
    pages: u64,
}

/// What a bio's token says: what kind of I/O it belongs to, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Direct(u32),
    PageRead(u32),
    PageWrite(u32),
    /// Of the journal's thread.
    Logged,
    /// A flush that a process waits for.
    Flushed(u32),
}

impl Token {
    fn encode(self) -> u64 {
        let (kind, slot) = match self {
            Token::Direct(slot) => (0, slot),
            Token::PageRead(slot) => (1, slot),
            Token::PageWrite(slot) => (2, slot),
            Token::Logged => (3, 0),
            Token::Flushed(task) => (4, task),
        };
        kind << 32 | u64::from(slot)
    }

    fn decode(token: u64) -> Token {
        let slot = token as u32;
        match token >> 32 {
            0 => Token::Direct(slot),
            1 => Token::PageRead(slot),
            2 => Token::PageWrite(slot),
            3 => Token::Logged,
            _ => Token::Flushed(slot),
        }
    }
}

impl<S: Observer> World<S> {
    fn new(request: &WorldRequest) -> Result<Self, SimError> {
        let host = request.host.clone();
        host.check()?;
        let drive = specimen(request);
        // Whole pages: what is left of a page at the drive's end belongs to nobody.
        let capacity_sectors = drive.capacity_sectors();
        let capacity_bytes = capacity_sectors / PAGE_SECTORS * PAGE_BYTES;
        let mut plan = Plan::new(request.jobs, capacity_bytes, request.seed)?;
        for (process, script) in plan.processes.iter_mut().zip(request.scripts) {
            process.pid = script.pid;
        }
        let layout::LaidOut { files, trees, disk } =
            layout::lay_out(&plan, &host, drive.capacity_sectors(), request.seed)?;
        let reads = |job: usize| request.jobs.jobs[job].rw.reads();
        let journal = plan.journal.or(host.journal).map(|config| Journal::new(config, &plan, reads, disk, &files));
        let depth = request.depth_max.map_or(drive.depth(), |most| drive.depth().min(most)).max(1);
        let mut queue = make_queue::<S>(request, depth, plan.processes.len(), plan.groups.len())?;
        let groups = make_groups(&mut queue, &plan.groups);
        let jobs: Vec<Arc<Job>> = request.jobs.jobs.iter().cloned().map(Arc::new).collect();
        let mut unfinished_by_job = vec![0; jobs.len()];
        let windows = windows_of_each(plan.processes.len());
        let mut processes = Vec::with_capacity(plan.processes.len());
        for process in plan.processes {
            unfinished_by_job[process.job] += 1;
            let job = jobs[process.job].clone();
            let tree = process.tree.and_then(|tree| trees.get(tree)).cloned();
            let mut process = Process::new(process, job, &host.reader(), windows);
            process.walk_through(tree, disk, host.read_ahead_pages());
            process.player =
                request.scripts.get(processes.len()).map(|script| Player::new(script.clone(), capacity_sectors));
            processes.push(process);
        }
        let mut world = World {
            elevator: request.elevator,
            seed: request.seed,
            now_ns: 0,
            events: Events::default(),
            cpus: Cpus::new(host.cpus),
            device: Device::new(queue, drive, depth, host.plugging),
            cache: PageCache::new(host.cache_pages(), files.len()),
            page_waiters: vec![Vec::new(); files.len()],
            files,
            sync_waiters: Vec::new(),
            throttled: Vec::new(),
            congestion_waiters: Vec::new(),
            balance: Balance::default(),
            flusher: Flusher::default(),
            journal,
            ready: VecDeque::new(),
            direct: Slab::new(),
            page_ios: Slab::new(),
            tokens: Vec::new(),
            failures: Failures::default(),
            files_with_errors: BTreeSet::new(),
            runs: Vec::new(),
            unfinished: processes.len(),
            unfinished_by_job,
            processes,
            idle_events: 0,
            steps_at_once: 0,
            host,
        };
        world.add_submitters(&groups)?;
        Ok(world)
    }

    fn add_submitters(&mut self, groups: &[GroupId]) -> Result<(), SimError> {
        for process in &self.processes {
            let plan = &process.plan;
            let group = groups.get(plan.group).copied();
            if !self.device.add_submitter(plan.pid, plan.priority, plan.nice, group) {
                return Err(self.defect("no room for a process's context, or its group".into()));
            }
        }
        if !self.device.add_submitter(flusher::PID, Priority::UNSET, 0, groups.first().copied()) {
            return Err(self.defect("no room for the flusher's context".into()));
        }
        // Without a journal there is no thread: its task comes last.
        if self.journal.is_some()
            && !self.device.add_submitter(journal::PID, Priority::UNSET, 0, groups.first().copied())
        {
            return Err(self.defect("no room for the journal's context".into()));
        }
        Ok(())
    }

    fn run(mut self, stop: &dyn Fn() -> bool, headway: &mut dyn FnMut(Headway)) -> Result<Outcome, SimError> {
        self.open_gates();
        self.run_ready();
        let between_looks = EVENTS_BETWEEN_LOOKS.max(EVENTS_BETWEEN_LOOKS_EACH * self.processes.len() as u32);
        let mut until_look = 0u32;
        while self.unfinished > 0 {
            if until_look == 0 {
                if stop() {
                    return Err(SimError::Cancelled);
                }
                headway(self.headway());
                until_look = between_looks;
            }
            until_look -= 1;
            self.step()?;
            if let Some(problem) = self.device.defect.take() {
                return Err(self.defect(problem));
            }
        }
        headway(self.headway());
        Ok(self.outcome())
    }

    /// The next event or timer, and what follows at the same instant.
    fn step(&mut self) -> Result<(), SimError> {
        let never = u64::MAX;
        let event_ns = self.events.next_ns().unwrap_or(never);
        let timer_ns = self.device.next_timer().unwrap_or(never);
        let drive_ns = self.device.next_drive_event().unwrap_or(never);
        self.idle_events += 1;
        if drive_ns <= event_ns.min(timer_ns) && drive_ns < never {
            self.pass_to(drive_ns);
            self.drive_event();
        } else if timer_ns < event_ns {
            self.pass_to(timer_ns);
            self.device.timer(self.now_ns);
        } else if let Some((at_ns, what)) = self.events.pop() {
            self.pass_to(at_ns);
            self.happen(what);
        } else {
            return Err(self.stuck());
        }
        self.wake_resumed();
        self.run_ready();
        if self.idle_events > IDLE_EVENTS_MAX || self.steps_at_once > STEPS_AT_ONCE_MAX {
            return Err(self.stuck());
        }
        Ok(())
    }

    fn pass_to(&mut self, at_ns: u64) {
        if at_ns > self.now_ns {
            self.now_ns = at_ns;
            self.steps_at_once = 0;
        }
    }

    fn happen(&mut self, what: What) {
        match what {
            What::CpuDone(task) => {
                self.idle_events = 0;
                if let Some((next, burst_ns)) = self.cpus.leave() {
                    self.events.arrange(self.now_ns.saturating_add(burst_ns), What::CpuDone(next));
                }
                self.go_on(task);
            }
            What::Wake(task) => {
                self.idle_events = 0;
                self.wake(task);
            }
            What::FlushTick => self.flush_tick(),
            What::JournalTick(id) => self.journal_tick(id),
        }
    }

    fn bio_over(&mut self, token: Token, failed: bool) {
        match token {
            Token::Direct(slot) => self.direct_bio_over(slot, failed),
            Token::PageRead(slot) => {
                let PageIo { file, first, pages } = self.page_ios.remove(slot);
                match failed {
                    true => self.read_failed(file, first, pages),
                    false => self.cache.end_read(file, first, pages),
                }
                let mut waiters = std::mem::take(&mut self.page_waiters[file as usize]);
                waiters.retain(|(task, page)| {
                    let there = (first..first + pages).contains(page);
                    if there {
                        self.wake(*task);
                    }
                    !there
                });
                self.page_waiters[file as usize] = waiters;
            }
            Token::Logged => self.logged(failed),
            Token::Flushed(task) => self.flushed(task, failed),
            Token::PageWrite(slot) => {
                let PageIo { file, first, pages } = self.page_ios.remove(slot);
                self.cache.end_write(file, first, pages);
                if failed {
                    self.write_failed(file, pages);
                }
                self.written(file);
            }
        }
    }

    /// A task that waits goes on at this instant, after what is under way. It looks for itself whether its wait is
    /// over.
    fn wake(&mut self, task: u32) {
        let blocked = match self.processes.get_mut(task as usize) {
            Some(process) => &mut process.blocked,
            None => match &mut self.journal {
                Some(journal) if task as usize > self.processes.len() => &mut journal.blocked,
                _ => &mut self.flusher.blocked,
            },
        };
        if std::mem::take(blocked) {
            self.ready.push_back(task);
        }
    }

    fn wake_resumed(&mut self) {
        while let Some(task) = self.device.resumed.pop() {
            self.wake(task);
        }
        self.wake_relieved();
    }

    fn run_ready(&mut self) {
        while let Some(task) = self.ready.pop_front() {
            self.go_on(task);
            self.wake_resumed();
        }
    }

    fn go_on(&mut self, task: u32) {
        match (task as usize).cmp(&self.processes.len()) {
            Ordering::Less => self.run_process(task),
            Ordering::Equal => self.run_flusher(),
            Ordering::Greater => self.run_journal(),
        }
    }

    /// Takes a processor for the work that a task has done, and goes on when it is paid for. Answers whether there was
    /// any.
    fn pay(&mut self, task: u32) -> bool {
        let debt_ns = match self.processes.get_mut(task as usize) {
            Some(process) => {
                process.stats.cpu_ns += process.debt_ns;
                &mut process.debt_ns
            }
            None => match &mut self.journal {
                Some(journal) if task as usize > self.processes.len() => &mut journal.debt_ns,
                _ => &mut self.flusher.debt_ns,
            },
        };
        let burst_ns = std::mem::take(debt_ns);
        if burst_ns == 0 {
            return false;
        }
        if self.cpus.take(task, burst_ns) {
            self.events.arrange(self.now_ns.saturating_add(burst_ns), What::CpuDone(task));
        }
        true
    }

    /// Starts the processes whose gates are open.
    fn open_gates(&mut self) {
        for task in 0..self.processes.len() {
            let process = &self.processes[task];
            if process.stage != Stage::NotStarted || process.wake_ns > 0 {
                continue;
            }
            let gate = process.plan.gate;
            let walled = self.unfinished_by_job[..gate.jobs_before].iter().any(|unfinished| *unfinished > 0);
            if walled || gate.job.is_some_and(|job| self.unfinished_by_job[job] > 0) {
                continue;
            }
            let start_ns = self.now_ns.saturating_add(process.plan.delay_ns).min(HORIZON_NS);
            self.processes[task].wake_ns = start_ns.max(1);
            self.events.arrange(start_ns, What::Wake(task as u32));
        }
    }

    fn headway(&self) -> Headway {
        let bytes = self.processes.iter().map(|process| process.stats.read.bytes + process.stats.write.bytes).sum();
        let total = |process: &Process| process.plan.io_bytes.saturating_mul(u64::from(process.job.loops));
        let bytes_total = self.processes.iter().map(total).fold(0, u64::saturating_add);
        Headway { now_ns: self.now_ns, bytes, bytes_total }
    }

    fn outcome(mut self) -> Outcome {
        let start_ns = self.processes.iter().map(|process| process.measured_from_ns).min().unwrap_or(0);
        let end_ns = self.processes.iter().map(|process| process.end_ns).max().unwrap_or(start_ns).max(start_ns);
        let drive = self.device.time(start_ns, end_ns);
        let (requests, bytes, turns) = (self.device.requests, self.device.bytes, self.device.turns);
        let mut recording = self.device.recording(end_ns);
        if self.processes.iter().any(|process| process.player.is_some()) {
            // What was under way when a recorded workload ended is not of it.
            recording.cut(end_ns);
        }
        let refused = std::mem::take(&mut self.device.refused_reservations);
        Outcome {
            divides_by_groups: self.device.divides_by_groups(),
            processes: self.processes,
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

    fn defect(&self, problem: String) -> SimError {
        SimError::Defect { seed: self.seed, now_ns: self.now_ns, problem }
    }
}

/// One drive of the profile's kind: no two spindles turn at quite the same speed.
fn specimen(request: &WorldRequest) -> Drive {
    let tolerance = f64::from(request.host.spindle_tolerance_ppm) / 1e6;
    let Some(revolution_ns) = request.profile.revolution_ns().filter(|_| tolerance != 0.0) else {
        return Drive::new(request.profile);
    };
    let mut rng = stream(request.seed, 0, 8);
    let factor = 1.0 + tolerance * (2.0 * unit(&mut rng) - 1.0);
    let profile = request.profile.clone().with_rotation(revolution_ns as f64 * factor, unit(&mut rng));
    Drive::new(&profile)
}

/// A queue with room for these processes, its elevator tuned as told.
fn make_queue<S: Observer>(
    request: &WorldRequest,
    depth: u32,
    processes: usize,
    groups: usize,
) -> Result<RequestQueue<Owned<S>>, SimError> {
    let config = queue_config(request, depth);
    let usual = Capacity::default();
    // Batchers may take half as much again as the pool of each direction has.
    let requests = config.nr_requests.map_or(1024, |pool| pool.saturating_mul(3));
    let capacity = Capacity {
        requests: usual.requests.max(requests).saturating_add(processes as u32),
        contexts: processes as u32 + 2,
        groups: groups as u32 + 1,
        ..usual
    };
    let storage = Storage::owned(capacity);
    let elevator = ElevatorStorage::owned(request.elevator, capacity);
    let mut queue = RequestQueue::new(config, storage, elevator, S::default(), 0);
    if let Some(kernel) = request.host.kernel {
        for (tunable, value) in kernel.defaults_of(request.elevator, config.rotational) {
            let set = queue.set_tunable(tunable, *value);
            debug_assert!(set.is_ok(), "{tunable} takes {value}");
        }
    }
    for setting in request.settings {
        setting.apply(&mut queue)?;
    }
    Ok(queue)
}

/// Each elevator works in the block layer that it was written for, unless all are to work in one kernel's, and knows what kind of
/// device it has.
fn queue_config(request: &WorldRequest, depth: u32) -> QueueConfig {
    let host = request.host;
    QueueConfig {
        layer: host.kernel.map_or(request.elevator.info().layer, |kernel| kernel.layer()),
        rotational: request.profile.is_rotational(),
        nr_requests: if host.pool_follows_drive { Some(depth.clamp(32, 128) * 2) } else { host.queue.nr_requests },
        plugging: host.plugging == Plugging::Queue,
        ..host.queue
    }
}

/// The root, and the groups of the job file in their order; there is room for them.
fn make_groups<S: Observer>(queue: &mut RequestQueue<Owned<S>>, plans: &[GroupPlan]) -> Vec<GroupId> {
    let mut groups = vec![queue.root_group()];
    for plan in plans {
        let made = groups.get(plan.parent).map(|parent| queue.create_group(*parent, plan.weights, 0));
        debug_assert!(matches!(made, Some(Ok(_))), "the queue was made with room for its groups");
        groups.extend(made.and_then(Result::ok));
    }
    groups
}
