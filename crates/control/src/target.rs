//! The contract between the control tree and its host: the facts of a server and the changes to it.

use hdrhistogram::Histogram;
use hoistway_core::{Kind, ReservationSummary, Tunable};

use hoistway_qos::Terms;

use crate::process;

/// A running server or mount in the view of the control socket and the metrics.
///
/// Each call is cheap and concerns one object. Names are those of the configuration; a client has a
/// number.
pub trait AdminTarget {
    /// Returns the facts of the server.
    fn server(&self) -> ServerFacts;
    /// Returns the names of all objects of a kind, in a fixed order.
    fn names(&self, kind: ObjectKind) -> Vec<String>;
    /// Returns the facts of a device.
    fn device(&self, name: &str) -> Option<DeviceFacts>;
    /// Returns the facts of an export.
    fn export(&self, name: &str) -> Option<ExportFacts>;
    /// Returns the facts of a tenant: a configured one, or that of clients without a rule.
    fn tenant(&self, name: &str) -> Option<TenantFacts>;
    /// Returns the terms of a tenant.
    fn terms(&self, name: &str) -> Option<Terms> {
        self.tenant(name).map(|facts| facts.terms)
    }
    /// Returns the facts of a group of tenants.
    fn group(&self, name: &str) -> Option<GroupFacts>;
    /// Returns the facts of a client by its number.
    fn client(&self, number: u64) -> Option<ClientFacts>;
    /// Visits the accounts of all tenants of a device since the start. Tenants that never used the
    /// device may be omitted.
    fn accounts(&self, device: &str, visit: &mut dyn FnMut(&str, &AccountView<'_>));
    /// Visits the account of one tenant of a device. The default searches the accounts of all
    /// tenants.
    fn account(&self, device: &str, tenant: &str, visit: &mut dyn FnMut(&AccountView<'_>)) {
        self.accounts(device, &mut |other, account| {
            if other == tenant {
                visit(account);
            }
        });
    }
    /// Applies a change. Returns a warning, if there is one.
    ///
    /// # Errors
    /// [`Refused`], if the change was not made; then nothing has changed.
    fn change(&mut self, change: Change) -> Result<Option<String>, Refused>;
}

/// The kinds of objects of the control tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// The devices.
    Devices,
    /// The exports.
    Exports,
    /// The tenants.
    Tenants,
    /// The groups of tenants.
    Groups,
    /// The clients: connections after the handshake.
    Clients,
}

/// The facts of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerFacts {
    /// The version of the program.
    pub version: String,
    /// The I/O engine: `io_uring`, `threads`, `simulated`.
    pub engine: String,
    /// The time since the start, in ns.
    pub uptime_ns: u64,
    /// The number of open connections, those in the handshake included.
    pub connections: u64,
    /// The limit of connections.
    pub connections_max: u64,
    /// The number of connections since the start.
    pub connections_total: u64,
    /// The result of the last reload: `never`, `ok`, or the error.
    pub reload: String,
    /// The attempts to read the configuration, as the metrics show them.
    pub readings: ConfigReadings,
    /// The log filter in the syntax of `RUST_LOG`; `None` if it cannot be read or changed.
    pub log: Option<String>,
}

/// The attempts to read the configuration: at the start, and by reloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfigReadings {
    /// True if the last attempt failed; the previous configuration is in force.
    pub has_failed: bool,
    /// The time of the last attempt in ms since 1970; `None` if it is unknown.
    pub at_unix_ms: Option<u64>,
    /// The number of reloads that applied a configuration.
    pub succeeded: u64,
    /// The number of reloads that changed nothing because of an error.
    pub failed: u64,
}

impl ConfigReadings {
    /// Creates the state after the start, when the configuration was read without an error.
    pub fn at_start() -> ConfigReadings {
        ConfigReadings { at_unix_ms: Some(process::unix_ms()), ..ConfigReadings::default() }
    }

    /// Counts a reload. Its time is recorded only if that of the start is, because simulated
    /// servers have no calendar.
    pub fn count_reload(&mut self, has_failed: bool) {
        self.has_failed = has_failed;
        *if has_failed { &mut self.failed } else { &mut self.succeeded } += 1;
        self.at_unix_ms = self.at_unix_ms.map(|_| process::unix_ms());
    }
}

/// The facts of a device.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// The size in bytes.
    pub bytes: u64,
    /// The storage that holds the data: `file:PATH`, `mem:SIZE`, `null:SIZE`.
    pub backend: String,
    /// The name of the emulated drive.
    pub drive: Option<String>,
    /// The current elevator.
    pub elevator: Kind,
    /// The broken rule of a custom elevator, its consequence, and what to do, as a sentence.
    pub violation: Option<String>,
    /// True while the queue drains for a switch of the elevator.
    pub switching: bool,
    /// The tunables of the elevator with their values.
    pub tunables: Vec<(&'static Tunable, i64)>,
    /// The queue depth: the maximum number of requests in the device.
    pub depth: u32,
    /// True if the device has a moving arm.
    pub rotational: bool,
    /// True if adjacent requests are merged.
    pub merge: bool,
    /// The size of the largest request in bytes; larger requests are split.
    pub request_bytes_max: u64,
    /// The preferred unit of offsets and lengths in bytes.
    pub block_bytes: u32,
    /// The sustained bandwidth in bytes per second, for the admission of reservations, if known.
    pub bandwidth: Option<u64>,
    /// The positioning time of a request in ns, for the admission of reservations, if known.
    pub position_ns: Option<u64>,
    /// The reserved time, if reservations are in use.
    pub reserved: Option<ReservationSummary>,
    /// The number of requests in the device: reads and all others.
    pub in_flight: [u64; 2],
    /// The number of requests in the queue above the device.
    pub waiting: u64,
    /// The time with at least one request in the device, in ns since the start.
    pub busy_ns: u64,
    /// The number of bios merged since the start: reads and all others.
    pub merges: [u64; 2],
    /// The active slice.
    pub slice: Option<SliceFacts>,
    /// True if the elevator has slices and has begun one.
    pub has_slices: bool,
    /// The tenants with requests that are later than the bound of their reservation, each with the
    /// largest lateness of these requests in ns.
    pub late: Vec<(String, u64)>,
    /// The lateness of the emulated drive's completions.
    pub lateness: Option<Lateness>,
}

/// The active slice of an elevator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceFacts {
    /// The tenant that the elevator serves exclusively.
    pub holder: String,
    /// The time since the start of the slice, in ns.
    pub age_ns: u64,
    /// The time until the latest end of the slice, in ns; `None` while no end is set.
    pub left_ns: Option<u64>,
}

/// The lateness of an emulated drive's completions against its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The number of completions.
    pub count: u64,
    /// The median in ns.
    pub p50_ns: u64,
    /// The 99th percentile in ns.
    pub p99_ns: u64,
    /// The maximum in ns.
    pub max_ns: u64,
}

/// The facts of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFacts {
    /// The name of the device.
    pub device: String,
    /// The offset of the first byte on the device, in bytes.
    pub offset: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// True if writes are refused.
    pub read_only: bool,
    /// The description from the configuration.
    pub description: String,
    /// The number of clients.
    pub clients: u64,
}

/// The facts of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    /// The current terms.
    pub terms: Terms,
    /// The number of clients.
    pub clients: u64,
}

/// The facts of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFacts {
    /// The weight among the siblings, 1 to 1000.
    pub weight: u16,
    /// The parent group; `None` is the root.
    pub parent: Option<String>,
}

/// The facts of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFacts {
    /// The name of the export.
    pub export: String,
    /// The name of the tenant.
    pub tenant: String,
    /// The origin of the connection: `unix`, or an address and port.
    pub address: String,
    /// The id of the client's process, on a Unix socket.
    pub pid: Option<u32>,
    /// The user id of the client, on a Unix socket.
    pub uid: Option<u32>,
    /// The command name of the client, on a Unix socket.
    pub comm: Option<String>,
    /// The first name in the client's certificate.
    pub certificate: Option<String>,
    /// The duration of the connection, in ns.
    pub connected_ns: u64,
    /// The number of requests in progress.
    pub in_flight: u64,
    /// The number of completed requests.
    pub requests: u64,
    /// The number of bytes read.
    pub read_bytes: u64,
    /// The number of bytes written.
    pub written_bytes: u64,
}

/// The account of a tenant on a device since the start. Only `waiting`, `held` and `in_flight` ever
/// decrease.
#[derive(Clone, Copy, Debug)]
pub struct AccountView<'a> {
    /// The accounts by kind of request, in the order of [`OpKind::ALL`](hoistway_qos::OpKind::ALL).
    pub ops: [OpView<'a>; 4],
    /// The number of requests in the queue.
    pub waiting: u64,
    /// The number of requests that are delayed by limits.
    pub held: u64,
    /// The number of requests in the device.
    pub in_flight: u64,
    /// The device time in ns: while several requests are in the device, each accounts for an equal
    /// part of the time.
    pub service_ns: u64,
    /// The number of requests within the reservation that completed after their bound.
    pub reservation_missed: u64,
    /// The sum of the lateness of the requests that completed after the bound of their reservation,
    /// in ns.
    pub reservation_late_ns: u64,
    /// The sum over all requests of the time for which limits delayed them, in ns.
    pub held_ns: u64,
    /// The number of slices that ended.
    pub slices: u64,
    /// The sum of the lengths of the slices that ended, in ns.
    pub slice_ns: u64,
}

/// The account of one kind of requests.
#[derive(Clone, Copy, Debug)]
pub struct OpView<'a> {
    /// The number of completed requests, errors included.
    pub requests: u64,
    /// The number of bytes read, written or discarded.
    pub bytes: u64,
    /// The number of failed requests.
    pub errors: u64,
    /// The times from arrival, delays by limits included, to the dispatch of the first piece, in
    /// ns; `None` without requests.
    pub queue_ns: Option<&'a Histogram<u64>>,
    /// The times from dispatch to completion, in ns.
    pub device_ns: Option<&'a Histogram<u64>>,
    /// The sums of both: the times in the server, in ns.
    pub total_ns: Option<&'a Histogram<u64>>,
}

/// A change of a running server.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Switches the elevator of a device.
    Elevator {
        /// The device.
        device: String,
        /// The new elevator.
        kind: Kind,
    },
    /// Sets a tunable of the elevator to a value within its range.
    Tunable {
        /// The device.
        device: String,
        /// The name of the tunable in the kernel.
        name: &'static str,
        /// The value, in the tunable's unit.
        value: i64,
    },
    /// Sets the queue depth, the maximum number of requests in the device: 1 or more.
    Depth {
        /// The device.
        device: String,
        /// The number of requests.
        depth: u32,
    },
    /// Enables or disables merging of adjacent requests.
    Merge {
        /// The device.
        device: String,
        /// True to merge adjacent requests.
        merge: bool,
    },
    /// Sets the size of the largest request.
    RequestBytesMax {
        /// The device.
        device: String,
        /// The size in bytes, a multiple of 4096.
        bytes: u32,
    },
    /// Replaces the terms of a tenant.
    Terms {
        /// The tenant.
        tenant: String,
        /// The terms.
        terms: Terms,
    },
    /// Sets the weight of a group.
    GroupWeight {
        /// The group.
        group: String,
        /// The weight, 1 to 1000.
        weight: u16,
    },
    /// Closes the connection of a client.
    Disconnect {
        /// The number of the client.
        client: u64,
    },
    /// Reloads the configuration, as SIGHUP does.
    Reload,
    /// Sets the log filter, in the syntax of `RUST_LOG`.
    Log(String),
}

/// Why a change was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The object no longer exists.
    #[error("it no longer exists")]
    Gone,
    /// The change is not possible; the text is the reason.
    #[error("{0}")]
    No(String),
    /// Another change, such as a switch of the elevator, is in progress: try again.
    #[error("{0}")]
    Busy(String),
}
