//! `hoistway mount`: a directory whose disk is shared by an elevator.

mod args;

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use hoistway_mount::scheduled::{Scheduled, Watching};
use hoistway_mount::{Backing, Gate, MountOptions, Open, Options, Session, Unmounted, Unmounter, Users, WriteBack};
use hoistway_serve::access::{Bound, Judgement, bind_tcp, bind_unix, judge_metrics};
use hoistway_serve::config::mount::{MountConfig, WriteBackChoice};
use hoistway_serve::config::{Draft, Machine};
use hoistway_serve::record::Recording;
use hoistway_serve::systemd::Notify;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::serve::{log, record};
use crate::cli::{Elevator, MountArgs};
use crate::failure::{Exit, UsageError};
use crate::output::Out;

/// The control socket is for whoever mounts.
const CONTROL_MODE: u32 = 0o600;
/// How long those who have files open are waited for at the end.
const GRACE: Duration = Duration::from_secs(10);

/// Mounts until told to stop.
pub fn run(args: &MountArgs, out: &mut Out) -> Result<Exit> {
    if let Some(path) = &args.check_config {
        return check(path, out);
    }
    let (Some(source), Some(mount_point)) = (&args.source, &args.mount_point) else {
        return Err(UsageError("say what is mounted, and where: SOURCE and MOUNTPOINT".to_owned()).into());
    };
    let log = log::start(args.watching.quiet, args.watching.verbose);
    let checked = args::config(args)?;
    for warning in &checked.warnings {
        tracing::warn!("{warning}");
    }
    let config = checked.config;
    if args.elevator == Some(Elevator::None) {
        return unscheduled(args, &config, source, mount_point, out);
    }
    let path = std::fs::canonicalize(source).with_context(|| format!("the source {}", source.display()))?;
    let gate = Arc::new(Scheduled::new(path.clone(), &root(&path)?, &config)?);
    // Sockets are made before anything is mounted: what fails leaves nothing behind.
    let ways_in = WaysIn::open(&config)?;
    let recording = args.watching.record.as_deref().map(|path| begin_recording(path, &gate)).transpose()?;
    let passing = gate.clone();
    let options =
        Options { bypass: Some(Box::new(move |asker, backing| passing.passes(asker, backing))), ..options(&config) };
    let session = mount(args, &config, source, mount_point, gate.clone(), options)?;
    let watching = gate.watch(Box::new(log))?;
    let _files = ways_in.serve(&watching)?;
    let ended = attend(&session, out);
    // What waits is done, and the kernel writes back the rest.
    gate.close();
    if let Some(recording) = recording {
        gate.record(|_| None);
        record::finish(recording)?;
    }
    ended
}

/// Says what is wrong with a configuration.
fn check(path: &Path, out: &mut Out) -> Result<Exit> {
    let checked = Draft::load_mount(path)?.check_mount(&Machine)?;
    for warning in &checked.warnings {
        out.line(format_args!("warning: {warning}"))?;
    }
    let config = checked.config;
    let counts =
        [(config.tenants.len(), "tenants"), (config.groups.len(), "groups"), (config.devices.len(), "devices")];
    let counts: Vec<String> = counts
        .iter()
        .map(|(count, what)| format!("{count} {}", if *count == 1 { what.trim_end_matches('s') } else { what }))
        .collect();
    out.line(format_args!("{}: it can be used ({})", path.display(), counts.join(", ")))?;
    Ok(Exit::Success)
}

/// Mounts without a queue: what the others are compared with.
fn unscheduled(
    args: &MountArgs,
    config: &MountConfig,
    source: &Path,
    mount_point: &Path,
    out: &mut Out,
) -> Result<Exit> {
    if !config.tenants.is_empty() {
        tracing::warn!("nothing is scheduled: no rule counts");
    }
    if config.control.is_some() || config.metrics.is_some() || args.watching.record.is_some() {
        let why =
            "--elevator none: there is no queue to watch, steer or record; leave --control, --metrics and --record out";
        return Err(UsageError(why.to_owned()).into());
    }
    let session = mount(args, config, source, mount_point, Arc::new(Open), options(config))?;
    attend(&session, out)
}

fn options(config: &MountConfig) -> Options {
    let write_back = match config.mount.write_back {
        WriteBackChoice::Ours => WriteBack::Ours,
        WriteBackChoice::Kernel => WriteBack::Kernel,
    };
    Options { write_back, ..Options::default() }
}

fn mount<G: Gate>(
    args: &MountArgs,
    config: &MountConfig,
    source: &Path,
    mount_point: &Path,
    gate: Arc<G>,
    options: Options,
) -> Result<Session> {
    let usual = MountOptions::default();
    let everybody = config.mount.allow_other.unwrap_or_else(|| rustix::process::geteuid().is_root());
    let how = MountOptions {
        users: if everybody { Users::All } else { Users::Owner },
        threads: config.mount.threads.map_or(usual.threads, |threads| threads as usize),
        read_only: args.read_only,
        clean: args.clean,
        ..usual
    };
    Ok(Session::mount(source, mount_point, gate, options, &how)?)
}

/// Says that all is ready, and waits until the mount is gone. A signal takes it away, a second one from under who uses it.
fn attend(session: &Session, out: &mut Out) -> Result<Exit> {
    let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::new(heeded).context("signals cannot be taken")?;
    let handle = signals.handle();
    out.line(format_args!("ready: {}", session.mount_point().display()))?;
    out.flush()?;
    let notify = Notify::of_process();
    notify.ready(&format!("mounted at {}", session.mount_point().display()));
    let unmounter = session.unmounter();
    let waiting = std::thread::Builder::new().name("hoistway-stop".into()).spawn(move || {
        let mut leaving = None;
        for _ in signals.forever() {
            if leaving.is_some() {
                tracing::warn!("told twice: those who still use the mount are cut off");
                if let Err(error) = unmounter.abort() {
                    tracing::warn!("they cannot be: {error}");
                }
                continue;
            }
            notify.stopping();
            leaving = leave(unmounter.clone());
        }
        leaving
    })?;
    let ended = session.wait().context("the mount has broken down");
    handle.close();
    // One that has panicked has nothing to say.
    let left = waiting.join().ok().flatten().and_then(|leaving| leaving.join().ok()).flatten();
    ended.map(|()| if left == Some(Unmounted::Detached) { Exit::Failed } else { Exit::Success })
}

/// Whether a signal was ignored when this was started: `nohup` wants it to go on.
fn is_ignored(signal: i32) -> bool {
    let told = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = told.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Unmounts, beside the thread that waits for signals. Says how that went, if it did.
fn leave(unmounter: Unmounter) -> Option<JoinHandle<Option<Unmounted>>> {
    let unmount = move || match unmounter.unmount(GRACE) {
        Ok(Unmounted::Clean) => {
            tracing::info!("unmounted");
            Some(Unmounted::Clean)
        }
        Ok(Unmounted::Detached) => {
            tracing::warn!("still in use after {} s: out of sight, and over when this ends", GRACE.as_secs());
            Some(Unmounted::Detached)
        }
        Err(error) => {
            tracing::error!("{error}");
            None
        }
    };
    match std::thread::Builder::new().name("hoistway-leave".into()).spawn(unmount) {
        Ok(leaving) => Some(leaving),
        Err(error) => {
            tracing::error!("it cannot be unmounted: {error}");
            None
        }
    }
}

/// The source itself, by which the gate finds its device.
fn root(source: &Path) -> Result<Arc<Backing>> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(source);
    let told = opened.and_then(|opened| Ok((opened.metadata()?, opened)));
    let (told, opened) = told.with_context(|| format!("the source {}", source.display()))?;
    Ok(Arc::new(Backing::new(opened.into(), told.dev(), told.ino())))
}

/// Records all devices that are there.
fn begin_recording(path: &Path, gate: &Scheduled) -> Result<Recording> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since_1970_ns = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
    let names = gate.device_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut recording = Recording::start(path, &names, gate.now_ns(), since_1970_ns)?;
    recording.begin();
    gate.record(|device| Some(Box::new(recording.tap(names.iter().position(|name| *name == device)?))));
    tracing::info!("recording");
    Ok(recording)
}

/// Where it is seen and steered.
struct WaysIn {
    control: Option<(std::os::fd::OwnedFd, Bound)>,
    metrics: Option<std::os::fd::OwnedFd>,
}

impl WaysIn {
    /// Opens what a configuration says.
    fn open(config: &MountConfig) -> Result<WaysIn> {
        let control = config.control.as_deref().map(|path| bind_unix(path, CONTROL_MODE)).transpose()?;
        if let Some(address) = config.metrics {
            match judge_metrics(address, false) {
                Judgement::Fine => {}
                Judgement::Warn(text) | Judgement::Refuse(text) => {
                    let text = text.split(": tell them").next().unwrap_or_default().to_owned();
                    anyhow::bail!("{text}: tell them at 127.0.0.1 or [::1]");
                }
            }
        }
        let metrics = config.metrics.map(bind_tcp).transpose()?;
        Ok(WaysIn { control, metrics })
    }

    /// Answers there from now on. The file of the socket goes with what comes back.
    fn serve(self, watching: &Watching) -> Result<Option<Bound>> {
        if let Some(socket) = self.metrics {
            watching.metrics(socket)?;
        }
        let Some((socket, file)) = self.control else { return Ok(None) };
        watching.control(socket)?;
        tracing::info!(socket = %file.path().display(), "control");
        Ok(Some(file))
    }
}
