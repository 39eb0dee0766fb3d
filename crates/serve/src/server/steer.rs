//! What the server tells of itself, and what it can be told.

use std::collections::{BTreeMap, HashMap};

use crate::config::{Config, DeviceConfig};
use crate::control::{
    AccountView, Change, ClientFacts, DeviceFacts, ExportFacts, GroupFacts, Refused, ServerFacts, Steer, TenantFacts,
    Things, facts_of, is_used, view_of,
};
use crate::device::Device;
use crate::engine::{Address, ConnId, Engine};
use crate::server::Server;
use crate::server::connection::{Connection, Reason, Serving};
use crate::tenant::Terms;

/// Sets what is logged, while the server runs.
pub trait Log {
    /// What is logged now, as `RUST_LOG` would say it.
    fn filter(&self) -> String;
    /// Logs this from now on.
    ///
    /// # Errors
    /// What is wrong with the filter.
    fn set(&mut self, filter: &str) -> Result<(), String>;
}

/// What is kept for those who look and steer.
pub(super) struct Watching {
    /// When the server began, in ns of the engine's time.
    pub(super) since_ns: u64,
    /// The configuration is to be read anew.
    pub(super) wants_reload: bool,
    /// Sets what is logged.
    pub(super) log: Option<Box<dyn Log>>,
    /// Connections by their numbers.
    pub(super) numbers: BTreeMap<u64, ConnId>,
    /// Where what is asked for by name stands.
    pub(super) places: Places,
}

impl Watching {
    pub(super) fn new(now_ns: u64, places: Places) -> Watching {
        Watching { since_ns: now_ns, wants_reload: false, log: None, numbers: BTreeMap::new(), places }
    }
}

/// Where tenants, groups and exports stand in the configuration, by their names. It is only a hint: what stands there is compared, and looked for if it is not that.
#[derive(Debug, Default)]
pub(super) struct Places {
    tenants: HashMap<String, usize>,
    groups: HashMap<String, usize>,
    exports: HashMap<String, usize>,
}

impl Places {
    /// Those of a configuration.
    pub(super) fn of(config: &Config) -> Places {
        let places = |names: &mut dyn Iterator<Item = &String>| names.cloned().zip(0..).collect();
        Places {
            tenants: places(&mut config.tenants.iter().map(|tenant| &tenant.name)),
            groups: places(&mut config.groups.iter().map(|group| &group.name)),
            exports: places(&mut config.exports.iter().map(|export| &export.name)),
        }
    }
}

/// The thing of a name: where it was, else wherever it is.
fn named<'a, T>(
    things: &'a [T],
    places: &HashMap<String, usize>,
    name: &str,
    name_of: fn(&T) -> &str,
) -> Option<&'a T> {
    let hint = places.get(name).and_then(|place| things.get(*place)).filter(|thing| name_of(thing) == name);
    hint.or_else(|| things.iter().find(|thing| name_of(thing) == name))
}

impl<E: Engine> Server<E> {
    /// Lets what is logged be set from the control tree.
    pub fn set_log(&mut self, log: Box<dyn Log>) {
        self.watching.log = Some(log);
    }
}

impl<E: Engine> Steer for Server<E> {
    fn server(&self) -> ServerFacts {
        ServerFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.house.engine.name().to_owned(),
            uptime_ns: self.house.now_ns.saturating_sub(self.watching.since_ns),
            connections: self.table.len() as u64,
            connections_max: self.house.budget.bounds().connections_max as u64,
            connections_total: self.came,
            reload: self.reloaded.clone(),
            log: self.watching.log.as_ref().map(|log| log.filter()),
        }
    }

    fn names(&self, of: Things) -> Vec<String> {
        let config = &self.house.config;
        match of {
            Things::Devices => config.devices.iter().map(|device| device.name.clone()).collect(),
            Things::Exports => self.house.exports.iter().map(|served| served.export.name.clone()).collect(),
            Things::Tenants => {
                let configured = config.tenants.iter().map(|tenant| tenant.name.clone());
                configured.chain([Device::DEFAULT_TENANT.to_owned()]).collect()
            }
            Things::Groups => config.groups.iter().map(|group| group.name.clone()).collect(),
            Things::Clients => {
                let serving = |id: &ConnId| self.table.get(*id).is_some_and(|client| client.serving().is_some());
                self.watching
                    .numbers
                    .iter()
                    .filter(|(_, id)| serving(id))
                    .map(|(number, _)| number.to_string())
                    .collect()
            }
        }
    }

    fn device(&self, name: &str) -> Option<DeviceFacts> {
        let device = self.house.devices.get(self.house.place_of(name)?)?;
        let config = self.house.config.devices.iter().find(|config| config.name == name)?;
        Some(facts_of(device, config, self.house.now_ns))
    }

    fn export(&self, name: &str) -> Option<ExportFacts> {
        let served = named(&self.house.exports, &self.watching.places.exports, name, |served| &served.export.name)?;
        Some(ExportFacts {
            device: self.house.devices.get(served.device)?.name().to_owned(),
            offset: served.offset,
            bytes: served.export.size,
            read_only: served.export.abilities.read_only,
            description: served.export.description.clone(),
            clients: self.house.clients.of_export(name),
        })
    }

    fn tenant(&self, name: &str) -> Option<TenantFacts> {
        let terms = self.terms(name)?;
        Some(TenantFacts { terms, clients: self.house.clients.of_tenant(name) })
    }

    fn terms(&self, name: &str) -> Option<Terms> {
        let configured = named(&self.house.config.tenants, &self.watching.places.tenants, name, |tenant| &tenant.name);
        match configured {
            Some(tenant) => Some(tenant.terms.clone()),
            None => (name == Device::DEFAULT_TENANT).then(Terms::default),
        }
    }

    fn group(&self, name: &str) -> Option<GroupFacts> {
        let group = named(&self.house.config.groups, &self.watching.places.groups, name, |group| &group.name)?;
        Some(GroupFacts { weight: group.weight, parent: group.parent.clone() })
    }

    fn client(&self, number: u64) -> Option<ClientFacts> {
        let client = self.table.get(*self.watching.numbers.get(&number)?)?;
        let tenant = tenant_of(client)?.to_owned();
        let process = client.peer.process.as_ref();
        Some(ClientFacts {
            export: client.export()?.to_owned(),
            tenant,
            address: match &client.peer.address {
                Address::Unix => "unix".to_owned(),
                Address::Tcp(address) => address.to_string(),
            },
            pid: process.map(|process| process.pid),
            uid: process.map(|process| process.uid),
            comm: process.map(|process| process.comm.clone()),
            certificate: client.certificate().map(str::to_owned),
            connected_ns: self.house.now_ns.saturating_sub(client.since_ns),
            in_flight: client.in_flight() as u64,
            requests: client.counts.requests,
            read_bytes: client.counts.read_bytes,
            written_bytes: client.counts.written_bytes,
        })
    }

    fn accounts(&self, device: &str, each: &mut dyn FnMut(&str, &AccountView<'_>)) {
        let device = self.house.place_of(device).and_then(|place| self.house.devices.get(place));
        for (tenant, account) in device.into_iter().flat_map(Device::accounts).filter(|(_, account)| is_used(account)) {
            each(tenant, &view_of(account));
        }
    }

    fn account(&self, device: &str, tenant: &str, tell: &mut dyn FnMut(&AccountView<'_>)) {
        let device = self.house.place_of(device).and_then(|place| self.house.devices.get(place));
        if let Some(account) = device.and_then(|device| device.account(tenant)).filter(|account| is_used(account)) {
            tell(&view_of(account));
        }
    }

    fn change(&mut self, change: Change) -> Result<Option<String>, Refused> {
        if self.house.draining {
            return Err(Refused::No("the server is leaving".to_owned()));
        }
        tracing::info!(?change, "told to change");
        let now_ns = self.house.now_ns;
        match change {
            Change::Elevator { device, kind } => self.on_device(&device, |device, config| {
                let before = device.elevator();
                device.switch(kind, now_ns).map_err(|error| Refused::Busy(error.to_string()))?;
                config.tunables = device.tunables_set().to_vec();
                config.elevator = Some(kind);
                let old = before.info().name;
                let follows = || format!("{} follows when what {old} has dispatched is done", kind.info().name);
                let mut warnings: Vec<String> = device.elevator_warning().into_iter().collect();
                warnings.extend(device.is_switching().then(follows));
                Ok(joined(warnings))
            }),
            Change::Tunable { device, name, value } => self.on_device(&device, |device, config| {
                let warnings = device.set_tunable(name, value).map_err(|error| Refused::No(error.to_string()))?;
                config.tunables = device.tunables_set().to_vec();
                Ok(joined(warnings))
            }),
            Change::Depth { device, depth } => self.on_device(&device, |device, config| {
                device.set_depth(depth);
                config.depth = Some(depth);
                let real = device.depth();
                Ok((real != depth).then(|| format!("the emulated drive takes {real} at once")))
            }),
            Change::Merge { device, merge } => self.on_device(&device, |device, config| {
                let set = device.set_requests(merge, config.request_bytes_max);
                config.merge = merge;
                set.map(|()| None).map_err(|error| Refused::No(error.to_string()))
            }),
            Change::RequestBytesMax { device, bytes } => self.on_device(&device, |device, config| {
                device.set_requests(config.merge, bytes).map_err(|error| Refused::No(error.to_string()))?;
                config.request_bytes_max = bytes;
                Ok(None)
            }),
            Change::Terms { tenant, terms } => self.set_terms(&tenant, &terms),
            Change::GroupWeight { group, weight } => self.set_group_weight(&group, weight),
            Change::Disconnect { client } => self.disconnect(client),
            Change::Reload => {
                self.watching.wants_reload = true;
                Ok(None)
            }
            Change::Log(filter) => match &mut self.watching.log {
                Some(log) => log.set(&filter).map(|()| None).map_err(Refused::No),
                None => Err(Refused::No("what is logged cannot be set here".to_owned())),
            },
        }
    }
}

impl<E: Engine> Server<E> {
    /// Changes a device, and in its configuration what a later reload has to compare with.
    fn on_device(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Device, &mut DeviceConfig) -> Result<Option<String>, Refused>,
    ) -> Result<Option<String>, Refused> {
        let place = self.house.place_of(name).ok_or(Refused::Gone)?;
        let device = self.house.devices.get_mut(place).ok_or(Refused::Gone)?;
        let configs = &mut self.house.config.devices;
        let config = configs.iter_mut().find(|config| config.name == name).ok_or(Refused::Gone)?;
        self.house.has_work = true;
        change(device, config)
    }

    /// Sets a tenant's terms on every device, or on none.
    fn set_terms(&mut self, name: &str, terms: &Terms) -> Result<Option<String>, Refused> {
        let now_ns = self.house.now_ns;
        let config = &self.house.config;
        let Some(place) = config.tenants.iter().position(|tenant| tenant.name == name) else {
            let why = "clients without a rule have no terms of their own: configure a tenant for them";
            return Err(if name == Device::DEFAULT_TENANT { Refused::No(why.to_owned()) } else { Refused::Gone });
        };
        let tenant = &config.tenants[place];
        let mut warnings = Vec::new();
        for at in 0..self.house.devices.len() {
            let Some(device) = self.house.devices.get_mut(at) else { continue };
            let terms = config.terms_on(device.name(), tenant, terms);
            match device.set_tenant(name, &terms, now_ns) {
                Ok(more) => warnings.extend(more),
                Err(error) => {
                    let why = format!("device {}: {error}", device.name());
                    // Those that have taken them, and the one that has taken a part, take the old ones again: they fitted before.
                    for device in self.house.devices.iter_mut().take(at + 1) {
                        let old = config.terms_on(device.name(), tenant, &tenant.terms);
                        if let Err(error) = device.set_tenant(name, &old, now_ns) {
                            tracing::error!(
                                device = device.name(),
                                tenant = name,
                                "the old terms do not fit any more: {error}"
                            );
                        }
                    }
                    return Err(Refused::No(why));
                }
            }
        }
        // Of promises that can be kept again there is nothing to say.
        self.house.devices.iter_mut().for_each(|device| drop(device.examine_promises()));
        self.house.config.tenants[place].terms = terms.clone();
        self.house.has_work = true;
        warnings.sort();
        warnings.dedup();
        Ok(joined(warnings))
    }

    /// Sets a group's weight on every device, or on none.
    fn set_group_weight(&mut self, name: &str, weight: u16) -> Result<Option<String>, Refused> {
        let now_ns = self.house.now_ns;
        let group = self.house.config.groups.iter_mut().find(|group| group.name == name).ok_or(Refused::Gone)?;
        let set = |device: &mut Device, weight| {
            device.set_group(name, group.parent.as_deref(), weight, &group.limits, now_ns)
        };
        for at in 0..self.house.devices.len() {
            let Some(device) = self.house.devices.get_mut(at) else { continue };
            let Err(error) = set(device, weight) else { continue };
            let why = format!("device {}: {error}", device.name());
            for device in self.house.devices.iter_mut().take(at) {
                if let Err(error) = set(device, group.weight) {
                    tracing::error!(
                        device = device.name(),
                        group = name,
                        "the old weight does not fit any more: {error}"
                    );
                }
            }
            return Err(Refused::No(why));
        }
        group.weight = weight;
        self.house.has_work = true;
        Ok(None)
    }

    fn disconnect(&mut self, number: u64) -> Result<Option<String>, Refused> {
        let id = *self.watching.numbers.get(&number).ok_or(Refused::Gone)?;
        self.table.get_mut(id).ok_or(Refused::Gone)?.end(Reason::Told);
        self.settle(id);
        Ok(None)
    }
}

/// The tenant that a client is; nobody's in the handshake.
fn tenant_of(client: &Connection) -> Option<&str> {
    client.serving().map(Serving::tenant_name)
}

/// Sentences as one.
fn joined(warnings: Vec<String>) -> Option<String> {
    (!warnings.is_empty()).then(|| warnings.join("; "))
}

#[cfg(test)]
mod tests;
