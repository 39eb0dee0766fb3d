//! What is to be judged: the workload, the drive, the host, what is set now.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use hoistway_advise::facts::{self, Standing};
use hoistway_advise::{Bench, Choice, Objective, TODAY, Use, Workload};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_drive::fit::{FitOptions, FittedProfile, fit_profile};
use hoistway_sim::whatif::{Confidence, Fidelity, Loaded, MISS_MAX, Machine, Model, service_times};
use hoistway_sim::{HostConfig, Kernel};

use super::subject::Subject;
use super::{failed, usage};
use crate::cli::AdviseArgs;
use crate::cli::trace::TraceInput;
use crate::commands::trace::input;
use crate::drive_choice;

/// The drive that is fitted to the trace.
const FIT: &str = "fit";
/// The drive that is nearest to the device.
const AUTO: &str = "auto";
/// What a fitted drive is called.
const FITTED: &str = "fitted-to-the-trace";

/// All that the advice is made from.
pub struct Case {
    pub subject: Option<Subject>,
    /// What is done, in words.
    pub workload: String,
    pub kind: WorkloadKind,
    pub objective: Objective,
    /// What the objective means in words, of typical uses.
    pub merit: Option<&'static str>,
    pub bench: Bench,
    pub drive: Drive,
    pub now: Choice,
    /// Whether `now` is what is set on the device, and not what Linux would set.
    pub now_is_set: bool,
    pub candidates: Vec<Kind>,
    /// Schedulers of today that this kernel does not offer now.
    pub missing: Vec<&'static str>,
    pub recorded: Option<Recorded>,
    /// What of the workload is not as it was asked for.
    pub notes: Vec<String>,
}

/// Where the workload is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadKind {
    Trace,
    Job,
    Use,
}

/// The model of the drive.
pub struct Drive {
    pub why: String,
    pub standing: Standing,
    pub fitted: Option<FittedProfile>,
}

/// What is known of a recording.
pub struct Recorded {
    /// The scheduler under which it was made.
    pub under: Kind,
    pub fidelity: Fidelity,
    pub confidence: Confidence,
}

/// A case, or why there is none.
pub enum Found {
    Case(Box<Case>),
    Refused(String),
}

impl Case {
    /// Finds out all that was asked for.
    pub fn find(args: &AdviseArgs, subject: Option<Subject>, cancel: &AtomicBool) -> Result<Found> {
        match (&args.trace, &args.job, args.use_) {
            (Some(trace), ..) => Case::of_trace(args, subject, trace, cancel),
            (None, Some(job), _) => Case::of_job(args, subject, job).map(|case| Found::Case(Box::new(case))),
            (None, None, Some(use_)) => Case::of_use(args, subject, use_).map(|case| Found::Case(Box::new(case))),
            (None, None, None) => Err(usage("what is the device to do? Say it with --for, --job or --trace")),
        }
    }

    fn of_job(args: &AdviseArgs, subject: Option<Subject>, job: &Path) -> Result<Case> {
        let jobs = hoistway_fio::load(job)?;
        let (profile, drive) = drive(args, subject.as_ref())?;
        let notes = jobs.ignored.iter().map(|option| {
            format!("{}:{}: `{}` is accepted and changes nothing here", option.file, option.line, option.name)
        });
        let notes = notes.collect();
        let case =
            Case::made(args, subject, (Workload::Jobs(jobs), WorkloadKind::Job), (profile, drive), Objective::USUAL)?;
        Ok(Case { workload: job.display().to_string(), notes, ..case })
    }

    fn of_use(args: &AdviseArgs, subject: Option<Subject>, use_: Use) -> Result<Case> {
        let (profile, drive) = drive(args, subject.as_ref())?;
        let about = use_.about();
        let (jobs, _) = use_.jobs(&profile).context("a job file of hoistway's own")?;
        let case =
            Case::made(args, subject, (Workload::Jobs(jobs), WorkloadKind::Use), (profile, drive), about.objective)?;
        Ok(Case {
            workload: format!("{}: {}", use_.name(), about.what),
            merit: args.objective.is_none().then_some(about.merit),
            ..case
        })
    }

    /// What jobs and uses have in common.
    fn made(
        args: &AdviseArgs,
        subject: Option<Subject>,
        (workload, kind): (Workload, WorkloadKind),
        (profile, drive): (Profile, Drive),
        usual_objective: &str,
    ) -> Result<Case> {
        let host = host(args, subject.as_ref())?;
        let profile =
            subject.as_ref().map_or_else(|| profile.clone(), |s| facts::profile_as_set(&s.queue(), profile.clone()));
        let bench = Bench { workload, profile, host };
        let usual = Choice::plain(facts::usual_scheduler(bench.profile.name().contains("nvme")));
        Case::of_bench(args, subject, (bench, kind), drive, (usual_objective, usual))
    }

    /// What all workloads have in common. What is usual is taken where nothing else was asked for, or is set.
    fn of_bench(
        args: &AdviseArgs,
        subject: Option<Subject>,
        (bench, kind): (Bench, WorkloadKind),
        drive: Drive,
        (usual_objective, usual): (&str, Choice),
    ) -> Result<Case> {
        let objective = objective(args, &bench, usual_objective)?;
        let (now, candidates, missing) = settable(subject.as_ref(), usual)?;
        let now_is_set = subject.is_some();
        let (workload, merit, recorded, notes) = (String::new(), None, None, Vec::new());
        Ok(Case {
            subject,
            workload,
            kind,
            objective,
            merit,
            bench,
            drive,
            now,
            now_is_set,
            candidates,
            missing,
            recorded,
            notes,
        })
    }

    fn of_trace(args: &AdviseArgs, subject: Option<Subject>, trace: &Path, cancel: &AtomicBool) -> Result<Found> {
        let input = TraceInput { files: vec![trace.to_owned()], format: None, time_unit: None, sector_bytes: None };
        let mut opened = input::open(&input)?;
        let loaded = Loaded::of(&mut opened, None)?;
        let name = opened.name.clone();
        let under = recorded_under(args, &loaded, &name)?;
        let (profile, drive) = drive_of_trace(args, subject.as_ref(), &loaded, &name)?;
        let Loaded { recording, setting, mut notes, .. } = loaded;
        // hoistway's own server runs each elevator in the block layer that it was written for; a kernel has one.
        let kernel = (!setting.is_server).then_some(Kernel::V6_1);
        let machine = Machine {
            profile: profile.clone(),
            depth_max: setting.depth,
            kernel,
            groups: setting.is_server,
            settings: Vec::new(),
            seed: 1,
        };
        let model = Model::new(recording).with_context(|| name.clone())?;
        notes.extend(model.notes().iter().cloned());
        let fidelity = model.fidelity(under, &machine, cancel).map_err(|error| failed(error.into()))?;
        if !fidelity.holds() {
            return Ok(Found::Refused(refusal(&name, &fidelity)));
        }
        let confidence = fidelity.confidence(&model, None);
        let mut host = facts::usual_host();
        host.depth_max = subject.as_ref().and_then(|subject| subject.queue().device_depth);
        let bench = Bench { workload: Workload::Recorded(Box::new(model), Box::new(machine)), profile, host };
        let usual = (Objective::USUAL, Choice::plain(under));
        let case = Case::of_bench(args, subject, (bench, WorkloadKind::Trace), drive, usual)?;
        let recorded = Some(Recorded { under, fidelity, confidence });
        Ok(Found::Case(Box::new(Case { workload: format!("what {name} has recorded"), recorded, notes, ..case })))
    }
}

fn refusal(name: &str, fidelity: &Fidelity) -> String {
    format!(
        "error: {name}: the model misses the recording by {:.0} %, and more than {:.0} % is not believed: there is no advice. `hoistway trace whatif {name}` \
         shows what it misses; a drive that is named (--drive) or a part of the trace (`hoistway trace cut`) may do better",
        fidelity.miss() * 100.0,
        MISS_MAX * 100.0
    )
}

fn recorded_under(args: &AdviseArgs, loaded: &Loaded, name: &str) -> Result<Kind> {
    match (args.recorded, loaded.setting.elevators.as_slice()) {
        (Some(kind), _) => Ok(kind),
        (None, [kind]) => Ok(*kind),
        (None, []) => Err(usage(format!(
            "{name}: the trace does not tell under which scheduler it was recorded: say it with --recorded NAME (noop stands for none)"
        ))),
        (None, [first, second, ..]) => Err(usage(format!(
            "{name}: the scheduler was switched from {} to {} while it was recorded: cut the trace where that happened (`hoistway trace cut`), or name the one \
             that counts with --recorded",
            first.info().name,
            second.info().name
        ))),
    }
}

/// What is set, what could be set, and what of today's cannot.
fn settable(subject: Option<&Subject>, usual: Choice) -> Result<(Choice, Vec<Kind>, Vec<&'static str>)> {
    let Some(subject) = subject else { return Ok((usual, TODAY.to_vec(), Vec::new())) };
    let (can, missing) = facts::candidates(&subject.root, &subject.device, &subject.queue());
    Ok((subject.now().choice, can, missing))
}

fn host(args: &AdviseArgs, subject: Option<&Subject>) -> Result<HostConfig> {
    let host = match &args.host {
        Some(path) => HostConfig::load(path)?,
        None => facts::usual_host(),
    };
    Ok(match subject {
        Some(subject) => facts::host_of(&subject.queue(), host),
        None => host,
    })
}

fn objective(args: &AdviseArgs, bench: &Bench, usual: &str) -> Result<Objective> {
    let text = args.objective.as_deref().unwrap_or(usual);
    let names = bench.names();
    Objective::parse(text, &names.iter().map(String::as_str).collect::<Vec<_>>())
        .map_err(|error| usage(format!("--objective: {error}")))
}

fn drive(args: &AdviseArgs, subject: Option<&Subject>) -> Result<(Profile, Drive)> {
    match (args.drive.as_deref(), subject) {
        (Some(FIT), _) => {
            Err(usage("--drive fit fits a drive to a trace, and there is none: name a drive, or give --trace"))
        }
        (Some(name), _) if name != AUTO => named(name),
        (_, Some(subject)) => nearest(subject),
        (Some(_), None) => {
            Err(usage("--drive auto takes what is nearest to a device: name the device, as in `hoistway advise sda`"))
        }
        (None, None) => Err(usage(format!(
            "which device is it about, or which drive? Name a device ({}), or a drive with --drive (`hoistway drives` lists them)",
            some_devices(args)
        ))),
    }
}

/// The devices that could be named.
fn some_devices(args: &AdviseArgs) -> String {
    let devices = hoistway_machine::devices(&super::subject::root(args)).unwrap_or_default();
    let choosable = devices
        .iter()
        .filter(|device| device.is_present() && device.queue.as_ref().is_some_and(hoistway_machine::Queue::has_choice));
    let names: Vec<&str> = choosable.map(|device| device.name.as_str()).take(8).collect();
    if names.is_empty() { "this machine has none with a scheduler to choose".into() } else { names.join(", ") }
}

fn named(name: &str) -> Result<(Profile, Drive)> {
    let profile = drive_choice::load(name)?;
    Ok((profile, Drive { why: "named on the command line".into(), standing: Standing::Named, fitted: None }))
}

fn nearest(subject: &Subject) -> Result<(Profile, Drive)> {
    let device = &subject.device;
    let all = hoistway_machine::devices(&subject.root)?;
    let model = facts::model_under(&subject.root, &all, device)
        .with_context(|| format!("{}: no drive stands behind it", device.name))?;
    let profile = drive_choice::load(model.profile)?;
    Ok((profile, Drive { why: model.why, standing: model.standing, fitted: None }))
}

fn drive_of_trace(
    args: &AdviseArgs,
    subject: Option<&Subject>,
    loaded: &Loaded,
    name: &str,
) -> Result<(Profile, Drive)> {
    let told = loaded.setting.drive.as_deref().filter(|name| Profile::builtin(name).is_some());
    match (args.drive.as_deref(), told, subject) {
        (Some(AUTO), _, Some(subject)) => nearest(subject),
        (Some(choice), ..) if choice != FIT && choice != AUTO => named(choice),
        (None, Some(told), _) => {
            let profile = drive_choice::load(told)?;
            Ok((profile, Drive { why: "named by the trace".into(), standing: Standing::Named, fitted: None }))
        }
        _ => {
            let options = FitOptions { name: FITTED, kind: None, base: None };
            let fitted = fit_profile(&service_times(&loaded.lives), &options)
                .with_context(|| format!("{name}: no drive can be fitted to it: name one with --drive"))?;
            let drive = Drive {
                why: "fitted to the service times of the trace".into(),
                standing: Standing::Fitted,
                fitted: Some(fitted.clone()),
            };
            Ok((fitted.profile, drive))
        }
    }
}
