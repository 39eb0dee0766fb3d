//! What all connections share: the engine, devices, exports, tenants, the budget.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use rustls::ServerConfig;

use crate::config::Config;
use crate::device::{Device, MemberId, Work};
use crate::engine::{ConnId, Engine, Message, Peer};
use crate::server::budget::{Bounds, Budget};
use crate::server::connection::Reason;
use crate::server::exports::Served;

/// What all connections share.
pub(super) struct House<E> {
    pub(super) engine: E,
    /// The time of this turn.
    pub(super) now_ns: u64,
    pub(super) devices: Vec<Device>,
    /// What is served, for whom and how.
    pub(super) config: Config,
    /// The exports, in the order of the configuration.
    pub(super) exports: Vec<Served>,
    pub(super) budget: Budget,
    /// What the protocol's machines put up with.
    pub(super) limits: hoistway_nbd::Limits,
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) tls_required: bool,
    /// Nothing new begins any more.
    pub(super) draining: bool,
    /// A device was given work since devices ran last.
    pub(super) has_work: bool,
    /// Empty messages, to be used again.
    pub(super) spare: Vec<Message>,
    /// Connections that wait for memory, in the order in which they came.
    pub(super) waiting: VecDeque<ConnId>,
    /// Connections that have something to say.
    pub(super) speakers: Vec<ConnId>,
    /// How many clients there are.
    pub(super) clients: Clients,
    /// When which connection is closed unless it has come further.
    deadlines: BTreeSet<(u64, ConnId)>,
}

impl<E: Engine> House<E> {
    /// Nobody lives there yet.
    pub(super) fn new(engine: E, bounds: Bounds) -> House<E> {
        let now_ns = engine.now_ns();
        House {
            engine,
            now_ns,
            devices: Vec::new(),
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
            speakers: Vec::new(),
            clients: Clients::default(),
            deadlines: BTreeSet::new(),
        }
    }

    /// A connection has something to say; `flag` is its own note of that.
    pub(super) fn dirty(&mut self, id: ConnId, flag: &mut bool) {
        if !std::mem::replace(flag, true) {
            self.speakers.push(id);
        }
    }

    /// A connection has to wait for memory; `flag` as before.
    pub(super) fn queue(&mut self, id: ConnId, flag: &mut bool) {
        if !std::mem::replace(flag, true) {
            self.waiting.push_back(id);
        }
    }

    /// Whether somebody else waits for memory longer.
    pub(super) fn others_wait(&self, id: ConnId) -> bool {
        self.waiting.front().is_some_and(|first| *first != id)
    }

    /// A connection has until the handshake's time has passed.
    pub(super) fn set_deadline(&mut self, id: ConnId, own: &mut Option<u64>) {
        self.clear_deadline(id, own);
        let at = self.now_ns.saturating_add(self.budget.bounds().handshake_ns_max);
        self.deadlines.insert((at, id));
        *own = Some(at);
    }

    /// A connection may take its time.
    pub(super) fn clear_deadline(&mut self, id: ConnId, own: &mut Option<u64>) {
        if let Some(at) = own.take() {
            self.deadlines.remove(&(at, id));
        }
    }

    /// The first deadline.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// A connection whose deadline has passed.
    pub(super) fn expired(&mut self) -> Option<ConnId> {
        let (at, id) = *self.deadlines.first()?;
        if at > self.now_ns {
            return None;
        }
        self.deadlines.pop_first();
        Some(id)
    }

    /// Makes a client a member of a tenant on a device, or one for itself.
    pub(super) fn join(&mut self, device: usize, tenant: Option<&str>, peer: &Peer) -> Result<MemberId, Reason> {
        let now_ns = self.now_ns;
        let Some(device) = self.devices.get_mut(device) else { return Err(Reason::Withdrawn) };
        device.join(tenant, peer.process.as_ref(), now_ns).map_err(Reason::Join)
    }

    /// The client has gone: nothing of it comes back any more.
    pub(super) fn leave(&mut self, device: usize, member: MemberId) {
        let now_ns = self.now_ns;
        if let Some(device) = self.devices.get_mut(device) {
            device.leave(member, now_ns);
        }
    }

    /// Gives work to a device; it is done when devices run.
    pub(super) fn submit(&mut self, device: usize, member: MemberId, work: Work) {
        let now_ns = self.now_ns;
        if let Some(device) = self.devices.get_mut(device) {
            device.submit(member, work, now_ns);
            self.has_work = true;
        }
    }

    /// Whether a range is made zeroes in less time than a write of them would take.
    pub(super) fn zero_is_fast(&self, device: usize, punch: bool) -> bool {
        self.devices.get(device).is_some_and(|device| device.zero_is_fast(punch))
    }
}

/// How many clients each export and each tenant has, kept as they come and go: whoever asks for all of them asks as often as there are tenants.
#[derive(Debug, Default)]
pub(super) struct Clients {
    exports: HashMap<String, u64>,
    tenants: HashMap<String, u64>,
}

impl Clients {
    /// A client has come to an export as a tenant.
    pub(super) fn come(&mut self, export: &str, tenant: &str) {
        for (counts, name) in [(&mut self.exports, export), (&mut self.tenants, tenant)] {
            match counts.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(counts.insert(name.to_owned(), 1)),
            }
        }
    }

    /// It has gone. Names without clients are forgotten.
    pub(super) fn go(&mut self, export: &str, tenant: &str) {
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
    pub(super) fn of_export(&self, name: &str) -> u64 {
        self.exports.get(name).copied().unwrap_or(0)
    }

    /// Of a tenant.
    pub(super) fn of_tenant(&self, name: &str) -> u64 {
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
