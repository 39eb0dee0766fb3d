//! `hoistway serve`: serves devices to NBD clients.

pub mod args;
mod calibrate;
mod check;
mod child;
mod journal;
pub(super) mod log;
pub(super) mod record;
mod sockets;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Error, Result};
use hoistway_config::{CheckedConfig, Config, HostEnvironment};
use hoistway_machine::create_unused;
use hoistway_reactor::{Engine, EngineKind, Options, Threads, Uring, probe};
use hoistway_record::recording::Recording;
use hoistway_server::access::tls_server;
use hoistway_server::systemd::{self, Notify};
use hoistway_server::{Bounds, Server, Settings, Turn};

use crate::cli::{EngineChoice, ServeArgs};
use crate::failure::{Exit, chain, print_message};
use crate::output::Out;
use child::Companion;
use sockets::SocketPlan;

/// Descriptors that are not connections: files, listening sockets, the io_uring.
const DESCRIPTORS_RESERVED: u64 = 64;

/// Serves until a signal or the end of the command of `--run`.
pub fn run(args: &ServeArgs, out: &mut Out) -> Result<Exit> {
    let log = log::start(args.monitoring.quiet, args.monitoring.verbose);
    if let Some(job) = &args.check {
        return check::run(job, args, out);
    }
    let checked = args::config(args, &HostEnvironment)?;
    for warning in &checked.warnings {
        tracing::warn!("{warning}");
    }
    let activated = systemd::listen_fds(args::listen_given(args, &checked))?;
    let plan = SocketPlan::new(&checked.config, activated);
    let options = Options { watch_ns: args.watch, ..Options::default() };
    match choose_engine(args.engine) {
        EngineKind::Uring => {
            let engine = Uring::new(&options).context("io_uring cannot be used")?;
            serve(engine, args, log, checked, plan, out)
        }
        EngineKind::Threads => {
            let engine = Threads::new(&options).context("the engine of threads cannot be used")?;
            serve(engine, args, log, checked, plan, out)
        }
    }
}

/// Chooses the I/O engine and logs the reason.
fn choose_engine(choice: EngineChoice) -> EngineKind {
    let (kind, because) = match choice {
        EngineChoice::Uring => (EngineKind::Uring, "set by --engine".to_owned()),
        EngineChoice::Threads => (EngineKind::Threads, "set by --engine".to_owned()),
        EngineChoice::Auto => match probe() {
            Ok(()) => (EngineKind::Uring, "available".to_owned()),
            Err(unavailable) => (EngineKind::Threads, unavailable.to_string()),
        },
    };
    tracing::info!(engine = %kind, because, "engine");
    kind
}

/// Opens and checks everything before clients can connect, and serves. A failure leaves no files
/// behind.
fn serve<E: Engine>(
    mut engine: E,
    args: &ServeArgs,
    log: log::LogHandle,
    checked: CheckedConfig,
    plan: SocketPlan,
    out: &mut Out,
) -> Result<Exit> {
    let config = checked.config;
    if args.calibrate {
        return calibrate::run(&config, &mut engine, out);
    }
    let settings = Settings { bounds: bounds(), tls: certificates(&config)? };
    let mut server = Server::new(engine, &config, settings)?;
    server.set_log(Box::new(log));
    server.show_process();
    let opened = plan.open()?;
    let addresses = opened.addresses(&config);
    let mut recording = config.record.as_deref().map(|path| record::start(path, &server)).transpose()?;
    let _pid_file = args.pid_file.as_deref().map(PidFile::write).transpose()?;
    let sockets = opened.hand_over(&mut server);
    let mut companion = args.run.as_deref().map(|command| Companion::start(command, &addresses)).transpose()?;
    // A former recording is overwritten only now, when nothing else can fail.
    if let Some(recording) = &mut recording {
        record::begin(recording, &mut server);
    }
    let notify = Notify::of_process();
    notify.ready(&format!("serving {} exports", config.exports.len()));
    // With --run, standard output belongs to the command.
    for uri in sockets.uris(&config).iter().filter(|_| companion.is_none()) {
        out.line(format_args!("ready: {uri}"))?;
    }
    out.flush()?;
    let result = run_server(&mut server, args, &notify, companion.as_mut(), recording.as_mut());
    // Standard output has the lines `ready:` only, or belongs to the command.
    server.lateness_lines().iter().for_each(|line| print_message(line));
    drop(server);
    if let Some(recording) = recording {
        record::finish(recording)?;
    }
    // The recording is complete even if the engine failed.
    let clean = result?;
    drop(sockets);
    let ended = companion.map_or(Ok(Exit::Success), Companion::end)?;
    Ok(if clean { ended } else { Exit::Failed })
}

/// Runs the server, and handles alarms, reloads and the end of the command. Returns true if all
/// connections ended regularly.
fn run_server<E: Engine>(
    server: &mut Server<E>,
    args: &ServeArgs,
    notify: &Notify,
    mut companion: Option<&mut Companion>,
    mut recording: Option<&mut Recording>,
) -> Result<bool> {
    if let Some(every_ns) = notify.alive_every_ns() {
        server.set_alarm(every_ns);
    }
    let mut is_draining = false;
    loop {
        match server.run().context("the I/O engine failed")? {
            Turn::Running => {}
            Turn::Alarm => notify.alive(),
            Turn::Reload => {
                reload(server, args, notify);
                if let Some(recording) = recording.as_deref_mut() {
                    record::add_new_devices(recording, server);
                }
            }
            Turn::Child => {
                if let Some(companion) = companion.as_deref_mut()
                    && companion.has_ended()?
                    && !is_draining
                {
                    is_draining = true;
                    notify.stopping();
                    server.drain();
                }
            }
            Turn::Draining => {
                is_draining = true;
                notify.stopping();
            }
            Turn::Ended { clean } => return Ok(clean),
        }
    }
}

/// Reloads the configuration. Errors are logged, and the current configuration stays.
fn reload<E: Engine>(server: &mut Server<E>, args: &ServeArgs, notify: &Notify) {
    notify.reloading();
    let read = args::config(args, &HostEnvironment).map_err(anyhow::Error::from).and_then(|checked| {
        for warning in &checked.warnings {
            tracing::warn!("{warning}");
        }
        let tls = certificates(&checked.config)?;
        Ok((checked.config, tls))
    });
    let outcome = match read {
        Ok((config, tls)) => server.reload(config, tls).map_err(|error| chain(&error.into())),
        Err(error) => {
            let error = chain(&error);
            server.reload_failed(&error);
            Err(error)
        }
    };
    match outcome {
        Ok(()) => notify.ready("configuration read again"),
        Err(error) => {
            tracing::error!("the configuration stays as it was: {error}");
            notify.ready("the new configuration is wrong: the old one stays");
        }
    }
}

/// Loads the certificates that the configuration names.
fn certificates(config: &Config) -> Result<Option<Arc<hoistway_server::access::ServerConfig>>> {
    let Some(tls) = &config.tls else { return Ok(None) };
    let files = tls_server(tls)?;
    for warning in &files.warnings {
        tracing::warn!("{warning}");
    }
    Ok(Some(files.server))
}

/// Limits the number of connections to the available descriptors. The engine has already raised the
/// soft limit to the hard limit.
fn bounds() -> Bounds {
    let default = Bounds::default();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = usize::try_from(limit.saturating_sub(DESCRIPTORS_RESERVED).max(1)).unwrap_or(usize::MAX);
    if most < default.connections_max {
        tracing::warn!(connections = most, "the limit of open files (ulimit -n, LimitNOFILE=) allows no more clients");
    }
    Bounds { connections_max: default.connections_max.min(most), ..default }
}

/// A file with the process id, which is removed with the value.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: &Path) -> Result<PidFile> {
        let written = create_unused(path)
            .map_err(Error::from)
            .and_then(|mut file| Ok(file.write_all(format!("{}\n", std::process::id()).as_bytes())?));
        written.with_context(|| format!("{}: the process id cannot be written", path.display()))?;
        Ok(PidFile(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // The file may have been removed already.
        let _ = fs::remove_file(&self.0);
    }
}
