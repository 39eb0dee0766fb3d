//! The leaves of the tree: path, unit, meaning, and how each is read and set.

use crate::leaf::{Get, Leaf, LeafQuery, Set, SetError};
use crate::names;
use crate::target::{Change, ClientFacts, DeviceFacts, ExportFacts, GroupFacts, ServerFacts, TenantFacts};
use crate::text::{self, BadValue, Range};
use crate::{accounts, log_filter, terms};
use hoistway_qos::DEPTH_MAX;
use hoistway_qos::scheduler::REQUEST_BYTES;
use hoistway_units::printable;

/// The depths of a device.
const DEPTH: Range<'static> = Range { what: "depth", min: 1, max: DEPTH_MAX as u64, unit: "requests" };
/// The sizes of the largest request.
const REQUEST_KIB: Range<'static> = Range {
    what: "max_sectors_kb",
    min: *REQUEST_BYTES.start() as u64 >> 10,
    max: *REQUEST_BYTES.end() as u64 >> 10,
    unit: "KiB",
};

/// All leaves, in the order in which they are listed.
pub const LEAVES: &[Leaf] = &[
    rw(
        "devices/NAME/queue/scheduler",
        "elevators",
        "The available elevators, the present one in brackets. Setting the path changes the \
        elevator: the queued requests are sent to the device first, and none is lost.",
        |query| device(query, scheduler),
        |query, value| Ok(Change::Elevator { device: known(query)?, kind: text::parse_elevator(value)? }),
    ),
    rw(
        "devices/NAME/queue/iosched/TUNABLE",
        "the tunable's own",
        "A tunable of the present elevator, with the kernel's name and unit; `hoistway \
        elevators NAME` describes each.",
        tunable,
        set_tunable,
    ),
    rw(
        "devices/NAME/queue/depth",
        "requests",
        "The largest number of requests in the device at a time. The elevator orders only \
        requests that are not yet in the device.",
        |query| device(query, |facts| facts.depth.to_string()),
        |query, value| Ok(Change::Depth { device: known(query)?, depth: number(value, DEPTH)? }),
    ),
    rw(
        "devices/NAME/queue/nomerges",
        "0 or 2",
        "0: adjacent requests are merged; 2: they are not.",
        |query| device(query, |facts| if facts.merge { "0" } else { "2" }.to_owned()),
        set_nomerges,
    ),
    rw(
        "devices/NAME/queue/max_sectors_kb",
        "KiB",
        "The size of the largest request; larger requests are split.",
        |query| device(query, |facts| (facts.request_bytes_max >> 10).to_string()),
        |query, value| {
            let kib: u32 = number(value, REQUEST_KIB)?;
            Ok(Change::RequestBytesMax { device: known(query)?, bytes: kib.saturating_mul(1024) & !4095 })
        },
    ),
    ro("devices/NAME/queue/rotational", "0 or 1", "1 if the device is a disk with a moving arm.", |query| {
        device(query, |facts| text::switch(facts.rotational))
    }),
    ro(
        "devices/NAME/queue/logical_block_size",
        "bytes",
        "The block size: requests are cheapest if their offset and length are multiples of \
        it.",
        |query| device(query, |facts| facts.block_bytes.to_string()),
    ),
    ro("devices/NAME/size", "sectors of 512 bytes", "The size of the device.", |query| {
        device(query, |facts| (facts.bytes / 512).to_string())
    }),
    ro(
        "devices/NAME/backend",
        "kind:location",
        "The storage of the device: `file:PATH`, `mem:SIZE` or `null:SIZE`.",
        |query| device(query, |facts| facts.backend.clone()),
    ),
    ro("devices/NAME/drive", "name", "The drive model that determines service times; - if there is none.", |query| {
        device(query, |facts| facts.drive.clone().unwrap_or_else(|| "-".to_owned()))
    }),
    ro(
        "devices/NAME/bandwidth",
        "bytes/s",
        "The lowest sustained bandwidth of the device, for the admission of reservations; - \
        if it is unknown.",
        |query| device(query, |facts| optional(facts.bandwidth)),
    ),
    ro(
        "devices/NAME/position",
        "ns",
        "The positioning time of a request, for the admission of reservations; - if it is \
        unknown.",
        |query| device(query, |facts| optional(facts.position_ns)),
    ),
    ro(
        "devices/NAME/reserved",
        "ns a second",
        "Four numbers: the device time that is reserved and the device time that can be \
        reserved, both in ns a second; the I/O contexts with a reservation; the bound on the \
        delay of reserved requests in ns. - without reservations.",
        |query| device(query, accounts::reserved),
    ),
    ro(
        "devices/NAME/lateness",
        "ns",
        "The delay of an emulated drive's completions against the model's times: count, \
        median, 99th percentile and maximum.",
        |query| device(query, accounts::lateness),
    ),
    ro(
        "devices/NAME/slice",
        "name",
        "The tenant or process that the elevator serves exclusively at this moment; - if \
        there is none.",
        |query| {
            device(query, |facts| facts.slice.as_ref().map_or_else(|| "-".to_owned(), |slice| slice.holder.clone()))
        },
    ),
    ro(
        "devices/NAME/switching",
        "0 or 1",
        "1 while the requests of the previous elevator are sent to the device, before a new \
        elevator starts.",
        |query| device(query, |facts| text::switch(facts.switching)),
    ),
    ro(
        "devices/NAME/violation",
        "text",
        "The rule that a custom elevator broke, with the request and the time; - if there is \
        none. The requests are then dispatched in order of arrival, until another elevator is \
        set.",
        |query| device(query, |facts| facts.violation.clone().unwrap_or_else(|| "-".to_owned())),
    ),
    ro("devices/NAME/inflight", "requests", "The requests in the device: reads, then all others.", |query| {
        device(query, |facts| format!("{:8} {:8}", facts.in_flight[0], facts.in_flight[1]))
    }),
    ro(
        "devices/NAME/busy",
        "ns",
        "The time since the start in which at least one request was in the device.",
        |query| device(query, |facts| facts.busy_ns.to_string()),
    ),
    ro("devices/NAME/waiting", "requests", "The requests that wait in the queue above the device.", |query| {
        device(query, |facts| facts.waiting.to_string())
    }),
    ro(
        "devices/NAME/stat",
        "17 fields",
        "The counters of /sys/block/DEV/stat, in the kernel's order and units: reads \
        (requests, merges, sectors, ms), writes (the same four), requests in flight, ms \
        busy, ms of all requests added up, discards (the same four), flushes and their ms.",
        accounts::device_stat,
    ),
    ro(
        "devices/NAME/tenants",
        "one line per tenant",
        "The counters of tenants/NAME/stat on this device, the tenant's weight, class, \
        reservation and limit, and its shares in the last ten seconds.",
        accounts::device_tenants,
    ),
    ro(
        "devices/NAME/histogram",
        "one line per tenant and phase",
        "The histograms of tenants/NAME/histogram on this device, for the 64 tenants with the \
        most requests.",
        accounts::device_histograms,
    ),
    ro("exports/NAME/device", "name", "The device of the export.", |query| {
        export(query, |facts| names::escape(&facts.device))
    }),
    ro("exports/NAME/offset", "bytes", "The first byte of the export on the device.", |query| {
        export(query, |facts| facts.offset.to_string())
    }),
    ro("exports/NAME/size", "bytes", "The size of the export.", |query| export(query, |facts| facts.bytes.to_string())),
    ro("exports/NAME/read_only", "0 or 1", "1 if writes are refused.", |query| {
        export(query, |facts| text::switch(facts.read_only))
    }),
    ro("exports/NAME/description", "text", "The description for users.", |query| {
        export(query, |facts| one_line(&facts.description))
    }),
    ro("exports/NAME/clients", "clients", "The number of clients that use the export.", |query| {
        export(query, |facts| facts.clients.to_string())
    }),
    rw(
        "tenants/NAME/weight",
        "1 to 1000",
        "The share of the tenant among its siblings, under elevators that support groups.",
        |query| tenant(query, |facts| facts.terms.weight.to_string()),
        terms::weight,
    ),
    rw(
        "tenants/NAME/class",
        "name",
        "The I/O class: none (each client has its own), realtime, best-effort or idle.",
        |query| tenant(query, |facts| text::class(facts.terms.priority.class()).to_owned()),
        terms::class,
    ),
    rw(
        "tenants/NAME/level",
        "0 to 7",
        "The level within the class; 0 is the highest.",
        |query| tenant(query, |facts| facts.terms.priority.level().to_string()),
        terms::level,
    ),
    ro("tenants/NAME/ioprio", "text", "Class and level in the format of `ionice -p`.", |query| {
        tenant(query, |facts| text::ionice(facts.terms.priority))
    }),
    rw(
        "tenants/NAME/reserve",
        "bytes/s, or 0",
        "The guaranteed bandwidth. A value that the device cannot provide is refused.",
        |query| tenant(query, terms::show_reserve),
        terms::reserve,
    ),
    rw(
        "tenants/NAME/reserve_request",
        "bytes",
        "The request size that the admission of the reservation assumes.",
        |query| tenant(query, terms::show_reserve_request),
        terms::reserve_request,
    ),
    rw(
        "tenants/NAME/limit",
        "bytes/s, or max",
        "The largest rate of reads and writes together. The burst is a tenth of a second of \
        the limit, unless a burst was set.",
        |query| tenant(query, |facts| terms::show_rate(facts.terms.limits.bytes)),
        terms::limit,
    ),
    rw(
        "tenants/NAME/burst",
        "bytes",
        "The bytes that may pass at once after a pause, under `limit`.",
        |query| tenant(query, |facts| terms::show_burst(facts.terms.limits.bytes)),
        terms::burst,
    ),
    rw(
        "tenants/NAME/limit_iops",
        "requests/s, or max",
        "The largest rate of requests. The burst is a tenth of a second of the limit, unless \
        a burst was set.",
        |query| tenant(query, |facts| terms::show_rate(facts.terms.limits.operations)),
        terms::limit_iops,
    ),
    rw(
        "tenants/NAME/burst_iops",
        "requests",
        "The requests that may pass at once after a pause, under `limit_iops`.",
        |query| tenant(query, |facts| terms::show_burst(facts.terms.limits.operations)),
        terms::burst_iops,
    ),
    ro("tenants/NAME/parent", "name", "The parent group of the tenant; - is the root.", |query| {
        tenant(query, |facts| facts.terms.parent.as_deref().map_or_else(|| "-".to_owned(), names::escape))
    }),
    ro("tenants/NAME/clients", "clients", "The number of clients that belong to the tenant.", |query| {
        tenant(query, |facts| facts.clients.to_string())
    }),
    ro(
        "tenants/NAME/stat",
        "one line per device",
        "Totals since the start, in the format of cgroup's io.stat: bytes and requests read, \
        written and discarded; flushes; errors; the device's time in us; requests that wait, \
        requests that limits hold back and requests in the device; reserved requests that \
        completed too late.",
        accounts::tenant_stat,
    ),
    ro(
        "tenants/NAME/stat.json",
        "JSON",
        "Totals and latencies since the start, for programs: over all devices, and for each \
        device. Times are in ns; latency_ns is the whole time in the server.",
        accounts::tenant_json,
    ),
    ro(
        "tenants/NAME/latency",
        "ns",
        "Percentiles of latency since the start, for each kind of request: from arrival to \
        dispatch (queue), from dispatch to completion (device), and both together (total).",
        accounts::tenant_latency,
    ),
    ro(
        "tenants/NAME/histogram",
        "ns:requests",
        "Histograms of latency since the start, of all kinds of requests together, for the \
        phases queue and device: the lower bound of each bucket that is not empty, and its \
        number of requests. Each power of two has 8 buckets.",
        accounts::tenant_histograms,
    ),
    ro(
        "tenants/NAME/share",
        "0 to 1",
        "For each device, in the last ten seconds: the tenant's part of the bytes, its part \
        of the device's time, and its entitlement.",
        accounts::tenant_share,
    ),
    ro(
        "tenants/NAME/entitlement",
        "0 to 1",
        "The part of each device that reservation, class, weight and limit give the tenant \
        among the tenants that used the device in the last ten seconds.",
        accounts::tenant_entitlement,
    ),
    rw(
        "groups/NAME/weight",
        "1 to 1000",
        "The share of the group among its siblings.",
        |query| group(query, |facts| facts.weight.to_string()),
        |query, value| {
            query.target.group(query.name).ok_or(SetError::Gone)?;
            Ok(Change::GroupWeight { group: query.name.to_owned(), weight: number(value, terms::WEIGHT)? })
        },
    ),
    ro("groups/NAME/parent", "name", "The parent group of the group; - is the root.", |query| {
        group(query, |facts| facts.parent.as_deref().map_or_else(|| "-".to_owned(), names::escape))
    }),
    ro("clients/ID/export", "name", "The export that the client requested.", |query| {
        client(query, |facts| names::escape(&facts.export))
    }),
    ro("clients/ID/tenant", "name", "The tenant that the client belongs to.", |query| {
        client(query, |facts| names::escape(&facts.tenant))
    }),
    ro("clients/ID/address", "address", "The address of the client: `unix`, or IP address and port.", |query| {
        client(query, |facts| facts.address.clone())
    }),
    ro("clients/ID/pid", "number", "The process of the client, on a Unix socket.", |query| {
        client(query, |facts| optional(facts.pid))
    }),
    ro("clients/ID/uid", "number", "The user of the client's process, on a Unix socket.", |query| {
        client(query, |facts| optional(facts.uid))
    }),
    ro("clients/ID/comm", "name", "The command name of the client's process, on a Unix socket.", |query| {
        client(query, |facts| facts.comm.as_deref().map_or_else(|| "-".to_owned(), one_line))
    }),
    ro("clients/ID/certificate", "name", "The name in the client's certificate.", |query| {
        client(query, |facts| facts.certificate.as_deref().map_or_else(|| "-".to_owned(), one_line))
    }),
    ro("clients/ID/connected", "ns", "The time since the client connected.", |query| {
        client(query, |facts| facts.connected_ns.to_string())
    }),
    ro(
        "clients/ID/stat",
        "key=number",
        "The client's completed requests, requests in flight, bytes read and bytes written; failed requests add no bytes.",
        |query| client(query, accounts::client_stat),
    ),
    wo(
        "clients/ID/disconnect",
        "1",
        "Closes the client's connection. Requests in progress get no reply.",
        |query, value| {
            let number = query.name.parse().map_err(|_| SetError::Gone)?;
            query.target.client(number).ok_or(SetError::Gone)?;
            once("disconnect", value)?;
            Ok(Change::Disconnect { client: number })
        },
    ),
    ro("server/version", "text", "The version of the program.", |query| server(query, |facts| facts.version.clone())),
    ro("server/engine", "name", "The engine that does the I/O: io_uring, threads or simulated.", |query| {
        server(query, |facts| facts.engine.clone())
    }),
    ro("server/uptime", "s", "The time since the start.", |query| {
        server(query, |facts| format!("{}.{:02}", facts.uptime_ns / 1_000_000_000, facts.uptime_ns / 10_000_000 % 100))
    }),
    ro(
        "server/connections",
        "connections",
        "Three numbers: open connections, the largest permitted number, and connections \
        accepted since the start.",
        |query| {
            server(query, |facts| {
                format!("{} {} {}", facts.connections, facts.connections_max, facts.connections_total)
            })
        },
    ),
    rw(
        "server/reload",
        "text",
        "The result of the last reload: never, ok or the error. Setting 1 reloads the \
        configuration, as SIGHUP does; the reply comes before the reload has ended.",
        |query| server(query, |facts| one_line(&facts.reload)),
        |_, value| once("reload", value).map(|()| Change::Reload).map_err(SetError::from),
    ),
    rw(
        "server/log",
        "filter",
        "The level of the log: off, error, warn, info, debug or trace. TARGET=LEVEL sets it for \
        the messages of a target, such as warn,hoistway_server=debug (the syntax of RUST_LOG, \
        without targets alone).",
        |query| server(query, |facts| facts.log.clone().unwrap_or_else(|| "-".to_owned())),
        |_, value| Ok(log_filter::check(value).map(|_| Change::Log(value.to_owned()))?),
    ),
];

const fn ro(path: &'static str, unit: &'static str, meaning: &'static str, get: Get) -> Leaf {
    Leaf { path, unit, meaning, get: Some(get), set: None }
}

const fn rw(path: &'static str, unit: &'static str, meaning: &'static str, get: Get, set: Set) -> Leaf {
    Leaf { path, unit, meaning, get: Some(get), set: Some(set) }
}

const fn wo(path: &'static str, unit: &'static str, meaning: &'static str, set: Set) -> Leaf {
    Leaf { path, unit, meaning, get: None, set: Some(set) }
}

fn server(query: &LeafQuery<'_>, show: fn(&ServerFacts) -> String) -> Option<String> {
    Some(show(&query.target.server()))
}

fn device(query: &LeafQuery<'_>, show: fn(&DeviceFacts) -> String) -> Option<String> {
    query.target.device(query.name).as_ref().map(show)
}

fn export(query: &LeafQuery<'_>, show: fn(&ExportFacts) -> String) -> Option<String> {
    query.target.export(query.name).as_ref().map(show)
}

fn tenant(query: &LeafQuery<'_>, show: fn(&TenantFacts) -> String) -> Option<String> {
    query.target.tenant(query.name).as_ref().map(show)
}

fn group(query: &LeafQuery<'_>, show: fn(&GroupFacts) -> String) -> Option<String> {
    query.target.group(query.name).as_ref().map(show)
}

fn client(query: &LeafQuery<'_>, show: fn(&ClientFacts) -> String) -> Option<String> {
    query.target.client(query.name.parse().ok()?).as_ref().map(show)
}

/// Returns the name of the device if it still exists.
fn known(query: &LeafQuery<'_>) -> Result<String, SetError> {
    query.target.device(query.name).map(|_| query.name.to_owned()).ok_or(SetError::Gone)
}

fn number<T: TryFrom<u64>>(value: &str, range: Range<'_>) -> Result<T, BadValue> {
    let number = text::parse_number(value, range)?;
    T::try_from(number).or_else(|_| text::bad(value, format!("is out of range: {range}")))
}

/// Checks the value of a leaf that starts an action when it is set to 1.
fn once(what: &str, value: &str) -> Result<(), BadValue> {
    if value == "1" { Ok(()) } else { text::bad(value, format!("is not 1, which is all that {what} takes")) }
}

fn scheduler(facts: &DeviceFacts) -> String {
    text::scheduler(facts.elevator)
}

fn tunable(query: &LeafQuery<'_>) -> Option<String> {
    let tunables = query.target.device(query.name)?.tunables;
    tunables.iter().find(|(tunable, _)| tunable.name == query.tunable).map(|(_, value)| value.to_string())
}

fn set_tunable(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    let tunables = query.target.device(query.name).ok_or(SetError::Gone)?.tunables;
    let (tunable, _) = tunables.iter().find(|(tunable, _)| tunable.name == query.tunable).ok_or(SetError::Gone)?;
    let value = text::parse_tunable(tunable, value)?;
    Ok(Change::Tunable { device: query.name.to_owned(), name: tunable.name, value })
}

fn set_nomerges(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    let merge = match value {
        "0" => true,
        "2" => false,
        _ => text::bad(value, "is neither 0 nor 2, which nomerges takes")?,
    };
    Ok(Change::Merge { device: known(query)?, merge })
}

/// Returns a figure, or `-` without one.
fn optional<T: ToString>(figure: Option<T>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| figure.to_string())
}

/// Returns text of a client or a configuration as one line.
fn one_line(text: &str) -> String {
    printable::one_line(text).to_string()
}
