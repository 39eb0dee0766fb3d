//! The model of a recorded workload.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hoistway_core::{ClockConfig, Flags, Kind, Op, OrderedMode};
use hoistway_drive::{Drive, Profile};
use hoistway_sim::{
    CompareRequest, Comparison, CpuCosts, Flushes, HostConfig, Kernel, Plugging, Progress, RecordedWorkload,
    RequestScript, Run, ScriptedRequest, Setting, SimError, WakeUp, compare_recorded, group_switch, run_each_recorded,
};
use hoistway_trace::Rwbs;
use hoistway_trace::dependencies::{Pattern, PatternAnalysis, Release, ReleaseDelay, SubmittedRequest, find_pattern};
use hoistway_trace::request::ABANDON_AFTER_NS;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::recording::{RecordedProcess, Recording, WhatifError, end_of, is_flush, op_of};
use super::submissions::{LoopModel, assumed_pattern, divide_into_streams};
use super::turnaround::IdleTimes;

/// Share of a process's requests that have to follow one of its last few requests for the process
/// to count as sequential: its repetitions then continue after the recorded range.
const SEQUENTIAL_SHARE: f64 = 0.5;
/// Number of earlier requests that count as the last few.
const RECENT: usize = 8;
/// The largest request, in sectors: 1 MiB.
const MAX_SECTORS: u32 = 2048;
/// The minimum length of a repeated pass, in ns.
const PASS_NS_MIN: u64 = 1_000_000;

/// The simulated machine for a prediction.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Profile of the drive.
    pub profile: Profile,
    /// The maximum number of requests in the drive at once; the drive's own depth is the other
    /// limit.
    pub depth_max: Option<u32>,
    /// The kernel whose block layer all elevators run in. With `None`, each elevator runs in the
    /// block layer of its own kernel, with a clock of 1000 ticks a second, as in hoistway's own
    /// server.
    pub kernel: Option<Kernel>,
    /// True if control groups are switched on in all elevators that have them, as in hoistway's
    /// server.
    pub groups: bool,
    /// Tunables that differ from their defaults.
    pub settings: Vec<Setting>,
    /// Settings of the queue.
    pub queue: QueueLimits,
    /// Seed of random numbers, for drive models that use some.
    pub seed: u64,
}

/// Settings of a queue, as recorded; `None` for those of the kernel and the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimits {
    /// Requests that the queue holds; `None` without a kernel for no limit.
    pub nr_requests: Option<u32>,
    /// The largest request in sectors; `None` without a kernel for 1 MiB.
    pub max_sectors: Option<u32>,
    /// True if the kernel flushes the drive's cache.
    pub write_back_cache: Option<bool>,
    /// True if the kernel sends writes with FUA to the drive; false if it flushes after them.
    pub fua: Option<bool>,
}

/// A workload built from a recording.
#[derive(Clone, Debug)]
pub struct Model {
    recording: Recording,
    workload: RecordedWorkload,
    findings: Vec<PatternAnalysis>,
    /// True if sequential streams stand for processes that the trace does not name.
    has_streams: bool,
    notes: Vec<String>,
}

impl Model {
    /// Finds the dependencies of the requests and builds the workload.
    ///
    /// # Errors
    /// [`WhatifError::Nothing`] if the recording has no completed request with data.
    pub fn new(recording: Recording) -> Result<Model, WhatifError> {
        let (recording, notes) = with_data(recording);
        let is_completed = |request: &SubmittedRequest| request.is_completed() && request.bytes > 0;
        let has_completed = |process: &RecordedProcess| process.requests.iter().any(is_completed);
        if !recording.processes.iter().any(has_completed) {
            return Err(WhatifError::Nothing);
        }
        let findings: Vec<PatternAnalysis> =
            recording.processes.iter().map(|process| find_pattern(&process.requests)).collect();
        let idle_times = IdleTimes::new(&recording, &findings);
        let wake_up = idle_times.wake_up();
        let scripts = recording.processes.iter().zip(&findings).zip(idle_times.idle_ns());
        let scripts = scripts.map(|((process, finding), idle_ns)| {
            Arc::new(RequestScript { wake_up, ..script(process, finding, &idle_ns, &recording) })
        });
        let workload = RecordedWorkload { scripts: scripts.collect(), length_ns: Some(recording.length_ns()) };
        Ok(Model { recording, workload, findings, has_streams: false, notes })
    }

    /// Builds the workload of a recording of submissions alone, whose requests wait as `loop_model`
    /// assumes. Each request is made once, and a run ends with the last completion. Completions of
    /// the recording are not used.
    ///
    /// # Errors
    /// [`WhatifError::Nothing`] if the recording has no request with data.
    pub fn of_submissions(recording: Recording, loop_model: LoopModel) -> Result<Model, WhatifError> {
        let (mut recording, notes) = with_data(recording);
        if !recording.processes.iter().flat_map(|process| &process.requests).any(|request| request.bytes > 0) {
            return Err(WhatifError::Nothing);
        }
        let has_streams = divide_into_streams(&mut recording);
        let findings: Vec<PatternAnalysis> =
            recording.processes.iter().map(|process| assumed_pattern(&process.requests, loop_model)).collect();
        let scripts = recording.processes.iter().zip(&findings);
        let scripts = scripts.map(|(process, finding)| Arc::new(finite_script(process, finding, &recording)));
        let workload = RecordedWorkload { scripts: scripts.collect(), length_ns: None };
        Ok(Model { recording, workload, findings, has_streams, notes })
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The processes, with the dependency rule found for each.
    pub fn findings(&self) -> impl Iterator<Item = (&RecordedProcess, &PatternAnalysis)> {
        self.recording.processes.iter().zip(&self.findings)
    }

    /// For each process, true if it was active at the end of the recording: its requests are then
    /// repeated for as long as the prediction takes.
    pub fn endless(&self) -> impl Iterator<Item = bool> + '_ {
        self.workload.scripts.iter().map(|script| script.is_endless)
    }

    /// Returns true if sequential streams stand for processes that the trace does not name.
    pub fn has_streams(&self) -> bool {
        self.has_streams
    }

    /// Notes on left-out parts of the recording, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Runs the workload under each of these elevators for the length of the recording. With
    /// `record`, head positions and slices are recorded.
    ///
    /// # Errors
    /// [`WhatifError::Beyond`] if the drive is too small, [`WhatifError::Sim`] if a simulation
    /// fails or is cancelled.
    pub fn predict(
        &self,
        elevators: &[Kind],
        machine: &Machine,
        record: bool,
        progress: &(dyn Fn(Progress) + Sync),
        cancel: &AtomicBool,
    ) -> Result<Comparison, WhatifError> {
        let request = self.request(elevators, machine, record)?;
        Ok(compare_recorded(&request, &self.workload, progress, cancel)?)
    }

    /// Runs the workload under each of these elevators without a reference, for series of many
    /// runs.
    ///
    /// # Errors
    /// [`WhatifError::Beyond`] if the drive is too small, [`WhatifError::Sim`] if a simulation
    /// fails or is cancelled.
    pub fn run_each(
        &self,
        elevators: &[Kind],
        machine: &Machine,
        cancel: &AtomicBool,
    ) -> Result<Vec<Run>, WhatifError> {
        let request = self.request(elevators, machine, false)?;
        Ok(run_each_recorded(&request, &self.workload, cancel)?)
    }

    /// A variation of the workload: the recorded think times of each process are rotated by a
    /// random number of positions. Processes with batches or with arrival times of their own keep
    /// theirs, because their think times are not independent.
    ///
    /// Some elevators classify a process by its first requests and keep the classification for
    /// long, so a few think times can decide the result of a run.
    pub fn with_rotated_think_times(&self, seed: u64) -> Model {
        let mut rng = Pcg64::seed_from_u64(seed);
        let scripts = self.workload.scripts.iter().map(|script| Arc::new(rotated(script, &mut rng))).collect();
        Model { workload: RecordedWorkload { scripts, ..self.workload }, ..self.clone() }
    }

    fn request(&self, elevators: &[Kind], machine: &Machine, record: bool) -> Result<CompareRequest, WhatifError> {
        self.check_size(&machine.profile)?;
        Ok(CompareRequest {
            jobs: self.workload.jobs(),
            profile: machine.profile.clone(),
            host: host(machine, self.workload.scripts.len()),
            elevators: elevators.to_vec(),
            settings: settings(machine, elevators)?,
            seed: machine.seed,
            record,
        })
    }

    fn check_size(&self, profile: &Profile) -> Result<(), WhatifError> {
        let end = self.workload.end_sector();
        let capacity_sectors = Drive::new(profile).capacity_sectors();
        if end > capacity_sectors {
            return Err(WhatifError::Beyond { sector: end - 1, drive: profile.name().into(), capacity_sectors });
        }
        Ok(())
    }
}

fn rotated(script: &RequestScript, rng: &mut Pcg64) -> RequestScript {
    let mut script = script.clone();
    let is_alike = script.requests.windows(2).all(|pair| pair[0].wait.outstanding_max == pair[1].wait.outstanding_max);
    let recorded = |request: &ScriptedRequest| Some((think_ns(request.wait)?, request.idle_ns));
    let mut think_times: Vec<(u64, u64)> = script.requests.iter().filter_map(recorded).collect();
    if !is_alike || think_times.is_empty() {
        return script;
    }
    let count = think_times.len();
    think_times.rotate_left(rng.random_range(0..count));
    let waiting = script.requests.iter_mut().filter(|request| think_ns(request.wait).is_some());
    for (request, (think_ns, idle_ns)) in waiting.zip(think_times) {
        request.wait.then = ReleaseDelay::Think(think_ns);
        request.idle_ns = idle_ns;
    }
    script
}

fn think_ns(wait: Release) -> Option<u64> {
    match wait.then {
        ReleaseDelay::Think(ns) => Some(ns),
        ReleaseDelay::At(_) | ReleaseDelay::Gap(_) => None,
    }
}

/// The recording with the requests that have data or are flushes, the processes in the order of
/// their ids, and notes on what was left out.
fn with_data(mut recording: Recording) -> (Recording, Vec<String>) {
    let mut left_out: BTreeMap<&str, u64> = BTreeMap::new();
    for process in &mut recording.processes {
        process.requests.retain(|request| {
            let why = match op_of(request.op) {
                _ if is_flush(request) => return true,
                None => "without a direction",
                Some(_) if request.bytes == 0 => "without data",
                Some(_) => return true,
            };
            *left_out.entry(why).or_default() += 1;
            false
        });
    }
    recording.processes.retain(|process| !process.requests.is_empty());
    recording.processes.sort_by_key(|process| process.pid);
    let notes = left_out.into_iter().map(|(why, count)| format!("{count} requests {why} are left out")).collect();
    (recording, notes)
}

fn scripted(request: &SubmittedRequest, wait: &Release, idle_ns: u64) -> ScriptedRequest {
    ScriptedRequest {
        op: if is_flush(request) { Op::Flush } else { op_of(request.op).unwrap_or(Op::Read) },
        flags: flags_of(request.op),
        preflush: request.bytes > 0 && request.op.has(Rwbs::FLUSH),
        fua: request.op.has(Rwbs::FUA),
        sector: request.sector,
        sectors: request.bytes.div_ceil(512),
        wait: *wait,
        idle_ns,
    }
}

/// The script of a process whose requests are made once.
fn finite_script(process: &RecordedProcess, finding: &PatternAnalysis, recording: &Recording) -> RequestScript {
    let first_ns = process.requests.first().map_or(recording.from_ns, |first| first.queued_ns);
    RequestScript {
        name: process.name.clone(),
        pid: process.pid,
        depth: finding.depth.max(1),
        start_ns: first_ns.saturating_sub(recording.from_ns),
        requests: process
            .requests
            .iter()
            .zip(&finding.waits)
            .map(|(request, wait)| scripted(request, wait, 0))
            .collect(),
        is_endless: false,
        stride_sectors: 0,
        end_sector: process.requests.iter().map(end_of).max().unwrap_or(0),
        usual_think_ns: None,
        pass_ns: PASS_NS_MIN,
        wake_up: WakeUp::default(),
    }
}

/// The script of a process on a machine that wakes up at once. `idle_ns` has the idle time of the
/// machine before the release of each request.
fn script(
    process: &RecordedProcess,
    finding: &PatternAnalysis,
    idle_ns: &[u64],
    recording: &Recording,
) -> RequestScript {
    let requests = &process.requests;
    let first_ns = requests.first().map_or(recording.from_ns, |first| first.queued_ns);
    let last_ns = requests.last().map_or(first_ns, |last| last.queued_ns);
    let intervals_ns = requests.windows(2).map(|pair| pair[1].queued_ns.saturating_sub(pair[0].queued_ns));
    let longest_ns = intervals_ns.max().unwrap_or(0);
    let completed = requests.iter().filter(|request| request.is_completed());
    let last_activity_ns = completed.map(|request| request.completed_ns).max().unwrap_or(last_ns).max(last_ns);
    // An older request without a completion is not in flight: its completion was lost.
    let is_recent =
        |request: &SubmittedRequest| recording.until_ns.saturating_sub(request.queued_ns) <= ABANDON_AFTER_NS;
    let some_in_flight = requests.iter().any(|request| !request.is_completed() && is_recent(request));
    let none_completed = !requests.iter().any(SubmittedRequest::is_completed);
    let is_endless =
        requests.len() > 1 && (some_in_flight || recording.until_ns.saturating_sub(last_activity_ns) <= longest_ns);
    // Requests in flight at the end of the recording come after it.
    let is_kept = |request: &SubmittedRequest| request.is_completed() || none_completed;
    let kept = || requests.iter().filter(|request| is_kept(request));
    let first_sector = kept().filter(|request| !is_flush(request)).map(|request| request.sector).min().unwrap_or(0);
    let end_sector = kept().map(end_of).max().unwrap_or(0);
    let scripted_requests =
        requests.iter().zip(&finding.waits).zip(idle_ns).filter(|((request, _), _)| is_kept(request));
    let mean_ns = (last_ns - first_ns) / (requests.len() as u64 - 1).max(1);
    let waits = matches!(finding.pattern, Pattern::Closed { .. } | Pattern::Batches { .. });
    RequestScript {
        name: process.name.clone(),
        pid: process.pid,
        depth: finding.depth,
        start_ns: first_ns.saturating_sub(recording.from_ns),
        requests: scripted_requests.map(|((request, wait), idle_ns)| scripted(request, wait, *idle_ns)).collect(),
        is_endless,
        stride_sectors: if is_sequential(requests) { end_sector - first_sector } else { 0 },
        end_sector,
        usual_think_ns: waits.then_some(finding.think_ns[1]),
        pass_ns: (last_ns - first_ns).saturating_add(mean_ns).max(PASS_NS_MIN),
        wake_up: WakeUp::default(),
    }
}

/// Returns true if most requests start where one of the last few ended.
fn is_sequential(requests: &[SubmittedRequest]) -> bool {
    let requests: Vec<&SubmittedRequest> = requests.iter().filter(|request| !is_flush(request)).collect();
    let follows = |(index, next): &(usize, &&SubmittedRequest)| {
        requests[index.saturating_sub(RECENT)..*index].iter().any(|before| end_of(before) == next.sector)
    };
    let following = requests.iter().enumerate().filter(follows).count();
    following as f64 > SEQUENTIAL_SHARE * requests.len() as f64
}

/// A host whose kernel takes no CPU time: the recorded think times include that of the recorded
/// machine.
fn host(machine: &Machine, processes: usize) -> HostConfig {
    let mut host = machine.kernel.map_or_else(HostConfig::default, HostConfig::kernel);
    host.cpus = u32::try_from(processes).unwrap_or(u32::MAX).clamp(1, 4096);
    host.plugging = Plugging::None;
    host.costs = CpuCosts::NONE;
    host.spindle_tolerance_ppm = 0;
    host.depth_max = machine.depth_max;
    if machine.kernel.is_none() {
        host.queue.clock = ClockConfig { hz: 1000, uptime_ns: 10_000_000_000 };
        host.queue.nr_requests = None;
        host.queue.max_sectors = MAX_SECTORS;
        host.queue.ordered = OrderedMode::None;
        host.flushes = Flushes::Sequences;
    }
    if let Some(nr_requests) = machine.queue.nr_requests {
        (host.queue.nr_requests, host.pool_follows_drive) = (Some(nr_requests), false);
    }
    host.queue.max_sectors = machine.queue.max_sectors.unwrap_or(host.queue.max_sectors);
    (host.write_back_cache, host.fua) = (machine.queue.write_back_cache, machine.queue.fua);
    host
}

/// The settings for these elevators, with the switches of control groups.
fn settings(machine: &Machine, elevators: &[Kind]) -> Result<Vec<Setting>, SimError> {
    let mut settings = Vec::new();
    if machine.groups {
        for kind in elevators {
            let switch = group_switch(*kind).map(|tunable| tunable.name);
            if let Some(name) = switch {
                settings.push(Setting::parse(&format!("{}.{name}=1", kind.info().name))?);
            }
        }
    }
    settings.extend(machine.settings.iter().filter(|setting| elevators.contains(&setting.elevator)).cloned());
    Ok(settings)
}

fn flags_of(op: Rwbs) -> Flags {
    let mut flags = Flags::NONE;
    if op.has(Rwbs::META) {
        flags = flags.and(Flags::META);
    }
    // Reads are synchronous without the flag.
    if op.has(Rwbs::SYNC) && !op.has(Rwbs::READ) {
        flags = flags.and(Flags::SYNC);
    }
    flags
}
