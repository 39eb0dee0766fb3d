//! `hoistway trace replay`: replays the requests of a trace and compares the result with the
//! recording.

mod load;
mod print;

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail};
use hoistway_core::Kind as Elevator;
use hoistway_nbd::uri::Uri;
use hoistway_reactor::{Engine, EngineKind, Options as EngineOptions, Process, Threads, Uring, probe};
use hoistway_record::replay::{
    DeviceTarget, Fit, NbdTarget, Options, Outcome, Progress, Target, Timing, Virtual, check_unused, replay,
};

use crate::cli::trace::{ReplayArgs, TimingChoice};
use crate::failure::{Exit, UsageError, tell};
use crate::output::Out;
use crate::progress::Bar;
use crate::{drive_choice, interrupt};
use load::Loaded;

/// Result of a replay, and its target.
struct Replayed {
    target: String,
    outcome: Outcome,
}

pub fn run(args: &ReplayArgs, out: &mut Out) -> Result<Exit> {
    let drive = args.on.strip_prefix("drive:");
    if drive.is_none() && (args.elevator.is_some() || !args.settings.is_empty()) {
        let message = "--elevator and --set are for drive:NAME; a device's own scheduler is set in /sys/block, a server's by `hoistway ctl`";
        return Err(UsageError(message.to_owned()).into());
    }
    let mut loaded = load::load(args)?;
    let changing = loaded.plan.changing();
    if drive.is_none() && changing > 0 && !args.write {
        bail!(
            "{} has {changing} writes, discards and flushes: --write includes them, and the data on {} are lost; --reads-only omits them",
            loaded.name,
            args.on
        );
    }
    let replayed = match drive {
        Some(name) => on_drive(args, name, &mut loaded),
        None => on_engine(args, &mut loaded),
    }?;
    loaded.notes.iter().for_each(|note| tell(&format!("note: {note}")));
    if args.json {
        print::json(args, &loaded, &replayed, out)?;
    } else {
        print::text(args, &loaded, &replayed, out)?;
    }
    let outcome = &replayed.outcome;
    if outcome.failed > 0 {
        out.flush()?;
        let first = outcome.first_error.as_deref().unwrap_or("unknown");
        tell(&format!("error: {} requests failed; the first: {first}", outcome.failed));
        return Ok(Exit::Failed);
    }
    Ok(if outcome.interrupted { Exit::Interrupted } else { Exit::Success })
}

/// Replays on a drive model in virtual time.
fn on_drive(args: &ReplayArgs, name: &str, loaded: &mut Loaded) -> Result<Replayed> {
    let profile = drive_choice::load(name)?;
    let elevator = args.elevator.unwrap_or(Elevator::Noop);
    if let Some(other) = args.settings.iter().find(|setting| setting.elevator != elevator) {
        let (set, used) = (other.elevator.info().name, elevator.info().name);
        return Err(UsageError(format!("--set {set}.{}: the elevator is {used}", other.tunable)).into());
    }
    let tunables = args.settings.iter().map(|setting| (setting.tunable.to_string(), setting.value)).collect();
    let mut engine = Virtual::default();
    let mut target = DeviceTarget::drive(&profile, elevator, None, tunables, &mut engine)?;
    fit(args, loaded, target.size())?;
    target.join(&vec![Process::default(); loaded.plan.processes().len()], 0)?;
    let cancel = interrupt::watch()?;
    let outcome = go(args, loaded, &mut target, &mut engine, &mut || cancel.load(Ordering::Relaxed))?;
    let target = format!("the drive model {} under {}", profile.name(), elevator.info().name);
    Ok(Replayed { target, outcome })
}

/// Replays on a file, a device or a server.
fn on_engine(args: &ReplayArgs, loaded: &mut Loaded) -> Result<Replayed> {
    let options = EngineOptions::default();
    let kind = match probe() {
        Ok(()) => EngineKind::Uring,
        Err(unavailable) => {
            loaded.notes.push(format!("{unavailable}; using threads, up to {} requests at once", options.threads));
            EngineKind::Threads
        }
    };
    match kind {
        EngineKind::Uring => on_target(args, loaded, Uring::new(&options).context("io_uring cannot be used")?),
        EngineKind::Threads => {
            on_target(args, loaded, Threads::new(&options).context("the engine of threads cannot be used")?)
        }
    }
}

fn on_target<E: Engine>(args: &ReplayArgs, loaded: &mut Loaded, mut engine: E) -> Result<Replayed> {
    if args.on.starts_with("nbd") && args.on.contains("://") {
        let uri: Uri = args.on.parse().map_err(|error| UsageError(format!("--on {error}")))?;
        let mut target = NbdTarget::connect(&uri, loaded.plan.processes().len(), &mut engine)?;
        prepare_nbd(args, loaded, &target)?;
        let outcome = go(args, loaded, &mut target, &mut engine, &mut || false)?;
        let connections = target.connections();
        target.leave(&mut engine);
        let target = format!("{uri} by {}, connections: {connections}", engine.name());
        return Ok(Replayed { target, outcome });
    }
    let path = std::path::Path::new(&args.on);
    let writes = loaded.plan.changing() > 0;
    if writes {
        check_unused(path)?;
    }
    let mut target = DeviceTarget::file(path, writes, &mut engine)?;
    loaded.leave_out(!target.can_discard(), false);
    fit(args, loaded, target.size())?;
    let now_ns = engine.now_ns();
    target.join(&[Process::default()], now_ns)?;
    let outcome = go(args, loaded, &mut target, &mut engine, &mut || false)?;
    Ok(Replayed { target: format!("{}, by {}", target.describe(), engine.name()), outcome })
}

/// Adapts the plan to the features of a server.
fn prepare_nbd(args: &ReplayArgs, loaded: &mut Loaded, target: &NbdTarget) -> Result<()> {
    if target.is_read_only() && loaded.plan.changing() > 0 {
        bail!("{}: the export is read-only; --reads-only omits writes, discards and flushes", args.on);
    }
    loaded.leave_out(!target.can_discard(), !target.can_flush());
    fit(args, loaded, target.size())?;
    let (grain, min) = (loaded.plan.grain_bytes(), u64::from(target.block_min()));
    if grain < min {
        bail!(
            "{}: the server requires multiples of {min} bytes, but the trace has requests of multiples of {grain}",
            args.on
        );
    }
    Ok(())
}

fn fit(args: &ReplayArgs, loaded: &mut Loaded, size: u64) -> Result<()> {
    let fit = Fit { shift_bytes: args.shift, wrap: args.wrap };
    loaded.plan.fit(fit, size).with_context(|| args.on.clone())?;
    if loaded.plan.requests().is_empty() {
        bail!("{}: there is nothing to replay: {}", loaded.name, loaded.left_out_words());
    }
    Ok(())
}

fn go<E: Engine, T: Target<E>>(
    args: &ReplayArgs,
    loaded: &Loaded,
    target: &mut T,
    engine: &mut E,
    cancelled: &mut dyn FnMut() -> bool,
) -> Result<Outcome> {
    let depth = args.depth.map_or(loaded.plan.recorded().depth_max, |depth| depth as usize);
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
    let bar = Bar::new(loaded.plan.requests().len() as u64, "replaying");
    let mut shown = 0;
    let mut watch = |progress: Progress| {
        if progress.done >= shown + 64 {
            shown = progress.done;
            bar.set(progress.done as u64);
        }
        !cancelled()
    };
    let outcome = replay(&loaded.plan, &Options { timing, scale: args.scale }, target, engine, &mut watch);
    bar.clear();
    Ok(outcome?)
}
