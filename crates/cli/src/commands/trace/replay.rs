//! `hoistway trace replay`: replays the requests of a trace and compares the result with the
//! recording.

mod print;

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail};
use hoistway_core::Kind as Elevator;
use hoistway_drive::Profile;
use hoistway_nbd::uri::Uri;
use hoistway_reactor::{Engine, EngineKind, Options as EngineOptions, Process, Threads, Uring, probe};
use hoistway_record::replay::{
    DeviceTarget, NbdTarget, Options, Placement, Progress, ReplayOutcome, ReplayReport, ReplayTarget, ReplayTrace,
    Selection, Timing, TraceLayer, Virtual, replay,
};

use crate::cli::trace::{LayerChoice, ReplayArgs, TimingChoice};
use crate::commands::trace::input;
use crate::failure::{Exit, UsageError, print_message};
use crate::interrupt;
use crate::output::Out;
use crate::progress::Bar;

/// Result of a replay, with its target and its timing.
struct Replayed {
    target: String,
    options: Options,
    outcome: ReplayOutcome,
}

pub fn run(args: &ReplayArgs, out: &mut Out) -> Result<Exit> {
    let drive = args.drive();
    if drive.is_none() && (args.elevator.is_some() || !args.settings.is_empty()) {
        let message = "--elevator and --set are for --drive; a device's own scheduler is set in /sys/block, a server's by `hoistway ctl`";
        return Err(UsageError(message.to_owned()).into());
    }
    let mut trace = read(args)?;
    let changing = trace.plan.changing();
    if drive.is_none() && changing > 0 && !args.write {
        bail!(
            "{} has {changing} writes, discards and flushes: --write includes them, and the data on {} are lost; --reads-only omits them",
            trace.name,
            args.target()
        );
    }
    trace.notes.extend(note_on_completions(args, &trace));
    let replayed = match drive {
        Some(name) => on_drive(args, name, &mut trace),
        None => on_engine(args, &mut trace),
    }?;
    trace.notes.iter().for_each(|note| print_message(&format!("note: {note}")));
    if args.json {
        out.json(&ReplayReport::new(&trace, &replayed.target, &replayed.options, &replayed.outcome))?;
    } else {
        print::text(&trace, &replayed, out)?;
    }
    let outcome = &replayed.outcome;
    if outcome.failed > 0 {
        out.flush()?;
        let first = outcome.first_error.as_deref().unwrap_or("unknown");
        print_message(&format!("error: {} requests failed; the first: {first}", outcome.failed));
        return Ok(Exit::Failed);
    }
    Ok(if outcome.interrupted { Exit::Interrupted } else { Exit::Success })
}

/// A note on a timing that needs the completions of the recording.
fn note_on_completions(args: &ReplayArgs, trace: &ReplayTrace) -> Option<String> {
    let consequence = match args.timing {
        _ if trace.plan.has_completions() => return None,
        TimingChoice::Dependent => {
            "each request is submitted when the previous one of its process has completed, and at the earliest the \
             recorded gap after its submission"
        }
        TimingChoice::Asap if args.depth.is_none() => {
            "the recorded maximum of outstanding requests is unknown, and requests are submitted one at a time; --depth \
             N submits up to N at once"
        }
        TimingChoice::Asap | TimingChoice::Recorded => return None,
    };
    Some(format!("the trace has no completions: {consequence}"))
}

fn read(args: &ReplayArgs) -> Result<ReplayTrace> {
    let mut source = input::open(&args.input)?;
    let name = source.name.clone();
    let level = match args.layer {
        LayerChoice::Queue => TraceLayer::Queue,
        LayerChoice::Issue => TraceLayer::Issue,
    };
    let selection = Selection { level, reads_only: args.reads_only, device: args.device };
    Ok(ReplayTrace::read(&mut source, &name, selection)?)
}

/// Replays on a drive model in virtual time.
fn on_drive(args: &ReplayArgs, name: &str, trace: &mut ReplayTrace) -> Result<Replayed> {
    let profile = Profile::choose(name)?;
    let elevator = args.elevator.unwrap_or(Elevator::Noop);
    if let Some(other) = args.settings.iter().find(|setting| setting.elevator != elevator) {
        let (set, used) = (other.elevator.info().name, elevator.info().name);
        return Err(UsageError(format!("--set {set}.{}: the elevator is {used}", other.tunable)).into());
    }
    let tunables = args.settings.iter().map(|setting| (setting.tunable.to_string(), setting.value)).collect();
    let mut engine = Virtual::default();
    let mut target = DeviceTarget::drive(&profile, elevator, None, tunables, &mut engine)?;
    fit(args, trace, target.size())?;
    target.join(&vec![Process::default(); trace.plan.processes().len()], 0)?;
    let cancel = interrupt::watch()?;
    let (options, outcome) = execute(args, trace, &mut target, &mut engine, &mut || cancel.load(Ordering::Relaxed))?;
    let target = format!("the drive model {} under {}", profile.name(), elevator.info().name);
    Ok(Replayed { target, options, outcome })
}

/// Replays on a file, a device or a server.
fn on_engine(args: &ReplayArgs, trace: &mut ReplayTrace) -> Result<Replayed> {
    let options = EngineOptions::default();
    let kind = match probe() {
        Ok(()) => EngineKind::Uring,
        Err(unavailable) => {
            trace.notes.push(format!("{unavailable}; using threads, up to {} requests at once", options.threads));
            EngineKind::Threads
        }
    };
    match kind {
        EngineKind::Uring => on_target(args, trace, Uring::new(&options).context("io_uring cannot be used")?),
        EngineKind::Threads => {
            on_target(args, trace, Threads::new(&options).context("the engine of threads cannot be used")?)
        }
    }
}

fn on_target<E: Engine>(args: &ReplayArgs, trace: &mut ReplayTrace, mut engine: E) -> Result<Replayed> {
    if args.target().starts_with("nbd") && args.target().contains("://") {
        let uri: Uri = args.target().parse().map_err(|error| UsageError(format!("--on {error}")))?;
        let mut target = NbdTarget::connect(&uri, trace.plan.processes().len(), &mut engine)?;
        prepare_nbd(args, trace, &target)?;
        let (options, outcome) = execute(args, trace, &mut target, &mut engine, &mut || false)?;
        let connections = target.connections();
        target.leave(&mut engine);
        let target = format!("{uri} by {}, connections: {connections}", engine.name());
        return Ok(Replayed { target, options, outcome });
    }
    let path = std::path::Path::new(args.target());
    let writes = trace.plan.changing() > 0;
    let mut target = DeviceTarget::file(path, writes, args.force_in_use, &mut engine)?;
    trace.plan.omit(!target.can_discard(), false);
    fit(args, trace, target.size())?;
    let now_ns = engine.now_ns();
    target.join(&[Process::default()], now_ns)?;
    let (options, outcome) = execute(args, trace, &mut target, &mut engine, &mut || false)?;
    Ok(Replayed { target: format!("{}, by {}", target.describe(), engine.name()), options, outcome })
}

/// Adapts the plan to the features of a server.
fn prepare_nbd(args: &ReplayArgs, trace: &mut ReplayTrace, target: &NbdTarget) -> Result<()> {
    if target.is_read_only() && trace.plan.changing() > 0 {
        bail!("{}: the export is read-only; --reads-only omits writes, discards and flushes", args.target());
    }
    trace.plan.omit(!target.can_discard(), !target.can_flush());
    fit(args, trace, target.size())?;
    let (grain, min) = (trace.plan.alignment_bytes(), u64::from(target.block_min()));
    if grain < min {
        bail!(
            "{}: the server requires multiples of {min} bytes, but the trace has requests of multiples of {grain}",
            args.target()
        );
    }
    Ok(())
}

fn fit(args: &ReplayArgs, trace: &mut ReplayTrace, size: u64) -> Result<()> {
    Ok(trace.fit(Placement { shift_bytes: args.shift, wrap: args.wrap }, args.target(), size)?)
}

fn execute<E: Engine, T: ReplayTarget<E>>(
    args: &ReplayArgs,
    trace: &ReplayTrace,
    target: &mut T,
    engine: &mut E,
    cancelled: &mut dyn FnMut() -> bool,
) -> Result<(Options, ReplayOutcome)> {
    let depth = args.depth.map_or(trace.plan.recorded().depth_max, |depth| depth as usize);
    if args.depth.is_some() && args.timing != TimingChoice::Asap {
        return Err(
            UsageError("--depth requires --timing asap: other timings keep the recorded depth".to_owned()).into()
        );
    }
    let timing = match args.timing {
        TimingChoice::Recorded => Timing::Recorded,
        TimingChoice::Asap => Timing::Asap { depth: depth.max(1) },
        TimingChoice::Dependent => Timing::Dependent,
    };
    let options = Options { timing, scale: args.scale };
    let bar = Bar::new(trace.plan.requests().len() as u64, "replaying");
    let mut shown = 0;
    let mut watch = |progress: Progress| {
        if progress.done >= shown + 64 {
            shown = progress.done;
            bar.set(progress.done as u64);
        }
        !cancelled()
    };
    let outcome = replay(&trace.plan, &options, target, engine, &mut watch);
    bar.clear();
    Ok((options, outcome?))
}
