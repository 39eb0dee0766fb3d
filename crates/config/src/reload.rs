//! What differs between two configurations, and what of that can be changed while all runs.

use std::fmt;

use crate::model::{Config, DeviceConfig};

/// One difference between the configuration that runs and a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Something that is changed while requests are under way.
    Live(Live),
    /// Something that is so from the start: the server has to be started anew.
    Restart {
        /// What differs, for people: "device `sda`: backend".
        what: String,
    },
}

/// What can be changed while requests are under way. Names are of the new configuration, or of the
/// old where something goes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Live {
    /// A device is there that was not.
    DeviceAdded { device: String },
    /// A device is no more: its exports have gone too.
    DeviceRemoved { device: String },
    /// Another elevator; its tunables come with it.
    Elevator { device: String },
    /// The same elevator with other tunables.
    Tunables { device: String },
    /// How many requests it is given at once.
    Depth { device: String },
    /// Whether it merges, and the largest request.
    Requests { device: String },
    /// What it sustains, for reservations.
    Figures { device: String },
    /// An export is there that was not.
    ExportAdded { export: String },
    /// An export is no more: its clients are cut off once what they asked for is answered.
    ExportRemoved { export: String },
    /// An export has another place, size, or way of being read: its clients are cut off and come
    /// back.
    ExportMoved { export: String },
    /// An export's description, or who may see it: whoever may not any more is cut off.
    ExportTerms { export: String },
    /// The tree of groups.
    Groups,
    /// A tenant is there that was not.
    TenantAdded { tenant: String },
    /// A tenant is no more: its clients are found another.
    TenantRemoved { tenant: String },
    /// Other terms.
    Terms { tenant: String },
    /// Rules or their order: clients that come from now on are told by the new ones, and those who
    /// may not have their export by them are cut off.
    Rules,
    /// Certificates: connections from now on are shown the new ones.
    Tls,
}

impl Config {
    /// What has to be done so that this configuration becomes `new`, in an order in which it can
    /// be: devices and groups before what lies on them or in them. Nothing of it may be done if any
    /// of it is a [`Change::Restart`].
    pub fn changes(&self, new: &Config) -> Vec<Change> {
        let mut changes = Vec::new();
        self.ways_in_that_differ(new, &mut changes);
        self.devices_that_differ(new, &mut changes);
        if self.groups != new.groups {
            changes.push(Change::Live(Live::Groups));
        }
        self.tenants_that_differ(new, &mut changes);
        self.exports_that_differ(new, &mut changes);
        let gone =
            self.devices.iter().filter(|old| new.devices.iter().all(|device| device.queue.name != old.queue.name));
        changes.extend(gone.map(|old| Change::Live(Live::DeviceRemoved { device: old.queue.name.clone() })));
        changes
    }

    fn ways_in_that_differ(&self, new: &Config, changes: &mut Vec<Change>) {
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
        // Files of the same name can hold new certificates, so that they are read on every reload.
        if self.tls.is_some() && new.tls.is_some() {
            changes.push(Change::Live(Live::Tls));
        }
    }

    fn devices_that_differ(&self, new: &Config, changes: &mut Vec<Change>) {
        for device in &new.devices {
            let Some(old) = self.devices.iter().find(|old| old.queue.name == device.queue.name) else {
                changes.push(Change::Live(Live::DeviceAdded { device: device.queue.name.clone() }));
                continue;
            };
            let name = || device.queue.name.clone();
            let drive = (old.drive != device.drive).then_some("drive");
            for what in [device.backend.differs_from(&old.backend), drive].into_iter().flatten() {
                changes.push(Change::Restart { what: format!("device `{}`: {what}", device.queue.name) });
            }
            if old.queue.elevator != device.queue.elevator {
                changes.push(Change::Live(Live::Elevator { device: name() }));
            } else if old.queue.tunables != device.queue.tunables {
                changes.push(Change::Live(Live::Tunables { device: name() }));
            }
            if old.queue.depth != device.queue.depth {
                changes.push(Change::Live(Live::Depth { device: name() }));
            }
            let requests = |device: &DeviceConfig| (device.queue.merge, device.queue.request_bytes_max);
            if requests(old) != requests(device) {
                changes.push(Change::Live(Live::Requests { device: name() }));
            }
            if (old.queue.bandwidth, old.queue.position_ns) != (device.queue.bandwidth, device.queue.position_ns) {
                changes.push(Change::Live(Live::Figures { device: name() }));
            }
        }
    }

    fn tenants_that_differ(&self, new: &Config, changes: &mut Vec<Change>) {
        for tenant in &new.tenants {
            match self.tenants.iter().find(|old| old.name == tenant.name) {
                None => changes.push(Change::Live(Live::TenantAdded { tenant: tenant.name.clone() })),
                Some(old) if old.terms != tenant.terms => {
                    changes.push(Change::Live(Live::Terms { tenant: tenant.name.clone() }));
                }
                Some(_) => {}
            }
        }
        let gone = self.tenants.iter().filter(|old| new.tenants.iter().all(|tenant| tenant.name != old.name));
        changes.extend(gone.map(|old| Change::Live(Live::TenantRemoved { tenant: old.name.clone() })));
        let rules = |config: &Config| -> Vec<_> {
            config.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.rules.clone())).collect()
        };
        if rules(self) != rules(new) {
            changes.push(Change::Live(Live::Rules));
        }
    }

    fn exports_that_differ(&self, new: &Config, changes: &mut Vec<Change>) {
        for export in &new.exports {
            let name = export.name.clone();
            let Some(old) = self.exports.iter().find(|old| old.name == export.name) else {
                changes.push(Change::Live(Live::ExportAdded { export: name }));
                continue;
            };
            let place = |export: &crate::model::ExportConfig| {
                (export.device.clone(), export.offset, export.size, export.read_only)
            };
            if place(old) != place(export) {
                changes.push(Change::Live(Live::ExportMoved { export: name }));
            } else if old != export {
                changes.push(Change::Live(Live::ExportTerms { export: name }));
            }
        }
        let gone = self.exports.iter().filter(|old| new.exports.iter().all(|export| export.name != old.name));
        changes.extend(gone.map(|old| Change::Live(Live::ExportRemoved { export: old.name.clone() })));
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

impl fmt::Display for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Live::DeviceAdded { device } => write!(f, "device `{device}`: added"),
            Live::DeviceRemoved { device } => write!(f, "device `{device}`: removed"),
            Live::Elevator { device } => write!(f, "device `{device}`: another elevator"),
            Live::Tunables { device } => write!(f, "device `{device}`: tunables"),
            Live::Depth { device } => write!(f, "device `{device}`: depth"),
            Live::Requests { device } => write!(f, "device `{device}`: merge or request_max"),
            Live::Figures { device } => write!(f, "device `{device}`: bandwidth or position"),
            Live::ExportAdded { export } => write!(f, "export `{export}`: added"),
            Live::ExportRemoved { export } => write!(f, "export `{export}`: removed"),
            Live::ExportMoved { export } => write!(f, "export `{export}`: elsewhere, its clients are cut off"),
            Live::ExportTerms { export } => write!(f, "export `{export}`: description or tenants"),
            Live::Groups => f.write_str("groups"),
            Live::TenantAdded { tenant } => write!(f, "tenant `{tenant}`: added"),
            Live::TenantRemoved { tenant } => write!(f, "tenant `{tenant}`: removed"),
            Live::Terms { tenant } => write!(f, "tenant `{tenant}`: terms"),
            Live::Rules => f.write_str("rules"),
            Live::Tls => f.write_str("certificates"),
        }
    }
}
