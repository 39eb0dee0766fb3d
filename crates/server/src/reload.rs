//! A new configuration at run time: the server applies all of it or none of it.

use std::sync::Arc;

use hoistway_blockdev::{Device, DeviceId};
use hoistway_config::{BackendConfig, Change, Config, DeviceConfig, LiveChange};
use hoistway_qos::{DiskQueueConfig, TermsError};
use hoistway_reactor::Engine;
use rustls::ServerConfig;

use crate::admin::state::NameIndices;
use crate::connection::Client;
use crate::exports::ServedExport;
use crate::server::{Retired, Server};
use crate::start::{StartError, log_device};
use crate::state::{DetachedDevice, ServerState};

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// These changes need a restart.
    #[error("{}", .0.join("\n"))]
    Restart(Vec<String>),
    /// A new device, tenant or export cannot be created.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A device is switching its elevator.
    #[error("device {0}: its elevator is being switched: try again")]
    Busy(String),
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Draining,
}

impl<E: Engine> Server<E> {
    /// Applies a new configuration with its certificates. Clients whose export or tenant was
    /// removed, whose export moved, or that are no longer admitted to their export are disconnected
    /// after their requests in progress are answered. They may connect again under the new rules.
    ///
    /// # Errors
    /// When a change needs a restart, or a new device, tenant or export cannot be created. Then
    /// nothing has changed.
    pub fn reload(&mut self, new: Config, tls: Option<Arc<ServerConfig>>) -> Result<(), ReloadError> {
        let applied = self.apply_config(new, tls);
        self.readings.count_reload(applied.is_err());
        self.reload_status = match &applied {
            Ok(warnings) if warnings.is_empty() => "ok".into(),
            Ok(warnings) => format!("ok, but {}", warnings.join("; ")),
            Err(error) => error.to_string().replace('\n', "; "),
        };
        applied.map(|_| ())
    }

    /// Records a configuration that could not be read, for the control tree and the metrics.
    pub fn reload_failed(&mut self, why: &str) {
        self.readings.count_reload(true);
        self.reload_status = why.replace('\n', "; ");
    }

    /// Applies a configuration. Returns warnings about settings without the expected effect.
    fn apply_config(&mut self, mut new: Config, tls: Option<Arc<ServerConfig>>) -> Result<Vec<String>, ReloadError> {
        if self.state.drain.has_begun() {
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
        // The steps that can fail come first, and are undone if a later one fails.
        let mut attached = Vec::new();
        if let Err(error) =
            self.attach_devices(&live, &mut new, &mut attached).and_then(|()| Ok(self.check_exports(&new)?))
        {
            self.undo_attach(attached);
            return Err(error);
        }
        let mut warnings = Vec::new();
        let old = std::mem::replace(&mut self.state.config, new);
        for name in attached.iter().filter(|attached| !attached.is_new).map(|attached| &attached.config.queue.name) {
            self.reconfigure(name, &mut warnings);
        }
        for change in live.iter().filter_map(|change| if let Change::Live(live) = change { Some(live) } else { None }) {
            tracing::info!("{change}");
            self.apply_change(change, &mut warnings);
        }
        let mut problems = Vec::new();
        warnings.append(&mut self.state.set_terms(&mut problems));
        warnings.extend(problems.iter().map(StartError::to_string));
        self.detach_removed(old);
        self.state.exports = self.create_exports().unwrap_or_default();
        self.admin.indices = NameIndices::of(&self.state.config);
        self.disconnect_unadmitted();
        if self.state.tls.is_some() {
            self.state.tls = tls;
        }
        self.forget_retired();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        Ok(warnings)
    }

    /// Opens the new devices of a configuration, or attaches an open device with the same storage.
    /// Stores the modes in which files are open in `new`.
    fn attach_devices(
        &mut self,
        live: &[Change],
        new: &mut Config,
        attached: &mut Vec<AttachedDevice>,
    ) -> Result<(), ReloadError> {
        for device in &mut new.devices {
            if let Some(old) = self.state.config.devices.iter().find(|old| old.queue.name == device.queue.name) {
                device.backend.keep_mode(&old.backend);
            }
        }
        for change in live {
            let Change::Live(LiveChange::DeviceAdded { device }) = change else { continue };
            let Some(at) = new.devices.iter().position(|config| config.queue.name == *device) else { continue };
            if let Some((open, was_detached)) = self.open_device_for(&new.devices[at], new)? {
                let (id, config) = (open.id, &mut new.devices[at]);
                config.backend.keep_mode(&open.config.backend);
                self.state.detached.retain(|detached| detached.id != id);
                if let Some(device) = self.state.device_mut(id) {
                    let old_name = device.name().to_owned();
                    device.scheduler_mut().set_name(&config.queue.name);
                    tracing::info!(device = config.queue.name, old_name, "attached again");
                    attached.push(AttachedDevice { id, config: config.clone(), is_new: false, old_name, was_detached });
                }
                continue;
            }
            let (config, now_ns) = (new.devices[at].clone(), self.state.now_ns);
            let id = DeviceId::of_index(self.state.devices.len());
            let device = Device::new(id, &config, &mut self.state.engine, now_ns).map_err(StartError::from)?;
            log_device(&device);
            self.state.devices.push(device);
            let old_name = config.queue.name.clone();
            attached.push(AttachedDevice { id, old_name, config, is_new: true, was_detached: true });
        }
        Ok(())
    }

    /// Returns the open device that has the storage of a new one, and whether it is detached: the
    /// same file under any name, or memory of the same name and size. The device is detached, or
    /// the new configuration removes it.
    ///
    /// # Errors
    /// When the file is open with other options than the new device needs. Its lock prevents a
    /// second open.
    fn open_device_for(
        &self,
        config: &DeviceConfig,
        new: &Config,
    ) -> Result<Option<(DetachedDevice, bool)>, ReloadError> {
        let is_removed = |old: &&DeviceConfig| new.devices.iter().all(|other| other.queue.name != old.queue.name);
        let removed = self.state.config.devices.iter().filter(is_removed).filter_map(|old| {
            Some(DetachedDevice { id: self.state.device_named(&old.queue.name)?, config: old.clone() })
        });
        let detached = self.state.detached.iter().cloned().map(|detached| (detached, true));
        let mut obstacle = None;
        for (open, was_detached) in detached.chain(removed.map(|removed| (removed, false))) {
            let (old, device) = (&open.config, self.state.device(open.id));
            let BackendConfig::File { path, direct, read_only, .. } = &config.backend else {
                if (&old.queue.name, &old.backend, &old.drive) == (&config.queue.name, &config.backend, &config.drive) {
                    return Ok(Some((open, was_detached)));
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
                None => return Ok(Some((open, was_detached))),
                // Several devices may open a file for reading.
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

    /// Undoes the attachment of devices for a refused configuration. New devices become detached,
    /// so that the next configuration finds them: their locked files cannot be opened again.
    fn undo_attach(&mut self, attached: Vec<AttachedDevice>) {
        for AttachedDevice { id, config, old_name, was_detached, .. } in attached {
            if let Some(device) = self.state.device_mut(id) {
                device.scheduler_mut().set_name(&old_name);
            }
            if was_detached {
                let queue = DiskQueueConfig { name: old_name, ..config.queue };
                self.state.detached.push(DetachedDevice { id, config: DeviceConfig { queue, ..config } });
            }
        }
    }

    /// Checks that all exports of a configuration can be created.
    fn check_exports(&self, new: &Config) -> Result<(), StartError> {
        new.exports.iter().try_for_each(|export| self.state.create_export(export).map(|_| ()))
    }

    /// Creates the exports of the current configuration.
    fn create_exports(&self) -> Result<Vec<ServedExport>, StartError> {
        self.state.config.exports.iter().map(|export| self.state.create_export(export)).collect()
    }

    /// Applies a single change.
    fn apply_change(&mut self, change: &LiveChange, warnings: &mut Vec<String>) {
        match change {
            LiveChange::Elevator { device }
            | LiveChange::Tunables { device }
            | LiveChange::Depth { device }
            | LiveChange::Requests { device }
            | LiveChange::Figures { device } => self.reconfigure(device, warnings),
            LiveChange::ExportRemoved { export } | LiveChange::ExportMoved { export } => {
                self.disconnect_clients(|client| client.export() == export);
            }
            LiveChange::TenantRemoved { tenant } => {
                self.disconnect_clients(|client| client.membership.tenant() == Some(tenant));
                self.retired.push(Retired::Tenant(tenant.clone()));
            }
            // The devices are attached already. The other changes are applied with all terms and
            // all exports.
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

    /// Detaches the devices and retires the groups that the new configuration removed. The file of
    /// a detached device stays open until the server ends.
    fn detach_removed(&mut self, old: Config) {
        let new = &self.state.config;
        let is_removed = |device: &DeviceConfig| new.devices.iter().all(|other| other.queue.name != device.queue.name);
        let removed: Vec<DeviceConfig> = old.devices.into_iter().filter(is_removed).collect();
        // A renamed device is not found by its old name, and stays attached.
        let detached = removed
            .into_iter()
            .filter_map(|config| Some(DetachedDevice { id: self.state.device_named(&config.queue.name)?, config }));
        let mut detached: Vec<DetachedDevice> = detached.collect();
        self.state.detached.append(&mut detached);
        let groups = old.groups.into_iter().filter(|group| new.groups.iter().all(|other| other.name != group.name));
        // Parents come before their children in the configuration; children are removed first.
        let mut groups: Vec<Retired> = groups.map(|group| Retired::Group(group.name)).collect();
        groups.reverse();
        self.retired.append(&mut groups);
    }

    /// Applies the configuration of an attached device to its queue.
    fn reconfigure(&mut self, name: &str, warnings: &mut Vec<String>) {
        let now_ns = self.state.now_ns;
        let Some((device, config)) = self.state.attached_device_mut(name) else { return };
        match device.reconfigure(config, now_ns) {
            Ok(new) => warnings.extend(new),
            Err(error) => warnings.push(format!("device {name}: {error}")),
        }
    }

    /// Disconnects the matching clients after their requests in progress are answered.
    fn disconnect_clients(&mut self, matches: impl Fn(&Client) -> bool) {
        for id in self.connections.ids() {
            if let Some(connection) = self.connections.get_mut(id)
                && connection.client().is_some_and(&matches)
            {
                connection.finish();
                self.advance_connection(id);
            }
        }
    }

    /// Disconnects the clients that the current rules do not admit to their exports.
    fn disconnect_unadmitted(&mut self) {
        for id in self.connections.ids() {
            let ServerState { config, exports, .. } = &self.state;
            if let Some(connection) = self.connections.get_mut(id)
                && !connection.is_admitted(config, exports)
            {
                connection.finish();
                self.advance_connection(id);
            }
        }
    }

    /// Removes the retired tenants and groups whose last clients have left from all devices.
    pub(crate) fn forget_retired(&mut self) {
        let ServerState { devices, config, now_ns, .. } = &mut self.state;
        self.retired.retain(|retired| {
            let is_back = match retired {
                Retired::Tenant(name) => config.tenants.iter().any(|tenant| tenant.name == *name),
                Retired::Group(name) => config.groups.iter().any(|group| group.name == *name),
            };
            let mut in_use = false;
            for device in devices.iter_mut().filter(|_| !is_back) {
                let removed = match retired {
                    Retired::Tenant(name) => device.scheduler_mut().remove_tenant(name, *now_ns),
                    Retired::Group(name) => device.scheduler_mut().remove_group(name, *now_ns),
                };
                in_use |= matches!(removed, Err(TermsError::InUse(_)));
            }
            in_use
        });
    }
}

/// A device that a new configuration added.
struct AttachedDevice {
    /// The device.
    id: DeviceId,
    /// The configuration in the modes in which its file is open.
    config: DeviceConfig,
    /// True if the device was opened for this configuration; false if it was open before, detached
    /// or under another name.
    is_new: bool,
    /// The name before the reload.
    old_name: String,
    /// True if the device was detached before the reload.
    was_detached: bool,
}
