//! Predictions of a recorded workload under another elevator.
//!
//! A trace shows the arrivals and completions of requests under one elevator. [`Model::new`] finds
//! the event that each request waited for ([`hoistway_trace::dependencies`]) and builds a workload
//! with the same dependencies. Think times, sizes, sectors and directions are the recorded ones;
//! times are not. [`Model::fidelity`] runs the workload under the recorded elevator on a model of
//! the drive: the difference from the recording is the error of the model. [`Model::predict`] runs
//! the workload under other elevators.

mod fidelity;
mod load;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hoistway_core::{ClockConfig, Flags, Kind, Op, OrderedMode};
use hoistway_drive::Profile;
use hoistway_fio::{Ioengine, Job, JobFile, Rw};
use hoistway_trace::dependencies::{Pattern, PatternAnalysis, Release, ReleaseDelay, SubmittedRequest, find};
use hoistway_trace::{ReadError, Rwbs};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::compare::{CompareRequest, Comparison, Progress, Recorded, Run, compare_workloads, run_workloads};
use crate::config::{CpuCosts, HostConfig, Kernel, Plugging};
use crate::error::SimError;
use crate::settings::Setting;
use crate::workload::recorded::{Request, Script};

pub use fidelity::{Confidence, Fidelity, Figures, Level, MISS_MAX, ProcessFidelity};
pub use load::{Loaded, RecordedSetting};
pub use service::service_times;

/// Share of a process's requests that have to follow one of its last few requests for the process
/// to count as sequential: its repetitions then continue after the recorded range.
const SEQUENTIAL_SHARE: f64 = 0.5;
/// Number of earlier requests that count as the last few.
const RECENT: usize = 8;
/// The largest request, in sectors: 1 MiB.
const MAX_SECTORS: u32 = 2048;
/// Least length of a repeated pass, in ns.
const PASS_NS_MIN: u64 = 1_000_000;

/// The recorded requests of one device.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The processes.
    pub processes: Vec<RecordedProcess>,
    /// Start of the recording, in ns of the trace's clock.
    pub from_ns: u64,
    /// End of the recording, in ns of the trace's clock.
    pub until_ns: u64,
}

/// The recorded requests of one process.
#[derive(Clone, Debug)]
pub struct RecordedProcess {
    /// Name of the process.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// The requests, in the order of their arrivals.
    pub asked: Vec<SubmittedRequest>,
}

/// The simulated machine for a prediction.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Profile of the drive.
    pub profile: Profile,
    /// Most requests in the drive at once; the drive's own depth is the other limit.
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
    /// Seed of random numbers, for drive models that use some.
    pub seed: u64,
}

/// A workload built from a recording.
#[derive(Clone, Debug)]
pub struct Model {
    recording: Recording,
    scripts: Vec<Arc<Script>>,
    findings: Vec<PatternAnalysis>,
    jobs: JobFile,
    notes: Vec<String>,
}

/// Reasons why there is no prediction.
#[derive(Debug, thiserror::Error)]
pub enum WhatifError {
    /// The recording has no completed request.
    #[error("the trace has no request with data whose beginning and end it shows: nothing can be predicted from it")]
    Nothing,
    /// The recording reaches beyond the drive's last sector.
    #[error(
        "the trace reaches sector {sector} and the drive `{drive}` has {capacity_sectors} sectors: take a drive that is large enough"
    )]
    Beyond {
        /// The last sector of the trace.
        sector: u64,
        /// Name of the drive's profile.
        drive: String,
        /// Number of sectors of the drive.
        capacity_sectors: u64,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The trace does not contain the device.
    #[error("there is no device `{wanted}` in the trace: it has {there}")]
    NoDevice {
        /// The requested device.
        wanted: String,
        /// The devices in the trace.
        there: String,
    },
    /// The simulation failed.
    #[error(transparent)]
    Sim(#[from] SimError),
}

impl Model {
    /// Finds the dependencies of the requests and builds the workload.
    ///
    /// # Errors
    /// [`WhatifError::Nothing`].
    pub fn new(recording: Recording) -> Result<Model, WhatifError> {
        let mut recording = recording;
        let mut left_out: BTreeMap<&str, u64> = BTreeMap::new();
        for process in &mut recording.processes {
            process.asked.retain(|asked| {
                let why = match op_of(asked.op) {
                    None => "without a direction (flushes without data among them)",
                    Some(_) if asked.bytes == 0 => "without data",
                    Some(_) => return true,
                };
                *left_out.entry(why).or_default() += 1;
                false
            });
        }
        recording.processes.retain(|process| !process.asked.is_empty());
        recording.processes.sort_by_key(|process| process.pid);
        let is_over = |process: &RecordedProcess| process.asked.iter().any(|asked| asked.completed_ns != u64::MAX);
        if !recording.processes.iter().any(is_over) {
            return Err(WhatifError::Nothing);
        }
        let findings: Vec<PatternAnalysis> = recording.processes.iter().map(|process| find(&process.asked)).collect();
        let scripts: Vec<Arc<Script>> = recording
            .processes
            .iter()
            .zip(&findings)
            .map(|(process, finding)| Arc::new(script(process, finding, &recording)))
            .collect();
        let jobs = jobs(scripts.iter(), &recording);
        let notes = left_out.into_iter().map(|(why, count)| format!("{count} requests {why} are left out")).collect();
        Ok(Model { recording, scripts, findings, jobs, notes })
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
        self.scripts.iter().map(|script| script.is_endless)
    }

    /// Notes on left-out parts of the recording, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Runs the workload under the recorded elevator and returns the error of the model.
    ///
    /// # Errors
    /// [`WhatifError`], except [`WhatifError::Nothing`].
    pub fn fidelity(&self, recorded: Kind, machine: &Machine, cancel: &AtomicBool) -> Result<Fidelity, WhatifError> {
        let comparison = self.predict(&[recorded], machine, false, &|_| {}, cancel)?;
        Ok(Fidelity::of(self, recorded, &comparison))
    }

    /// Runs the workload under each of these elevators for the length of the recording. With
    /// `record`, head positions and slices are recorded.
    ///
    /// # Errors
    /// [`WhatifError`], except [`WhatifError::Nothing`].
    pub fn predict(
        &self,
        elevators: &[Kind],
        machine: &Machine,
        record: bool,
        progress: &(dyn Fn(Progress) + Sync),
        cancel: &AtomicBool,
    ) -> Result<Comparison, WhatifError> {
        let request = self.request(elevators, machine, record)?;
        let alone = self.busiest();
        let alone_jobs = jobs(alone.iter(), &self.recording);
        let recorded = Recorded { scripts: &self.scripts, alone: &alone, depth_max: machine.depth_max };
        Ok(compare_workloads(&request, &alone_jobs, recorded, progress, cancel)?)
    }

    /// Runs the workload under each of these elevators without a reference, for series of many
    /// runs.
    ///
    /// # Errors
    /// [`WhatifError`], except [`WhatifError::Nothing`].
    pub fn run_each(
        &self,
        elevators: &[Kind],
        machine: &Machine,
        cancel: &AtomicBool,
    ) -> Result<Vec<Run>, WhatifError> {
        let request = self.request(elevators, machine, false)?;
        let recorded = Recorded { scripts: &self.scripts, alone: &[], depth_max: machine.depth_max };
        Ok(run_workloads(&request, recorded, &|_| {}, cancel)?)
    }

    /// A variation of the workload: the recorded think times of each process are rotated by a
    /// random number of places. Processes with batches or with arrival times of their own keep
    /// theirs, because their think times are not independent.
    ///
    /// Some elevators classify a process by its first requests and keep the classification for
    /// long, so a few think times can decide the result of a run.
    pub fn with_pauses_turned(&self, seed: u64) -> Model {
        let mut rng = Pcg64::seed_from_u64(seed);
        let scripts = self.scripts.iter().map(|script| Arc::new(turned(script, &mut rng))).collect();
        Model { scripts, ..self.clone() }
    }

    fn request(&self, elevators: &[Kind], machine: &Machine, record: bool) -> Result<CompareRequest, WhatifError> {
        self.check_size(&machine.profile)?;
        Ok(CompareRequest {
            jobs: self.jobs.clone(),
            profile: machine.profile.clone(),
            host: host(machine, self.scripts.len()),
            elevators: elevators.to_vec(),
            settings: settings(machine, elevators)?,
            seed: machine.seed,
            record,
        })
    }

    fn check_size(&self, profile: &Profile) -> Result<(), WhatifError> {
        let last = self.scripts.iter().map(|script| script.end_sector).max().unwrap_or(0);
        let capacity_sectors = hoistway_drive::Drive::new(profile).capacity_sectors();
        match last <= capacity_sectors {
            true => Ok(()),
            false => Err(WhatifError::Beyond { sector: last - 1, drive: profile.name().into(), capacity_sectors }),
        }
    }

    /// The script of the process with the most bytes, from its beginning: the reference.
    fn busiest(&self) -> Vec<Arc<Script>> {
        let bytes =
            |script: &&Arc<Script>| script.requests.iter().map(|request| u64::from(request.sectors)).sum::<u64>();
        let busiest = self.scripts.iter().max_by_key(bytes);
        busiest.map(|script| Arc::new(Script { start_ns: 0, ..Script::clone(script) })).into_iter().collect()
    }
}

fn turned(script: &Script, rng: &mut Pcg64) -> Script {
    let mut script = script.clone();
    let is_alike = script.requests.windows(2).all(|pair| pair[0].wait.outstanding_max == pair[1].wait.outstanding_max);
    let mut pauses_ns: Vec<u64> = script.requests.iter().filter_map(|request| pause_ns(request.wait)).collect();
    if !is_alike || pauses_ns.is_empty() {
        return script;
    }
    let count = pauses_ns.len();
    pauses_ns.rotate_left(rng.random_range(0..count));
    let waiting = script.requests.iter_mut().filter(|request| pause_ns(request.wait).is_some());
    for (request, pause_ns) in waiting.zip(pauses_ns) {
        request.wait.then = ReleaseDelay::Think(pause_ns);
    }
    script
}

fn pause_ns(wait: Release) -> Option<u64> {
    match wait.then {
        ReleaseDelay::Think(ns) => Some(ns),
        ReleaseDelay::At(_) => None,
    }
}

/// The script of a process.
fn script(process: &RecordedProcess, finding: &PatternAnalysis, recording: &Recording) -> Script {
    let asked = &process.asked;
    let first_ns = asked.first().map_or(recording.from_ns, |first| first.queued_ns);
    let last_ns = asked.last().map_or(first_ns, |last| last.queued_ns);
    let request = |(asked, wait): (&SubmittedRequest, &Release)| Request {
        op: op_of(asked.op).unwrap_or(Op::Read),
        flags: flags_of(asked.op),
        sector: asked.sector,
        sectors: asked.bytes.div_ceil(512),
        wait: *wait,
    };
    let intervals_ns = asked.windows(2).map(|pair| pair[1].queued_ns.saturating_sub(pair[0].queued_ns));
    let longest_ns = intervals_ns.max().unwrap_or(0);
    let at_work_ns = asked.iter().map(|asked| asked.completed_ns).filter(|ns| *ns != u64::MAX).max().unwrap_or(last_ns);
    let is_waiting = asked.iter().any(|asked| asked.completed_ns == u64::MAX);
    let none_is_over = asked.iter().all(|asked| asked.completed_ns == u64::MAX);
    let is_endless =
        asked.len() > 1 && (is_waiting || recording.until_ns.saturating_sub(at_work_ns.max(last_ns)) <= longest_ns);
    // Requests in flight at the end of the recording come after it.
    let is_kept = |asked: &SubmittedRequest| asked.completed_ns != u64::MAX || none_is_over;
    let kept = || asked.iter().zip(&finding.waits).filter(|(asked, _)| is_kept(asked));
    let first_sector = kept().map(|(asked, _)| asked.sector).min().unwrap_or(0);
    let end_sector = kept().map(|(asked, _)| end_of(asked)).max().unwrap_or(0);
    let mean_ns = (last_ns - first_ns) / (asked.len() as u64 - 1).max(1);
    let waits = matches!(finding.pattern, Pattern::Closed { .. } | Pattern::Batches { .. });
    Script {
        name: process.name.clone(),
        pid: process.pid,
        depth: finding.depth,
        start_ns: first_ns.saturating_sub(recording.from_ns),
        requests: kept().map(request).collect(),
        is_endless,
        stride_sectors: if is_sequential(asked) { end_sector - first_sector } else { 0 },
        end_sector,
        usual_think_ns: waits.then_some(finding.think_ns[1]),
        pass_ns: (last_ns - first_ns).saturating_add(mean_ns).max(PASS_NS_MIN),
    }
}

/// Returns true if most requests start where one of the last few ended.
fn is_sequential(asked: &[SubmittedRequest]) -> bool {
    let follows = |(index, next): &(usize, &SubmittedRequest)| {
        asked[index.saturating_sub(RECENT)..*index].iter().any(|before| end_of(before) == next.sector)
    };
    let following = asked.iter().enumerate().filter(follows).count();
    following as f64 > SEQUENTIAL_SHARE * asked.len() as f64
}

/// The sector after a request.
fn end_of(asked: &SubmittedRequest) -> u64 {
    asked.sector.saturating_add(u64::from(asked.bytes).div_ceil(512))
}

/// The jobs of a job file that represent the processes.
fn jobs<'a>(scripts: impl Iterator<Item = &'a Arc<Script>>, recording: &Recording) -> JobFile {
    let length_ns = recording.until_ns.saturating_sub(recording.from_ns);
    let job = |script: &Arc<Script>| {
        let does = |reads: bool| script.requests.iter().any(|request| (request.op == Op::Read) == reads);
        Job {
            name: script.name.clone(),
            rw: match (does(true), does(false)) {
                (true, true) => Rw::Readwrite,
                (false, true) => Rw::Write,
                _ => Rw::Read,
            },
            filename: vec!["/dev/recorded".into()],
            direct: true,
            ioengine: Ioengine::Libaio,
            iodepth: script.depth,
            runtime_ns: Some(length_ns.saturating_sub(script.start_ns).max(1)),
            time_based: script.is_endless,
            startdelay_ns: script.start_ns..=script.start_ns,
            file: "the trace".into(),
            ..Job::default()
        }
    };
    JobFile { jobs: scripts.map(job).collect(), ignored: Vec::new(), global_options: Vec::new() }
}

/// A host whose kernel takes no CPU time: the recorded think times include that of the recorded
/// machine.
fn host(machine: &Machine, processes: usize) -> HostConfig {
    let mut host = machine.kernel.map_or_else(HostConfig::default, HostConfig::kernel);
    host.cpus = u32::try_from(processes).unwrap_or(u32::MAX).clamp(1, 4096);
    host.plugging = Plugging::None;
    host.costs = CpuCosts { system_call_ns: 0, copy_page_ns: 0, bio_ns: 0, fault_ns: 0, completion_ns: 0 };
    host.spindle_tolerance_ppm = 0;
    if machine.kernel.is_none() {
        host.queue.clock = ClockConfig { hz: 1000, uptime_ns: 10_000_000_000 };
        host.queue.nr_requests = None;
        host.queue.max_sectors = MAX_SECTORS;
        host.queue.ordered = OrderedMode::None;
    }
    host
}

/// The settings for these elevators, with the switches of control groups.
fn settings(machine: &Machine, elevators: &[Kind]) -> Result<Vec<Setting>, SimError> {
    let mut settings = Vec::new();
    if machine.groups {
        for kind in elevators {
            let switch = crate::settings::group_switch(*kind).map(|tunable| tunable.name);
            if let Some(name) = switch {
                settings.push(Setting::parse(&format!("{}.{name}=1", kind.info().name))?);
            }
        }
    }
    settings.extend(machine.settings.iter().filter(|setting| elevators.contains(&setting.elevator)).cloned());
    Ok(settings)
}

/// The operation of a request with data.
fn op_of(op: Rwbs) -> Option<Op> {
    if op.has(Rwbs::DISCARD) {
        Some(Op::Discard)
    } else if op.has(Rwbs::WRITE) {
        Some(Op::Write)
    } else if op.has(Rwbs::READ) {
        Some(Op::Read)
    } else {
        None
    }
}

fn flags_of(op: Rwbs) -> Flags {
    let mut flags = Flags::NONE;
    for (bit, flag) in [(Rwbs::META, Flags::META), (Rwbs::FUA, Flags::FUA)] {
        if op.has(bit) {
            flags = flags.and(flag);
        }
    }
    // Reads are synchronous without the flag.
    if op.has(Rwbs::SYNC) && !op.has(Rwbs::READ) {
        flags = flags.and(Flags::SYNC);
    }
    flags
}
