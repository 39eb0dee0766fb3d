//! The leaves of the tree: path, unit, meaning, how each is read and set.

use crate::leaf::{Ask, Get, Leaf, Set, SetError};
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
        "The elevators, the present one in brackets. Setting switches: what is queued is \
        drained first, nothing is lost.",
        |ask| device(ask, scheduler),
        |ask, value| Ok(Change::Elevator { device: known(ask)?, kind: text::parse_elevator(value)? }),
    ),
    rw(
        "devices/NAME/queue/iosched/TUNABLE",
        "the tunable's own",
        "A tunable of the present elevator, by the kernel's name and in its \
        unit; `hoistway elevators NAME` tells what each does.",
        tunable,
        set_tunable,
    ),
    rw(
        "devices/NAME/queue/depth",
        "requests",
        "Requests that the device is given at once. There is fairness only among those that wait \
        above it.",
        |ask| device(ask, |facts| facts.depth.to_string()),
        |ask, value| Ok(Change::Depth { device: known(ask)?, depth: number("depth", value, 1, DEPTH_MAX.into())? }),
    ),
    rw(
        "devices/NAME/queue/nomerges",
        "0 or 2",
        "0: neighbouring requests are merged; 2: they are not.",
        |ask| device(ask, |facts| if facts.merge { "0" } else { "2" }.to_owned()),
        set_nomerges,
    ),
    rw(
        "devices/NAME/queue/max_sectors_kb",
        "KiB",
        "The largest request; longer ones are split.",
        |ask| device(ask, |facts| (facts.request_bytes_max >> 10).to_string()),
        |ask, value| {
            let kib: u32 = number(
                "max_sectors_kb",
                value,
                u64::from(REQUEST_BYTES.start() >> 10),
                u64::from(REQUEST_BYTES.end() >> 10),
            )?;
            Ok(Change::RequestBytesMax { device: known(ask)?, bytes: kib.saturating_mul(1024) & !4095 })
        },
    ),
    ro("devices/NAME/queue/rotational", "0 or 1", "Whether the device has an arm that moves.", |ask| {
        device(ask, |facts| text::switch(facts.rotational))
    }),
    ro("devices/NAME/queue/logical_block_size", "bytes", "What offsets and lengths are best multiples of.", |ask| {
        device(ask, |facts| facts.block_bytes.to_string())
    }),
    ro("devices/NAME/size", "sectors of 512 bytes", "The size of the device.", |ask| {
        device(ask, |facts| (facts.bytes / 512).to_string())
    }),
    ro("devices/NAME/backend", "kind:place", "Where the bytes lie.", |ask| device(ask, |facts| facts.backend.clone())),
    ro(
        "devices/NAME/drive",
        "name",
        "The model of a drive that says how long everything takes; - where there is none.",
        |ask| device(ask, |facts| facts.drive.clone().unwrap_or_else(|| "-".to_owned())),
    ),
    ro(
        "devices/NAME/bandwidth",
        "bytes/s",
        "What the device sustains, for the admission of reservations; - where it is not known.",
        |ask| device(ask, |facts| optional(facts.bandwidth)),
    ),
    ro("devices/NAME/position", "ns", "What positioning costs a request, for the same.", |ask| {
        device(ask, |facts| optional(facts.position_ns))
    }),
    ro(
        "devices/NAME/reserved",
        "ns a second",
        "Of each second of the device: how much is reserved, and how much can be; then tenants' contexts with a \
        reservation, and the longest delay of their requests in ns.",
        |ask| device(ask, accounts::reserved),
    ),
    ro(
        "devices/NAME/lateness",
        "ns",
        "How late an emulated drive's completions came, after the model's time.",
        |ask| device(ask, accounts::lateness),
    ),
    ro("devices/NAME/slice", "name", "Whom the elevator serves alone at this moment; - where it is nobody.", |ask| {
        device(ask, |facts| facts.slice.clone().unwrap_or_else(|| "-".to_owned()))
    }),
    ro("devices/NAME/switching", "0 or 1", "Whether another elevator follows when what this one has is done.", |ask| {
        device(ask, |facts| text::switch(facts.switching))
    }),
    ro("devices/NAME/inflight", "requests", "Requests in the device: reads, all others.", |ask| {
        device(ask, |facts| format!("{:8} {:8}", facts.in_flight[0], facts.in_flight[1]))
    }),
    ro("devices/NAME/busy", "ns", "How long at least one request was in the device, since the start.", |ask| {
        device(ask, |facts| facts.busy_ns.to_string())
    }),
    ro("devices/NAME/waiting", "requests", "Requests that wait in the queue above the device.", |ask| {
        device(ask, |facts| facts.waiting.to_string())
    }),
    ro(
        "devices/NAME/stat",
        "17 fields",
        "The counters of /sys/block/DEV/stat, in its order and units: of reads, then of writes: requests, \
        merges, sectors, ms; in flight, ms busy, ms in all; of discards the same four; flushes and their ms.",
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
        "The latencies of tenants/NAME/histogram, for the 64 tenants that had most \
        requests.",
        accounts::device_histograms,
    ),
    ro("exports/NAME/device", "name", "Its device.", |ask| export(ask, |facts| names::escape(&facts.device))),
    ro("exports/NAME/offset", "bytes", "Its first byte on the device.", |ask| {
        export(ask, |facts| facts.offset.to_string())
    }),
    ro("exports/NAME/size", "bytes", "Its size.", |ask| export(ask, |facts| facts.bytes.to_string())),
    ro("exports/NAME/read_only", "0 or 1", "Whether writes are refused.", |ask| {
        export(ask, |facts| text::switch(facts.read_only))
    }),
    ro("exports/NAME/description", "text", "A line for people.", |ask| {
        export(ask, |facts| one_line(&facts.description))
    }),
    ro("exports/NAME/clients", "clients", "Clients that use it.", |ask| export(ask, |facts| facts.clients.to_string())),
    rw(
        "tenants/NAME/weight",
        "1 to 1000",
        "Its share among the tenants of its group, with elevators that know groups.",
        |ask| tenant(ask, |facts| facts.terms.weight.to_string()),
        terms::weight,
    ),
    rw(
        "tenants/NAME/class",
        "name",
        "Its class: none (each client's own), realtime, best-effort or idle.",
        |ask| tenant(ask, |facts| text::class(facts.terms.priority.class()).to_owned()),
        terms::class,
    ),
    rw(
        "tenants/NAME/level",
        "0 to 7",
        "Its level within the class; 0 is the best.",
        |ask| tenant(ask, |facts| facts.terms.priority.level().to_string()),
        terms::level,
    ),
    ro("tenants/NAME/ioprio", "text", "Class and level as `ionice -p` prints them.", |ask| {
        tenant(ask, |facts| text::ionice(facts.terms.priority))
    }),
    rw(
        "tenants/NAME/reserve",
        "bytes/s, or 0",
        "Bandwidth that it can count on. It is refused where the device cannot promise so much.",
        |ask| tenant(ask, terms::tell_reserve),
        terms::reserve,
    ),
    rw(
        "tenants/NAME/reserve_request",
        "bytes",
        "The size of its requests that the reservation reckons with.",
        |ask| tenant(ask, terms::tell_reserve_request),
        terms::reserve_request,
    ),
    rw(
        "tenants/NAME/limit",
        "bytes/s, or max",
        "What it may not exceed, reads and writes together. Its burst follows, a tenth of a second, unless one was told.",
        |ask| tenant(ask, |facts| terms::tell_rate(facts.terms.limits.bytes)),
        terms::limit,
    ),
    rw(
        "tenants/NAME/burst",
        "bytes",
        "How much may come at once after a pause, under the limit.",
        |ask| tenant(ask, |facts| terms::tell_burst(facts.terms.limits.bytes)),
        terms::burst,
    ),
    rw(
        "tenants/NAME/limit_iops",
        "requests/s, or max",
        "The same in requests.",
        |ask| tenant(ask, |facts| terms::tell_rate(facts.terms.limits.operations)),
        terms::limit_iops,
    ),
    rw(
        "tenants/NAME/burst_iops",
        "requests",
        "The same in requests.",
        |ask| tenant(ask, |facts| terms::tell_burst(facts.terms.limits.operations)),
        terms::burst_iops,
    ),
    ro("tenants/NAME/parent", "name", "The group that it is part of; - is the root.", |ask| {
        tenant(ask, |facts| facts.terms.parent.as_deref().map_or_else(|| "-".to_owned(), names::escape))
    }),
    ro("tenants/NAME/clients", "clients", "Clients that are it.", |ask| tenant(ask, |facts| facts.clients.to_string())),
    ro(
        "tenants/NAME/stat",
        "a line a device",
        "What it had since the start, as cgroup's io.stat tells it: bytes and requests read, written \
        and discarded; then flushes, errors, us of the device's time, requests waiting, held by its limits and in the device, reservations \
        missed.",
        accounts::tenant_stat,
    ),
    ro(
        "tenants/NAME/stat.json",
        "JSON",
        "The same and the latencies in ns, for programs: over all devices, and for each; latency_ns is the whole time in the server.",
        accounts::tenant_json,
    ),
    ro(
        "tenants/NAME/latency",
        "ns",
        "Latencies since the start: from a request's arrival to its dispatch (queue) and from there to its end \
        (device), and both together (total).",
        accounts::tenant_latency,
    ),
    ro(
        "tenants/NAME/histogram",
        "ns:requests",
        "The same as a histogram: the lower bound of each bucket that is not empty, and how many \
        requests fell in it. There are 8 buckets an octave.",
        accounts::tenant_histograms,
    ),
    ro(
        "tenants/NAME/share",
        "0 to 1",
        "Of each device, in the last ten seconds: its part of the bytes, of the device's time, and what it was \
        entitled to.",
        accounts::tenant_share,
    ),
    ro(
        "tenants/NAME/entitlement",
        "0 to 1",
        "The part of each device that reservation, class, weight and limit entitle it to, among those \
        who used the device in the last ten seconds.",
        accounts::tenant_entitlement,
    ),
    rw(
        "groups/NAME/weight",
        "1 to 1000",
        "Its share among its siblings.",
        |ask| group(ask, |facts| facts.weight.to_string()),
        |ask, value| {
            ask.steer.group(ask.name).ok_or(SetError::Gone)?;
            Ok(Change::GroupWeight { group: ask.name.to_owned(), weight: number("weight", value, 1, 1000)? })
        },
    ),
    ro("groups/NAME/parent", "name", "The group that it is part of; - is the root.", |ask| {
        group(ask, |facts| facts.parent.as_deref().map_or_else(|| "-".to_owned(), names::escape))
    }),
    ro("clients/ID/export", "name", "The export that it chose.", |ask| {
        client(ask, |facts| names::escape(&facts.export))
    }),
    ro("clients/ID/tenant", "name", "The tenant that it is.", |ask| client(ask, |facts| names::escape(&facts.tenant))),
    ro("clients/ID/address", "address", "Where it comes from: unix, or an address and port.", |ask| {
        client(ask, |facts| facts.address.clone())
    }),
    ro("clients/ID/pid", "number", "Its process, on a Unix socket.", |ask| client(ask, |facts| optional(facts.pid))),
    ro("clients/ID/uid", "number", "Its user, on a Unix socket.", |ask| client(ask, |facts| optional(facts.uid))),
    ro("clients/ID/comm", "name", "Its command, on a Unix socket.", |ask| {
        client(ask, |facts| facts.comm.as_deref().map_or_else(|| "-".to_owned(), one_line))
    }),
    ro("clients/ID/certificate", "name", "The name in its certificate.", |ask| {
        client(ask, |facts| facts.certificate.as_deref().map_or_else(|| "-".to_owned(), one_line))
    }),
    ro("clients/ID/connected", "ns", "How long it has been connected.", |ask| {
        client(ask, |facts| facts.connected_ns.to_string())
    }),
    ro("clients/ID/stat", "key=number", "Requests answered and in flight, bytes read and written.", |ask| {
        client(ask, accounts::client_stat)
    }),
    wo("clients/ID/disconnect", "1", "Closes its connection. What it waits for is not answered.", |ask, value| {
        let number = ask.name.parse().map_err(|_| SetError::Gone)?;
        ask.steer.client(number).ok_or(SetError::Gone)?;
        once("disconnect", value)?;
        Ok(Change::Disconnect { client: number })
    }),
    ro("server/version", "text", "Its version.", |ask| server(ask, |facts| facts.version.clone())),
    ro("server/engine", "name", "How it does its I/O: io_uring, threads or simulated.", |ask| {
        server(ask, |facts| facts.engine.clone())
    }),
    ro("server/uptime", "s", "How long it has been running.", |ask| {
        server(ask, |facts| format!("{}.{:02}", facts.uptime_ns / 1_000_000_000, facts.uptime_ns / 10_000_000 % 100))
    }),
    ro("server/connections", "connections", "Open now, at most, and since the start.", |ask| {
        server(ask, |facts| format!("{} {} {}", facts.connections, facts.connections_max, facts.connections_total))
    }),
    rw(
        "server/reload",
        "text",
        "What became of the last reload. Setting it to 1 has the configuration read anew, as SIGHUP does: the answer comes before that is done.",
        |ask| server(ask, |facts| one_line(&facts.reload)),
        |_, value| once("reload", value).map(|()| Change::Reload).map_err(SetError::from),
    ),
    rw(
        "server/log",
        "filter",
        "What is logged: error, warn, info, debug or trace, also by target, as RUST_LOG has it.",
        |ask| server(ask, |facts| facts.log.clone().unwrap_or_else(|| "-".to_owned())),
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

fn server(ask: &Ask<'_>, tell: fn(&ServerFacts) -> String) -> Option<String> {
    Some(tell(&ask.steer.server()))
}

fn device(ask: &Ask<'_>, tell: fn(&DeviceFacts) -> String) -> Option<String> {
    ask.steer.device(ask.name).as_ref().map(tell)
}

fn export(ask: &Ask<'_>, tell: fn(&ExportFacts) -> String) -> Option<String> {
    ask.steer.export(ask.name).as_ref().map(tell)
}

fn tenant(ask: &Ask<'_>, tell: fn(&TenantFacts) -> String) -> Option<String> {
    ask.steer.tenant(ask.name).as_ref().map(tell)
}

fn group(ask: &Ask<'_>, tell: fn(&GroupFacts) -> String) -> Option<String> {
    ask.steer.group(ask.name).as_ref().map(tell)
}

fn client(ask: &Ask<'_>, tell: fn(&ClientFacts) -> String) -> Option<String> {
    ask.steer.client(ask.name.parse().ok()?).as_ref().map(tell)
}

/// The name of the device, if it is still there.
fn known(ask: &Ask<'_>) -> Result<String, SetError> {
    ask.steer.device(ask.name).map(|_| ask.name.to_owned()).ok_or(SetError::Gone)
}

fn number<T: TryFrom<u64>>(what: &str, value: &str, min: u64, max: u64) -> Result<T, BadValue> {
    let number = text::parse_number(what, value, min, max)?;
    T::try_from(number).or_else(|_| text::bad(value, "is too large"))
}

/// Whatever happens once when it is set to 1.
fn once(what: &str, value: &str) -> Result<(), BadValue> {
    if value == "1" { Ok(()) } else { text::bad(value, format!("is not 1, which is all that {what} takes")) }
}

fn scheduler(facts: &DeviceFacts) -> String {
    text::scheduler(facts.elevator)
}

fn tunable(ask: &Ask<'_>) -> Option<String> {
    let tunables = ask.steer.device(ask.name)?.tunables;
    tunables.iter().find(|(tunable, _)| tunable.name == ask.tunable).map(|(_, value)| value.to_string())
}

fn set_tunable(ask: &Ask<'_>, value: &str) -> Result<Change, SetError> {
    let tunables = ask.steer.device(ask.name).ok_or(SetError::Gone)?.tunables;
    let (tunable, _) = tunables.iter().find(|(tunable, _)| tunable.name == ask.tunable).ok_or(SetError::Gone)?;
    let value = text::parse_tunable(tunable, value)?;
    Ok(Change::Tunable { device: ask.name.to_owned(), name: tunable.name, value })
}

fn set_nomerges(ask: &Ask<'_>, value: &str) -> Result<Change, SetError> {
    let merge = match value {
        "0" => true,
        "2" => false,
        _ => text::bad(value, "is neither 0 nor 2, which nomerges takes")?,
    };
    Ok(Change::Merge { device: known(ask)?, merge })
}

/// The figure, or `-` where there is none.
fn optional<T: ToString>(figure: Option<T>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| figure.to_string())
}

/// What came from outside, without the characters that would end a line or move a terminal's
/// cursor.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
