//! Shutdown: no new requests, completion of the requests in progress, a final flush of all devices.

use hoistway_blockdev::{BlockRequest, Device, DeviceId};
use hoistway_qos::{Hints, RequestOp};
use hoistway_reactor::{Address, Engine, Peer};

use crate::close_reason::CloseReason;
use crate::drain_state::DrainState;
use crate::purpose::Purpose;
use crate::server::Server;
use crate::ticket::flush_ticket;

impl<E: Engine> Server<E> {
    /// Starts a shutdown: accepts no more clients, completes and answers requests in progress,
    /// refuses new requests with ESHUTDOWN, flushes the devices. A second call ends the server at
    /// once.
    pub fn drain(&mut self) {
        if self.state.drain != DrainState::Serving {
            let connections = self.connections.len();
            tracing::warn!(connections, "shutting down at once: requests in progress are lost");
            self.state.drain = DrainState::Ended { clean: false };
            return;
        }
        tracing::info!(connections = self.connections.len(), "draining");
        for (listener, purpose) in std::mem::take(&mut self.listeners) {
            // The control tree and the metrics stay available until the end.
            match purpose {
                Purpose::Nbd => self.state.engine.unlisten(listener),
                Purpose::Control | Purpose::Metrics => self.listeners.push((listener, purpose)),
            }
        }
        self.state.drain = DrainState::Connections { until_ns: self.later(self.state.budget.bounds().drain_ns_max) };
        for id in self.connections.ids() {
            self.advance_connection(id);
        }
        // Without connections no event would start the next step.
        self.continue_drain();
    }

    /// Advances the shutdown by one step if its condition or deadline is reached.
    pub(crate) fn continue_drain(&mut self) {
        match self.state.drain {
            DrainState::Connections { until_ns } => {
                if self.state.now_ns >= until_ns {
                    self.drop_connections();
                }
                if self.connections.len() == 0 {
                    self.flush_devices(self.state.now_ns < until_ns);
                }
            }
            DrainState::Flushes { left, until_ns, clean } => {
                if left == 0 {
                    self.state.drain = DrainState::Ended { clean };
                } else if self.state.now_ns >= until_ns {
                    tracing::error!(devices = left, "not flushed in time: the last writes may not be durable");
                    self.state.drain = DrainState::Ended { clean: false };
                }
            }
            DrainState::Serving | DrainState::Ended { .. } => {}
        }
    }

    /// Handles the completion of the final flush of a device.
    pub(crate) fn complete_flush(&mut self, device: DeviceId, is_durable: bool) {
        if !is_durable && let Some(device) = self.state.device(device) {
            tracing::error!(device = device.name(), "the final flush failed: the last writes may not be durable");
        }
        if let DrainState::Flushes { left, clean, .. } = &mut self.state.drain {
            *left = left.saturating_sub(1);
            *clean &= is_durable;
        }
    }

    fn drop_connections(&mut self) {
        let connections = self.connections.len();
        if connections > 0 {
            tracing::warn!(connections, "not finished in time: closed");
        }
        for id in self.connections.ids() {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.close(CloseReason::Shutdown);
            }
            self.advance_connection(id);
        }
    }

    fn flush_devices(&mut self, mut clean: bool) {
        let until_ns = self.later(self.state.budget.bounds().drain_ns_max);
        let mut left = 0;
        for id in self.state.device_ids() {
            let member = match self.state.join(id, None, &Peer { address: Address::Unix, process: None }) {
                Ok(member) => member,
                Err(reason) => {
                    let device = self.state.device(id).map(Device::name);
                    tracing::error!(device, "no final flush: {reason}; the last writes may not be durable");
                    clean = false;
                    continue;
                }
            };
            let work = BlockRequest {
                ticket: flush_ticket(id),
                op: RequestOp::Flush,
                offset: 0,
                length: 0,
                durable: false,
                data: None,
                hints: Hints::default(),
            };
            self.state.submit(id, member, work);
            left += 1;
        }
        self.state.drain = DrainState::Flushes { left, until_ns, clean };
    }
}
