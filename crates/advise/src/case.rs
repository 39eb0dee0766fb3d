//! The inputs of advice: workload, drive, host, objective, present settings and candidates.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_drive::fit::FittedProfile;
use hoistway_fio::{Diagnostics, JobFile};
use hoistway_sim::{HostConfig, Kernel};
use hoistway_units::figures::magnitude;
use serde::Serialize;

use crate::bench::{Bench, Workload};
use crate::choice::Choice;
use crate::device_facts::{self, ModelQuality};
use crate::objective::{Objective, ObjectiveError};
use crate::subject::Subject;
use crate::trace_case::{DriveSource, ModelBasis, TraceCase, TraceCaseError, TraceCaseRequest, TraceDrive};
use crate::use_case::Use;
use crate::whatif::{Confidence, Fidelity, LoadedTrace, LoopModel, TraceContents};
use hoistway_compare::KERNEL_SCHEDULERS;
use hoistway_compare::MIN_DIFFERENCE;

/// The input of a [`Case`].
#[derive(Debug)]
pub struct CaseRequest {
    /// The device; `None` for advice on a kind of drive.
    pub subject: Option<Subject>,
    /// The workload.
    pub workload: WorkloadSource,
    /// The model of the drive.
    pub drive: DriveChoice,
    /// The host; `None` for [`device_facts::usual_host`].
    pub host: Option<HostConfig>,
    /// The objective; `None` for that of the use, or [`Objective::USUAL`].
    pub objective: Option<String>,
}

/// The source of a workload.
#[derive(Debug)]
pub enum WorkloadSource {
    /// A fio job file.
    Jobs {
        /// The file, for messages.
        path: PathBuf,
        /// The parsed jobs.
        jobs: JobFile,
    },
    /// A typical use.
    Use(Use),
    /// A trace.
    Trace {
        /// The name of the trace, for messages.
        name: String,
        /// The recorded requests.
        loaded: Box<LoadedTrace>,
        /// The scheduler of the recording; `None` for the one that the trace names.
        recorded_under: Option<Kind>,
    },
}

/// The model of the drive to simulate.
#[derive(Clone, Debug)]
pub enum DriveChoice {
    /// For a trace the drive that it names, else a fitted one; otherwise [`DriveChoice::Nearest`].
    Default,
    /// The model nearest to the device.
    Nearest,
    /// A model fitted to the trace.
    Fitted,
    /// A given model.
    Given(Box<Profile>),
}

/// The kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadKind {
    /// A recorded trace.
    Trace,
    /// A job file.
    Job,
    /// A typical use.
    Use,
}

/// All inputs of advice.
#[derive(Debug)]
pub struct Case {
    /// The device, if one was named.
    pub subject: Option<Subject>,
    /// The workload in words.
    pub workload: String,
    /// The kind of workload.
    pub kind: WorkloadKind,
    /// The goals and constraints.
    pub objective: Objective,
    /// The objective of a typical use in words.
    pub merit: Option<&'static str>,
    /// Workload, drive and host for simulations.
    pub bench: Bench,
    /// The source of the drive model.
    pub drive: DriveOrigin,
    /// The settings that choices are compared with.
    pub now: Choice,
    /// True if `now` is set on the device; false if Linux would set it, or the trace was recorded
    /// under it.
    pub now_is_set: bool,
    /// The schedulers that can be set.
    pub candidates: Vec<Kind>,
    /// Schedulers of current kernels that cannot be set here.
    pub missing: Vec<&'static str>,
    /// The recording, for a trace.
    pub recorded: Option<Recorded>,
    /// Deviations of the simulated workload from the requested one, a sentence each.
    pub notes: Vec<String>,
}

/// The source of the drive model.
#[derive(Clone, Debug)]
pub struct DriveOrigin {
    /// The reason for the model, in a clause.
    pub why: String,
    /// How near the model is to the drive.
    pub quality: ModelQuality,
    /// The fit, if the model was fitted to the trace.
    pub fitted: Option<FittedProfile>,
}

/// A recording and its model.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The scheduler of the recording.
    pub under: Kind,
    /// The error of the model.
    pub fidelity: Fidelity,
    /// How far predictions can be trusted.
    pub confidence: Confidence,
    /// The length of the recording in ns.
    pub duration_ns: u64,
}

/// Reasons why a request has no case.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The jobs of a typical use do not parse.
    #[error("a job file of hoistway's own: {0}")]
    Use(Diagnostics),
    /// A drive can be fitted only to a trace.
    #[error("a drive can be fitted only to a trace")]
    FitWithoutTrace,
    /// The nearest drive exists only for a device.
    #[error("the nearest drive model needs a device")]
    NearestWithoutDevice,
    /// Neither a device nor a drive was given.
    #[error("neither a device nor a drive is given")]
    NoDrive,
    /// The device has no drive behind it.
    #[error("{device}: there is no drive below it")]
    NoDriveBehind {
        /// The device.
        device: String,
    },
    /// The objective does not parse.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// The trace cannot be modelled.
    #[error(transparent)]
    Trace(#[from] TraceCaseError),
    /// The trace has no completions, so that no model can be compared with it.
    #[error("{name}: the trace holds {contents}: without completions no model can be compared with the recording")]
    SubmissionsAlone {
        /// The trace.
        name: String,
        /// The contents of the trace.
        contents: TraceContents,
    },
    /// The model misses the recording by more than 20 %.
    #[error("{name}: the model misses the recording by {}", magnitude(fidelity.miss()))]
    ModelMisses {
        /// The trace.
        name: String,
        /// The error of the model.
        fidelity: Box<Fidelity>,
    },
}

impl Case {
    /// Collects the inputs of advice; for a trace, measures the error of its model.
    ///
    /// # Errors
    /// [`CaseError`] if the objective or the jobs are invalid, if no drive model fits the request,
    /// or if the model of a trace misses the recording by more than 20 %.
    pub fn new(request: CaseRequest, cancel: &AtomicBool) -> Result<Case, CaseError> {
        let CaseRequest { subject, workload, drive, host, objective } = request;
        let common = Common { subject, host, objective };
        match workload {
            WorkloadSource::Jobs { path, jobs } => {
                let (profile, origin) = drive_of_device(drive, common.subject.as_ref())?;
                let notes = jobs.notes();
                let case = common.with_jobs((jobs, WorkloadKind::Job), (profile, origin), Objective::USUAL)?;
                Ok(Case { workload: path.display().to_string(), notes, ..case })
            }
            WorkloadSource::Use(use_) => {
                let (profile, origin) = drive_of_device(drive, common.subject.as_ref())?;
                let info = use_.info();
                let (jobs, _) = use_.jobs(&profile).map_err(CaseError::Use)?;
                let merit = common.objective.is_none().then_some(info.merit);
                let case = common.with_jobs((jobs, WorkloadKind::Use), (profile, origin), info.objective)?;
                Ok(Case { workload: format!("{}: {}", use_.name(), info.description), merit, ..case })
            }
            WorkloadSource::Trace { name, loaded, recorded_under } => {
                common.with_trace((name, *loaded, recorded_under), drive, cancel)
            }
        }
    }

    /// The smallest difference that counts as one: at least the error of the model of a recording.
    pub fn min_difference(&self) -> f64 {
        self.recorded.as_ref().map_or(MIN_DIFFERENCE, |recorded| recorded.fidelity.miss().max(MIN_DIFFERENCE))
    }

    /// The largest number of requests in the drive.
    pub fn depth(&self) -> u32 {
        let own = hoistway_drive::describe(&self.bench.profile).depth;
        self.bench.host.depth_max.map_or(own, |max| own.min(max))
    }
}

/// The parts of a request that all workloads share.
struct Common {
    subject: Option<Subject>,
    host: Option<HostConfig>,
    objective: Option<String>,
}

impl Common {
    fn with_jobs(
        self,
        (jobs, kind): (JobFile, WorkloadKind),
        (profile, origin): (Profile, DriveOrigin),
        usual_objective: &str,
    ) -> Result<Case, CaseError> {
        let host = self.host.clone().unwrap_or_else(device_facts::usual_host);
        let (host, profile) = match &self.subject {
            Some(subject) => {
                let queue = subject.queue();
                (device_facts::host_of(&queue, host), device_facts::profile_as_set(&queue, profile))
            }
            None => (host, profile),
        };
        let usual = Choice::plain(device_facts::usual_scheduler(profile.name().contains("nvme")));
        let bench = Bench { workload: Workload::Jobs(jobs), profile, host };
        self.with_bench((bench, kind), origin, (usual_objective, usual))
    }

    fn with_trace(
        self,
        (name, loaded, recorded_under): (String, LoadedTrace, Option<Kind>),
        drive: DriveChoice,
        cancel: &AtomicBool,
    ) -> Result<Case, CaseError> {
        let nearest = match (&drive, &self.subject) {
            (DriveChoice::Nearest, Some(subject)) => Some(nearest_drive(subject)?),
            _ => None,
        };
        let trace_drive = match (drive, &nearest) {
            (_, Some((profile, _))) => TraceDrive::Given(Box::new(profile.clone())),
            (DriveChoice::Given(profile), None) => TraceDrive::Given(profile),
            (DriveChoice::Default, None) => TraceDrive::FromTrace,
            (DriveChoice::Fitted | DriveChoice::Nearest, None) => TraceDrive::Fitted,
        };
        // hoistway's own server runs each elevator in the block layer that it was written for; a
        // kernel has one block layer.
        let kernel = (!loaded.setting.is_server).then_some(Kernel::V6_1);
        let request = TraceCaseRequest {
            name,
            loaded,
            recorded_under,
            loop_model: LoopModel::Open,
            drive: trace_drive,
            depth_max: None,
            kernel,
            settings: Vec::new(),
        };
        // Advice without a comparison with the recording would be a guess.
        let contents = request.loaded.contents;
        if contents.requests > 0 && !contents.has_completions() {
            return Err(CaseError::SubmissionsAlone { name: request.name, contents });
        }
        let trace = TraceCase::new(request, cancel)?;
        let (confidence, duration_ns) = (trace.confidence(None), trace.duration_ns());
        let TraceCase { name, model, machine, drive_source, fitted, basis, notes, .. } = trace;
        let (recorded_under, fidelity) = match basis {
            ModelBasis::Validated { recorded_under, fidelity } => (recorded_under, *fidelity),
            ModelBasis::Unvalidated(_) => return Err(CaseError::SubmissionsAlone { name, contents }),
        };
        if !fidelity.holds() {
            return Err(CaseError::ModelMisses { name, fidelity: Box::new(fidelity) });
        }
        let origin = match nearest {
            Some((_, origin)) => origin,
            None => trace_origin(drive_source, fitted),
        };
        let mut host = device_facts::usual_host();
        host.depth_max = self.subject.as_ref().and_then(|subject| subject.queue().device_depth);
        let profile = machine.profile.clone();
        let bench = Bench { workload: Workload::Recorded(Box::new(model), Box::new(machine)), profile, host };
        let usual = (Objective::USUAL, Choice::plain(recorded_under));
        let case = self.with_bench((bench, WorkloadKind::Trace), origin, usual)?;
        let recorded = Some(Recorded { under: recorded_under, fidelity, confidence, duration_ns });
        Ok(Case { workload: format!("the recording {name}"), recorded, notes, ..case })
    }

    /// Completes the case; `usual` is the objective and the choice to fall back on.
    fn with_bench(
        self,
        (bench, kind): (Bench, WorkloadKind),
        drive: DriveOrigin,
        (usual_objective, usual_choice): (&str, Choice),
    ) -> Result<Case, CaseError> {
        let text = self.objective.as_deref().unwrap_or(usual_objective);
        let names = bench.names();
        let objective = Objective::parse(text, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
        let (now, candidates, missing) = match &self.subject {
            Some(subject) => {
                let (can, missing) = device_facts::candidates(&subject.root, &subject.device, &subject.queue());
                (subject.current().choice, can, missing)
            }
            None => (usual_choice, KERNEL_SCHEDULERS.to_vec(), Vec::new()),
        };
        Ok(Case {
            now_is_set: self.subject.is_some(),
            subject: self.subject,
            workload: String::new(),
            kind,
            objective,
            merit: None,
            bench,
            drive,
            now,
            candidates,
            missing,
            recorded: None,
            notes: Vec::new(),
        })
    }
}

/// The drive of a workload without a trace.
fn drive_of_device(drive: DriveChoice, subject: Option<&Subject>) -> Result<(Profile, DriveOrigin), CaseError> {
    match (drive, subject) {
        (DriveChoice::Fitted, _) => Err(CaseError::FitWithoutTrace),
        (DriveChoice::Given(profile), _) => Ok((*profile, given_origin())),
        (DriveChoice::Default | DriveChoice::Nearest, Some(subject)) => nearest_drive(subject),
        (DriveChoice::Nearest, None) => Err(CaseError::NearestWithoutDevice),
        (DriveChoice::Default, None) => Err(CaseError::NoDrive),
    }
}

fn nearest_drive(subject: &Subject) -> Result<(Profile, DriveOrigin), CaseError> {
    let none = || CaseError::NoDriveBehind { device: subject.device.name.clone() };
    let model = subject.drive_model.as_ref().ok_or_else(none)?;
    let profile = Profile::builtin(model.profile).ok_or_else(none)?;
    Ok((profile, DriveOrigin { why: model.why.clone(), quality: model.quality, fitted: None }))
}

fn given_origin() -> DriveOrigin {
    DriveOrigin { why: "named on the command line".into(), quality: ModelQuality::Named, fitted: None }
}

fn trace_origin(source: DriveSource, fitted: Option<FittedProfile>) -> DriveOrigin {
    match source {
        DriveSource::Given => given_origin(),
        DriveSource::Assumed => {
            DriveOrigin { why: "assumed: the trace names none".into(), quality: ModelQuality::Unknown, fitted: None }
        }
        DriveSource::Trace => {
            DriveOrigin { why: "named by the trace".into(), quality: ModelQuality::Named, fitted: None }
        }
        DriveSource::Fitted => DriveOrigin {
            why: "fitted to the service times of the trace".into(),
            quality: ModelQuality::Fitted,
            fitted,
        },
    }
}
