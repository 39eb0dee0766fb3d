//! A recorded workload, ready for predictions: which elevator it was recorded under, on which
//! drive, and how well the model reproduces the recording.
//!
//! `hoistway advise --trace` and `hoistway trace whatif` both start here. A trace of submissions
//! alone has a case, too, whose model is not validated against the recording.

use std::sync::atomic::AtomicBool;

use crate::flush_fit::with_flush_time;
use crate::whatif::{
    Confidence, Fidelity, LoadedTrace, LoopModel, Machine, Model, QueueLimits, RecordedSetting, TraceContents,
    Unvalidated, WhatifError, service_times,
};
use hoistway_core::Kind;
use hoistway_drive::fit::{FitOptions, FitProfileError, FittedProfile, fit_profile};
use hoistway_drive::{Drive, Profile};
use hoistway_sim::{Comparison, Kernel, Setting};
use hoistway_trace::Rwbs;
use hoistway_trace::request::RequestRecord;

/// The smallest plausible value of a recorded number of requests of a queue.
const NR_REQUESTS_MIN: u32 = 4;

/// The name of a drive that is fitted to a trace.
const FITTED_NAME: &str = "fitted-to-the-trace";

/// Drives that may stand for the unknown drive of a trace of submissions, in the order of their
/// sizes; the first one that holds the trace is taken.
const ASSUMED_DRIVES: [&str; 4] = ["sata-7200-2006", "cmr-4tb", "cmr-8tb", "cmr-20tb"];

/// The drive that a recorded workload runs on.
#[derive(Clone, Debug)]
pub enum TraceDrive {
    /// The drive that the trace names, else one fitted to its service times. For a trace of
    /// submissions alone, which has none, a usual disk that is large enough.
    FromTrace,
    /// A drive fitted to the service times of the trace.
    Fitted,
    /// The given drive.
    Given(Box<Profile>),
}

/// The source of the drive model of a [`TraceCase`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveSource {
    /// The trace names the drive.
    Trace,
    /// The drive was fitted to the trace.
    Fitted,
    /// The caller gave the drive.
    Given,
    /// The trace does not determine the drive: a usual one of sufficient size is assumed.
    Assumed,
}

/// The input of a [`TraceCase`].
#[derive(Debug)]
pub struct TraceCaseRequest {
    /// The name of the trace for messages.
    pub name: String,
    /// The requests and settings of the trace.
    pub loaded: LoadedTrace,
    /// The elevator of the recording; `None` for the one that the trace names.
    pub recorded_under: Option<Kind>,
    /// What requests wait for if the trace has submissions alone.
    pub loop_model: LoopModel,
    /// The drive model.
    pub drive: TraceDrive,
    /// The largest number of requests in the drive; `None` for the depth that the trace names, else
    /// what the drive takes.
    pub depth_max: Option<u32>,
    /// The kernel whose block layer all elevators run in; `None` for each elevator's own.
    pub kernel: Option<Kernel>,
    /// Tunables that differ from their defaults.
    pub settings: Vec<Setting>,
}

/// The foundation of a model.
#[derive(Clone, Debug)]
pub enum ModelBasis {
    /// The rules of the processes were found in the trace, and the model was compared with the
    /// recording.
    Validated {
        /// The elevator of the recording.
        recorded_under: Kind,
        /// The error of the model under that elevator.
        fidelity: Box<Fidelity>,
    },
    /// The trace has submissions alone: the rules are assumed.
    Unvalidated(Unvalidated),
}

/// A recorded workload with its model and the foundation of the model.
#[derive(Debug)]
pub struct TraceCase {
    /// The name of the trace for messages.
    pub name: String,
    /// The workload model.
    pub model: Model,
    /// The drive and block layer that the model runs on.
    pub machine: Machine,
    /// The source of the drive model.
    pub drive_source: DriveSource,
    /// The fitted drive with its fit errors, if the drive was fitted.
    pub fitted: Option<FittedProfile>,
    /// The foundation of the model.
    pub basis: ModelBasis,
    /// The numbers of records and requests of the trace.
    pub contents: TraceContents,
    /// Requests that were left out, and assumptions; a sentence each.
    pub notes: Vec<String>,
}

/// Reasons why a trace has no case.
#[derive(Debug, thiserror::Error)]
pub enum TraceCaseError {
    /// The trace does not name the elevator of the recording, and none was given.
    #[error("{name}: the trace does not name the elevator that it was recorded under")]
    NoElevator {
        /// The trace.
        name: String,
    },
    /// The elevator was switched during the recording, and none was given.
    #[error("{name}: the elevator was switched from {} to {} during the recording", from.info().name, to.info().name)]
    Switched {
        /// The trace.
        name: String,
        /// The first elevator.
        from: Kind,
        /// The second elevator.
        to: Kind,
    },
    /// The trace has no requests that could be simulated.
    #[error("{name}: the trace holds {contents}; no request with data and a submission (Q) or issue (D) is among them")]
    Empty {
        /// The trace.
        name: String,
        /// The contents of the trace.
        contents: TraceContents,
    },
    /// A drive is to be fitted to a trace without completions.
    #[error("{name}: the trace holds {contents}: without the times from issue to completion no drive can be fitted")]
    NoServiceTimes {
        /// The trace.
        name: String,
        /// The contents of the trace.
        contents: TraceContents,
    },
    /// No drive can be fitted to the trace.
    #[error("{name}: the trace holds {contents}: no drive can be fitted to it: {cause}")]
    Fit {
        /// The trace.
        name: String,
        /// The contents of the trace.
        contents: TraceContents,
        /// The reason.
        cause: Box<FitProfileError>,
    },
    /// The trace has nothing to predict from.
    #[error("{name}: {cause}")]
    Model {
        /// The trace.
        name: String,
        /// The reason.
        cause: Box<WhatifError>,
    },
    /// The simulation of the recording failed or was cancelled.
    #[error("{0}")]
    Simulation(Box<WhatifError>),
}

impl TraceCase {
    /// Builds the model of a trace, and measures its error if the trace has completions.
    ///
    /// # Errors
    /// [`TraceCaseError`] if the trace has no requests, or has completions but names no single
    /// elevator and none was given, if no drive fits the trace, or if the simulation of the
    /// recording fails or is cancelled.
    pub fn new(mut request: TraceCaseRequest, cancel: &AtomicBool) -> Result<TraceCase, TraceCaseError> {
        let (name, contents) = (request.name.clone(), request.loaded.contents);
        if contents.requests == 0 {
            return Err(TraceCaseError::Empty { name, contents });
        }
        let recorded_under = match request.recorded_under {
            Some(kind) => Some(kind),
            None if contents.has_completions() => Some(recorded_elevator(&name, &request.loaded)?),
            None => request.loaded.setting.elevators.first().copied(),
        };
        let (profile, drive_source, fitted) = drive_model(&mut request)?;
        let TraceCaseRequest { mut loaded, loop_model, depth_max, kernel, settings, .. } = request;
        let of_model = |cause| TraceCaseError::Model { name: name.clone(), cause: Box::new(cause) };
        let capacity_sectors = Drive::new(&profile).capacity_sectors();
        loaded.leave_out_beyond_drive(profile.name(), capacity_sectors).map_err(of_model)?;
        let LoadedTrace { recording, setting, mut notes, requests, .. } = loaded;
        let machine = Machine {
            profile,
            depth_max: depth_max.or(setting.depth),
            kernel,
            groups: setting.is_server,
            settings: with_recorded(&setting, recorded_under, settings, &mut notes),
            queue: queue_limits(&setting, drive_source, &requests),
            seed: 1,
        };
        let model = match contents.has_completions() {
            true => Model::new(recording),
            false => Model::of_submissions(recording, loop_model),
        };
        let model = model.map_err(of_model)?;
        notes.extend(model.notes().iter().cloned());
        let basis = match recorded_under.filter(|_| contents.has_completions()) {
            Some(recorded_under) => {
                let fidelity = model
                    .fidelity(recorded_under, &machine, cancel)
                    .map_err(|error| TraceCaseError::Simulation(Box::new(error)))?;
                ModelBasis::Validated { recorded_under, fidelity: Box::new(fidelity) }
            }
            None => {
                let assumed_drive = (drive_source == DriveSource::Assumed).then(|| machine.profile.name().to_owned());
                let of = Unvalidated::new(loop_model, recorded_under, &model, &contents, assumed_drive);
                ModelBasis::Unvalidated(of)
            }
        };
        Ok(TraceCase { name, model, machine, drive_source, fitted, basis, contents, notes })
    }

    /// How far predictions can be trusted; `comparison` holds the predictions if there are any.
    pub fn confidence(&self, comparison: Option<&Comparison>) -> Confidence {
        match &self.basis {
            ModelBasis::Validated { fidelity, .. } => fidelity.confidence(&self.model, comparison),
            ModelBasis::Unvalidated(of) => of.confidence(&self.model, comparison),
        }
    }

    /// The elevator of the recording, if it is known.
    pub fn recorded_under(&self) -> Option<Kind> {
        match &self.basis {
            ModelBasis::Validated { recorded_under, .. } => Some(*recorded_under),
            ModelBasis::Unvalidated(of) => of.recorded_under,
        }
    }

    /// The length of the recording in ns.
    pub fn duration_ns(&self) -> u64 {
        self.model.recording().length_ns()
    }
}

/// The given settings, and the recorded ones of the elevator of the recording that the caller did
/// not set. A note lists them.
fn with_recorded(
    setting: &RecordedSetting,
    recorded_under: Option<Kind>,
    mut given: Vec<Setting>,
    notes: &mut Vec<String>,
) -> Vec<Setting> {
    let is_given = |recorded: &Setting| {
        given.iter().any(|own| own.elevator == recorded.elevator && own.tunable == recorded.tunable)
    };
    let recorded = recorded_under.map(|kind| setting.tunables(kind)).unwrap_or_default();
    let recorded: Vec<Setting> = recorded.into_iter().filter(|recorded| !is_given(recorded)).collect();
    if !recorded.is_empty() {
        let texts: Vec<&str> = recorded.iter().map(Setting::text).collect();
        notes.push(format!("the trace names tunables, which are used: {}", texts.join(", ")));
    }
    given.extend(recorded);
    given
}

/// The recorded settings of the queue. The kernel's view of the write cache belongs to the recorded
/// drive: it does not apply to a drive that the caller gave. hoistway's server passes flushes and
/// FUA on to any drive.
fn queue_limits(setting: &RecordedSetting, drive: DriveSource, requests: &[RequestRecord]) -> QueueLimits {
    let number = |name: &str| setting.queue.number(name);
    let is_recorded_drive = matches!(drive, DriveSource::Trace | DriveSource::Fitted);
    // The kernel sends no flush to a drive without a volatile cache.
    let has_flushes = || requests.iter().any(|request| request.op.has(Rwbs::FLUSH) || request.flush.is_some());
    let lacks_fua = || requests.iter().any(|request| request.postflush_ns().is_some());
    let (write_back_cache, fua) = match (setting.is_server, is_recorded_drive) {
        (true, _) => (Some(true), Some(true)),
        (false, true) => (
            setting.queue.queue.get("write_cache").map(|policy| policy == "back").or(has_flushes().then_some(true)),
            number("fua").map(|fua| fua == 1).or(lacks_fua().then_some(false)),
        ),
        (false, false) => (None, None),
    };
    QueueLimits {
        nr_requests: number("nr_requests").filter(|requests| *requests >= NR_REQUESTS_MIN),
        max_sectors: number("max_sectors_kb").map(|kib| kib.saturating_mul(2)).filter(|max| *max > 0),
        write_back_cache,
        fua,
    }
}

fn recorded_elevator(name: &str, loaded: &LoadedTrace) -> Result<Kind, TraceCaseError> {
    match loaded.setting.elevators.as_slice() {
        [kind] => Ok(*kind),
        [] => Err(TraceCaseError::NoElevator { name: name.to_owned() }),
        [from, to, ..] => Err(TraceCaseError::Switched { name: name.to_owned(), from: *from, to: *to }),
    }
}

/// The drive of a case. Requests whose sectors are implausible for any drive are left out if the
/// drive is unknown.
fn drive_model(
    request: &mut TraceCaseRequest,
) -> Result<(Profile, DriveSource, Option<FittedProfile>), TraceCaseError> {
    let TraceCaseRequest { name, loaded, drive, .. } = request;
    let named = || loaded.setting.drive.as_deref().and_then(Profile::builtin);
    let named = match drive {
        TraceDrive::Given(profile) => return Ok(((**profile).clone(), DriveSource::Given, None)),
        TraceDrive::FromTrace => named(),
        TraceDrive::Fitted => None,
    };
    if let Some(profile) = named {
        return Ok((profile, DriveSource::Trace, None));
    }
    loaded.leave_out_implausible_sectors(0);
    let contents = loaded.contents;
    if !contents.has_completions() {
        return match drive {
            TraceDrive::Fitted => Err(TraceCaseError::NoServiceTimes { name: name.clone(), contents }),
            _ => Ok((assumed_drive(loaded), DriveSource::Assumed, None)),
        };
    }
    let options = FitOptions { name: FITTED_NAME, kind: None, base: None };
    let fitted = fit_profile(&service_times(&loaded.requests), &options).map_err(|cause| TraceCaseError::Fit {
        name: name.clone(),
        contents,
        cause: Box::new(cause),
    })?;
    let fitted = with_flush_time(fitted, &loaded.requests);
    Ok((fitted.profile.clone(), DriveSource::Fitted, Some(fitted)))
}

/// The smallest usual disk that holds the requests of a trace; the largest if none does.
fn assumed_drive(loaded: &LoadedTrace) -> Profile {
    let end = loaded.end_sector();
    let profiles = || ASSUMED_DRIVES.into_iter().filter_map(Profile::builtin);
    let holds = |profile: &Profile| Drive::new(profile).capacity_sectors() >= end;
    profiles().find(holds).or_else(|| profiles().next_back()).expect("built-in profiles")
}
