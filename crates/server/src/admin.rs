//! What the server tells of itself, and what it can be told.

use std::collections::{BTreeMap, HashMap};

use crate::connection::{Connection, Reason, Serving};
use crate::server::Server;
use hoistway_blockdev::Device;
use hoistway_config::{BackendConfig, Config};
use hoistway_control::admin::{self, DeviceAdmin, DeviceChange, GroupTerms, LogControl, Registry};
use hoistway_control::{
    AccountView, AdminTarget, Change, ClientFacts, DeviceFacts, ExportFacts, GroupFacts, Lateness, MediumFacts,
    ObjectKind, Refused, ServerFacts, TenantFacts, device_facts, is_used, view_of,
};
use hoistway_qos::Terms;
use hoistway_reactor::{Address, ConnId, Engine};

/// The state that the control tree needs beside the server's own.
pub(crate) struct AdminState {
    /// When the server began, in ns of the engine's time.
    pub(crate) since_ns: u64,
    /// The configuration is to be read anew.
    pub(crate) wants_reload: bool,
    /// Sets what is logged.
    pub(crate) log: Option<Box<dyn LogControl>>,
    /// Connections by their numbers.
    pub(crate) numbers: BTreeMap<u64, ConnId>,
    /// Where what is asked for by name stands.
    pub(crate) places: Places,
}

impl AdminState {
    pub(crate) fn new(now_ns: u64, places: Places) -> AdminState {
        AdminState { since_ns: now_ns, wants_reload: false, log: None, numbers: BTreeMap::new(), places }
    }
}

/// Where tenants, groups and exports stand in the configuration, by their names. It is only a hint:
/// what stands there is compared, and looked for if it is not that.
#[derive(Debug, Default)]
pub(crate) struct Places {
    tenants: HashMap<String, usize>,
    groups: HashMap<String, usize>,
    exports: HashMap<String, usize>,
}

impl Places {
    /// Those of a configuration.
    pub(crate) fn of(config: &Config) -> Places {
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
    pub fn set_log(&mut self, log: Box<dyn LogControl>) {
        self.admin.log = Some(log);
    }
}

impl<E: Engine> AdminTarget for Server<E> {
    fn server(&self) -> ServerFacts {
        ServerFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.state.engine.name().to_owned(),
            uptime_ns: self.state.now_ns.saturating_sub(self.admin.since_ns),
            connections: self.table.len() as u64,
            connections_max: self.state.budget.bounds().connections_max as u64,
            connections_total: self.came,
            reload: self.reloaded.clone(),
            log: self.admin.log.as_ref().map(|log| log.filter()),
        }
    }

    fn names(&self, of: ObjectKind) -> Vec<String> {
        let config = &self.state.config;
        match of {
            ObjectKind::Devices => config.devices.iter().map(|device| device.queue.name.clone()).collect(),
            ObjectKind::Exports => self.state.exports.iter().map(|served| served.export.name.clone()).collect(),
            ObjectKind::Tenants => {
                let configured = config.tenants.iter().map(|tenant| tenant.name.clone());
                configured.chain([Device::DEFAULT_TENANT.to_owned()]).collect()
            }
            ObjectKind::Groups => config.groups.iter().map(|group| group.name.clone()).collect(),
            ObjectKind::Clients => {
                let serving = |id: &ConnId| self.table.get(*id).is_some_and(|client| client.serving().is_some());
                self.admin.numbers.iter().filter(|(_, id)| serving(id)).map(|(number, _)| number.to_string()).collect()
            }
        }
    }

    fn device(&self, name: &str) -> Option<DeviceFacts> {
        let device = self.state.devices.get(self.state.place_of(name)?)?;
        let config = self.state.config.devices.iter().find(|config| config.queue.name == name)?;
        let medium = MediumFacts {
            backend: backend_text(&config.backend),
            drive: device.drive().map(str::to_owned),
            block_bytes: device.backend().block_preferred(),
            lateness: device.lateness().map(Lateness::of),
        };
        Some(device_facts(device.scheduler(), medium, self.state.now_ns))
    }

    fn export(&self, name: &str) -> Option<ExportFacts> {
        let served = named(&self.state.exports, &self.admin.places.exports, name, |served| &served.export.name)?;
        Some(ExportFacts {
            device: self.state.devices.get(served.device)?.name().to_owned(),
            offset: served.offset,
            bytes: served.export.size,
            read_only: served.export.abilities.read_only,
            description: served.export.description.clone(),
            clients: self.state.clients.of_export(name),
        })
    }

    fn tenant(&self, name: &str) -> Option<TenantFacts> {
        let terms = self.terms(name)?;
        Some(TenantFacts { terms, clients: self.state.clients.of_tenant(name) })
    }

    fn terms(&self, name: &str) -> Option<Terms> {
        let configured = named(&self.state.config.tenants, &self.admin.places.tenants, name, |tenant| &tenant.name);
        match configured {
            Some(tenant) => Some(tenant.terms.clone()),
            None => (name == Device::DEFAULT_TENANT).then(Terms::default),
        }
    }

    fn group(&self, name: &str) -> Option<GroupFacts> {
        let group = named(&self.state.config.groups, &self.admin.places.groups, name, |group| &group.name)?;
        Some(GroupFacts { weight: group.weight, parent: group.parent.clone() })
    }

    fn client(&self, number: u64) -> Option<ClientFacts> {
        let client = self.table.get(*self.admin.numbers.get(&number)?)?;
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
            connected_ns: self.state.now_ns.saturating_sub(client.since_ns),
            in_flight: client.in_flight() as u64,
            requests: client.counts.requests,
            read_bytes: client.counts.read_bytes,
            written_bytes: client.counts.written_bytes,
        })
    }

    fn accounts(&self, device: &str, each: &mut dyn FnMut(&str, &AccountView<'_>)) {
        let device = self.state.place_of(device).and_then(|place| self.state.devices.get(place));
        for (tenant, account) in
            device.into_iter().flat_map(|device| device.scheduler().accounts()).filter(|(_, account)| is_used(account))
        {
            each(tenant, &view_of(account));
        }
    }

    fn account(&self, device: &str, tenant: &str, tell: &mut dyn FnMut(&AccountView<'_>)) {
        let device = self.state.place_of(device).and_then(|place| self.state.devices.get(place));
        if let Some(account) =
            device.and_then(|device| device.scheduler().account(tenant)).filter(|account| is_used(account))
        {
            tell(&view_of(account));
        }
    }

    fn change(&mut self, change: Change) -> Result<Option<String>, Refused> {
        if self.state.draining {
            return Err(Refused::No("the server is shutting down".to_owned()));
        }
        admin::change(self, change)
    }
}

impl<E: Engine> Registry for Server<E> {
    fn device_names(&self) -> Vec<String> {
        self.state.devices.iter().map(|device| device.name().to_owned()).collect()
    }

    fn on_device(&mut self, name: &str, change: DeviceChange<'_>) -> Result<Option<String>, Refused> {
        let now_ns = self.state.now_ns;
        let index = self.state.place_of(name);
        // Terms also apply to a device that no export uses at present; its configuration is kept
        // with it.
        let index = index.or_else(|| self.state.devices.iter().position(|device| device.name() == name));
        let device = index.and_then(|index| self.state.devices.get_mut(index)).ok_or(Refused::Gone)?;
        self.state.has_work = true;
        let scheduler = device.scheduler_mut();
        match self.state.config.devices.iter_mut().find(|config| config.queue.name == name) {
            Some(config) => change(DeviceAdmin { scheduler, config: &mut config.queue, now_ns }),
            None => {
                let mut unused = scheduler.present_config();
                change(DeviceAdmin { scheduler, config: &mut unused, now_ns })
            }
        }
    }

    fn tenant_terms(&self, tenant: &str) -> Result<Terms, Refused> {
        let config = &self.state.config;
        let configured = config.tenants.iter().find(|known| known.name == tenant).map(|known| known.terms.clone());
        configured.ok_or_else(|| match tenant {
            Device::DEFAULT_TENANT => {
                let why = "clients without a rule have no terms of their own: configure a tenant for them";
                Refused::No(why.to_owned())
            }
            _ => Refused::Gone,
        })
    }

    fn terms_on(&self, device: &str, tenant: &str, terms: &Terms) -> Terms {
        let config = &self.state.config;
        match config.tenants.iter().find(|known| known.name == tenant) {
            Some(known) => config.terms_on(device, known, terms),
            None => terms.clone(),
        }
    }

    fn store_terms(&mut self, tenant: &str, terms: &Terms) {
        if let Some(known) = self.state.config.tenants.iter_mut().find(|known| known.name == tenant) {
            known.terms = terms.clone();
        }
    }

    fn group_terms(&self, group: &str) -> Option<GroupTerms> {
        let group = self.state.config.groups.iter().find(|known| known.name == group)?;
        Some(GroupTerms { weight: group.weight, parent: group.parent.clone(), limits: group.limits })
    }

    fn store_group_weight(&mut self, group: &str, weight: u16) {
        if let Some(known) = self.state.config.groups.iter_mut().find(|known| known.name == group) {
            known.weight = weight;
        }
    }

    fn disconnect(&mut self, client: u64) -> Result<Option<String>, Refused> {
        let id = *self.admin.numbers.get(&client).ok_or(Refused::Gone)?;
        self.table.get_mut(id).ok_or(Refused::Gone)?.end(Reason::Told);
        self.settle(id);
        Ok(None)
    }

    fn reload(&mut self) -> Result<Option<String>, Refused> {
        self.admin.wants_reload = true;
        Ok(None)
    }

    fn set_log(&mut self, filter: &str) -> Result<Option<String>, Refused> {
        admin::set_log_filter(self.admin.log.as_deref_mut(), filter)
    }
}

/// Returns the storage of a device in the form that a configuration has.
fn backend_text(config: &BackendConfig) -> String {
    match config {
        BackendConfig::File { path, .. } => format!("file:{}", path.display()),
        BackendConfig::Memory { bytes } => format!("mem:{}", hoistway_units::print_size(*bytes)),
        BackendConfig::Null { bytes } => format!("null:{}", hoistway_units::print_size(*bytes)),
    }
}

/// The tenant that a client is; nobody's in the handshake.
fn tenant_of(client: &Connection) -> Option<&str> {
    client.serving().map(Serving::tenant_name)
}

#[cfg(test)]
mod tests;
