//! How the server leaves: nothing new, what is under way to its end, everything durable.

use crate::connection::Reason;
use crate::{Purpose, Server};
use hoistway_blockdev::{BlockRequest, Device};
use hoistway_qos::{Hints, RequestOp};
use hoistway_reactor::{Address, Engine, Peer};

/// The place in tickets that no connection has: that of the server's own flushes.
pub(crate) const SLOT: u32 = u32::MAX;

/// How far the server is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    /// It is not.
    No,
    /// Until the last connection is closed, or this time has come.
    Connections { until_ns: u64 },
    /// Until the devices are flushed, `left` of them still to come, or this time has come.
    Flushes { left: usize, until_ns: u64, clean: bool },
    /// It has left.
    Ended { clean: bool },
}

impl Drain {
    /// When it is not waited any longer.
    pub(crate) fn until_ns(self) -> Option<u64> {
        match self {
            Drain::Connections { until_ns } | Drain::Flushes { until_ns, .. } => Some(until_ns),
            // The next turn tells it, at once.
            Drain::Ended { .. } => Some(0),
            Drain::No => None,
        }
    }

    /// Whether it has left, and how.
    pub(crate) fn ended(self) -> Option<bool> {
        match self {
            Drain::Ended { clean } => Some(clean),
            _ => None,
        }
    }
}

impl<E: Engine> Server<E> {
    /// Leaves: no more connections are accepted, what is under way is finished and answered, new
    /// requests are answered with ESHUTDOWN, devices are flushed. A second call ends at once.
    pub fn drain(&mut self) {
        if self.drain != Drain::No {
            tracing::warn!(connections = self.table.len(), "leaving at once: what is under way is lost");
            self.drain = Drain::Ended { clean: false };
            return;
        }
        tracing::info!(connections = self.table.len(), "draining");
        self.state.draining = true;
        for (listener, purpose) in std::mem::take(&mut self.listeners) {
            // What steers and what watches stays until the end.
            match purpose {
                Purpose::Nbd => self.state.engine.unlisten(listener),
                Purpose::Control | Purpose::Metrics => self.listeners.push((listener, purpose)),
            }
        }
        self.drain = Drain::Connections { until_ns: self.later(self.state.budget.bounds().drain_ns_max) };
        for id in self.table.ids() {
            self.settle(id);
        }
        // With nobody connected nothing would happen that the next step could wait for.
        self.go_on_draining();
    }

    /// Goes a step further, if it is time.
    pub(crate) fn go_on_draining(&mut self) {
        match self.drain {
            Drain::Connections { until_ns } => {
                if self.state.now_ns >= until_ns {
                    self.drop_connections();
                }
                if self.table.len() == 0 {
                    self.flush_devices(self.state.now_ns < until_ns);
                }
            }
            Drain::Flushes { left, until_ns, clean } => {
                if left == 0 {
                    self.drain = Drain::Ended { clean };
                } else if self.state.now_ns >= until_ns {
                    tracing::error!(devices = left, "not flushed in time: what they did last may not be durable");
                    self.drain = Drain::Ended { clean: false };
                }
            }
            Drain::No | Drain::Ended { .. } => {}
        }
    }

    /// The server's own flush of a device has ended.
    pub(crate) fn flushed(&mut self, device: usize, is_durable: bool) {
        if !is_durable && let Some(device) = self.state.devices.get(device) {
            tracing::error!(device = device.name(), "the last flush failed: what was written last may not be durable");
        }
        if let Drain::Flushes { left, clean, .. } = &mut self.drain {
            *left = left.saturating_sub(1);
            *clean &= is_durable;
        }
    }

    fn drop_connections(&mut self) {
        let left = self.table.len();
        if left > 0 {
            tracing::warn!(connections = left, "not finished in time: closed");
        }
        for id in self.table.ids() {
            if let Some(client) = self.table.get_mut(id) {
                client.end(Reason::Shutdown);
            }
            self.settle(id);
        }
    }

    fn flush_devices(&mut self, mut clean: bool) {
        let until_ns = self.later(self.state.budget.bounds().drain_ns_max);
        let mut left = 0;
        for place in 0..self.state.devices.len() {
            let member = match self.state.join(place, None, &Peer { address: Address::Unix, process: None }) {
                Ok(member) => member,
                Err(reason) => {
                    let device = self.state.devices.get(place).map(Device::name);
                    tracing::error!(device, "no last flush: {reason}; what was written last may not be durable");
                    clean = false;
                    continue;
                }
            };
            let ticket = u64::from(SLOT) << 32 | place as u64;
            let work = BlockRequest {
                ticket,
                op: RequestOp::Flush,
                offset: 0,
                length: 0,
                durable: false,
                data: None,
                hints: Hints::default(),
            };
            self.state.submit(place, member, work);
            left += 1;
        }
        self.drain = Drain::Flushes { left, until_ns, clean };
    }
}
