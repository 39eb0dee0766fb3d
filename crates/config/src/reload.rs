//! Differences between two configurations, and which of them apply without a restart.

use std::fmt;

use crate::model::{BackendConfig, Config, DeviceConfig};

/// One difference between the running configuration and a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A difference that applies while requests are in flight.
    Live(LiveChange),
    /// A difference that needs a restart of the server.
    Restart {
        /// The item that differs, for messages: "device `sda`: backend".
        what: String,
    },
}

/// A change that applies while requests are in flight. Names are those of the new configuration, or
/// of the old one for removed items.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LiveChange {
    /// A new device.
    DeviceAdded { device: String },
    /// A removed device; its exports are removed too.
    DeviceRemoved { device: String },
    /// Another elevator, together with its tunables.
    Elevator { device: String },
    /// Other tunables of the same elevator.
    Tunables { device: String },
    /// Another queue depth.
    Depth { device: String },
    /// Merging, the largest request, or which requests are logged as slow.
    Requests { device: String },
    /// Bandwidth or positioning time, for reservations.
    Figures { device: String },
    /// A new export.
    ExportAdded { export: String },
    /// A removed export: its clients are disconnected after their in-flight requests complete.
    ExportRemoved { export: String },
    /// Another device, offset, size or `read_only` of an export: its clients are disconnected and
    /// may reconnect.
    ExportMoved { export: String },
    /// Another description of an export, or other tenants: clients that are no longer admitted are
    /// disconnected.
    ExportTerms { export: String },
    /// The tree of groups.
    Groups,
    /// A new tenant.
    TenantAdded { tenant: String },
    /// A removed tenant: its clients are assigned to other tenants.
    TenantRemoved { tenant: String },
    /// Other terms of a tenant.
    Terms { tenant: String },
    /// Other rules or another order: they apply to new clients, and clients that they no longer
    /// admit to their export are disconnected.
    Rules,
    /// The certificates of new connections.
    Tls,
}

impl Config {
    /// Lists the changes from this configuration to `new`, in an order in which they can be
    /// applied: devices and groups precede the exports and tenants that refer to them. If one of
    /// them is a [`Change::Restart`], none may be applied.
    pub fn changes(&self, new: &Config) -> Vec<Change> {
        let mut changes = Vec::new();
        self.endpoint_changes(new, &mut changes);
        self.device_changes(new, &mut changes);
        if self.groups != new.groups {
            changes.push(Change::Live(LiveChange::Groups));
        }
        self.tenant_changes(new, &mut changes);
        self.export_changes(new, &mut changes);
        let gone =
            self.devices.iter().filter(|old| new.devices.iter().all(|device| device.queue.name != old.queue.name));
        changes.extend(gone.map(|old| Change::Live(LiveChange::DeviceRemoved { device: old.queue.name.clone() })));
        changes
    }

    fn endpoint_changes(&self, new: &Config, changes: &mut Vec<Change>) {
        let differ = [
            (self.listen != new.listen, "[listen]"),
            (self.control != new.control, "[control]"),
            (self.metrics != new.metrics, "[metrics]"),
            (self.record != new.record, "`record`"),
            (self.tls.is_some() != new.tls.is_some(), "[tls]: whether TLS is offered"),
        ];
        let differ = differ.into_iter().filter(|(differs, _)| *differs);
        changes.extend(differ.map(|(_, what)| Change::Restart { what: what.to_owned() }));
        if let (Some(old), Some(new)) = (&self.tls, &new.tls)
            && old.required != new.required
        {
            changes.push(Change::Restart { what: "[tls]: `required`".to_owned() });
        }
        // A file of the same name can hold a new certificate: every reload reads it.
        if self.tls.is_some() && new.tls.is_some() {
            changes.push(Change::Live(LiveChange::Tls));
        }
    }

    fn device_changes(&self, new: &Config, changes: &mut Vec<Change>) {
        for device in &new.devices {
            let Some(old) = self.devices.iter().find(|old| old.queue.name == device.queue.name) else {
                changes.push(match device.backend {
                    BackendConfig::Remote(_) => {
                        Change::Restart { what: format!("device `{}`: a new remote export", device.queue.name) }
                    }
                    _ => Change::Live(LiveChange::DeviceAdded { device: device.queue.name.clone() }),
                });
                continue;
            };
            let name = || device.queue.name.clone();
            let drive = (old.drive != device.drive).then_some("drive");
            for what in [device.backend.differs_from(&old.backend), drive].into_iter().flatten() {
                changes.push(Change::Restart { what: format!("device `{}`: {what}", device.queue.name) });
            }
            if old.queue.elevator != device.queue.elevator {
                changes.push(Change::Live(LiveChange::Elevator { device: name() }));
            } else if old.queue.tunables != device.queue.tunables {
                changes.push(Change::Live(LiveChange::Tunables { device: name() }));
            }
            if old.queue.depth != device.queue.depth {
                changes.push(Change::Live(LiveChange::Depth { device: name() }));
            }
            let requests =
                |device: &DeviceConfig| (device.queue.merge, device.queue.request_bytes_max, device.queue.log_slow_ns);
            if requests(old) != requests(device) {
                changes.push(Change::Live(LiveChange::Requests { device: name() }));
            }
            if (old.queue.bandwidth, old.queue.position_ns) != (device.queue.bandwidth, device.queue.position_ns) {
                changes.push(Change::Live(LiveChange::Figures { device: name() }));
            }
        }
    }

    fn tenant_changes(&self, new: &Config, changes: &mut Vec<Change>) {
        for tenant in &new.tenants {
            match self.tenants.iter().find(|old| old.name == tenant.name) {
                None => changes.push(Change::Live(LiveChange::TenantAdded { tenant: tenant.name.clone() })),
                Some(old) if old.terms != tenant.terms => {
                    changes.push(Change::Live(LiveChange::Terms { tenant: tenant.name.clone() }));
                }
                Some(_) => {}
            }
        }
        let gone = self.tenants.iter().filter(|old| new.tenants.iter().all(|tenant| tenant.name != old.name));
        changes.extend(gone.map(|old| Change::Live(LiveChange::TenantRemoved { tenant: old.name.clone() })));
        let rules = |config: &Config| -> Vec<_> {
            config.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.rules.clone())).collect()
        };
        if rules(self) != rules(new) {
            changes.push(Change::Live(LiveChange::Rules));
        }
    }

    fn export_changes(&self, new: &Config, changes: &mut Vec<Change>) {
        for export in &new.exports {
            let name = export.name.clone();
            let Some(old) = self.exports.iter().find(|old| old.name == export.name) else {
                changes.push(Change::Live(LiveChange::ExportAdded { export: name }));
                continue;
            };
            let range = |export: &crate::model::ExportConfig| {
                (export.device.clone(), export.offset, export.size, export.read_only)
            };
            if range(old) != range(export) {
                changes.push(Change::Live(LiveChange::ExportMoved { export: name }));
            } else if old != export {
                changes.push(Change::Live(LiveChange::ExportTerms { export: name }));
            }
        }
        let gone = self.exports.iter().filter(|old| new.exports.iter().all(|export| export.name != old.name));
        changes.extend(gone.map(|old| Change::Live(LiveChange::ExportRemoved { export: old.name.clone() })));
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Live(live) => live.fmt(f),
            Change::Restart { what } => write!(f, "{what}: this needs a restart"),
        }
    }
}

impl fmt::Display for LiveChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveChange::DeviceAdded { device } => write!(f, "device `{device}`: added"),
            LiveChange::DeviceRemoved { device } => write!(f, "device `{device}`: removed"),
            LiveChange::Elevator { device } => write!(f, "device `{device}`: another elevator"),
            LiveChange::Tunables { device } => write!(f, "device `{device}`: tunables"),
            LiveChange::Depth { device } => write!(f, "device `{device}`: depth"),
            LiveChange::Requests { device } => write!(f, "device `{device}`: merge, request_max or log_slow"),
            LiveChange::Figures { device } => write!(f, "device `{device}`: bandwidth or position"),
            LiveChange::ExportAdded { export } => write!(f, "export `{export}`: added"),
            LiveChange::ExportRemoved { export } => write!(f, "export `{export}`: removed"),
            LiveChange::ExportMoved { export } => write!(f, "export `{export}`: moved, its clients are disconnected"),
            LiveChange::ExportTerms { export } => write!(f, "export `{export}`: description or tenants"),
            LiveChange::Groups => f.write_str("groups"),
            LiveChange::TenantAdded { tenant } => write!(f, "tenant `{tenant}`: added"),
            LiveChange::TenantRemoved { tenant } => write!(f, "tenant `{tenant}`: removed"),
            LiveChange::Terms { tenant } => write!(f, "tenant `{tenant}`: terms"),
            LiveChange::Rules => f.write_str("rules"),
            LiveChange::Tls => f.write_str("certificates"),
        }
    }
}
