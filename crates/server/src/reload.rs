//! A new configuration while all runs: what can be changed is changed, and nothing of it when
//! anything of it cannot.

use hoistway_qos::DiskQueueConfig;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::admin::Places;
use crate::exports::Served;
use crate::server::Server;
use crate::start::{StartError, tell};
use crate::state::{Idle, ServerState};
use hoistway_blockdev::Device;
use hoistway_config::Change;
use hoistway_config::{BackendConfig, Config, DeviceConfig, LiveChange};
use hoistway_qos::TermsError;
use hoistway_reactor::Engine;

/// Why a configuration was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// Some of it is so from the start.
    #[error("{}", .0.join("\n"))]
    Restart(Vec<String>),
    /// Something new could not be made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An elevator is being switched.
    #[error("device {0}: its elevator is being switched: try again")]
    Busy(String),
    /// The server is on its way out.
    #[error("the server is leaving")]
    Draining,
}

impl<E: Engine> Server<E> {
    /// Takes a new configuration, with its certificates. Clients whose export has gone or moved,
    /// those whose tenant is no more, and those who may not have their export any more are closed
    /// once what they asked for is answered; they come back as what they are by then.
    ///
    /// # Errors
    /// When something in it needs a restart, or something new cannot be made: then all is as it
    /// was.
    pub fn reload(&mut self, new: Config, tls: Option<Arc<ServerConfig>>) -> Result<(), ReloadError> {
        let taken = self.take(new, tls);
        self.reloaded = match &taken {
            Ok(warnings) if warnings.is_empty() => "ok".into(),
            Ok(warnings) => format!("ok, but {}", warnings.join("; ")),
            Err(error) => error.to_string().replace('\n', "; "),
        };
        taken.map(|_| ())
    }

    /// A configuration could not even be read: what became of it is told to whoever asks.
    pub fn reload_failed(&mut self, why: &str) {
        self.reloaded = why.replace('\n', "; ");
    }

    /// Answers what is taken and has not the effect that it might be thought to have.
    fn take(&mut self, mut new: Config, tls: Option<Arc<ServerConfig>>) -> Result<Vec<String>, ReloadError> {
        if self.state.draining {
            return Err(ReloadError::Draining);
        }
        let (live, restart): (Vec<Change>, Vec<Change>) =
            self.state.config.changes(&new).into_iter().partition(|change| matches!(change, Change::Live(_)));
        if !restart.is_empty() {
            return Err(ReloadError::Restart(restart.iter().map(Change::to_string).collect()));
        }
        if let Some(device) = self.state.devices.iter().find(|device| device.scheduler().is_switching()) {
            return Err(ReloadError::Busy(device.name().to_owned()));
        }
        // What can fail comes first; what it changed is taken back when something else fails.
        let mut taken = Vec::new();
        if let Err(error) = self.open_devices(&live, &mut new, &mut taken).and_then(|()| Ok(self.try_exports(&new)?)) {
            self.put_back(taken);
            return Err(error);
        }
        let mut warnings = Vec::new();
        let old = std::mem::replace(&mut self.state.config, new);
        for name in taken.iter().filter(|taken| !taken.is_new).map(|taken| &taken.config.queue.name) {
            self.reconfigure(name, &mut warnings);
        }
        for change in live.iter().filter_map(|change| if let Change::Live(live) = change { Some(live) } else { None }) {
            tracing::info!("{change}");
            self.apply(change, &mut warnings);
        }
        let mut problems = Vec::new();
        warnings.append(&mut self.state.set_terms(&mut problems));
        warnings.extend(problems.iter().map(StartError::to_string));
        self.remember(old);
        self.state.exports = self.served().unwrap_or_default();
        self.admin.places = Places::of(&self.state.config);
        self.cut_off_revoked();
        if self.state.tls.is_some() {
            self.state.tls = tls;
        }
        self.retire();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        Ok(warnings)
    }

    /// Opens the devices that are new. One that lies where another has lain, whose file is still
    /// open and locked, is that one. In `new` files are noted as they are open.
    fn open_devices(&mut self, live: &[Change], new: &mut Config, taken: &mut Vec<Taken>) -> Result<(), ReloadError> {
        for device in &mut new.devices {
            if let Some(old) = self.state.config.devices.iter().find(|old| old.queue.name == device.queue.name) {
                device.backend.keep_mode(&old.backend);
            }
        }
        for change in live {
            let Change::Live(LiveChange::DeviceAdded { device }) = change else { continue };
            let Some(at) = new.devices.iter().position(|config| config.queue.name == *device) else { continue };
            if let Some((idle, was_idle)) = self.lain_there(&new.devices[at], new)? {
                let (place, config) = (idle.place, &mut new.devices[at]);
                config.backend.keep_mode(&idle.config.backend);
                self.state.idle.retain(|idle| idle.place != place);
                if let Some(device) = self.state.devices.get_mut(place) {
                    let before = device.name().to_owned();
                    device.scheduler_mut().set_name(&config.queue.name);
                    tracing::info!(device = config.queue.name, before, "taken up again");
                    taken.push(Taken { place, config: config.clone(), is_new: false, before, was_idle });
                }
                continue;
            }
            let (place, config, now_ns) = (self.state.devices.len(), new.devices[at].clone(), self.state.now_ns);
            let device =
                Device::new(place as u32, &config, &mut self.state.engine, now_ns).map_err(StartError::from)?;
            tell(&device);
            self.state.devices.push(device);
            taken.push(Taken { place, before: config.queue.name.clone(), config, is_new: true, was_idle: true });
        }
        Ok(())
    }

    /// The device, idle or no longer named, that a new one is from now on, and whether it was idle:
    /// with the same file whatever it is called, or of the same name and size in memory.
    ///
    /// # Errors
    /// When the file is open for a device that is not as the new one has to be: then nobody else
    /// can open it.
    fn lain_there(&self, config: &DeviceConfig, new: &Config) -> Result<Option<(Idle, bool)>, ReloadError> {
        let gone = self
            .state
            .config
            .devices
            .iter()
            .filter(|old| new.devices.iter().all(|other| other.queue.name != old.queue.name));
        let gone =
            gone.filter_map(|old| Some(Idle { place: self.state.place_of(&old.queue.name)?, config: old.clone() }));
        let idle = self.state.idle.iter().cloned().map(|idle| (idle, true));
        let mut obstacle = None;
        for (idle, was_idle) in idle.chain(gone.map(|idle| (idle, false))) {
            let (old, device) = (&idle.config, self.state.devices.get(idle.place));
            let BackendConfig::File { path, direct, read_only } = &config.backend else {
                if (&old.queue.name, &old.backend, &old.drive) == (&config.queue.name, &config.backend, &config.drive) {
                    return Ok(Some((idle, was_idle)));
                }
                continue;
            };
            let BackendConfig::File { direct: old_direct, read_only: old_read_only, .. } = &old.backend else {
                continue;
            };
            if !device.is_some_and(|device| device.backend().is_at(path)) {
                continue;
            }
            let differs = [
                (old.drive != config.drive, "another `drive`"),
                (old_direct != direct, "another `direct`"),
                (*old_read_only && !read_only, "reading only"),
            ];
            match differs.into_iter().find(|(differs, _)| *differs) {
                None => return Ok(Some((idle, was_idle))),
                // Two that only read can have the file open beside each other.
                Some(_) if *old_read_only && *read_only => {}
                Some((_, what)) => {
                    let (name, old) = (&config.queue.name, &old.queue.name);
                    obstacle = Some(format!(
                        "device `{name}`: its file is still open for the device `{old}`, with {what}: this needs a restart"
                    ));
                }
            }
        }
        obstacle.map_or(Ok(None), |what| Err(ReloadError::Restart(vec![what])))
    }

    /// A configuration was not taken after all. What was opened for it stays open, to be found by
    /// the next one: nobody else could open its file again.
    fn put_back(&mut self, taken: Vec<Taken>) {
        for Taken { place, config, before, was_idle, .. } in taken {
            if let Some(device) = self.state.devices.get_mut(place) {
                device.scheduler_mut().set_name(&before);
            }
            if was_idle {
                self.state.idle.push(Idle {
                    place,
                    config: DeviceConfig { queue: DiskQueueConfig { name: before, ..config.queue }, ..config },
                });
            }
        }
    }

    /// Whether all exports of a configuration can be made.
    fn try_exports(&self, new: &Config) -> Result<(), StartError> {
        new.exports.iter().try_for_each(|export| self.state.serve(export).map(|_| ()))
    }

    fn served(&self) -> Result<Vec<Served>, StartError> {
        self.state.config.exports.iter().map(|export| self.state.serve(export)).collect()
    }

    fn apply(&mut self, change: &LiveChange, warnings: &mut Vec<String>) {
        match change {
            LiveChange::Elevator { device }
            | LiveChange::Tunables { device }
            | LiveChange::Depth { device }
            | LiveChange::Requests { device }
            | LiveChange::Figures { device } => self.reconfigure(device, warnings),
            LiveChange::ExportRemoved { export } | LiveChange::ExportMoved { export } => {
                self.cut_off(|client| client.export() == Some(export));
            }
            LiveChange::TenantRemoved { tenant } => {
                self.cut_off(|client| client.tenant() == Some(tenant));
                self.gone.push(Gone::Tenant(tenant.clone()));
            }
            // Devices are there by now; all others are taken over with the terms and exports as a
            // whole.
            LiveChange::DeviceAdded { .. }
            | LiveChange::DeviceRemoved { .. }
            | LiveChange::ExportAdded { .. }
            | LiveChange::ExportTerms { .. }
            | LiveChange::Groups
            | LiveChange::TenantAdded { .. }
            | LiveChange::Terms { .. }
            | LiveChange::Rules
            | LiveChange::Tls => {}
        }
    }

    /// Keeps in mind what the old configuration had and the new one has not. A device that is gone
    /// has no exports any more: it lies idle, and its file stays open until the server ends.
    fn remember(&mut self, old: Config) {
        let new = &self.state.config;
        let is_gone = |device: &DeviceConfig| new.devices.iter().all(|other| other.queue.name != device.queue.name);
        let gone: Vec<DeviceConfig> = old.devices.into_iter().filter(is_gone).collect();
        // One that is called otherwise by now is not idle.
        let idle = gone
            .into_iter()
            .filter_map(|config| Some(Idle { place: self.state.place_of(&config.queue.name)?, config }));
        let mut idle: Vec<Idle> = idle.collect();
        self.state.idle.append(&mut idle);
        let groups = old.groups.into_iter().filter(|group| new.groups.iter().all(|other| other.name != group.name));
        // Those made last lie in those made first.
        let mut groups: Vec<Gone> = groups.map(|group| Gone::Group(group.name)).collect();
        groups.reverse();
        self.gone.append(&mut groups);
    }

    fn reconfigure(&mut self, name: &str, warnings: &mut Vec<String>) {
        let now_ns = self.state.now_ns;
        let Some(place) = self.state.place_of(name) else { return };
        let config = self.state.config.devices.iter().find(|config| config.queue.name == name);
        let (Some(config), Some(device)) = (config, self.state.devices.get_mut(place)) else { return };
        self.state.has_work = true;
        match device.reconfigure(config, now_ns) {
            Ok(told) => warnings.extend(told),
            Err(error) => warnings.push(format!("device {name}: {error}")),
        }
    }

    /// Closes clients as soon as what they asked for is answered.
    fn cut_off(&mut self, is_meant: impl Fn(&super::connection::Connection) -> bool) {
        for id in self.table.ids() {
            if let Some(client) = self.table.get_mut(id)
                && is_meant(client)
            {
                client.leave();
                self.settle(id);
            }
        }
    }

    /// Whoever would not be let in any more by the rules and exports as they are now does not stay
    /// either.
    fn cut_off_revoked(&mut self) {
        for id in self.table.ids() {
            let ServerState { config, exports, .. } = &self.state;
            if let Some(client) = self.table.get_mut(id)
                && !client.may_stay(config, exports)
            {
                client.leave();
                self.settle(id);
            }
        }
    }

    /// Forgets tenants and groups that are no more, as far as their last clients have left.
    pub(crate) fn retire(&mut self) {
        let ServerState { devices, config, now_ns, .. } = &mut self.state;
        self.gone.retain(|gone| {
            let is_back = match gone {
                Gone::Tenant(name) => config.tenants.iter().any(|tenant| tenant.name == *name),
                Gone::Group(name) => config.groups.iter().any(|group| group.name == *name),
            };
            let mut in_use = false;
            for device in devices.iter_mut().filter(|_| !is_back) {
                let removed = match gone {
                    Gone::Tenant(name) => device.scheduler_mut().remove_tenant(name, *now_ns),
                    Gone::Group(name) => device.scheduler_mut().remove_group(name, *now_ns),
                };
                in_use |= matches!(removed, Err(TermsError::InUse(_)));
            }
            in_use
        });
    }
}

/// What the configuration does not name any more, and devices still know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Tenant(String),
    Group(String),
}

/// A device that a new configuration has and the old one had not.
struct Taken {
    place: usize,
    /// What it is, as it was opened.
    config: DeviceConfig,
    /// It was opened for this configuration. Else it was there, idle or under another name.
    is_new: bool,
    /// What it was called, and whether it was idle.
    before: String,
    was_idle: bool,
}
