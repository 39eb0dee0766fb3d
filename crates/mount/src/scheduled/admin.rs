//! The gate as the target of the control tree, `top` and the metrics.

use std::sync::Arc;

use hoistway_serve::config::mount::MountTenant;
use hoistway_serve::control::{
    AccountView, Change, ClientFacts, DeviceFacts, ExportFacts, GroupFacts, Refused, ServerFacts, Steer, TenantFacts,
    Things, facts_of, is_used, view_of,
};
use hoistway_serve::device::Device;
use hoistway_serve::server::Log;
use hoistway_serve::tenant::Terms;

use super::issuers::{Issuer, IssuerId};
use super::queue::{Effects, Queue, State};
use super::rules::Attribution;
use super::{Shared, now_ns};

/// The admin interface of a gate.
pub struct GateAdmin {
    shared: Arc<Shared>,
    /// Sets the log filter.
    log: Option<Box<dyn Log + Send>>,
    /// Terms changed since the start, by tenant.
    changed: Vec<(String, Terms)>,
    /// Weights changed since the start, by group.
    weights: Vec<(String, u16)>,
}

impl GateAdmin {
    pub(super) fn new(shared: Arc<Shared>) -> GateAdmin {
        GateAdmin { shared, log: None, changed: Vec::new(), weights: Vec::new() }
    }

    /// Makes the log filter settable from the control tree.
    pub fn set_log(&mut self, log: Box<dyn Log + Send>) {
        self.log = Some(log);
    }

    /// Returns the time in ns for sampling intervals.
    pub fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn queue(&self, device: &str) -> Option<Arc<Queue>> {
        self.shared.file_systems.queues().into_iter().find(|queue| queue.name == device)
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
            _ => Device::DEFAULT_TENANT,
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

    /// Changes a queue, and applies the effects.
    fn on_queue(
        &self,
        device: &str,
        change: impl FnOnce(&mut State) -> Result<Option<String>, Refused>,
    ) -> Result<Option<String>, Refused> {
        let queue = self.queue(device).ok_or(Refused::Gone)?;
        let mut effects = Effects::default();
        let changed = {
            let mut state = queue.lock();
            let changed = change(&mut state);
            state.run(now_ns(), &mut effects);
            changed
        };
        self.shared.apply(&queue, effects);
        changed
    }

    fn set_terms(&mut self, tenant: &str, terms: &Terms) -> Result<Option<String>, Refused> {
        let old = self.terms(tenant).ok_or(Refused::Gone)?;
        if tenant == Device::DEFAULT_TENANT {
            let why = "processes that no rule holds for have no terms of their own: configure a tenant for them";
            return Err(Refused::No(why.to_owned()));
        }
        let mut warnings = Vec::new();
        let queues = self.shared.file_systems.queues();
        for (at, queue) in queues.iter().enumerate() {
            let set = self.set_on(queue, tenant, terms);
            match set {
                Ok(more) => warnings.extend(more),
                Err(why) => {
                    // Restore the old terms, which fitted before.
                    for queue in queues.iter().take(at + 1) {
                        if let Err(error) = self.set_on(queue, tenant, &old) {
                            tracing::error!(device = queue.name, tenant, "the old terms do not fit any more: {error}");
                        }
                    }
                    return Err(Refused::No(format!("device {}: {why}", queue.name)));
                }
            }
        }
        self.changed.retain(|(name, _)| name != tenant);
        self.changed.push((tenant.to_owned(), terms.clone()));
        warnings.sort();
        warnings.dedup();
        Ok(joined(warnings))
    }

    fn set_on(&self, queue: &Arc<Queue>, tenant: &str, terms: &Terms) -> Result<Vec<String>, String> {
        let mut effects = Effects::default();
        let set = {
            let mut state = queue.lock();
            let set = state.device.set_tenant(tenant, terms, now_ns()).map_err(|error| error.to_string());
            state.device.examine_promises();
            state.run(now_ns(), &mut effects);
            set
        };
        self.shared.apply(queue, effects);
        set
    }

    fn set_group_weight(&mut self, group: &str, weight: u16) -> Result<Option<String>, Refused> {
        let mut is_known = false;
        for queue in self.shared.file_systems.queues() {
            let mut state = queue.lock();
            let Some(terms) = state.device.group_terms(group).cloned() else { continue };
            is_known = true;
            let set = state.device.set_group(group, terms.parent.as_deref(), weight, &terms.limits, now_ns());
            set.map_err(|error| Refused::No(format!("device {}: {error}", queue.name)))?;
        }
        if !is_known {
            return Err(Refused::Gone);
        }
        self.weights.retain(|(name, _)| name != group);
        self.weights.push((group.to_owned(), weight));
        Ok(None)
    }
}

impl Steer for GateAdmin {
    fn server(&self) -> ServerFacts {
        let issuers = self.issuers(|_, key, _| Some(*key)).len() as u64;
        ServerFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: if self.shared.executors.has_ring() { "io_uring" } else { "threads" }.to_owned(),
            uptime_ns: now_ns().saturating_sub(self.shared.since_ns),
            connections: issuers,
            connections_max: u64::from(hoistway_serve::device::CAPACITY.contexts),
            connections_total: issuers,
            reload: "never".to_owned(),
            log: self.log.as_ref().map(|log| log.filter()),
        }
    }

    fn names(&self, of: Things) -> Vec<String> {
        match of {
            Things::Devices => self.shared.file_systems.queues().iter().map(|queue| queue.name.clone()).collect(),
            Things::Exports => Vec::new(),
            Things::Tenants => {
                let mut names: Vec<String> = self.tenants().iter().map(|tenant| tenant.name.clone()).collect();
                for queue in self.shared.file_systems.queues() {
                    let state = queue.lock();
                    let more: Vec<String> = state.device.accounts().map(|(name, _)| name.to_owned()).collect();
                    let is_new = |name: &String| !names.contains(name) && name != Device::DEFAULT_TENANT;
                    let more: Vec<String> = more.into_iter().filter(is_new).collect();
                    names.extend(more);
                }
                names.push(Device::DEFAULT_TENANT.to_owned());
                names
            }
            Things::Groups => {
                let mut names = Vec::new();
                for queue in self.shared.file_systems.queues() {
                    names.extend(queue.lock().device.groups().map(str::to_owned));
                }
                names.sort();
                names.dedup();
                names
            }
            Things::Clients => {
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
        Some(facts_of(&state.device, &state.config, now_ns()))
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
        let changed = self.changed.iter().find(|(tenant, _)| tenant == name).map(|(_, terms)| terms.clone());
        let configured = || self.tenants().iter().find(|tenant| tenant.name == name).map(|tenant| tenant.terms.clone());
        let found =
            || self.shared.file_systems.queues().iter().find_map(|queue| queue.lock().device.terms(name).cloned());
        let default = || (name == Device::DEFAULT_TENANT).then(Terms::default);
        changed.or_else(configured).or_else(found).or_else(default)
    }

    fn group(&self, name: &str) -> Option<GroupFacts> {
        let queues = self.shared.file_systems.queues();
        let terms = queues.iter().find_map(|queue| queue.lock().device.group_terms(name).cloned())?;
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
            state.device.accounts().filter(|(_, account)| is_used(account)).map(|(name, _)| name.to_owned()).collect()
        };
        for tenant in tenants {
            self.account(device, &tenant, &mut |account| each(&tenant, account));
        }
    }

    fn account(&self, device: &str, tenant: &str, tell: &mut dyn FnMut(&AccountView<'_>)) {
        let Some(queue) = self.queue(device) else { return };
        let account = queue.lock().device.account(tenant).cloned();
        if let Some(account) = account.filter(is_used) {
            tell(&view_of(&account));
        }
    }

    fn change(&mut self, change: Change) -> Result<Option<String>, Refused> {
        tracing::info!(?change, "change requested");
        match change {
            Change::Elevator { device, kind } => self.on_queue(&device, |state| {
                state.device.switch(kind, now_ns()).map_err(|error| Refused::Busy(error.to_string()))?;
                state.config.elevator = Some(kind);
                let follows = state.device.is_switching();
                let mut warnings: Vec<String> = state.device.elevator_warning().into_iter().collect();
                warnings
                    .extend(follows.then(|| format!("{} follows when what is under way is done", kind.info().name)));
                Ok(joined(warnings))
            }),
            Change::Tunable { device, name, value } => self.on_queue(&device, |state| {
                let set = state.device.set_tunable(name, value);
                set.map(joined).map_err(|error| Refused::No(error.to_string()))
            }),
            Change::Depth { device, depth } => self.on_queue(&device, |state| {
                state.device.set_depth(depth);
                state.config.depth = Some(depth);
                Ok(None)
            }),
            Change::Merge { device, merge } => self.on_queue(&device, |state| {
                let set = state.device.set_requests(merge, state.config.request_bytes_max);
                state.config.merge = merge;
                set.map(|()| None).map_err(|error| Refused::No(error.to_string()))
            }),
            Change::RequestBytesMax { .. } => {
                Err(Refused::No("the requests of a mount are those that the kernel makes: 1 MiB at most".to_owned()))
            }
            Change::Terms { tenant, terms } => self.set_terms(&tenant, &terms),
            Change::GroupWeight { group, weight } => self.set_group_weight(&group, weight),
            Change::Disconnect { .. } => Err(Refused::No("a process is no connection: `kill` ends it".to_owned())),
            Change::Reload => Err(Refused::No("a mount reads its configuration once, when it is made".to_owned())),
            Change::Log(filter) => match &mut self.log {
                Some(log) => log.set(&filter).map(|()| None).map_err(Refused::No),
                None => Err(Refused::No("what is logged cannot be set here".to_owned())),
            },
        }
    }
}

/// Joins warnings to one text.
fn joined(warnings: Vec<String>) -> Option<String> {
    (!warnings.is_empty()).then(|| warnings.join("; "))
}
