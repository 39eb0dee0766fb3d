//! The gate as the target of the control tree, `top` and the metrics.

use std::sync::Arc;

use hoistway_config::mount::MountTenant;
use hoistway_control::admin::{self, DeviceAdmin, DeviceChange, GroupTerms, LogControl, Registry};
use hoistway_control::{
    AccountView, AdminTarget, Change, ClientFacts, ConfigReadings, DeviceFacts, ExportFacts, GroupFacts, MediumFacts,
    ObjectKind, Refused, ServerFacts, TenantFacts, device_facts, is_used, view_of,
};
use hoistway_qos::DiskScheduler;
use hoistway_qos::Terms;

use super::Shared;
use super::issuers::{Issuer, IssuerId};
use super::queue::{Effects, Queue, State};
use super::rules::Attribution;
use super::system::now_ns;

/// The admin interface of a gate.
pub struct GateAdmin {
    shared: Arc<Shared>,
    /// Sets the log filter.
    log: Option<Box<dyn LogControl + Send>>,
    /// The reading of the configuration at the start, the only one.
    readings: ConfigReadings,
}

impl GateAdmin {
    pub(super) fn new(shared: Arc<Shared>) -> GateAdmin {
        GateAdmin { shared, log: None, readings: ConfigReadings::at_start() }
    }

    /// Makes the log filter settable from the control tree.
    pub fn set_log(&mut self, log: Box<dyn LogControl + Send>) {
        self.log = Some(log);
    }

    /// Returns the time in ns for sampling intervals.
    pub fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn queue(&self, device: &str) -> Option<Arc<Queue>> {
        self.shared.file_systems.queues().into_iter().find(|queue| queue.name == device)
    }

    /// Applies a change to each device, and logs where it is refused.
    fn on_each_device(&mut self, change: DeviceChange<'_>) {
        for device in self.device_names() {
            if let Err(error) = self.on_device(&device, change) {
                tracing::warn!(device, "terms set at run time do not apply: {error}");
            }
        }
    }

    fn tenants(&self) -> &[MountTenant] {
        &self.shared.rules.tenants
    }

    /// Returns true if an issuer belongs to a tenant.
    fn is_of(&self, issuer: &Issuer, tenant: &str) -> bool {
        self.tenant_of(issuer) == tenant
    }

    /// Returns the tenant of an issuer's newest membership.
    fn tenant_of<'a>(&'a self, issuer: &'a Issuer) -> &'a str {
        match issuer.last_attribution() {
            Some(Attribution::Tenant(place)) => self.tenants().get(place as usize).map_or("", |tenant| &tenant.name),
            Some(Attribution::Cgroup) => &issuer.facts.process.cgroup,
            _ => DiskScheduler::DEFAULT_TENANT,
        }
    }

    /// Collects a value from each issuer.
    fn issuers<T>(&self, mut each: impl FnMut(&Queue, &IssuerId, &Issuer) -> Option<T>) -> Vec<T> {
        let mut found = Vec::new();
        for queue in self.shared.file_systems.queues() {
            let state = queue.lock();
            found.extend(state.issuers.iter().filter_map(|(key, issuer)| each(&queue, key, issuer)));
        }
        found
    }
}

impl AdminTarget for GateAdmin {
    fn server(&self) -> ServerFacts {
        let issuers = self.issuers(|_, key, _| Some(*key)).len() as u64;
        ServerFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: if self.shared.executors.has_ring() { "io_uring" } else { "threads" }.to_owned(),
            uptime_ns: now_ns().saturating_sub(self.shared.since_ns),
            connections: issuers,
            connections_max: u64::from(hoistway_qos::CAPACITY.contexts),
            connections_total: issuers,
            reload: "never".to_owned(),
            readings: self.readings,
            log: self.log.as_ref().map(|log| log.filter()),
        }
    }

    fn names(&self, kind: ObjectKind) -> Vec<String> {
        match kind {
            ObjectKind::Devices => self.shared.file_systems.queues().iter().map(|queue| queue.name.clone()).collect(),
            ObjectKind::Exports => Vec::new(),
            ObjectKind::Tenants => {
                let mut names: Vec<String> = self.tenants().iter().map(|tenant| tenant.name.clone()).collect();
                for queue in self.shared.file_systems.queues() {
                    let state = queue.lock();
                    let more: Vec<String> =
                        state.device.scheduler().accounts().map(|(name, _)| name.to_owned()).collect();
                    let is_new = |name: &String| !names.contains(name) && name != DiskScheduler::DEFAULT_TENANT;
                    let more: Vec<String> = more.into_iter().filter(is_new).collect();
                    names.extend(more);
                }
                names.push(DiskScheduler::DEFAULT_TENANT.to_owned());
                names
            }
            ObjectKind::Groups => {
                let mut names = Vec::new();
                for queue in self.shared.file_systems.queues() {
                    names.extend(queue.lock().device.scheduler().groups().map(str::to_owned));
                }
                names.sort();
                names.dedup();
                names
            }
            ObjectKind::Clients => {
                let mut numbers = self.issuers(|_, key, _| Some(key.0));
                numbers.sort_unstable();
                numbers.dedup();
                numbers.iter().map(u32::to_string).collect()
            }
        }
    }

    fn device(&self, name: &str) -> Option<DeviceFacts> {
        let queue = self.queue(name)?;
        let state = queue.lock();
        let medium = MediumFacts {
            backend: format!("file:{}", queue.disk.node.display()),
            drive: None,
            block_bytes: hoistway_qos::medium::BLOCK_BYTES_PREFERRED,
            lateness: None,
        };
        Some(device_facts(state.device.scheduler(), medium, now_ns()))
    }

    fn export(&self, _: &str) -> Option<ExportFacts> {
        None
    }

    fn tenant(&self, name: &str) -> Option<TenantFacts> {
        let terms = self.terms(name)?;
        let clients = self.issuers(|_, _, issuer| self.is_of(issuer, name).then_some(())).len() as u64;
        Some(TenantFacts { terms, clients })
    }

    fn terms(&self, name: &str) -> Option<Terms> {
        let changed = || self.shared.file_systems.run_time.terms(name);
        let configured = || self.tenants().iter().find(|tenant| tenant.name == name).map(|tenant| tenant.terms.clone());
        let found = || {
            self.shared
                .file_systems
                .queues()
                .iter()
                .find_map(|queue| queue.lock().device.scheduler().terms(name).cloned())
        };
        let default = || (name == DiskScheduler::DEFAULT_TENANT).then(Terms::default);
        // The weight of a control group follows the system after a change at run time.
        let of_configured = configured().map(|terms| changed().unwrap_or(terms));
        of_configured.or_else(found).or_else(default)
    }

    fn group(&self, name: &str) -> Option<GroupFacts> {
        let queues = self.shared.file_systems.queues();
        let terms = queues.iter().find_map(|queue| queue.lock().device.scheduler().group_terms(name).cloned())?;
        Some(GroupFacts { weight: terms.weight, parent: terms.parent })
    }

    fn client(&self, number: u64) -> Option<ClientFacts> {
        let tid = u32::try_from(number).ok()?;
        self.shared.file_systems.queues().iter().find_map(|queue| {
            let state = queue.lock();
            let (key, issuer) = state.issuers.by_thread(tid)?;
            Some(ClientFacts {
                export: queue.name.clone(),
                tenant: self.tenant_of(issuer).to_owned(),
                address: "process".to_owned(),
                pid: Some(key.0),
                uid: Some(key.1),
                comm: Some(issuer.facts.process.comm.clone()),
                certificate: None,
                connected_ns: now_ns().saturating_sub(issuer.first_ns),
                in_flight: issuer.in_flight.into(),
                requests: issuer.requests,
                read_bytes: issuer.bytes[0],
                written_bytes: issuer.bytes[1],
            })
        })
    }

    /// Calls `each` with copies, without the queue lock, because the callback may use this
    /// interface.
    fn accounts(&self, device: &str, each: &mut dyn FnMut(&str, &AccountView<'_>)) {
        let Some(queue) = self.queue(device) else { return };
        let tenants: Vec<String> = {
            let state = queue.lock();
            state
                .device
                .scheduler()
                .accounts()
                .filter(|(_, account)| is_used(account))
                .map(|(name, _)| name.to_owned())
                .collect()
        };
        for tenant in tenants {
            self.account(device, &tenant, &mut |account| each(&tenant, account));
        }
    }

    fn account(&self, device: &str, tenant: &str, report: &mut dyn FnMut(&AccountView<'_>)) {
        let Some(queue) = self.queue(device) else { return };
        let account = queue.lock().device.scheduler().account(tenant).cloned();
        if let Some(account) = account.filter(is_used) {
            report(&view_of(&account, now_ns()));
        }
    }

    fn change(&mut self, change: Change) -> Result<Option<String>, Refused> {
        admin::change(self, change)
    }
}

impl Registry for GateAdmin {
    fn device_names(&self) -> Vec<String> {
        self.shared.file_systems.queues().iter().map(|queue| queue.name.clone()).collect()
    }

    fn on_device(&mut self, name: &str, change: DeviceChange<'_>) -> Result<Option<String>, Refused> {
        let queue = self.queue(name).ok_or(Refused::Gone)?;
        let mut effects = Effects::default();
        let changed = {
            let mut state = queue.lock();
            let State { device, config, .. } = &mut *state;
            let changed = change(DeviceAdmin { scheduler: device.scheduler_mut(), config, now_ns: now_ns() });
            state.run(now_ns(), &mut effects);
            changed
        };
        self.shared.apply(&queue, effects);
        changed
    }

    fn tenant_terms(&self, tenant: &str) -> Result<Terms, Refused> {
        if tenant == DiskScheduler::DEFAULT_TENANT {
            let why = "processes without a matching rule have no terms of their own: configure a tenant for them";
            return Err(Refused::No(why.to_owned()));
        }
        self.terms(tenant).ok_or(Refused::Gone)
    }

    fn store_terms(&mut self, tenant: &str, terms: &Terms) {
        self.shared.file_systems.run_time.set_terms(tenant, terms);
        // A queue that was created during the change has the old terms.
        self.on_each_device(&mut |admin| {
            if admin.scheduler.terms(tenant).is_some_and(|present| present != terms) {
                let set = admin.scheduler.set_tenant(tenant, terms, admin.now_ns);
                set.map_err(|error| Refused::No(error.to_string()))?;
            }
            Ok(None)
        });
    }

    fn group_terms(&self, group: &str) -> Option<GroupTerms> {
        let queues = self.shared.file_systems.queues();
        let terms = queues.iter().find_map(|queue| queue.lock().device.scheduler().group_terms(group).cloned())?;
        Some(GroupTerms { weight: terms.weight, parent: terms.parent, limits: terms.limits })
    }

    fn groups_are_per_device(&self) -> bool {
        true
    }

    fn store_group_weight(&mut self, group: &str, weight: u16) {
        self.shared.file_systems.run_time.set_group_weight(group, weight);
        // A queue that was created during the change has the old weight.
        self.on_each_device(&mut |admin| {
            let present = admin.scheduler.group_terms(group).cloned();
            if let Some(terms) = present.filter(|present| present.weight != weight) {
                let parent = terms.parent.as_deref();
                let set = admin.scheduler.set_group(group, parent, weight, &terms.limits, admin.now_ns);
                set.map_err(|error| Refused::No(error.to_string()))?;
            }
            Ok(None)
        });
    }

    fn fixed_request_size(&self) -> Option<&'static str> {
        Some("the kernel determines the requests of a mount: at most 1 MiB")
    }

    fn disconnect(&mut self, _: u64) -> Result<Option<String>, Refused> {
        Err(Refused::No("a process of a mount has no connection: end it with `kill`".to_owned()))
    }

    fn reload(&mut self) -> Result<Option<String>, Refused> {
        Err(Refused::No("a mount reads its configuration only once, at its start".to_owned()))
    }

    fn set_log(&mut self, filter: &str) -> Result<Option<String>, Refused> {
        admin::set_log_filter(self.log.as_deref_mut(), filter)
    }
}
