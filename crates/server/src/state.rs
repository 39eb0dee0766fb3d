//! The state that all connections share: the engine, devices, exports, memory budget, timers.

use std::collections::HashMap;
use std::sync::Arc;

use hoistway_blockdev::{BlockRequest, Device, DeviceId, process_priority};
use hoistway_config::{Config, DeviceConfig};
use hoistway_qos::MemberId;
use hoistway_reactor::{ConnId, Engine, Message, Peer};
use rustls::ServerConfig;

use crate::budget::{Bounds, Budget};
use crate::close_reason::CloseReason;
use crate::drain_state::DrainState;
use crate::exports::ServedExport;
use crate::lists::{Deadlines, MemoryWaiters, Senders};
use crate::reply_history::ReplyHistory;

/// The state that all connections share.
pub(crate) struct ServerState<E> {
    pub(crate) engine: E,
    /// The time of the current turn, in ns of the engine's clock.
    pub(crate) now_ns: u64,
    /// All open devices. Each has its configuration: an attached device in `config.devices`, by its
    /// name, and a detached one in `detached`, by its id.
    pub(crate) devices: Vec<Device>,
    /// The open devices that the configuration no longer names.
    pub(crate) detached: Vec<DetachedDevice>,
    /// The current configuration, with all changes made at run time.
    pub(crate) config: Config,
    /// The exports, in the order of the configuration.
    pub(crate) exports: Vec<ServedExport>,
    pub(crate) budget: Budget,
    /// The limits of the NBD state machines.
    pub(crate) limits: hoistway_nbd::Limits,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) tls_required: bool,
    /// How far the server has shut down.
    pub(crate) drain: DrainState,
    /// Empty messages with their allocations, for reuse.
    pub(crate) spare: Vec<Message>,
    pub(crate) memory_waiters: MemoryWaiters,
    pub(crate) senders: Senders,
    pub(crate) reply_history: ReplyHistory,
    pub(crate) client_counts: ClientCounts,
    pub(crate) deadlines: Deadlines,
}

/// An open device that the configuration no longer names. It has no clients; its file stays open
/// and locked.
#[derive(Clone, Debug)]
pub(crate) struct DetachedDevice {
    /// The device.
    pub(crate) id: DeviceId,
    /// The configuration that it was opened with.
    pub(crate) config: DeviceConfig,
}

impl<E: Engine> ServerState<E> {
    /// Creates an empty server state.
    pub(crate) fn new(engine: E, bounds: Bounds) -> ServerState<E> {
        let now_ns = engine.now_ns();
        ServerState {
            engine,
            now_ns,
            devices: Vec::new(),
            detached: Vec::new(),
            config: Config::default(),
            exports: Vec::new(),
            budget: Budget::new(bounds),
            limits: hoistway_nbd::Limits::default(),
            tls: None,
            tls_required: false,
            drain: DrainState::Serving,
            spare: Vec::new(),
            memory_waiters: MemoryWaiters::default(),
            senders: Senders::default(),
            reply_history: ReplyHistory::default(),
            client_counts: ClientCounts::default(),
            deadlines: Deadlines::default(),
        }
    }

    /// Returns a device.
    pub(crate) fn device(&self, id: DeviceId) -> Option<&Device> {
        self.devices.get(id.index())
    }

    /// Returns a device for changes.
    pub(crate) fn device_mut(&mut self, id: DeviceId) -> Option<&mut Device> {
        self.devices.get_mut(id.index())
    }

    /// Returns the ids of all open devices.
    pub(crate) fn device_ids(&self) -> impl Iterator<Item = DeviceId> + use<E> {
        (0..self.devices.len()).map(DeviceId::of_index)
    }

    /// Returns the attached device with this name. Detached devices are not found, because their
    /// names may be reused.
    pub(crate) fn device_named(&self, name: &str) -> Option<DeviceId> {
        let is_detached = |id: DeviceId| self.detached.iter().any(|detached| detached.id == id);
        let named = self.device_ids().zip(&self.devices).filter(|(_, device)| device.name() == name);
        named.map(|(id, _)| id).find(|id| !is_detached(*id))
    }

    /// Returns an attached device with its configuration.
    pub(crate) fn attached_device_mut(&mut self, name: &str) -> Option<(&mut Device, &mut DeviceConfig)> {
        let id = self.device_named(name)?;
        let config = self.config.devices.iter_mut().find(|config| config.queue.name == name)?;
        Some((self.devices.get_mut(id.index())?, config))
    }

    /// Gives a connection the time of a handshake until it is closed.
    pub(crate) fn set_handshake_deadline(&mut self, id: ConnId) {
        self.set_deadline_in(id, self.budget.bounds().handshake_ns_max);
    }

    /// Gives a connection the given number of ns until it is closed.
    pub(crate) fn set_deadline_in(&mut self, id: ConnId, ns: u64) {
        self.deadlines.set(id, self.now_ns.saturating_add(ns));
    }

    /// Makes a client a member of a tenant on a device, or a member without a tenant.
    pub(crate) fn join(
        &mut self,
        device: DeviceId,
        tenant: Option<&str>,
        peer: &Peer,
    ) -> Result<MemberId, CloseReason> {
        let now_ns = self.now_ns;
        let Some(device) = self.device_mut(device) else { return Err(CloseReason::ExportWithdrawn) };
        let priority = peer.process.as_ref().map(process_priority);
        device.scheduler_mut().join(tenant, priority, now_ns).map_err(CloseReason::Join)
    }

    /// Removes a member from a device. Its requests complete without a completion for the server.
    pub(crate) fn leave(&mut self, device: DeviceId, member: MemberId) {
        let now_ns = self.now_ns;
        if let Some(device) = self.device_mut(device) {
            device.leave(member, now_ns);
        }
    }

    /// Submits a request to a device, which runs at the end of the turn, or in another turn at
    /// once.
    pub(crate) fn submit(&mut self, device: DeviceId, member: MemberId, work: BlockRequest) {
        let now_ns = self.now_ns;
        if let Some(device) = self.device_mut(device) {
            device.submit(member, work, now_ns);
        }
    }
}

/// The number of clients of each export and each tenant. The counts are maintained as clients join
/// and leave, because a listing reads all of them.
#[derive(Debug, Default)]
pub(crate) struct ClientCounts {
    exports: HashMap<String, u64>,
    tenants: HashMap<String, u64>,
}

impl ClientCounts {
    /// Counts a client that joined an export as a tenant.
    pub(crate) fn add(&mut self, export: &str, tenant: &str) {
        for (counts, name) in [(&mut self.exports, export), (&mut self.tenants, tenant)] {
            match counts.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(counts.insert(name.to_owned(), 1)),
            }
        }
    }

    /// Removes a client from the counts. Names without clients are forgotten.
    pub(crate) fn remove(&mut self, export: &str, tenant: &str) {
        for (counts, name) in [(&mut self.exports, export), (&mut self.tenants, tenant)] {
            if let Some(count) = counts.get_mut(name) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    counts.remove(name);
                }
            }
        }
    }

    /// Returns the number of clients of an export.
    pub(crate) fn of_export(&self, name: &str) -> u64 {
        self.exports.get(name).copied().unwrap_or(0)
    }

    /// Returns the number of clients of a tenant.
    pub(crate) fn of_tenant(&self, name: &str) -> u64 {
        self.tenants.get(name).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_clients_that_join_and_leave() {
        let mut counts = ClientCounts::default();
        counts.add("disk", "db");
        counts.add("disk", "backup");
        counts.add("", "db");
        assert_eq!((counts.of_export("disk"), counts.of_export(""), counts.of_tenant("db")), (2, 1, 2));
        counts.remove("disk", "db");
        counts.remove("", "db");
        assert_eq!((counts.of_export("disk"), counts.of_export(""), counts.of_tenant("db")), (1, 0, 0));
        assert!(counts.tenants.len() == 1 && counts.exports.len() == 1, "names without clients are forgotten");
    }
}
