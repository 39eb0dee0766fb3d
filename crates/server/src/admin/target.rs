//! The server as the control tree reads and changes it.

use hoistway_blockdev::Device;
use hoistway_config::BackendConfig;
use hoistway_control::admin::{self, DeviceAdmin, DeviceChange, GroupTerms, LogControl, Registry};
use hoistway_control::metrics::Metrics;
use hoistway_control::{
    AccountView, AdminTarget, Change, ClientFacts, ConfigReadings, DeviceFacts, ExportFacts, GroupFacts, Lateness,
    MediumFacts, ObjectKind, Refused, ServerFacts, TenantFacts, device_facts, is_used, view_of,
};
use hoistway_qos::Terms;
use hoistway_reactor::{Address, ConnId, Engine};

use super::state::find_named;
use crate::close_reason::CloseReason;
use crate::server::Server;

impl<E: Engine> Server<E> {
    /// Lets the control tree read and set the log filter.
    pub fn set_log(&mut self, log: Box<dyn LogControl>) {
        self.admin.log = Some(log);
    }

    /// Adds the figures of this process and the times of reloads to the metrics. A simulated server
    /// leaves them out, because they do not follow from its seed.
    pub fn show_process(&mut self) {
        self.metrics = Metrics::of_process();
        self.readings = ConfigReadings::at_start();
    }
}

impl<E: Engine> AdminTarget for Server<E> {
    fn server(&self) -> ServerFacts {
        ServerFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.state.engine.name().to_owned(),
            uptime_ns: self.state.now_ns.saturating_sub(self.admin.started_ns),
            connections: self.connections.len() as u64,
            connections_max: self.state.budget.bounds().connections_max as u64,
            connections_total: self.accepted_total,
            reload: self.reload_status.clone(),
            readings: self.readings,
            log: self.admin.log.as_ref().map(|log| log.filter()),
        }
    }

    fn names(&self, kind: ObjectKind) -> Vec<String> {
        let config = &self.state.config;
        match kind {
            ObjectKind::Devices => config.devices.iter().map(|device| device.queue.name.clone()).collect(),
            ObjectKind::Exports => self.state.exports.iter().map(|served| served.export.name.clone()).collect(),
            ObjectKind::Tenants => {
                let configured = config.tenants.iter().map(|tenant| tenant.name.clone());
                configured.chain([Device::DEFAULT_TENANT.to_owned()]).collect()
            }
            ObjectKind::Groups => config.groups.iter().map(|group| group.name.clone()).collect(),
            ObjectKind::Clients => {
                let has_joined =
                    |id: &ConnId| self.connections.get(*id).is_some_and(|connection| connection.client().is_some());
                let joined = self.admin.ids_by_number.iter().filter(|(_, id)| has_joined(id));
                joined.map(|(number, _)| number.to_string()).collect()
            }
        }
    }

    fn device(&self, name: &str) -> Option<DeviceFacts> {
        let device = self.state.device(self.state.device_named(name)?)?;
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
        let served = find_named(&self.state.exports, &self.admin.indices.exports, name, |served| &served.export.name)?;
        Some(ExportFacts {
            device: self.state.device(served.device)?.name().to_owned(),
            offset: served.offset,
            bytes: served.export.size,
            read_only: served.export.abilities.read_only,
            description: served.export.description.clone(),
            clients: self.state.client_counts.of_export(name),
        })
    }

    fn tenant(&self, name: &str) -> Option<TenantFacts> {
        let terms = self.terms(name)?;
        Some(TenantFacts { terms, clients: self.state.client_counts.of_tenant(name) })
    }

    fn terms(&self, name: &str) -> Option<Terms> {
        let configured =
            find_named(&self.state.config.tenants, &self.admin.indices.tenants, name, |tenant| &tenant.name);
        match configured {
            Some(tenant) => Some(tenant.terms.clone()),
            None => (name == Device::DEFAULT_TENANT).then(Terms::default),
        }
    }

    fn group(&self, name: &str) -> Option<GroupFacts> {
        let group = find_named(&self.state.config.groups, &self.admin.indices.groups, name, |group| &group.name)?;
        Some(GroupFacts { weight: group.weight, parent: group.parent.clone() })
    }

    fn client(&self, number: u64) -> Option<ClientFacts> {
        let connection = self.connections.get(*self.admin.ids_by_number.get(&number)?)?;
        let client = connection.client()?;
        let counts = client.membership.counts;
        let process = connection.peer.process.as_ref();
        Some(ClientFacts {
            export: client.export().to_owned(),
            tenant: client.membership.tenant_name().to_owned(),
            address: match &connection.peer.address {
                Address::Unix => "unix".to_owned(),
                Address::Tcp(address) => address.to_string(),
            },
            pid: process.map(|process| process.pid),
            uid: process.map(|process| process.uid),
            comm: process.map(|process| process.comm.clone()),
            certificate: connection.certificate().map(str::to_owned),
            connected_ns: self.state.now_ns.saturating_sub(connection.since_ns),
            in_flight: client.in_flight() as u64,
            requests: counts.requests,
            read_bytes: counts.read_bytes,
            written_bytes: counts.written_bytes,
        })
    }

    fn accounts(&self, device: &str, visit: &mut dyn FnMut(&str, &AccountView<'_>)) {
        let device = self.state.device_named(device).and_then(|id| self.state.device(id));
        for (tenant, account) in
            device.into_iter().flat_map(|device| device.scheduler().accounts()).filter(|(_, account)| is_used(account))
        {
            visit(tenant, &view_of(account, self.state.now_ns));
        }
    }

    fn account(&self, device: &str, tenant: &str, visit: &mut dyn FnMut(&AccountView<'_>)) {
        let device = self.state.device_named(device).and_then(|id| self.state.device(id));
        if let Some(account) =
            device.and_then(|device| device.scheduler().account(tenant)).filter(|account| is_used(account))
        {
            visit(&view_of(account, self.state.now_ns));
        }
    }

    fn change(&mut self, change: Change) -> Result<Option<String>, Refused> {
        if self.state.drain.has_begun() {
            return Err(Refused::No("the server is shutting down".to_owned()));
        }
        admin::change(self, change)
    }
}

impl<E: Engine> Registry for Server<E> {
    fn device_names(&self) -> Vec<String> {
        self.state.config.devices.iter().map(|device| device.queue.name.clone()).collect()
    }

    fn on_device(&mut self, name: &str, change: DeviceChange<'_>) -> Result<Option<String>, Refused> {
        let now_ns = self.state.now_ns;
        let (device, config) = self.state.attached_device_mut(name).ok_or(Refused::Gone)?;
        change(DeviceAdmin { scheduler: device.scheduler_mut(), config: &mut config.queue, now_ns })
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
        let id = *self.admin.ids_by_number.get(&client).ok_or(Refused::Gone)?;
        self.connections.get_mut(id).ok_or(Refused::Gone)?.close(CloseReason::ByOperator);
        self.advance_connection(id);
        Ok(None)
    }

    fn reload(&mut self) -> Result<Option<String>, Refused> {
        self.admin.reload_requested = true;
        Ok(None)
    }

    fn set_log(&mut self, filter: &str) -> Result<Option<String>, Refused> {
        admin::set_log_filter(self.admin.log.as_deref_mut(), filter)
    }
}

/// Returns the storage of a device in the syntax of the configuration.
fn backend_text(config: &BackendConfig) -> String {
    match config {
        BackendConfig::File { path, .. } => format!("file:{}", path.display()),
        BackendConfig::Remote(remote) => remote.uri.to_string(),
        BackendConfig::Memory { bytes } => format!("mem:{}", hoistway_units::print_size(*bytes)),
        BackendConfig::Null { bytes } => format!("null:{}", hoistway_units::print_size(*bytes)),
    }
}
