//! Turns arguments into a request for advice, and errors of the request into messages that name the
//! options.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Error, Result};
use hoistway_advise::whatif::{Fidelity, LoadedTrace, MISS_MAX, WhatifError};
use hoistway_advise::{Case, CaseError, CaseRequest, DriveChoice, Subject, TraceCaseError, WorkloadSource};
use hoistway_drive::Profile;
use hoistway_machine::{Queue, Root, devices};
use hoistway_sim::{HostConfig, SimError};
use hoistway_units::figures::magnitude;

use crate::cli::AdviseArgs;
use crate::cli::trace::{TraceInput, TraceReading};
use crate::commands::devices::find_device;
use crate::commands::trace::input;
use crate::failure::{Interrupted, UsageError};

/// The value of `--drive` that fits a drive to the trace.
const FIT: &str = "fit";
/// The value of `--drive` that takes the model nearest to the device.
const AUTO: &str = "auto";

/// A case, or the message of a refusal.
pub enum CaseOrRefusal {
    /// The case.
    Case(Box<Case>),
    /// The model of the trace is not good enough, for this reason.
    Refused(String),
}

/// The machine, or the tree of files given with `--root`.
pub fn root(args: &AdviseArgs) -> Root {
    args.root.as_ref().map_or_else(Root::machine, Root::at)
}

/// Finds the device of the command line.
pub fn subject(args: &AdviseArgs, name: &str) -> Result<Subject> {
    let root = root(args);
    let named = find_device(&root, name)?;
    let all = devices(&root)?;
    Ok(Subject::new(root, &all, named)?)
}

/// Builds the case of the command line.
pub fn case(args: &AdviseArgs, subject: Option<Subject>, cancel: &AtomicBool) -> Result<CaseOrRefusal> {
    let drive = drive(args)?;
    let host = args.host.as_deref().map(HostConfig::load).transpose()?;
    let workload = match (&args.trace, &args.job, args.use_) {
        (Some(trace), ..) => trace_source(args, trace)?,
        (None, Some(path), _) => WorkloadSource::Jobs { path: path.clone(), jobs: hoistway_fio::load(path)? },
        (None, None, Some(use_)) => WorkloadSource::Use(use_),
        (None, None, None) => {
            return Err(usage("the workload is missing: name it with --for, --job or --trace"));
        }
    };
    let request = CaseRequest { subject, workload, drive, host, objective: args.objective.clone() };
    match Case::new(request, cancel) {
        Ok(case) => Ok(CaseOrRefusal::Case(Box::new(case))),
        Err(CaseError::ModelMisses { name, fidelity }) => Ok(CaseOrRefusal::Refused(refusal(&name, &fidelity))),
        Err(error) => Err(case_error(args, error)),
    }
}

fn drive(args: &AdviseArgs) -> Result<DriveChoice> {
    Ok(match args.drive.as_deref() {
        None => DriveChoice::Default,
        Some(FIT) => DriveChoice::Fitted,
        Some(AUTO) => DriveChoice::Nearest,
        Some(name) => DriveChoice::Given(Box::new(Profile::choose(name)?)),
    })
}

/// Refuses options of a trace without a trace.
pub fn check_reading(args: &AdviseArgs) -> Result<()> {
    if args.trace.is_none() && args.reading != TraceReading::default() {
        return Err(usage(
            "--format, --time-unit, --sector-bytes, --strict, --offset-unit and --columns say how a trace is read: name it with --trace",
        ));
    }
    Ok(())
}

fn trace_source(args: &AdviseArgs, trace: &Path) -> Result<WorkloadSource> {
    let input = TraceInput { files: vec![trace.to_owned()], reading: args.reading.clone() };
    let mut opened = input::open(&input)?;
    let loaded = Box::new(LoadedTrace::read(&mut opened, None)?);
    Ok(WorkloadSource::Trace { name: opened.name, loaded, recorded_under: args.recorded })
}

/// A usage error with this text.
pub fn usage(text: impl Into<String>) -> Error {
    UsageError(text.into()).into()
}

fn refusal(name: &str, fidelity: &Fidelity) -> String {
    format!(
        "error: {name}: the model misses the recording by {}, and advice needs {:.0} % or less: there is no advice. `hoistway trace whatif {name}` \
         shows the errors; another drive (--drive) or a part of the trace (`hoistway trace cut`) may do better",
        magnitude(fidelity.miss()),
        MISS_MAX * 100.0
    )
}

/// Adds the options of the command line to an error of the library.
fn case_error(args: &AdviseArgs, error: CaseError) -> Error {
    match error {
        CaseError::FitWithoutTrace => {
            usage("--drive fit fits a drive to a trace, and there is none: name a drive, or give --trace")
        }
        CaseError::NearestWithoutDevice => {
            usage("--drive auto takes the model nearest to a device: name the device, as in `hoistway advise sda`")
        }
        CaseError::NoDrive => usage(format!(
            "which device is it about, or which drive? Name a device ({}), or a drive with --drive (`hoistway drives` lists them)",
            some_devices(args)
        )),
        CaseError::Objective(error) => Error::new(error).context("--objective"),
        CaseError::SubmissionsAlone { ref name, .. } => Error::msg(format!(
            "{error}, and advice is not given without. `hoistway trace whatif {name}` predicts without validation; \
             `hoistway trace record DEVICE` and `blktrace -d DEVICE` record completions, too"
        )),
        CaseError::Trace(error) => trace_error(error),
        error => error.into(),
    }
}

/// Adds the options of the command line to an error of a trace.
pub fn trace_error(error: TraceCaseError) -> Error {
    match error {
        error @ TraceCaseError::NoElevator { .. } => usage(format!(
            "{error}: say it with --recorded NAME (`cat /sys/block/DEVICE/queue/scheduler` shows it in brackets; noop stands for none)"
        )),
        error @ TraceCaseError::Switched { .. } => usage(format!(
            "{error}: cut the trace at the switch (`hoistway trace cut`), or name the one that counts with --recorded"
        )),
        error @ TraceCaseError::Empty { .. } => Error::msg(format!(
            "{error}. `hoistway trace describe` shows its contents; `hoistway trace record DEVICE` and `blktrace -d \
             DEVICE`, without a filter of actions (-a), record submissions, issues and completions"
        )),
        error @ (TraceCaseError::NoServiceTimes { .. } | TraceCaseError::Fit { .. }) => Error::msg(format!(
            "{error}. Name a drive with --drive, as in --drive {} (`hoistway drives` lists them)",
            hoistway_drive::DEFAULT_DRIVE
        )),
        TraceCaseError::Simulation(error) => match *error {
            WhatifError::Sim(SimError::Cancelled) => Interrupted.into(),
            WhatifError::Sim(error @ (SimError::SettingUnused { .. } | SimError::TunableValue { .. })) => {
                usage(error.to_string())
            }
            error => error.into(),
        },
        error => error.into(),
    }
}

/// The names of devices with a scheduler to choose, for messages.
fn some_devices(args: &AdviseArgs) -> String {
    let devices = devices(&root(args)).unwrap_or_default();
    let choosable =
        devices.iter().filter(|device| device.is_present() && device.queue.as_ref().is_some_and(Queue::has_choice));
    let names: Vec<&str> = choosable.map(|device| device.name.as_str()).take(8).collect();
    if names.is_empty() { "this machine has none with a scheduler to choose".into() } else { names.join(", ") }
}
