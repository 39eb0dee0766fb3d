//! A recorded workload, ready for predictions: which elevator it was recorded under, on which
//! drive, and how well the model reproduces the recording.
//!
//! `hoistway advise --trace` and `hoistway trace whatif` both start here.

use std::sync::atomic::AtomicBool;

use crate::whatif::{Confidence, Fidelity, LoadedTrace, Machine, Model, WhatifError, service_times};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_drive::fit::{FitOptions, FitProfileError, FittedProfile, fit_profile};
use hoistway_sim::{Comparison, Kernel, Setting};

/// The name of a drive that is fitted to a trace.
const FITTED_NAME: &str = "fitted-to-the-trace";

/// The drive that a recorded workload runs on.
#[derive(Clone, Debug)]
pub enum TraceDrive {
    /// The drive that the trace names, else one fitted to its service times.
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

/// A recorded workload with its model and the error of the model.
#[derive(Debug)]
pub struct TraceCase {
    /// The name of the trace for messages.
    pub name: String,
    /// The elevator of the recording.
    pub recorded_under: Kind,
    /// The workload model.
    pub model: Model,
    /// The drive and block layer that the model runs on.
    pub machine: Machine,
    /// The source of the drive model.
    pub drive_source: DriveSource,
    /// The fitted drive with its fit errors, if the drive was fitted.
    pub fitted: Option<FittedProfile>,
    /// The error of the model under the elevator of the recording.
    pub fidelity: Fidelity,
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
    /// No drive can be fitted to the trace.
    #[error("{name}: no drive can be fitted to the trace: {cause}")]
    Fit {
        /// The trace.
        name: String,
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
    /// Builds the model of a trace and measures its error.
    ///
    /// # Errors
    /// [`TraceCaseError`] if the trace names no single elevator and none was given, if no drive
    /// fits the trace, or if the simulation of the recording fails or is cancelled.
    pub fn new(request: TraceCaseRequest, cancel: &AtomicBool) -> Result<TraceCase, TraceCaseError> {
        let TraceCaseRequest { name, loaded, recorded_under, drive, depth_max, kernel, settings } = request;
        let recorded_under = match recorded_under {
            Some(kind) => kind,
            None => recorded_elevator(&name, &loaded)?,
        };
        let (profile, drive_source, fitted) = drive_model(&name, &loaded, drive)?;
        let LoadedTrace { recording, setting, mut notes, .. } = loaded;
        let machine = Machine {
            profile,
            depth_max: depth_max.or(setting.depth),
            kernel,
            groups: setting.is_server,
            settings,
            seed: 1,
        };
        let model = Model::new(recording)
            .map_err(|cause| TraceCaseError::Model { name: name.clone(), cause: Box::new(cause) })?;
        notes.extend(model.notes().iter().cloned());
        let fidelity = model
            .fidelity(recorded_under, &machine, cancel)
            .map_err(|error| TraceCaseError::Simulation(Box::new(error)))?;
        Ok(TraceCase { name, recorded_under, model, machine, drive_source, fitted, fidelity, notes })
    }

    /// How far predictions can be trusted; `comparison` holds the predictions if there are any.
    pub fn confidence(&self, comparison: Option<&Comparison>) -> Confidence {
        self.fidelity.confidence(&self.model, comparison)
    }

    /// The length of the recording in ns.
    pub fn duration_ns(&self) -> u64 {
        self.model.recording().length_ns()
    }
}

fn recorded_elevator(name: &str, loaded: &LoadedTrace) -> Result<Kind, TraceCaseError> {
    match loaded.setting.elevators.as_slice() {
        [kind] => Ok(*kind),
        [] => Err(TraceCaseError::NoElevator { name: name.to_owned() }),
        [from, to, ..] => Err(TraceCaseError::Switched { name: name.to_owned(), from: *from, to: *to }),
    }
}

fn drive_model(
    name: &str,
    loaded: &LoadedTrace,
    drive: TraceDrive,
) -> Result<(Profile, DriveSource, Option<FittedProfile>), TraceCaseError> {
    let named = || loaded.setting.drive.as_deref().and_then(Profile::builtin);
    let named = match drive {
        TraceDrive::Given(profile) => return Ok((*profile, DriveSource::Given, None)),
        TraceDrive::FromTrace => named(),
        TraceDrive::Fitted => None,
    };
    if let Some(profile) = named {
        return Ok((profile, DriveSource::Trace, None));
    }
    let options = FitOptions { name: FITTED_NAME, kind: None, base: None };
    let fitted = fit_profile(&service_times(&loaded.requests), &options)
        .map_err(|cause| TraceCaseError::Fit { name: name.to_owned(), cause: Box::new(cause) })?;
    Ok((fitted.profile.clone(), DriveSource::Fitted, Some(fitted)))
}
