//! What another elevator would have made of a recorded workload.
//!
//! A trace shows when requests came and when they were over, under one elevator. [`Model::new`] finds what each request waited for
//! ([`hoistway_trace::dependencies`]) and makes a workload of it that waits for the same things: think times, sizes, places and directions are the recorded
//! ones, times are not. [`Model::fidelity`] runs it under the elevator that was recorded, on a model of the drive, and says by how much that misses the
//! recording: that is the error of the model. [`Model::predict`] runs it under others.

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

/// A process whose requests begin where one of the last few ended, this share of them, goes on behind what was recorded.
const SEQUENTIAL_SHARE: f64 = 0.5;
/// So many requests back.
const RECENT: usize = 8;
/// The largest request, in sectors: 1 MiB.
const MAX_SECTORS: u32 = 2048;
/// What is made again is at least so long.
const PASS_NS_MIN: u64 = 1_000_000;

/// What was recorded, of one device.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The processes.
    pub processes: Vec<RecordedProcess>,
    /// When it began and ended, in ns of the trace's clock.
    pub from_ns: u64,
    /// See `from_ns`.
    pub until_ns: u64,
}

/// What one process did.
#[derive(Clone, Debug)]
pub struct RecordedProcess {
    /// What it is called.
    pub name: String,
    /// Its id.
    pub pid: u32,
    /// Its requests, in the order in which they came.
    pub asked: Vec<SubmittedRequest>,
}

/// On what the workload is run.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The drive.
    pub profile: Profile,
    /// The drive is given no more requests at once than this, nor than it takes itself.
    pub depth_max: Option<u32>,
    /// The kernel in whose block layer all elevators run; `None`: each in the one that it was written for, with a clock of 1000 ticks a second, as in
    /// hoistway's own server.
    pub kernel: Option<Kernel>,
    /// Whether elevators that can divide a drive among control groups are told to, as hoistway's server tells them.
    pub groups: bool,
    /// Tunables that differ from their defaults.
    pub settings: Vec<Setting>,
    /// What random numbers come from, of models of drives that draw any.
    pub seed: u64,
}

/// A workload made from a recording.
#[derive(Clone, Debug)]
pub struct Model {
    recording: Recording,
    scripts: Vec<Arc<Script>>,
    findings: Vec<PatternAnalysis>,
    jobs: JobFile,
    notes: Vec<String>,
}

/// Why there is no prediction.
#[derive(Debug, thiserror::Error)]
pub enum WhatifError {
    /// The recording has nothing to go by.
    #[error("the trace has no request with data whose beginning and end it shows: nothing can be predicted from it")]
    Nothing,
    /// It reaches beyond the drive.
    #[error(
        "the trace reaches sector {sector} and the drive `{drive}` has {capacity_sectors} sectors: take a drive that is large enough"
    )]
    Beyond {
        /// The last sector of the trace.
        sector: u64,
        /// The drive's name.
        drive: String,
        /// Its sectors.
        capacity_sectors: u64,
    },
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no such device in it.
    #[error("there is no device `{wanted}` in the trace: it has {there}")]
    NoDevice {
        /// What was wanted.
        wanted: String,
        /// What there is.
        there: String,
    },
    /// The simulation.
    #[error(transparent)]
    Sim(#[from] SimError),
}

impl Model {
    /// Finds what requests waited for.
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

    /// The processes, and what was found of each.
    pub fn findings(&self) -> impl Iterator<Item = (&RecordedProcess, &PatternAnalysis)> {
        self.recording.processes.iter().zip(&self.findings)
    }

    /// Whether each process was at work when the recording ended: it goes on then as long as the prediction takes.
    pub fn endless(&self) -> impl Iterator<Item = bool> + '_ {
        self.scripts.iter().map(|script| script.is_endless)
    }

    /// What of the recording is left out, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Runs it under the elevator that was recorded: by how much it misses the recording.
    ///
    /// # Errors
    /// [`WhatifError`], but for [`WhatifError::Nothing`].
    pub fn fidelity(&self, recorded: Kind, machine: &Machine, cancel: &AtomicBool) -> Result<Fidelity, WhatifError> {
        let comparison = self.predict(&[recorded], machine, false, &|_| {}, cancel)?;
        Ok(Fidelity::of(self, recorded, &comparison))
    }

    /// Runs it under each of these elevators, for as long as the recording is. With `record`, head positions and slices are kept.
    ///
    /// # Errors
    /// [`WhatifError`], but for [`WhatifError::Nothing`].
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

    /// The same without a reference, for many runs.
    ///
    /// # Errors
    /// [`WhatifError`], but for [`WhatifError::Nothing`].
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

    /// The same workload as it might have gone another time: the pauses of each process begin elsewhere in the row that was recorded, and go round. Where a
    /// process makes batches, or asks at times of its own, they stay: there they are not each by itself.
    ///
    /// Some elevators judge a process by its first requests and keep to that for long, so that a few pauses decide what a run comes to.
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

    /// The process of most bytes, from the beginning: what it gets alone is the reference.
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

/// What a process does, from what it did.
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
    // What was under way when the recording ended comes after it.
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

/// Whether most requests begin where one of the last ones ended.
fn is_sequential(asked: &[SubmittedRequest]) -> bool {
    let follows = |(index, next): &(usize, &SubmittedRequest)| {
        asked[index.saturating_sub(RECENT)..*index].iter().any(|before| end_of(before) == next.sector)
    };
    let following = asked.iter().enumerate().filter(follows).count();
    following as f64 > SEQUENTIAL_SHARE * asked.len() as f64
}

/// The first sector behind a request.
fn end_of(asked: &SubmittedRequest) -> u64 {
    asked.sector.saturating_add(u64::from(asked.bytes).div_ceil(512))
}

/// The jobs of a job file that stand for the processes.
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

/// The machine without any time of its own: that of the recorded one is in the think times.
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

/// The settings of these elevators, groups among them.
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

/// What a request does, if it has data.
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
    // Reads are synchronous without saying so.
    if op.has(Rwbs::SYNC) && !op.has(Rwbs::READ) {
        flags = flags.and(Flags::SYNC);
    }
    flags
}
