//! The leaves of the tree: path, unit, meaning, and how each is read and set.

use crate::leaf::{Get, Leaf, LeafQuery, Set, SetError};
use crate::names;
use crate::target::{Change, ClientFacts, DeviceFacts, ExportFacts, GroupFacts, ServerFacts, TenantFacts};
use crate::text::{self, BadValue};
use crate::{accounts, terms};
use hoistway_qos::DEPTH_MAX;
use hoistway_qos::scheduler::REQUEST_BYTES;

/// All leaves, in the order in which they are listed.
pub const LEAVES: &[Leaf] = &[
    rw(
        "devices/NAME/queue/scheduler",
        "elevators",
        "All elevators, the present one in brackets. A new value switches the elevator after the \
        queued requests are drained; no request is lost.",
        |query| device(query, scheduler),
        |query, value| Ok(Change::Elevator { device: known(query)?, kind: text::parse_elevator(value)? }),
    ),
    rw(
        "devices/NAME/queue/iosched/TUNABLE",
        "the tunable's own",
        "A tunable of the present elevator, by the kernel's name and in its unit; `hoistway elevators \
        NAME` describes each.",
        tunable,
        set_tunable,
    ),
    rw(
        "devices/NAME/queue/depth",
        "requests",
        "The most requests in the device. The elevator orders only requests that wait above this \
        depth.",
        |query| device(query, |facts| facts.depth.to_string()),
        |query, value| Ok(Change::Depth { device: known(query)?, depth: number("depth", value, 1, DEPTH_MAX.into())? }),
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
            let kib: u32 = number(
                "max_sectors_kb",
                value,
                u64::from(REQUEST_BYTES.start() >> 10),
                u64::from(REQUEST_BYTES.end() >> 10),
            )?;
            Ok(Change::RequestBytesMax { device: known(query)?, bytes: kib.saturating_mul(1024) & !4095 })
        },
    ),
    ro("devices/NAME/queue/rotational", "0 or 1", "1 if the device has a moving arm, else 0.", |query| {
        device(query, |facts| text::switch(facts.rotational))
    }),
    ro("devices/NAME/queue/logical_block_size", "bytes", "The preferred unit of offsets and lengths.", |query| {
        device(query, |facts| facts.block_bytes.to_string())
    }),
    ro("devices/NAME/size", "sectors of 512 bytes", "The size of the device.", |query| {
        device(query, |facts| (facts.bytes / 512).to_string())
    }),
    ro("devices/NAME/backend", "kind:location", "The storage that holds the data.", |query| {
        device(query, |facts| facts.backend.clone())
    }),
    ro("devices/NAME/drive", "name", "The name of the emulated drive; - without one.", |query| {
        device(query, |facts| facts.drive.clone().unwrap_or_else(|| "-".to_owned()))
    }),
    ro(
        "devices/NAME/bandwidth",
        "bytes/s",
        "The sustained bandwidth of the device, for the admission of reservations; - if unknown.",
        |query| device(query, |facts| optional(facts.bandwidth)),
    ),
    ro(
        "devices/NAME/position",
        "ns",
        "The positioning time of a request, for the admission of reservations; - if unknown.",
        |query| device(query, |facts| optional(facts.position_ns)),
    ),
    ro(
        "devices/NAME/reserved",
        "ns a second",
        "Of each second of the device: the reserved time, and the most that can be reserved; then the \
        number of contexts with a reservation, and the longest delay of their requests in ns.",
        |query| device(query, accounts::reserved),
    ),
    ro("devices/NAME/lateness", "ns", "The lateness of an emulated drive's completions against its model.", |query| {
        device(query, accounts::lateness)
    }),
    ro(
        "devices/NAME/slice",
        "name",
        "The tenant or process that the elevator serves exclusively at present; - without one.",
        |query| device(query, |facts| facts.slice.clone().unwrap_or_else(|| "-".to_owned())),
    ),
    ro("devices/NAME/switching", "0 or 1", "1 while the queue drains for a switch of the elevator, else 0.", |query| {
        device(query, |facts| text::switch(facts.switching))
    }),
    ro("devices/NAME/inflight", "requests", "Requests in the device: reads, all others.", |query| {
        device(query, |facts| format!("{:8} {:8}", facts.in_flight[0], facts.in_flight[1]))
    }),
    ro("devices/NAME/busy", "ns", "The time with at least one request in the device, since the start.", |query| {
        device(query, |facts| facts.busy_ns.to_string())
    }),
    ro("devices/NAME/waiting", "requests", "Requests in the queue above the device.", |query| {
        device(query, |facts| facts.waiting.to_string())
    }),
    ro(
        "devices/NAME/stat",
        "17 fields",
        "The counters of /sys/block/DEV/stat, in its order and units: for reads, then for writes: \
        requests, merges, sectors, ms; then requests in flight, ms busy, ms of all requests; for \
        discards the same four; flushes and their ms.",
        accounts::device_stat,
    ),
    ro(
        "devices/NAME/tenants",
        "a line a tenant",
        "For each tenant of the device: the counters of tenants/NAME/stat, its terms, and its shares of the last ten seconds.",
        accounts::device_tenants,
    ),
    ro(
        "devices/NAME/histogram",
        "a line a tenant and phase",
        "The latencies of tenants/NAME/histogram, for the 64 tenants with the most requests.",
        accounts::device_histograms,
    ),
    ro("exports/NAME/device", "name", "The name of the device.", |query| {
        export(query, |facts| names::escape(&facts.device))
    }),
    ro("exports/NAME/offset", "bytes", "The offset of the first byte on the device.", |query| {
        export(query, |facts| facts.offset.to_string())
    }),
    ro("exports/NAME/size", "bytes", "The size of the export.", |query| export(query, |facts| facts.bytes.to_string())),
    ro("exports/NAME/read_only", "0 or 1", "1 if writes are refused, else 0.", |query| {
        export(query, |facts| text::switch(facts.read_only))
    }),
    ro("exports/NAME/description", "text", "The description from the configuration.", |query| {
        export(query, |facts| one_line(&facts.description))
    }),
    ro("exports/NAME/clients", "clients", "The number of clients of the export.", |query| {
        export(query, |facts| facts.clients.to_string())
    }),
    rw(
        "tenants/NAME/weight",
        "1 to 1000",
        "The weight among the tenants of its group, with elevators that support groups.",
        |query| tenant(query, |facts| facts.terms.weight.to_string()),
        terms::weight,
    ),
    rw(
        "tenants/NAME/class",
        "name",
        "The I/O class: none (each client's own), realtime, best-effort or idle.",
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
    ro("tenants/NAME/ioprio", "text", "Class and level in the form of `ionice -p`.", |query| {
        tenant(query, |facts| text::ionice(facts.terms.priority))
    }),
    rw(
        "tenants/NAME/reserve",
        "bytes/s, or 0",
        "The reserved bandwidth. A reservation that the device cannot keep is refused.",
        |query| tenant(query, terms::show_reserve),
        terms::reserve,
    ),
    rw(
        "tenants/NAME/reserve_request",
        "bytes",
        "The request size that the reservation assumes.",
        |query| tenant(query, terms::show_reserve_request),
        terms::reserve_request,
    ),
    rw(
        "tenants/NAME/limit",
        "bytes/s, or max",
        "The limit of reads and writes together. A burst that was not set follows the limit: a tenth \
        of a second.",
        |query| tenant(query, |facts| terms::show_rate(facts.terms.limits.bytes)),
        terms::limit,
    ),
    rw(
        "tenants/NAME/burst",
        "bytes",
        "The most bytes at once after a pause, under the limit.",
        |query| tenant(query, |facts| terms::show_burst(facts.terms.limits.bytes)),
        terms::burst,
    ),
    rw(
        "tenants/NAME/limit_iops",
        "requests/s, or max",
        "The limit in requests.",
        |query| tenant(query, |facts| terms::show_rate(facts.terms.limits.operations)),
        terms::limit_iops,
    ),
    rw(
        "tenants/NAME/burst_iops",
        "requests",
        "The most requests at once after a pause, under the limit.",
        |query| tenant(query, |facts| terms::show_burst(facts.terms.limits.operations)),
        terms::burst_iops,
    ),
    ro("tenants/NAME/parent", "name", "The parent group; - is the root.", |query| {
        tenant(query, |facts| facts.terms.parent.as_deref().map_or_else(|| "-".to_owned(), names::escape))
    }),
    ro("tenants/NAME/clients", "clients", "The number of clients of the tenant.", |query| {
        tenant(query, |facts| facts.clients.to_string())
    }),
    ro(
        "tenants/NAME/stat",
        "a line a device",
        "Totals since the start in the form of cgroup's io.stat: bytes and requests read, written and \
        discarded; then flushes, errors, us of device time, requests waiting, delayed by limits and \
        in the device, missed reservations.",
        accounts::tenant_stat,
    ),
    ro(
        "tenants/NAME/stat.json",
        "JSON",
        "The same totals and the latencies in ns as JSON, over all devices and for each; latency_ns \
        is the whole time in the server.",
        accounts::tenant_json,
    ),
    ro(
        "tenants/NAME/latency",
        "ns",
        "Latencies since the start: from the arrival of a request to its dispatch (queue), from there \
        to its completion (device), and the sum (total).",
        accounts::tenant_latency,
    ),
    ro(
        "tenants/NAME/histogram",
        "ns:requests",
        "The same latencies as a histogram: the lower bound of each non-empty bucket and its number \
        of requests. An octave has 8 buckets.",
        accounts::tenant_histograms,
    ),
    ro(
        "tenants/NAME/share",
        "0 to 1",
        "For each device, in the last ten seconds: the share of its bytes, the share of its time, and \
        the entitlement.",
        accounts::tenant_share,
    ),
    ro(
        "tenants/NAME/entitlement",
        "0 to 1",
        "The share of each device to which reservation, class, weight and limit entitle the tenant, \
        among the tenants that used the device in the last ten seconds.",
        accounts::tenant_entitlement,
    ),
    rw(
        "groups/NAME/weight",
        "1 to 1000",
        "The weight among the siblings of the group.",
        |query| group(query, |facts| facts.weight.to_string()),
        |query, value| {
            query.target.group(query.name).ok_or(SetError::Gone)?;
            Ok(Change::GroupWeight { group: query.name.to_owned(), weight: number("weight", value, 1, 1000)? })
        },
    ),
    ro("groups/NAME/parent", "name", "The parent group; - is the root.", |query| {
        group(query, |facts| facts.parent.as_deref().map_or_else(|| "-".to_owned(), names::escape))
    }),
    ro("clients/ID/export", "name", "The export of the client.", |query| {
        client(query, |facts| names::escape(&facts.export))
    }),
    ro("clients/ID/tenant", "name", "The tenant of the client.", |query| {
        client(query, |facts| names::escape(&facts.tenant))
    }),
    ro("clients/ID/address", "address", "The origin of the connection: unix, or an address and port.", |query| {
        client(query, |facts| facts.address.clone())
    }),
    ro("clients/ID/pid", "number", "The process of the client, on a Unix socket.", |query| {
        client(query, |facts| optional(facts.pid))
    }),
    ro("clients/ID/uid", "number", "The user of the client, on a Unix socket.", |query| {
        client(query, |facts| optional(facts.uid))
    }),
    ro("clients/ID/comm", "name", "The command of the client, on a Unix socket.", |query| {
        client(query, |facts| facts.comm.as_deref().map_or_else(|| "-".to_owned(), one_line))
    }),
    ro("clients/ID/certificate", "name", "The first name in the client's certificate.", |query| {
        client(query, |facts| facts.certificate.as_deref().map_or_else(|| "-".to_owned(), one_line))
    }),
    ro("clients/ID/connected", "ns", "The duration of the connection.", |query| {
        client(query, |facts| facts.connected_ns.to_string())
    }),
    ro("clients/ID/stat", "key=number", "Requests answered and in flight, bytes read and written.", |query| {
        client(query, accounts::client_stat)
    }),
    wo(
        "clients/ID/disconnect",
        "1",
        "Closes the connection. Requests in progress are not answered.",
        |query, value| {
            let number = query.name.parse().map_err(|_| SetError::Gone)?;
            query.target.client(number).ok_or(SetError::Gone)?;
            once("disconnect", value)?;
            Ok(Change::Disconnect { client: number })
        },
    ),
    ro("server/version", "text", "The version of the program.", |query| server(query, |facts| facts.version.clone())),
    ro("server/engine", "name", "The I/O engine: io_uring, threads or simulated.", |query| {
        server(query, |facts| facts.engine.clone())
    }),
    ro("server/uptime", "s", "The time since the start.", |query| {
        server(query, |facts| format!("{}.{:02}", facts.uptime_ns / 1_000_000_000, facts.uptime_ns / 10_000_000 % 100))
    }),
    ro("server/connections", "connections", "Open connections, the limit, and connections since the start.", |query| {
        server(query, |facts| format!("{} {} {}", facts.connections, facts.connections_max, facts.connections_total))
    }),
    rw(
        "server/reload",
        "text",
        "The result of the last reload. Setting 1 starts a reload, as SIGHUP does; the reply comes \
        before its end.",
        |query| server(query, |facts| one_line(&facts.reload)),
        |_, value| once("reload", value).map(|()| Change::Reload).map_err(SetError::from),
    ),
    rw(
        "server/log",
        "filter",
        "The log filter in the syntax of RUST_LOG: error, warn, info, debug or trace, also by target.",
        |query| server(query, |facts| facts.log.clone().unwrap_or_else(|| "-".to_owned())),
        |_, value| Ok(Change::Log(value.to_owned())),
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

fn number<T: TryFrom<u64>>(what: &str, value: &str, min: u64, max: u64) -> Result<T, BadValue> {
    let number = text::parse_number(what, value, min, max)?;
    T::try_from(number).or_else(|_| text::bad(value, "is too large"))
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

/// Returns text of a client or a configuration without the characters that would end a line or move
/// the cursor of a terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
