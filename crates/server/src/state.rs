//! What all connections share: the engine, devices, exports, tenants, the budget.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use rustls::ServerConfig;

use crate::budget::{Bounds, Budget, HolderId, Wait};
use crate::connection::Reason;
use crate::exports::Served;
use crate::reply_history::ReplyHistory;
use hoistway_blockdev::{BlockRequest, Device, process_priority};
use hoistway_config::{Config, DeviceConfig};
use hoistway_qos::MemberId;
use hoistway_reactor::{ConnId, Engine, Message, Peer};

/// What all connections share.
pub(crate) struct ServerState<E> {
    pub(crate) engine: E,
    /// The time of this turn.
    pub(crate) now_ns: u64,
    pub(crate) devices: Vec<Device>,
    /// Those of them that the configuration does not name: nobody comes to them any more, and their
    /// files stay open and locked.
    pub(crate) idle: Vec<Idle>,
    /// What is served, for whom and how.
    pub(crate) config: Config,
    /// The exports, in the order of the configuration.
    pub(crate) exports: Vec<Served>,
    pub(crate) budget: Budget,
    /// What the protocol's machines put up with.
    pub(crate) limits: hoistway_nbd::Limits,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) tls_required: bool,
    /// Nothing new begins any more.
    pub(crate) draining: bool,
    /// A device was given work since devices ran last.
    pub(crate) has_work: bool,
    /// Empty messages, to be used again.
    pub(crate) spare: Vec<Message>,
    /// Connections that wait for memory, in the order in which they came.
    pub(crate) waiting: VecDeque<ConnId>,
    /// Those that wait for memory that their own tenant holds, likewise: they are in nobody else's
    /// way.
    pub(crate) waiting_within: BTreeMap<HolderId, VecDeque<ConnId>>,
    /// Connections that have something to say.
    pub(crate) speakers: Vec<ConnId>,
    /// Who was answered lately.
    pub(crate) answered: ReplyHistory,
    /// How many clients there are.
    pub(crate) clients: Clients,
    /// When which connection is closed unless it has come further.
    deadlines: BTreeSet<(u64, ConnId)>,
}

/// A device that is open and in nobody's use.
#[derive(Clone, Debug)]
pub(crate) struct Idle {
    /// Its place among the devices.
    pub(crate) place: usize,
    /// What it was opened with.
    pub(crate) config: DeviceConfig,
}

impl<E: Engine> ServerState<E> {
    /// Nobody lives there yet.
    pub(crate) fn new(engine: E, bounds: Bounds) -> ServerState<E> {
        let now_ns = engine.now_ns();
        ServerState {
            engine,
            now_ns,
            devices: Vec::new(),
            idle: Vec::new(),
            config: Config::default(),
            exports: Vec::new(),
            budget: Budget::new(bounds),
            limits: hoistway_nbd::Limits::default(),
            tls: None,
            tls_required: false,
            draining: false,
            has_work: false,
            spare: Vec::new(),
            waiting: VecDeque::new(),
            waiting_within: BTreeMap::new(),
            speakers: Vec::new(),
            answered: ReplyHistory::default(),
            clients: Clients::default(),
            deadlines: BTreeSet::new(),
        }
    }

    /// Where the device of this name is. Idle ones have none, whatever they were called.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        let is_idle = |place: usize| self.idle.iter().any(|idle| idle.place == place);
        let named = self.devices.iter().enumerate().filter(|(_, device)| device.name() == name);
        named.map(|(place, _)| place).find(|place| !is_idle(*place))
    }

    /// A connection has something to say; `flag` is its own note of that.
    pub(crate) fn dirty(&mut self, id: ConnId, flag: &mut bool) {
        if !std::mem::replace(flag, true) {
            self.speakers.push(id);
        }
    }

    /// A connection has to wait for memory, its tenant's or that of others; `flag` as before.
    pub(crate) fn queue(&mut self, id: ConnId, wait: Wait, holder: Option<HolderId>, flag: &mut bool) {
        if wait != Wait::Own && !std::mem::replace(flag, true) {
            self.line(wait, holder).push_back(id);
        }
    }

    fn line(&mut self, wait: Wait, holder: Option<HolderId>) -> &mut VecDeque<ConnId> {
        match (wait, holder) {
            (Wait::Tenant, Some(holder)) => self.waiting_within.entry(holder).or_default(),
            _ => &mut self.waiting,
        }
    }

    /// Whether somebody else waits for memory longer, and for whose.
    pub(crate) fn others_wait(&self, id: ConnId, holder: Option<HolderId>) -> Option<Wait> {
        let is_before = |line: &VecDeque<ConnId>| line.front().is_some_and(|first| *first != id);
        let within = holder.and_then(|holder| self.waiting_within.get(&holder));
        if within.is_some_and(is_before) {
            return Some(Wait::Tenant);
        }
        // The first of a tenant's line has to stand in the other like everybody.
        is_before(&self.waiting).then_some(Wait::Others)
    }

    /// Whether anybody waits for memory.
    pub(crate) fn anybody_waits(&self) -> bool {
        !self.waiting.is_empty() || !self.waiting_within.is_empty()
    }

    /// A connection has until the handshake's time has passed.
    pub(crate) fn set_deadline(&mut self, id: ConnId, own: &mut Option<u64>) {
        self.set_deadline_in(id, own, self.budget.bounds().handshake_ns_max);
    }

    /// A connection has so many ns.
    pub(crate) fn set_deadline_in(&mut self, id: ConnId, own: &mut Option<u64>, ns: u64) {
        self.clear_deadline(id, own);
        let at = self.now_ns.saturating_add(ns);
        self.deadlines.insert((at, id));
        *own = Some(at);
    }

    /// A connection may take its time.
    pub(crate) fn clear_deadline(&mut self, id: ConnId, own: &mut Option<u64>) {
        if let Some(at) = own.take() {
            self.deadlines.remove(&(at, id));
        }
    }

    /// The first deadline.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// A connection whose deadline has passed.
    pub(crate) fn expired(&mut self) -> Option<ConnId> {
        let (at, id) = *self.deadlines.first()?;
        if at > self.now_ns {
            return None;
        }
        self.deadlines.pop_first();
        Some(id)
    }

    /// Makes a client a member of a tenant on a device, or one for itself.
    pub(crate) fn join(&mut self, device: usize, tenant: Option<&str>, peer: &Peer) -> Result<MemberId, Reason> {
        let now_ns = self.now_ns;
        let Some(device) = self.devices.get_mut(device) else { return Err(Reason::Withdrawn) };
        device.scheduler_mut().join(tenant, peer.process.as_ref().map(process_priority), now_ns).map_err(Reason::Join)
    }

    /// The client has gone: nothing of it comes back any more.
    pub(crate) fn leave(&mut self, device: usize, member: MemberId) {
        let now_ns = self.now_ns;
        if let Some(device) = self.devices.get_mut(device) {
            device.leave(member, now_ns);
        }
    }

    /// Gives work to a device; it is done when devices run.
    pub(crate) fn submit(&mut self, device: usize, member: MemberId, work: BlockRequest) {
        let now_ns = self.now_ns;
        if let Some(device) = self.devices.get_mut(device) {
            device.submit(member, work, now_ns);
            self.has_work = true;
        }
    }

    /// Whether a range is made zeroes in less time than a write of them would take.
    pub(crate) fn zero_is_fast(&self, device: usize, punch: bool) -> bool {
        self.devices.get(device).is_some_and(|device| device.zero_is_fast(punch))
    }
}

/// How many clients each export and each tenant has, kept as they come and go: whoever asks for all
/// of them asks as often as there are tenants.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    exports: HashMap<String, u64>,
    tenants: HashMap<String, u64>,
}

impl Clients {
    /// A client has come to an export as a tenant.
    pub(crate) fn come(&mut self, export: &str, tenant: &str) {
        for (counts, name) in [(&mut self.exports, export), (&mut self.tenants, tenant)] {
            match counts.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(counts.insert(name.to_owned(), 1)),
            }
        }
    }

    /// It has gone. Names without clients are forgotten.
    pub(crate) fn go(&mut self, export: &str, tenant: &str) {
        for (counts, name) in [(&mut self.exports, export), (&mut self.tenants, tenant)] {
            if let Some(count) = counts.get_mut(name) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    counts.remove(name);
                }
            }
        }
    }

    /// Of an export.
    pub(crate) fn of_export(&self, name: &str) -> u64 {
        self.exports.get(name).copied().unwrap_or(0)
    }

    /// Of a tenant.
    pub(crate) fn of_tenant(&self, name: &str) -> u64 {
        self.tenants.get(name).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_as_they_come_and_go() {
        let mut clients = Clients::default();
        clients.come("disk", "db");
        clients.come("disk", "backup");
        clients.come("", "db");
        assert_eq!((clients.of_export("disk"), clients.of_export(""), clients.of_tenant("db")), (2, 1, 2));
        clients.go("disk", "db");
        clients.go("", "db");
        assert_eq!((clients.of_export("disk"), clients.of_export(""), clients.of_tenant("db")), (1, 0, 0));
        assert!(clients.tenants.len() == 1 && clients.exports.len() == 1, "names without clients are forgotten");
    }
}
