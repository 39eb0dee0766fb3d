//! The server: its state beyond that of single connections, and its simple accessors.
//!
//! The operations are in modules of their own: `turn` (one turn of the event loop), `start`,
//! `reload`, `drain`, `admin`.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use hoistway_blockdev::remote::Sabotage;
use hoistway_blockdev::{Device, IoOutput};
use hoistway_control::metrics::Metrics;
use hoistway_control::{ConfigReadings, Watch};
use hoistway_qos::{Completion, Recorder};
use hoistway_reactor::{Engine, Event, ListenerId};

use crate::admin::connection::AdminConnection;
use crate::admin::state::AdminState;
use crate::connection::Connection;
use crate::purpose::Purpose;
use crate::state::ServerState;
use crate::table::ConnectionTable;

/// The result of a turn of the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The server continues with the next turn.
    Running,
    /// A signal or an administrator requested a reload: see [`Server::reload`].
    Reload,
    /// A child process may have ended.
    Child,
    /// The interval of [`Server::set_alarm`] has elapsed.
    Alarm,
    /// A signal started the shutdown.
    Draining,
    /// The shutdown is complete: connections are closed, devices flushed.
    Ended {
        /// True if all replies were sent and all devices were flushed before the timeout.
        clean: bool,
    },
}

/// A block server.
pub struct Server<E: Engine> {
    pub(crate) state: ServerState<E>,
    /// The NBD connections.
    pub(crate) connections: ConnectionTable<Connection>,
    pub(crate) listeners: Vec<(ListenerId, Purpose)>,
    /// The events of a turn; empty between turns, kept for its allocation.
    pub(crate) events: Vec<Event>,
    /// Results that later calls of [`Server::turn`] return, in order.
    pub(crate) pending_turns: VecDeque<Turn>,
    /// The completions of a turn; empty between turns, kept for its allocation.
    pub(crate) completions: Vec<Completion<IoOutput>>,
    /// The number of NBD connections accepted since the start.
    pub(crate) accepted_total: u64,
    /// True if the warning about too many connections has been logged.
    pub(crate) limit_logged: bool,
    /// True after the first signal to terminate.
    pub(crate) terminate_received: bool,
    /// The time in ns of the next check for stalled clients.
    pub(crate) stall_check_ns: u64,
    /// The interval of [`Turn::Alarm`] and its next time, in ns.
    pub(crate) alarm: Option<(u64, u64)>,
    pub(crate) admin: AdminState,
    /// The connections to the control tree and to the metrics.
    pub(crate) admin_connections: ConnectionTable<AdminConnection>,
    /// The shares of each tenant in the last second.
    pub(crate) watch: Watch,
    pub(crate) metrics: Metrics,
    /// The result of the last reload, as the control tree shows it.
    pub(crate) reload_status: String,
    /// The readings of the configuration, as the metrics show them.
    pub(crate) readings: ConfigReadings,
    /// Removed tenants and groups that are still in use.
    pub(crate) retired: Vec<Retired>,
}

/// A tenant or group that the configuration no longer names, but that some device still uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Retired {
    /// The name of a tenant.
    Tenant(String),
    /// The name of a group.
    Group(String),
}

impl<E: Engine> Server<E> {
    /// Accepts connections from a listening socket.
    pub fn listen(&mut self, socket: OwnedFd, purpose: Purpose) -> ListenerId {
        let listener = self.state.engine.listen(socket);
        self.attach(listener, purpose);
        listener
    }

    /// Accepts connections from a socket on which the engine already listens.
    pub fn attach(&mut self, listener: ListenerId, purpose: Purpose) {
        self.listeners.push((listener, purpose));
    }

    /// Returns the engine.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.state.engine
    }

    /// Returns lines of text on the lateness of the emulated drives' completions.
    pub fn lateness_lines(&self) -> Vec<String> {
        self.state.devices.iter().flat_map(|device| device.lateness_lines()).collect()
    }

    /// Returns [`Turn::Alarm`] from [`Server::turn`] at this interval in ns.
    pub fn set_alarm(&mut self, every_ns: u64) {
        self.alarm = Some((every_ns, self.later(every_ns)));
    }

    /// Attaches a recorder to each device without one. `recorder` creates it from the device's
    /// name, and is called in the order of [`device_names`](Self::device_names).
    pub fn record(&mut self, mut recorder: impl FnMut(&str) -> Option<Box<dyn Recorder>>) {
        for device in self.state.devices.iter_mut().filter(|device| !device.scheduler().is_recorded()) {
            let new = recorder(device.name());
            device.set_recorder(new);
        }
    }

    /// Returns the names of all open devices, detached ones included.
    pub fn device_names(&self) -> Vec<&str> {
        self.state.devices.iter().map(Device::name).collect()
    }

    /// Plants a fault in the recovery of remote exports, for tests that have to find it.
    pub fn sabotage_remotes(&mut self, sabotage: Sabotage) {
        self.state.devices.iter_mut().for_each(|device| device.sabotage_remote(sabotage));
    }

    /// Returns the time of the current turn, in ns of the engine's clock.
    pub fn now_ns(&self) -> u64 {
        self.state.now_ns
    }

    /// Returns the number of NBD connections.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Returns the bytes of data of all requests in progress.
    pub fn bytes_in_progress(&self) -> u64 {
        self.state.budget.used()
    }

    /// Returns the time in ns after the given duration.
    pub(crate) fn later(&self, ns: u64) -> u64 {
        self.state.now_ns.saturating_add(ns)
    }
}
