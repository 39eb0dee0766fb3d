//! What the running server tells of itself, and what it can be told: the contract between the
//! control tree and the server.

use hdrhistogram::Histogram;
use hoistway_core::{Kind, ReservationSummary, Tunable};

use hoistway_qos::Terms;

/// The running server, as the control socket, the metrics and the screen see it.
///
/// Whatever is told is cheap to tell: each call is about one thing. Names are those of the
/// configuration; a client goes by its number.
pub trait AdminTarget {
    /// The server itself.
    fn server(&self) -> ServerFacts;
    /// The names of all things of a kind, in a fixed order.
    fn names(&self, of: ObjectKind) -> Vec<String>;
    /// A device.
    fn device(&self, name: &str) -> Option<DeviceFacts>;
    /// An export.
    fn export(&self, name: &str) -> Option<ExportFacts>;
    /// A tenant: configured ones, and those that clients without a rule are.
    fn tenant(&self, name: &str) -> Option<TenantFacts>;
    /// A tenant's terms alone.
    fn terms(&self, name: &str) -> Option<Terms> {
        self.tenant(name).map(|facts| facts.terms)
    }
    /// A group of tenants.
    fn group(&self, name: &str) -> Option<GroupFacts>;
    /// A client by its number.
    fn client(&self, number: u64) -> Option<ClientFacts>;
    /// What each tenant had of a device since the start. Tenants that never used it may be left
    /// out.
    fn accounts(&self, device: &str, each: &mut dyn FnMut(&str, &AccountView<'_>));
    /// What one of them had: the same, without a walk over all.
    fn account(&self, device: &str, tenant: &str, tell: &mut dyn FnMut(&AccountView<'_>)) {
        self.accounts(device, &mut |other, account| {
            if other == tenant {
                tell(account);
            }
        });
    }
    /// Does something.
    ///
    /// # Errors
    /// Why it was not done; then nothing has changed. A warning is no error: it is the text of an
    /// `Ok`.
    fn change(&mut self, change: Change) -> Result<Option<String>, Refused>;
}

/// Kinds of things that there are several of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// Devices.
    Devices,
    /// Exports.
    Exports,
    /// Tenants.
    Tenants,
    /// Groups.
    Groups,
    /// Clients: connections past the handshake.
    Clients,
}

/// The server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerFacts {
    /// Its version.
    pub version: String,
    /// Its engine: `io_uring`, `threads`, `simulated`.
    pub engine: String,
    /// How long it has been running, in ns.
    pub uptime_ns: u64,
    /// Connections that are open, those in the handshake included.
    pub connections: u64,
    /// How many it takes at most.
    pub connections_max: u64,
    /// Connections that came since the start.
    pub connections_total: u64,
    /// What became of the last reload: `never`, `ok`, or the error.
    pub reload: String,
    /// What is logged, as `RUST_LOG` would say it; none where it cannot be told or changed.
    pub log: Option<String>,
}

/// A device.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// Its size in bytes.
    pub bytes: u64,
    /// Where its bytes lie: `file:PATH`, `mem:SIZE`, `null:SIZE`.
    pub backend: String,
    /// The name of the model of a drive before it.
    pub drive: Option<String>,
    /// The elevator.
    pub elevator: Kind,
    /// Whether the queue is being drained for another one.
    pub switching: bool,
    /// Its tunables and what they are.
    pub tunables: Vec<(&'static Tunable, i64)>,
    /// Requests that the device is given at once.
    pub depth: u32,
    /// Whether it has an arm that moves.
    pub rotational: bool,
    /// Whether neighbouring requests are merged.
    pub merge: bool,
    /// The largest request in bytes: longer ones are split.
    pub request_bytes_max: u64,
    /// Bytes that offsets and lengths are best multiples of.
    pub block_bytes: u32,
    /// What it sustains in bytes a second, for the admission of reservations, if that is known.
    pub bandwidth: Option<u64>,
    /// What positioning costs a request, in ns, for the same.
    pub position_ns: Option<u64>,
    /// How much of it is reserved, where the layer of reservations is in use.
    pub reserved: Option<ReservationSummary>,
    /// Requests in the device, reads and all others.
    pub in_flight: [u64; 2],
    /// Requests that wait in the queue above it.
    pub waiting: u64,
    /// How long at least one request was in the device, in ns since the start.
    pub busy_ns: u64,
    /// Bios that were merged since the start, reads and all others.
    pub merges: [u64; 2],
    /// Who holds the slice: the tenant (or process) that the elevator serves alone at this moment.
    pub slice: Option<String>,
    /// How late an emulated drive's completions were.
    pub lateness: Option<Lateness>,
}

/// How late completions of an emulated drive were delivered, after the model's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Completions.
    pub count: u64,
    /// Half of them came within so many ns.
    pub p50_ns: u64,
    /// 99 of 100 came within so many ns.
    pub p99_ns: u64,
    /// The latest, in ns.
    pub max_ns: u64,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFacts {
    /// Its device.
    pub device: String,
    /// Its first byte on the device.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Writes are refused.
    pub read_only: bool,
    /// A line for people.
    pub description: String,
    /// Clients that use it.
    pub clients: u64,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    /// Its terms, as they are now.
    pub terms: Terms,
    /// Clients that are it.
    pub clients: u64,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFacts {
    /// Its share among its siblings, 1 to 1000.
    pub weight: u16,
    /// The group that it is part of; none is the root.
    pub parent: Option<String>,
}

/// A client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFacts {
    /// The export that it chose.
    pub export: String,
    /// The tenant that it is.
    pub tenant: String,
    /// Where it comes from: `unix`, or an address and port.
    pub address: String,
    /// Its process, on a Unix socket.
    pub pid: Option<u32>,
    /// Its user, on a Unix socket.
    pub uid: Option<u32>,
    /// Its command's name, on a Unix socket.
    pub comm: Option<String>,
    /// The name in its certificate.
    pub certificate: Option<String>,
    /// How long it has been connected, in ns.
    pub connected_ns: u64,
    /// Requests that it waits for.
    pub in_flight: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
}

/// What one tenant had of one device since the start. Nothing in it ever decreases but `waiting`,
/// `held` and `in_flight`.
#[derive(Clone, Copy, Debug)]
pub struct AccountView<'a> {
    /// By what was asked, in the order of [`OpKind::ALL`](hoistway_qos::OpKind::ALL).
    pub ops: [OpView<'a>; 4],
    /// Requests that wait in the queue.
    pub waiting: u64,
    /// Requests that its limits hold back.
    pub held: u64,
    /// Requests in the device.
    pub in_flight: u64,
    /// The device's time that it had, in ns: while several requests are in the device, each has an
    /// equal part of the time.
    pub service_ns: u64,
    /// Requests within its reservation that were done later than their bound.
    pub reservation_missed: u64,
}

/// The same of one kind of requests.
#[derive(Clone, Copy, Debug)]
pub struct OpView<'a> {
    /// Requests that were answered, errors included.
    pub requests: u64,
    /// Bytes that were read, written or given back.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// From when a request came (limits included) until its first piece went to the device, in ns;
    /// none: never counted.
    pub queue_ns: Option<&'a Histogram<u64>>,
    /// From then until it was done, in ns.
    pub device_ns: Option<&'a Histogram<u64>>,
    /// Both together: the whole time in the server, in ns.
    pub total_ns: Option<&'a Histogram<u64>>,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another elevator.
    Elevator {
        /// The device.
        device: String,
        /// The elevator.
        kind: Kind,
    },
    /// A tunable of the elevator. The value lies within its range.
    Tunable {
        /// The device.
        device: String,
        /// The kernel's name.
        name: &'static str,
        /// The value, in the tunable's unit.
        value: i64,
    },
    /// Requests that the device is given at once, 1 or more.
    Depth {
        /// The device.
        device: String,
        /// How many.
        depth: u32,
    },
    /// Whether neighbouring requests are merged.
    Merge {
        /// The device.
        device: String,
        /// Whether.
        merge: bool,
    },
    /// The largest request.
    RequestBytesMax {
        /// The device.
        device: String,
        /// In bytes, a multiple of 4096.
        bytes: u32,
    },
    /// All terms of a tenant; they differ from its present ones.
    Terms {
        /// The tenant.
        tenant: String,
        /// The terms.
        terms: Terms,
    },
    /// The weight of a group.
    GroupWeight {
        /// The group.
        group: String,
        /// 1 to 1000.
        weight: u16,
    },
    /// A client's connection is closed.
    Disconnect {
        /// The client.
        client: u64,
    },
    /// The configuration is read anew, as on SIGHUP.
    Reload,
    /// What is logged, as `RUST_LOG` would say it.
    Log(String),
}

/// Why something was not done. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// What it is about is gone.
    #[error("it is gone")]
    Gone,
    /// It cannot be done here, or now.
    #[error("{0}")]
    No(String),
    /// It is not possible while something else is going on, such as a switch: try again.
    #[error("{0}")]
    Busy(String),
}
