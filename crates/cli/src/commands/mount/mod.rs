//! `hoistway mount`: mounts a directory whose disk is scheduled by an elevator.

mod args;

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use hoistway_config::listen_policy::check_metrics_are_local;
use hoistway_config::mount::{MountConfig, WriteBackChoice};
use hoistway_config::{Draft, HostEnvironment};
use hoistway_machine::ProcessFiles;
use hoistway_mount::scheduled::{AdminEndpoints, Scheduled};
use hoistway_mount::{
    Backing, Gate, MountOptions, Options, Session, Unmounted, Unmounter, Unscheduled, Users, WriteBack,
};
use hoistway_record::recording::Recording;
use hoistway_server::access::{Bound, bind_tcp, bind_unix};
use hoistway_server::systemd::Notify;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::serve::{log, record};
use crate::cli::{Elevator, MountArgs};
use crate::failure::{Exit, UsageError};
use crate::output::Out;

/// Mode of the control socket: only the mounting user may connect.
const CONTROL_MODE: u32 = 0o600;
/// Time for which an unmount waits for open files to be closed.
const GRACE: Duration = Duration::from_secs(10);

/// Mounts the source, and serves the mount until it is unmounted.
pub fn run(args: &MountArgs, out: &mut Out) -> Result<Exit> {
    if let Some(path) = &args.check_config {
        return check(path, out);
    }
    let (Some(source), Some(mount_point)) = (&args.source, &args.mount_point) else {
        return Err(UsageError("SOURCE and MOUNTPOINT are required".to_owned()).into());
    };
    let log = log::start(args.monitoring.quiet, args.monitoring.verbose);
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
    // The sockets are bound before the mount, so that a failure leaves no mount behind.
    let sockets = AdminSockets::open(&config)?;
    let recording = args.monitoring.record.as_deref().map(|path| begin_recording(path, &gate)).transpose()?;
    let bypass_gate = gate.clone();
    let options = Options {
        bypass: Some(Box::new(move |caller, backing| bypass_gate.bypasses(caller, backing))),
        ..options(&config)
    };
    let session = mount(args, &config, source, mount_point, gate.clone(), options)?;
    let endpoints = gate.start_endpoints(Box::new(log))?;
    let _files = sockets.serve(&endpoints)?;
    let ended = wait_for_end(&session, out);
    // Waiting requests run at once, and the kernel writes back the remaining dirty data.
    gate.close();
    if let Some(recording) = recording {
        gate.record(|_| None);
        record::finish(recording)?;
    }
    ended
}

/// Checks a configuration file.
fn check(path: &Path, out: &mut Out) -> Result<Exit> {
    let checked = Draft::load_mount(path)?.check_mount(&HostEnvironment)?;
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
    out.line(format_args!("{}: valid ({})", path.display(), counts.join(", ")))?;
    Ok(Exit::Success)
}

/// Mounts without a queue, as a baseline for comparisons.
fn unscheduled(
    args: &MountArgs,
    config: &MountConfig,
    source: &Path,
    mount_point: &Path,
    out: &mut Out,
) -> Result<Exit> {
    if !config.tenants.is_empty() {
        tracing::warn!("--elevator none: nothing is scheduled, rules have no effect");
    }
    if config.control.is_some() || config.metrics.is_some() || args.monitoring.record.is_some() {
        let why =
            "--elevator none: there is no queue to watch, control or record; omit --control, --metrics and --record";
        return Err(UsageError(why.to_owned()).into());
    }
    let session = mount(args, config, source, mount_point, Arc::new(Unscheduled), options(config))?;
    wait_for_end(&session, out)
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
    let defaults = MountOptions::default();
    let all_users = config.mount.allow_other.unwrap_or_else(|| rustix::process::geteuid().is_root());
    let mount_options = MountOptions {
        users: if all_users { Users::All } else { Users::Owner },
        threads: config.mount.threads.map_or(defaults.threads, |threads| threads as usize),
        read_only: args.read_only,
        clean: args.clean,
        ..defaults
    };
    Ok(Session::mount(source, mount_point, gate, options, &mount_options)?)
}

/// Reports readiness, and waits until the mount is gone. A signal unmounts; a second one aborts the
/// connection.
fn wait_for_end(session: &Session, out: &mut Out) -> Result<Exit> {
    let handled = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::new(handled).context("cannot handle signals")?;
    let handle = signals.handle();
    out.line(format_args!("ready: {}", session.mount_point().display()))?;
    out.flush()?;
    let notify = Notify::of_process();
    notify.ready(&format!("mounted at {}", session.mount_point().display()));
    let unmounter = session.unmounter();
    let waiting = std::thread::Builder::new().name("hoistway-stop".into()).spawn(move || {
        let mut unmounting = None;
        for _ in signals.forever() {
            if unmounting.is_some() {
                tracing::warn!("second signal: remaining users of the mount get errors");
                if let Err(error) = unmounter.abort() {
                    tracing::warn!("the connection cannot be aborted: {error}");
                }
                continue;
            }
            notify.stopping();
            unmounting = start_unmount(unmounter.clone());
        }
        unmounting
    })?;
    let ended = session.wait().context("the mount failed");
    handle.close();
    // A panicked thread returns nothing.
    let result = waiting.join().ok().flatten().and_then(|unmounting| unmounting.join().ok()).flatten();
    ended.map(|()| if result == Some(Unmounted::Detached) { Exit::Failed } else { Exit::Success })
}

/// Returns true if a signal was ignored at the start, as `nohup` does with SIGHUP.
fn is_ignored(signal: i32) -> bool {
    ProcessFiles::own().ignored_signals().is_some_and(|ignored| ignored.contains(signal))
}

/// Unmounts in a thread of its own, so that a second signal can be received. Returns the result of
/// the unmount if it succeeded.
fn start_unmount(unmounter: Unmounter) -> Option<JoinHandle<Option<Unmounted>>> {
    let unmount = move || match unmounter.unmount(GRACE) {
        Ok(Unmounted::Clean) => {
            tracing::info!("unmounted");
            Some(Unmounted::Clean)
        }
        Ok(Unmounted::Detached) => {
            tracing::warn!("still in use after {} s: detached, ends with this process", GRACE.as_secs());
            Some(Unmounted::Detached)
        }
        Err(error) => {
            tracing::error!("{error}");
            None
        }
    };
    match std::thread::Builder::new().name("hoistway-umount".into()).spawn(unmount) {
        Ok(unmounting) => Some(unmounting),
        Err(error) => {
            tracing::error!("cannot start a thread for the unmount: {error}");
            None
        }
    }
}

/// Opens the source, by which the gate finds its device.
fn root(source: &Path) -> Result<Arc<Backing>> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(source);
    let metadata = opened.and_then(|opened| Ok((opened.metadata()?, opened)));
    let (metadata, opened) = metadata.with_context(|| format!("the source {}", source.display()))?;
    Ok(Arc::new(Backing::new(opened.into(), metadata.dev(), metadata.ino())))
}

/// Starts recording all devices that are in use.
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

/// The bound admin sockets.
struct AdminSockets {
    control: Option<(std::os::fd::OwnedFd, Bound)>,
    metrics: Option<std::os::fd::OwnedFd>,
}

impl AdminSockets {
    /// Binds the sockets of a configuration.
    fn open(config: &MountConfig) -> Result<AdminSockets> {
        let control = config.control.as_deref().map(|path| bind_unix(path, CONTROL_MODE)).transpose()?;
        if let Some(address) = config.metrics {
            check_metrics_are_local(address)
                .map_err(|exposed| anyhow::anyhow!("{exposed}: serve them on 127.0.0.1 or [::1]"))?;
        }
        let metrics = config.metrics.map(bind_tcp).transpose()?;
        Ok(AdminSockets { control, metrics })
    }

    /// Starts serving. Dropping the returned value removes the socket file.
    fn serve(self, endpoints: &AdminEndpoints) -> Result<Option<Bound>> {
        if let Some(socket) = self.metrics {
            endpoints.metrics(socket)?;
        }
        let Some((socket, file)) = self.control else { return Ok(None) };
        endpoints.control(socket)?;
        tracing::info!(socket = %file.path().display(), "control");
        Ok(Some(file))
    }
}
