//! Builds a world: places the files, creates the queue and the drive, and adds the processes.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use hoistway_core::{
    BlockLayer, Capacity, Class, ElevatorStorage, GroupId, Kind, OrderedMode, Priority, QueueConfig, RequestQueue,
    Storage,
};
use hoistway_custom::Host;
use hoistway_drive::{Drive, Jitter};
use hoistway_fio::{FadviseHint, Ioengine, Job, ZoneMode};
use hoistway_workload::endings::SteadyRate;
use hoistway_workload::{Region, WrittenZones, mix};
use rand::RngExt;

use super::device::Device;
use super::device::flush::FlushRules;
use super::devices::{Devices, DriveId};
use super::job_state::{request_priorities, worker_count};
use super::process::{Process, RequestEnds, is_async};
use super::processes::Processes;
use super::request::{Failures, WorldRequest};
use super::slab::Slab;
use super::state::{Scratch, Unfinished, Waiting, Watchdog, World};
use super::task::{ProcessId, SubmitterId, Task};
use super::threads::{FileLength, Flusher, Journal};
use super::{flusher, journal, layout};
use crate::config::{HostConfig, Plugging};
use crate::error::{Defect, SimError};
use crate::events::Events;
use crate::host::cpu::Cpus;
use crate::host::dirty::Balance;
use crate::host::files::{File, is_device};
use crate::host::fs::tree::Tree;
use crate::host::page::{PAGE_BYTES, PAGE_SECTORS};
use crate::host::page_cache::PageCache;
use crate::measure::windows_of_each;
use crate::record::Observer;
use crate::workload::distribution::unit;
use crate::workload::groups::PlannedGroup;
use crate::workload::plan::{ProcessPlan, WorkloadPlan};
use crate::workload::recorded::Player;
use crate::workload::stream;
use crate::workload::turnaround::Activity;

/// The requests that the host gives a drive at once: the drive's depth for each of its queues, of
/// which each processor uses one.
fn depth_of(request: &WorldRequest, drive: &Drive) -> u32 {
    let queues = request.profile.queues().min(request.host.cpus);
    let depth = drive.depth().saturating_mul(queues);
    request.host.depth_max.map_or(depth, |most| depth.min(most)).max(1)
}

/// The advice of a job on how its files are read. That on a mapping does not lengthen the windows.
fn advice_of(job: &Job) -> FadviseHint {
    if job.submission.ioengine == Ioengine::Mmap {
        FadviseHint::None
    } else {
        job.cache.fadvise_hint.of(job.requests.rw.is_random())
    }
}

/// The facts about the disk that processes need.
struct Places {
    trees: Vec<Arc<Tree>>,
    disk: u32,
    capacity_sectors: u64,
}

/// Delays the start of each process by a random time of at most `spread_ns`.
fn spread_starts(plan: &mut WorkloadPlan, spread_ns: u64) {
    if spread_ns == 0 {
        return;
    }
    for process in &mut plan.processes {
        let late_ns = stream(process.seed, process.number, 13).random_range(0..=spread_ns);
        process.delay_ns = process.delay_ns.saturating_add(late_ns);
    }
}

/// Creates the processes, each with its files, its walk and its recorded requests.
fn make_processes(
    request: &WorldRequest,
    jobs: &[Arc<Job>],
    planned: Vec<ProcessPlan>,
    places: &Places,
) -> Vec<Process> {
    let windows = windows_of_each(planned.len());
    let mut processes = Vec::with_capacity(planned.len());
    for process in planned {
        let submitter = SubmitterId(processes.len() as u32);
        let job = jobs[process.job].clone();
        let tree = process.tree.and_then(|tree| places.trees.get(tree)).cloned();
        let reader = request.host.reader(advice_of(&job));
        let times = completion_of(request, Some(processes.len()));
        let ends = match is_async(&job) && processes.len() < request.host.turnarounds_ns.len() {
            true => RequestEnds::Turnarounds { times, last_ns: 0 },
            false => RequestEnds::Work(times),
        };
        let mut process = Process::new(process, submitter, job, &reader, windows, ends);
        process.walk_through(tree, places.disk, request.host.read_ahead_pages());
        let script = request.scripts.get(processes.len());
        process.player = script.map(|script| Player::new(script.clone(), places.capacity_sectors));
        processes.push(process);
    }
    processes
}

/// The times of the ends of requests of a process, or of a thread of the kernel.
fn completion_of(request: &WorldRequest, process: Option<usize>) -> Jitter {
    let HostConfig { costs, turnarounds_ns, .. } = request.host;
    let median_ns = process.and_then(|process| turnarounds_ns.get(process)).copied().unwrap_or(costs.completion_ns);
    let stream = process.map_or(0, |process| process as u64 + 1);
    Jitter::new(0, median_ns, costs.completion_sigma_milli, mix(request.seed).wrapping_add(stream))
}

/// Creates the devices beyond the first one, each with a queue and a drive of its own.
fn make_further_devices<S: Observer>(
    request: &WorldRequest,
    depth: u32,
    submitters: usize,
    plan: &WorkloadPlan,
) -> Result<Vec<Device<S>>, SimError> {
    let device = |_| {
        let mut queue = make_queue::<S>(request, depth, submitters, plan.groups.len())?;
        make_groups(&mut queue, &plan.groups);
        let limits = (depth, flush_rules(request));
        Ok(Device::new(queue, instantiate_drive(request), limits, request.host, request.seed))
    };
    (1..request.host.drives).map(device).collect()
}

impl<S: Observer> World<S> {
    pub(super) fn new(request: &WorldRequest) -> Result<Self, SimError> {
        let host = request.host.clone();
        host.check()?;
        let drive = instantiate_drive(request);
        check_drives(request)?;
        let capacity_sectors = host.partition_sectors(drive.capacity_sectors());
        let capacity_bytes = capacity_sectors / PAGE_SECTORS * PAGE_BYTES;
        let mut plan = WorkloadPlan::new(request.jobs, capacity_bytes, request.seed)?;
        if request.scripts.is_empty() {
            spread_starts(&mut plan, host.start_spread_ns);
        }
        for (process, script) in plan.processes.iter_mut().zip(request.scripts) {
            process.pid = script.pid;
        }
        let layout::PlacedFiles { mut files, trees, disk } =
            layout::lay_out(&plan, &host, capacity_sectors, request.seed)?;
        assign_drives(&mut files, &plan, host.drives);
        // The journal's thread is the last task, because worlds without a journal have none.
        let mut tasks: Vec<Task> = (0..plan.processes.len() as u32).map(|id| Task::Process(ProcessId(id))).collect();
        let flusher = SubmitterId(tasks.len() as u32);
        tasks.push(Task::Flusher);
        let journal = make_journal(request, SubmitterId(tasks.len() as u32), &plan, disk, &files);
        tasks.extend(journal.is_some().then_some(Task::Journal));
        let depth = depth_of(request, &drive);
        let submitters = count_submitters(request, &plan);
        let mut queue = make_queue::<S>(request, depth, submitters, plan.groups.len())?;
        let groups = make_groups(&mut queue, &plan.groups);
        let main = Device::new(queue, drive, (depth, flush_rules(request)), &host, request.seed);
        let others = make_further_devices(request, depth, submitters, &plan)?;
        let jobs: Vec<Arc<Job>> = request.jobs.jobs.iter().cloned().map(Arc::new).collect();
        let mut unfinished_by_job = vec![0; jobs.len()];
        plan.processes.iter().for_each(|process| unfinished_by_job[process.job] += 1);
        let places = Places { trees, disk, capacity_sectors };
        let mut processes = make_processes(request, &jobs, plan.processes, &places);
        share_zones(&mut processes);
        let steady = watch_rates(&mut processes);
        let mut world = World {
            elevator: request.elevator,
            seed: request.seed,
            now_ns: 0,
            events: Events::default(),
            cpus: Cpus::new(host.cpus),
            devices: Devices::new(main, others),
            works_first: host.costs.program_ns > 0,
            on_cpu: None,
            cache: PageCache::new(host.cache_pages(), files.len()),
            waiting: Waiting { pages: vec![Vec::new(); files.len()], ..Waiting::default() },
            files,
            balance: Balance::default(),
            flusher: Flusher::new(flusher),
            journal,
            ready: VecDeque::new(),
            direct: Slab::new(),
            page_ios: Slab::new(),
            scratch: Scratch::default(),
            failures: Failures::default(),
            files_with_errors: BTreeSet::new(),
            flows: BTreeMap::new(),
            steady,
            tasks,
            unfinished: Unfinished { all: processes.len(), by_job: unfinished_by_job },
            processes: Processes::new(processes),
            activity: Activity::default(),
            watchdog: Watchdog::default(),
            host,
        };
        world.add_submitters(&groups).map_err(|defect| world.defect(defect))?;
        Ok(world)
    }

    /// Adds the submitters of all tasks to the devices, in the order of their identities.
    fn add_submitters(&mut self, groups: &[GroupId]) -> Result<(), Defect> {
        for ProcessPlan { pid, priority, nice, group, .. } in self.processes.iter().map(|process| &process.plan) {
            self.devices.add_submitter(*pid, *priority, *nice, groups.get(*group))?;
        }
        self.devices.add_submitter(flusher::PID, Priority::UNSET, 0, groups.first())?;
        if self.journal.is_some() {
            self.devices.add_submitter(journal::PID, Priority::UNSET, 0, groups.first())?;
        }
        self.add_further_submitters(groups)
    }

    /// Adds the threads that submit requests of a process, and the priorities of single requests.
    /// Only mq-deadline looks at the priority of a request; the other elevators look at that of
    /// the process.
    fn add_further_submitters(&mut self, groups: &[GroupId]) -> Result<(), Defect> {
        let by_request = self.elevator == Kind::MqDeadline;
        for (process, of_process) in self.processes.ids().zip(self.processes.iter_mut()) {
            let workers = worker_count(&of_process.job);
            let own = if by_request && workers == 0 { request_priorities(&of_process.job) } else { Vec::new() };
            let (plan, submission) = (&of_process.plan, &mut of_process.submission);
            let of_workers = (0..workers).map(|_| None);
            for priority in of_workers.chain(own.into_iter().map(Some)) {
                let of_request = priority.map_or(plan.priority, |(class, level)| priority_of(class, level));
                self.devices.add_submitter(plan.pid, of_request, plan.nice, groups.get(plan.group))?;
                let next = SubmitterId(self.tasks.len() as u32);
                match priority {
                    Some(priority) => submission.priorities.push((priority, next)),
                    None => submission.workers.push(next),
                }
                submission.submitters.push(next);
                self.tasks.push(process.into());
            }
        }
        Ok(())
    }
}

/// The priority of a class of fio (1 to 3) and a level.
fn priority_of(class: u8, level: u8) -> Priority {
    let class = match class {
        1 => Class::RealTime,
        3 => Class::Idle,
        _ => Class::BestEffort,
    };
    Priority::new(class, level).unwrap_or(Priority::UNSET)
}

/// Refuses several drives for jobs that do more than direct I/O.
fn check_drives(request: &WorldRequest) -> Result<(), SimError> {
    if request.host.drives == 1 {
        return Ok(());
    }
    let refused = request.jobs.jobs.iter().find(|job| {
        let other = job.hoistway.tree.is_some() || job.hoistway.journal.is_some();
        !job.cache.direct || other || job.syncs.fsync > 0 || job.syncs.fdatasync > 0 || job.syncs.end_fsync
    });
    let Some(job) = refused else { return Ok(()) };
    Err(SimError::Job {
        file: job.file.clone(),
        line: job.line,
        job: job.name.clone(),
        problem: format!(
            "the host has {} drives, of which only direct I/O without syncs uses several",
            request.host.drives
        ),
        remedy: "set direct=1 and no fsync, or `drives = 1` in the host file".into(),
    })
}

/// Puts the devices that the jobs name on the drives in turn.
fn assign_drives(files: &mut [File], plan: &WorkloadPlan, drives: u32) {
    let devices = files.iter_mut().zip(&plan.files).filter(|(_, planned)| is_device(&planned.name));
    for ((file, _), drive) in devices.zip(DriveId::in_turn(drives)) {
        file.drive = drive;
    }
}

/// Makes all processes that work on one part of a zoned device share its zones. Zones that no
/// process writes are full.
fn share_zones(processes: &mut [Process]) {
    let mut shared: HashMap<(u32, Region), WrittenZones> = HashMap::new();
    let writes: BTreeSet<u32> = processes
        .iter()
        .filter(|process| process.job.requests.rw.writes())
        .flat_map(|process| process.plan.files.iter().map(|(file, _)| *file))
        .collect();
    for process in processes.iter_mut().filter(|process| process.job.zones.mode == ZoneMode::Zbd) {
        for (index, (file, region)) in process.plan.files.iter().enumerate() {
            let make = || WrittenZones::new(process.job.zones, region.len, !writes.contains(file));
            let zones = shared.entry((*file, *region)).or_insert_with(make);
            process.generator.share_zones(index, zones);
        }
    }
}

/// The checks for a steady rate: one for each process, or one for a reporting group.
fn watch_rates(processes: &mut [Process]) -> Vec<(SteadyRate, Option<u64>)> {
    let mut steady = Vec::new();
    let mut of_group: HashMap<u32, usize> = HashMap::new();
    for process in processes {
        let Some(rate) = SteadyRate::new(&process.job) else { continue };
        let known = of_group.get(&process.job.groupid).copied().filter(|_| process.job.reporting.group_reporting);
        let index = known.unwrap_or(steady.len());
        if known.is_none() {
            steady.push((rate, None));
        }
        if process.job.reporting.group_reporting {
            of_group.insert(process.job.groupid, index);
        }
        process.limits.steady = Some(index);
        process.limits.watches = true;
    }
    steady
}

/// Instantiates one drive of the profile: its spindle speed is off by a drawn tolerance.
fn instantiate_drive(request: &WorldRequest) -> Drive {
    let tolerance = f64::from(request.host.spindle_tolerance_ppm) / 1e6;
    let Some(revolution_ns) = request.profile.revolution_ns().filter(|_| tolerance != 0.0) else {
        return Drive::new(request.profile);
    };
    let mut rng = stream(request.seed, 0, 8);
    let factor = 1.0 + tolerance * (2.0 * unit(&mut rng) - 1.0);
    let profile = request.profile.clone().with_rotation(revolution_ns as f64 * factor, unit(&mut rng));
    Drive::new(&profile)
}

/// Number of submitters of the processes: each process, its threads that submit, and its priorities
/// of single requests.
fn count_submitters(request: &WorldRequest, plan: &WorkloadPlan) -> usize {
    let of = |process: &ProcessPlan| {
        let job = &request.jobs.jobs[process.job];
        1 + worker_count(job) as usize + request_priorities(job).len()
    };
    plan.processes.iter().map(of).sum()
}

/// Creates a queue with room for these submitters and sets the tunables of its elevator.
fn make_queue<S: Observer>(
    request: &WorldRequest,
    depth: u32,
    submitters: usize,
    groups: usize,
) -> Result<RequestQueue<Host<S>>, SimError> {
    let config = queue_config(request, depth);
    let usual = Capacity::default();
    // Batching processes may take half as many requests again as the pool of each direction has.
    let requests = config.nr_requests.map_or(1024, |pool| pool.saturating_mul(3));
    let capacity = Capacity {
        requests: usual.requests.max(requests).saturating_add(submitters as u32),
        contexts: submitters as u32 + 2,
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

/// The queue's configuration: the block layer of the elevator's own kernel, or the host's kernel if
/// it has one, and whether the drive is rotational.
fn queue_config(request: &WorldRequest, depth: u32) -> QueueConfig {
    let host = request.host;
    let (cached, fua) = host.write_cache_of(request.profile);
    let ordered = match host.queue.ordered {
        OrderedMode::Drain { .. } => OrderedMode::Drain { flush: cached, fua: cached && fua },
        other => other,
    };
    QueueConfig {
        layer: layer_of(request),
        ordered,
        rotational: request.profile.is_rotational(),
        nr_requests: if host.pool_follows_drive { Some(pool_of(request, depth)) } else { host.queue.nr_requests },
        plugging: host.plugging == Plugging::Queue,
        ..host.queue
    }
}

/// The journal that the jobs or the host ask for.
fn make_journal(
    request: &WorldRequest,
    submitter: SubmitterId,
    plan: &WorkloadPlan,
    disk: u32,
    files: &[File],
) -> Option<Journal> {
    let config = plan.journal.or(request.host.journal)?;
    let exist = |job: usize| request.jobs.jobs[job].requests.rw.reads() || request.jobs.jobs[job].files.overwrite;
    let (completion, lengths) = (completion_of(request, None), FileLength::of_plan(plan, exist));
    let disk_blocks = files.get(disk as usize).map_or(0, File::pages);
    Some(Journal::new(submitter, config, completion, layer_of(request), lengths, disk, disk_blocks))
}

/// The block layer of the host's kernel, or of the elevator's own kernel.
fn layer_of(request: &WorldRequest) -> BlockLayer {
    request.host.kernel.map_or(request.elevator.info().layer, |kernel| kernel.layer())
}

fn flush_rules(request: &WorldRequest) -> FlushRules {
    let (cached, fua) = request.host.write_cache_of(request.profile);
    FlushRules::of(request.host.flushes, layer_of(request), cached, fua)
}

/// The size of the pool of a multi-queue layer: for each submission queue of the drive twice the
/// queue's depth, 32 to 128. A drive with several queues, one for each processor, has no pool but
/// its own depth under `none`.
fn pool_of(request: &WorldRequest, depth: u32) -> u32 {
    let queues = request.profile.queues().min(request.host.cpus);
    match request.elevator {
        Kind::Noop if request.profile.queues() > 1 => depth,
        _ => (depth / queues).clamp(32, 128) * 2 * queues,
    }
}

/// The root group, and the groups of the job file in their order. The queue has room for them.
fn make_groups<S: Observer>(queue: &mut RequestQueue<Host<S>>, plans: &[PlannedGroup]) -> Vec<GroupId> {
    let mut groups = vec![queue.root_group()];
    for plan in plans {
        let made = groups.get(plan.parent).map(|parent| queue.create_group(*parent, plan.weights, 0));
        debug_assert!(matches!(made, Some(Ok(_))), "the queue was made with room for its groups");
        groups.extend(made.and_then(Result::ok));
    }
    groups
}
