//! `hoistway serve`: one disk, many clients.

pub mod args;
mod calibrate;
mod check;
mod child;
pub(super) mod log;
pub(super) mod record;
mod ways_in;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use hoistway_config::{CheckedConfig, Config, HostEnvironment};
use hoistway_reactor::{Engine, EngineKind, Options, Threads, Uring, probe};
use hoistway_record::recording::Recording;
use hoistway_server::access::tls_server;
use hoistway_server::systemd::{self, Notify};
use hoistway_server::{Bounds, Server, Settings, Turn};

use crate::cli::{EngineChoice, ServeArgs};
use crate::failure::{Exit, print_message};
use crate::output::Out;
use child::Companion;
use ways_in::WaysIn;

/// Descriptors that are not connections: files, sockets that listen, the ring.
const DESCRIPTORS_KEPT: u64 = 64;

/// Serves until told to stop.
pub fn run(args: &ServeArgs, out: &mut Out) -> Result<Exit> {
    let log = log::start(args.watching.quiet, args.watching.verbose);
    if let Some(job) = &args.check {
        return check::run(job, args, out);
    }
    let checked = args::config(args, &HostEnvironment)?;
    for warning in &checked.warnings {
        tracing::warn!("{warning}");
    }
    let activated = systemd::listen_fds(args::listen_given(args, &checked))?;
    let ways_in = WaysIn::new(&checked.config, activated);
    let options = Options { watch_ns: args.watch, ..Options::default() };
    match choose(args.engine) {
        EngineKind::Uring => {
            let engine = Uring::new(&options).context("io_uring cannot be used")?;
            serve(engine, args, log, checked, ways_in, out)
        }
        EngineKind::Threads => {
            let engine = Threads::new(&options).context("the engine of threads cannot be used")?;
            serve(engine, args, log, checked, ways_in, out)
        }
    }
}

/// What does the I/O, and why.
fn choose(choice: EngineChoice) -> EngineKind {
    let (kind, because) = match choice {
        EngineChoice::Uring => (EngineKind::Uring, "asked for".to_owned()),
        EngineChoice::Threads => (EngineKind::Threads, "asked for".to_owned()),
        EngineChoice::Auto => match probe() {
            Ok(()) => (EngineKind::Uring, "it works here".to_owned()),
            Err(unavailable) => (EngineKind::Threads, unavailable.to_string()),
        },
    };
    tracing::info!(engine = %kind, because, "engine");
    kind
}

/// Everything is opened and checked before anybody can connect; what fails leaves nothing behind.
fn serve<E: Engine>(
    mut engine: E,
    args: &ServeArgs,
    log: log::Handle,
    checked: CheckedConfig,
    ways_in: WaysIn,
    out: &mut Out,
) -> Result<Exit> {
    let config = checked.config;
    if args.calibrate {
        return calibrate::run(&config, &mut engine, out);
    }
    let settings = Settings { bounds: bounds(), tls: certificates(&config)? };
    let mut server = Server::new(engine, &config, settings)?;
    server.set_log(Box::new(log));
    let opened = ways_in.open()?;
    let reach = opened.reach(&config);
    let mut recording = config.record.as_deref().map(|path| record::start(path, &server)).transpose()?;
    let _pid_file = args.pid_file.as_deref().map(PidFile::write).transpose()?;
    let sockets = opened.hand_over(&mut server);
    let mut companion = args.run.as_deref().map(|command| Companion::start(command, &reach)).transpose()?;
    // What was recorded before is overwritten only now that nothing else can fail.
    if let Some(recording) = &mut recording {
        record::begin(recording, &mut server);
    }
    let notify = Notify::of_process();
    notify.ready(&format!("serving {} exports", config.exports.len()));
    // Beside a command, standard output is the command's.
    for uri in sockets.uris(&config).iter().filter(|_| companion.is_none()) {
        out.line(format_args!("ready: {uri}"))?;
    }
    out.flush()?;
    let attended = attend(&mut server, args, &notify, companion.as_mut(), recording.as_mut());
    // Standard output is for who waits for `ready:`, or the command's.
    server.lateness_lines().iter().for_each(|line| print_message(line));
    drop(server);
    if let Some(recording) = recording {
        record::finish(recording)?;
    }
    // An engine that broke down leaves a recording all the same.
    let clean = attended?;
    drop(sockets);
    let ended = companion.map_or(Ok(Exit::Success), Companion::end)?;
    Ok(if clean { ended } else { Exit::Failed })
}

/// Lets the server run, and does what is not its own. Answers whether it has left in order.
fn attend<E: Engine>(
    server: &mut Server<E>,
    args: &ServeArgs,
    notify: &Notify,
    mut companion: Option<&mut Companion>,
    mut recording: Option<&mut Recording>,
) -> Result<bool> {
    if let Some(every_ns) = notify.alive_every_ns() {
        server.set_alarm(every_ns);
    }
    let mut is_leaving = false;
    loop {
        match server.run().context("the engine is broken")? {
            Turn::Running => {}
            Turn::Alarm => notify.alive(),
            Turn::Reload => {
                reload(server, args, notify);
                if let Some(recording) = recording.as_deref_mut() {
                    record::take_up(recording, server);
                }
            }
            Turn::Child => {
                if let Some(companion) = companion.as_deref_mut()
                    && companion.has_ended()?
                    && !is_leaving
                {
                    is_leaving = true;
                    notify.stopping();
                    server.drain();
                }
            }
            Turn::Draining => {
                is_leaving = true;
                notify.stopping();
            }
            Turn::Ended { clean } => return Ok(clean),
        }
    }
}

/// Reads the configuration anew. What is wrong with it is told, and nothing changes.
fn reload<E: Engine>(server: &mut Server<E>, args: &ServeArgs, notify: &Notify) {
    notify.reloading();
    let outcome = args::config(args, &HostEnvironment).map_err(anyhow::Error::from).and_then(|checked| {
        for warning in &checked.warnings {
            tracing::warn!("{warning}");
        }
        let tls = certificates(&checked.config)?;
        Ok(server.reload(checked.config, tls)?)
    });
    match outcome {
        Ok(()) => notify.ready("configuration read anew"),
        Err(error) => {
            tracing::error!("the configuration stays as it was: {error:#}");
            server.reload_failed(&format!("{error:#}"));
            notify.ready("the new configuration is wrong: the old one stays");
        }
    }
}

/// The certificates, if the configuration names some.
fn certificates(config: &Config) -> Result<Option<Arc<hoistway_server::access::ServerConfig>>> {
    let Some(tls) = &config.tls else { return Ok(None) };
    let files = tls_server(tls)?;
    for warning in &files.warnings {
        tracing::warn!("{warning}");
    }
    Ok(Some(files.server))
}

/// As many connections as there are descriptors for, up to the usual bound. The engine has raised
/// the soft limit to the hard one by now.
fn bounds() -> Bounds {
    let usual = Bounds::default();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = usize::try_from(limit.saturating_sub(DESCRIPTORS_KEPT).max(1)).unwrap_or(usize::MAX);
    if most < usual.connections_max {
        tracing::warn!(connections = most, "the limit of open files (ulimit -n, LimitNOFILE=) allows no more clients");
    }
    Bounds { connections_max: usual.connections_max.min(most), ..usual }
}

/// A file with the process's number, for as long as it serves.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: &Path) -> Result<PidFile> {
        fs::write(path, format!("{}\n", std::process::id()))
            .with_context(|| format!("{}: the process's number cannot be written there", path.display()))?;
        Ok(PidFile(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Somebody may have removed it; that is as well.
        let _ = fs::remove_file(&self.0);
    }
}
