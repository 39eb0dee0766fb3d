//! A new configuration while all runs: what can be changed is changed, and nothing of it when anything of it cannot.

use std::sync::Arc;

use rustls::ServerConfig;

use crate::config::{Change, Config, DeviceConfig, Live};
use crate::device::{Device, TermsError};
use crate::engine::Engine;
use crate::server::Server;
use crate::server::exports::Served;
use crate::server::house::House;
use crate::server::start::{StartError, tell};
use crate::server::steer::Places;

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
    /// Takes a new configuration, with its certificates. Clients whose export has gone or moved, and those whose tenant is no more, are closed once what they
    /// asked for is answered; they come back as what they are by then.
    ///
    /// # Errors
    /// When something in it needs a restart, or something new cannot be made: then all is as it was.
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
    fn take(&mut self, new: Config, tls: Option<Arc<ServerConfig>>) -> Result<Vec<String>, ReloadError> {
        if self.house.draining {
            return Err(ReloadError::Draining);
        }
        let (live, restart): (Vec<Change>, Vec<Change>) =
            self.house.config.changes(&new).into_iter().partition(|change| matches!(change, Change::Live(_)));
        if !restart.is_empty() {
            return Err(ReloadError::Restart(restart.iter().map(Change::to_string).collect()));
        }
        if let Some(device) = self.house.devices.iter().find(|device| device.is_switching()) {
            return Err(ReloadError::Busy(device.name().to_owned()));
        }
        // What can fail comes first; what it made is dropped when something else fails.
        let before = self.house.devices.len();
        if let Err(error) = self.open_devices(&live, &new).and_then(|()| self.try_exports(&new)) {
            self.house.devices.truncate(before);
            return Err(error.into());
        }
        let mut warnings = Vec::new();
        let old = std::mem::replace(&mut self.house.config, new);
        for change in live.iter().filter_map(|change| if let Change::Live(live) = change { Some(live) } else { None }) {
            tracing::info!("{change}");
            self.apply(change, &mut warnings);
        }
        let mut problems = Vec::new();
        warnings.append(&mut self.house.set_terms(&mut problems));
        warnings.extend(problems.iter().map(StartError::to_string));
        self.remember(old);
        self.house.exports = self.served().unwrap_or_default();
        self.watching.places = Places::of(&self.house.config);
        if self.house.tls.is_some() {
            self.house.tls = tls;
        }
        self.retire();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        Ok(warnings)
    }

    /// Opens the devices that are new. One that was there before, with the same backend and drive, is taken up again.
    fn open_devices(&mut self, live: &[Change], new: &Config) -> Result<(), StartError> {
        for change in live {
            let Change::Live(Live::DeviceAdded { device }) = change else { continue };
            let Some(config) = new.devices.iter().find(|config| config.name == *device) else { continue };
            if self.idle_devices.iter().any(|idle| is_same_device(idle, config)) {
                continue;
            }
            let index = self.house.devices.len() as u32;
            let now_ns = self.house.now_ns;
            let device = Device::new(index, config, &mut self.house.engine, now_ns)?;
            tell(&device);
            self.house.devices.push(device);
        }
        Ok(())
    }

    /// Whether all exports of a configuration can be made.
    fn try_exports(&self, new: &Config) -> Result<(), StartError> {
        new.exports.iter().try_for_each(|export| self.house.serve(export).map(|_| ()))
    }

    fn served(&self) -> Result<Vec<Served>, StartError> {
        self.house.config.exports.iter().map(|export| self.house.serve(export)).collect()
    }

    fn apply(&mut self, change: &Live, warnings: &mut Vec<String>) {
        match change {
            Live::Elevator { device }
            | Live::Tunables { device }
            | Live::Depth { device }
            | Live::Requests { device }
            | Live::Figures { device } => self.reconfigure(device, warnings),
            Live::ExportRemoved { export } | Live::ExportMoved { export } => {
                self.cut_off(|client| client.export() == Some(export));
            }
            Live::TenantRemoved { tenant } => {
                self.cut_off(|client| client.tenant() == Some(tenant));
                self.gone.push(Gone::Tenant(tenant.clone()));
            }
            Live::DeviceAdded { device } => {
                if self.idle_devices.iter().any(|idle| idle.name == *device) {
                    self.idle_devices.retain(|idle| idle.name != *device);
                    self.reconfigure(device, warnings);
                }
            }
            // All others are taken over with the terms and exports as a whole.
            Live::DeviceRemoved { .. }
            | Live::ExportAdded { .. }
            | Live::ExportTerms { .. }
            | Live::Groups
            | Live::TenantAdded { .. }
            | Live::Terms { .. }
            | Live::Rules
            | Live::Tls => {}
        }
    }

    /// Keeps in mind what the old configuration had and the new one has not. A device that is gone has no exports any more: it lies idle,
    /// and its file stays open until the server ends.
    fn remember(&mut self, old: Config) {
        let new = &self.house.config;
        let is_gone = |device: &DeviceConfig| new.devices.iter().all(|other| other.name != device.name);
        self.idle_devices.extend(old.devices.into_iter().filter(is_gone));
        let groups = old.groups.into_iter().filter(|group| new.groups.iter().all(|other| other.name != group.name));
        // Those made last lie in those made first.
        let mut groups: Vec<Gone> = groups.map(|group| Gone::Group(group.name)).collect();
        groups.reverse();
        self.gone.append(&mut groups);
    }

    fn reconfigure(&mut self, name: &str, warnings: &mut Vec<String>) {
        let now_ns = self.house.now_ns;
        let config = self.house.config.devices.iter().find(|config| config.name == name);
        let device = self.house.devices.iter_mut().rfind(|device| device.name() == name);
        let (Some(config), Some(device)) = (config, device) else { return };
        self.house.has_work = true;
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

    /// Forgets tenants and groups that are no more, as far as their last clients have left.
    pub(super) fn retire(&mut self) {
        let House { devices, config, now_ns, .. } = &mut self.house;
        self.gone.retain(|gone| {
            let is_back = match gone {
                Gone::Tenant(name) => config.tenants.iter().any(|tenant| tenant.name == *name),
                Gone::Group(name) => config.groups.iter().any(|group| group.name == *name),
            };
            let mut in_use = false;
            for device in devices.iter_mut().filter(|_| !is_back) {
                let removed = match gone {
                    Gone::Tenant(name) => device.remove_tenant(name, *now_ns),
                    Gone::Group(name) => device.remove_group(name, *now_ns),
                };
                in_use |= matches!(removed, Err(TermsError::InUse(_)));
            }
            in_use
        });
    }
}

/// What the configuration does not name any more, and devices still know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Tenant(String),
    Group(String),
}

/// Whether a device of the old configuration is the same as one of the new.
fn is_same_device(old: &DeviceConfig, new: &DeviceConfig) -> bool {
    old.name == new.name && old.backend == new.backend && old.drive == new.drive
}
