//! Shares of a device: weights, a client with think time beside backlogged ones, reservations and
//! limits. The drive has a constant service time, so the results show the scheduler alone.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::programs;
use serde_json::Value;

use super::load::{FioFigures, Load};
use super::servers::{Bench, Running};

/// The number of reads of 4 KiB in the budget of bfq in [`sizes`].
const BUDGET_REQUESTS: u32 = 128;

/// One row of the table: the target and the measurement.
#[derive(Clone, Debug)]
pub struct Shares {
    pub what: String,
    /// The duration of the measurement, in s, without the ramp.
    pub seconds: f64,
    /// The elevator.
    pub under: String,
    pub wanted: String,
    pub found: String,
    /// The deviation of the measurement from the target, in percent.
    pub off_percent: f64,
    /// The tolerance, as the page shows it.
    pub bound: String,
    low_percent: f64,
    high_percent: f64,
}

impl Shares {
    /// Returns true if the deviation is within the tolerance.
    pub fn holds(&self) -> bool {
        (self.low_percent..=self.high_percent).contains(&self.off_percent)
    }
}

/// A tenant: its name, its terms as in the configuration, and its load.
struct Tenant {
    name: &'static str,
    terms: String,
    load: Load,
}

/// A drive with a constant service time.
#[derive(Clone, Copy)]
struct NullDrive {
    service_us: u32,
    depth: u32,
    /// The tunables of the elevator, as in the configuration.
    tunables: &'static str,
}

impl NullDrive {
    const fn of(service_us: u32, depth: u32) -> NullDrive {
        NullDrive { service_us, depth, tunables: "" }
    }
}

/// Measures all rows. Measurements of rates last six times `seconds`, so that token buckets are
/// emptied and shares converge.
pub fn measure(bench: &Bench, seconds: f64) -> Result<Vec<Shares>> {
    let mut rows = Vec::new();
    for elevator in ["paternoster", "fiops", "bfq", "cfq-wf2q"] {
        rows.push(depths(bench, elevator, (100, 100), seconds)?);
        rows.push(depths(bench, elevator, (100, 400), seconds)?);
        rows.push(sizes(bench, elevator, 64, seconds)?);
    }
    rows.push(sizes(bench, "bfq", 256, seconds)?);
    for elevator in ["paternoster", "fiops", "bfq"] {
        rows.push(thinker(bench, elevator, seconds)?);
    }
    for elevator in ["paternoster", "fiops", "bfq", "noop"] {
        rows.extend(reservation(bench, elevator, seconds * 6.0)?);
        rows.extend(limits(bench, elevator, seconds * 6.0)?);
    }
    Ok(rows)
}

/// Measures two backlogged tenants, one with queue depth 4 and one with 64.
fn depths(bench: &Bench, elevator: &'static str, weights: (u32, u32), seconds: f64) -> Result<Shares> {
    let tenant = |name, weight, depth| Tenant {
        name,
        terms: format!("weight = {weight}"),
        load: Load { ramp_seconds: 1.0, ..Load::random_reads(depth, seconds) },
    };
    let tenants = [tenant("few", weights.0, 4), tenant("many", weights.1, 64)];
    let drive = NullDrive::of(500, 2);
    let found = run(bench, elevator, drive, &tenants, "")?.0;
    let share = found[0].operations_per_s / (found[0].operations_per_s + found[1].operations_per_s);
    let wanted = f64::from(weights.0) / f64::from(weights.0 + weights.1);
    Ok(ratio_row(
        format!("QD4 beside QD64, weights {}:{}", weights.0 / 100, weights.1 / 100),
        elevator,
        seconds,
        wanted,
        share,
    ))
}

/// Measures two backlogged tenants, one with requests of 4 KiB at queue depth `depth` and one with
/// requests of 1 MiB at depth 4. Their shares are equal in the unit of the elevator.
fn sizes(bench: &Bench, elevator: &'static str, depth: u32, seconds: f64) -> Result<Shares> {
    let reads = |depth| Load { ramp_seconds: 1.0, ..Load::random_reads(depth, seconds) };
    let tenants = [
        Tenant { name: "small", terms: String::new(), load: reads(depth) },
        Tenant { name: "large", terms: String::new(), load: Load { block: "1m", ..reads(4) } },
    ];
    // bfq charges a whole budget to a queue that has not used it up in 125 ms. One of 512 KiB is
    // 128 requests of 4 KiB, 32 ms on this drive.
    let is_bfq = elevator == "bfq";
    let tunables = if is_bfq { "max_budget = 1024" } else { "" };
    let drive = NullDrive { tunables, ..NullDrive::of(500, 2) };
    let found = run(bench, elevator, drive, &tenants, "")?.0;
    let (currency, figure): (&str, fn(&FioFigures) -> f64) = match elevator {
        "bfq" => ("bytes (max_budget=1024)", |result| result.bytes_per_s),
        "fiops" => ("operations", |result| result.operations_per_s),
        // Each operation takes the same time on this drive.
        _ => ("device time", |result| result.operations_per_s),
    };
    let share = figure(&found[0]) / (figure(&found[0]) + figure(&found[1]));
    let row =
        ratio_row(format!("QD{depth} of 4 KiB beside QD4 of 1 MiB, in {currency}"), elevator, seconds, 0.5, share);
    if is_bfq && depth < BUDGET_REQUESTS {
        let bound = format!(
            "no goal: a budget is {BUDGET_REQUESTS} requests of 4 KiB and the tenant has {depth} in flight, so its queue becomes empty in each turn"
        );
        return Ok(Shares { bound, low_percent: f64::NEG_INFINITY, high_percent: f64::INFINITY, ..row });
    }
    Ok(row)
}

/// Measures a client with one request at a time and 10 ms of think time beside three backlogged
/// clients. Its 99th percentile in the server may be twice that of a run alone, plus one request of
/// each competitor.
fn thinker(bench: &Bench, elevator: &'static str, seconds: f64) -> Result<Shares> {
    let light = || Tenant {
        name: "light",
        terms: String::new(),
        load: Load { more: vec!["--thinktime=10ms".to_owned()], ..Load::random_reads(1, seconds) },
    };
    let drive = NullDrive::of(1000, 8);
    let alone_ms = server_p99_ms(&run(bench, elevator, drive, &[light()], "light")?.1)?;
    let greedy = |name| Tenant { name, terms: String::new(), load: Load::random_reads(32, seconds) };
    let tenants = [light(), greedy("greedy-1"), greedy("greedy-2"), greedy("greedy-3")];
    let beside_ms = server_p99_ms(&run(bench, elevator, drive, &tenants, "light")?.1)?;
    let bound_ms = 2.0 * alone_ms + 3.0 * f64::from(drive.service_us) / 1e3;
    Ok(Shares {
        what: format!(
            "p99 in the server of a QD1 client with 10 ms of think time, beside three with QD32 (alone {alone_ms:.2} ms)"
        ),
        seconds,
        under: elevator.to_owned(),
        wanted: format!("{bound_ms:.2} ms"),
        found: format!("{beside_ms:.2} ms"),
        off_percent: (beside_ms / bound_ms - 1.0) * 100.0,
        bound: "upper bound".to_owned(),
        low_percent: -100.0,
        high_percent: 0.0,
    })
}

/// Measures a reserving tenant beside four backlogged ones: it submits exactly its reserved rate,
/// and then has a permanent backlog.
fn reservation(bench: &Bench, elevator: &'static str, seconds: f64) -> Result<Vec<Shares>> {
    let wanted = 40.0 * f64::from(1 << 20);
    let terms = "reserve = { rate = \"40M\", request = \"64k\" }".to_owned();
    let large = |depth| Load { block: "64k", ramp_seconds: 2.0, ..Load::random_reads(depth, seconds) };
    let greedy = |name| Tenant { name, terms: String::new(), load: large(64) };
    let mut rows = Vec::new();
    for (what, load) in
        [("submits 40 MiB/s", Load { more: vec!["--rate=40m".to_owned()], ..large(16) }), ("backlogged", large(16))]
    {
        let reserving = Tenant { name: "reserving", terms: terms.clone(), load };
        // 1 ms and two at once: 2,000 requests a second or 125 MiB/s. A third would be 42 MiB/s;
        // with four competitors a fair share is less.
        let tenants = [reserving, greedy("greedy-1"), greedy("greedy-2"), greedy("greedy-3"), greedy("greedy-4")];
        let found = run(bench, elevator, NullDrive::of(1000, 2), &tenants, "")?.0;
        let off_percent = (found[0].bytes_per_s / wanted - 1.0) * 100.0;
        rows.push(Shares {
            what: format!("reserved 40 MiB/s of 125 beside four backlogged tenants; {what}"),
            seconds,
            under: elevator.to_owned(),
            wanted: "40.0 MiB/s".to_owned(),
            found: format!("{:.2} MiB/s", found[0].bytes_per_s / f64::from(1 << 20)),
            off_percent,
            bound: "-2 %".to_owned(),
            low_percent: -2.0,
            high_percent: f64::INFINITY,
        });
    }
    Ok(rows)
}

/// Measures two tenants with a limit of bytes and of operations a second on a much faster drive.
fn limits(bench: &Bench, elevator: &'static str, seconds: f64) -> Result<Vec<Shares>> {
    let tenants = [
        Tenant {
            name: "bytes",
            terms: "limit = \"20M\"".to_owned(),
            load: Load { block: "64k", ramp_seconds: 5.0, ..Load::random_reads(16, seconds) },
        },
        Tenant {
            name: "operations",
            terms: "limit_iops = 1000".to_owned(),
            load: Load { ramp_seconds: 5.0, ..Load::random_reads(16, seconds) },
        },
    ];
    let found = run(bench, elevator, NullDrive::of(100, 4), &tenants, "")?.0;
    let row = |what: &str, wanted: String, found: String, ratio: f64| Shares {
        what: what.to_owned(),
        seconds,
        under: elevator.to_owned(),
        wanted,
        found,
        off_percent: (ratio - 1.0) * 100.0,
        bound: "2 %".to_owned(),
        low_percent: -2.0,
        high_percent: 2.0,
    };
    let bytes = found[0].bytes_per_s / f64::from(1 << 20);
    let operations = found[1].operations_per_s;
    Ok(vec![
        row("limited to 20 MiB/s", "20.0 MiB/s".to_owned(), format!("{bytes:.2} MiB/s"), bytes / 20.0),
        row("limited to 1,000 operations/s", "1000/s".to_owned(), format!("{operations:.1}/s"), operations / 1000.0),
    ])
}

fn ratio_row(what: String, elevator: &str, seconds: f64, wanted: f64, share: f64) -> Shares {
    Shares {
        what,
        seconds,
        under: elevator.to_owned(),
        wanted: format!("{:.1} %", wanted * 100.0),
        found: format!("{:.1} %", share * 100.0),
        off_percent: (share / wanted - 1.0) * 100.0,
        bound: "5 %".to_owned(),
        low_percent: -5.0,
        high_percent: 5.0,
    }
}

/// Serves one device to all tenants, an export for each, and lets them work at the same time.
/// Returns the result of each tenant, and the statistics that the server reports of the tenant
/// `observed`.
fn run(
    bench: &Bench,
    elevator: &str,
    drive: NullDrive,
    tenants: &[Tenant],
    observed: &str,
) -> Result<(Vec<FioFigures>, Value)> {
    let configuration = bench.directory.join("shares.toml");
    fs::write(&configuration, text(bench, elevator, drive, tenants)?)?;
    let control = bench.directory.join("control.sock");
    let mut command = Command::new(&bench.hoistway);
    command.args(["serve", "--config"]).arg(&configuration).arg("--socket").arg(&bench.socket);
    command.arg("--control").arg(&control);
    let server = Running::start_ours(&mut command, &bench.directory)?;
    let mut running = Vec::new();
    for tenant in tenants {
        running.push(tenant.load.start(&bench.uri(tenant.name))?);
    }
    let results = running.into_iter().map(|load| load.finish()).collect::<Result<Vec<_>>>()?;
    let stat = if observed.is_empty() {
        Value::Null
    } else {
        let path = format!("tenants/{observed}/stat.json");
        let printed =
            programs::output(Command::new(&bench.hoistway).args(["ctl", "get", &path, "--control"]).arg(&control))?;
        serde_json::from_str(&printed).with_context(|| format!("the output of hoistway ctl get {path}"))?
    };
    server.stop();
    for (tenant, result) in tenants.iter().zip(&results) {
        eprintln!(
            "{elevator} · {}: {:.0} operations/s, {:.1} MB/s, p99 {:.0} us",
            tenant.name,
            result.operations_per_s,
            result.bytes_per_s / 1e6,
            result.p99_ns / 1e3
        );
    }
    Ok((results, stat))
}

/// The configuration: a drive of constant service time without a backing file.
fn text(bench: &Bench, elevator: &str, drive: NullDrive, tenants: &[Tenant]) -> Result<String> {
    let profile = bench.directory.join("constant.toml");
    let (service_ns, depth) = (drive.service_us * 1000, drive.depth);
    let capacity_sectors = 64u64 << 21;
    fs::write(
        &profile,
        format!(
            "name = \"constant\"\nwhat = \"a constant service time\"\nsource = \"none\"\n\
             [null]\nservice_ns = {service_ns}\ndepth = {depth}\ncapacity_sectors = {capacity_sectors}\n"
        ),
    )?;
    let bandwidth = f64::from(depth) * 1e9 / f64::from(service_ns) * 65_536.0;
    let mut text = format!(
        "[[device]]\nname = \"disk\"\nbackend = \"null:64G\"\ndrive = \"{}\"\nelevator = \"{elevator}\"\ndepth = {depth}\n\
         bandwidth = \"{}k\"\nposition = \"0us\"\ntunables = {{ {} }}\n",
        profile.display(),
        (bandwidth / 1024.0) as u64,
        drive.tunables,
    );
    for (index, tenant) in tenants.iter().enumerate() {
        let name = tenant.name;
        write!(
            text,
            "\n[[export]]\nname = \"{name}\"\ndevice = \"disk\"\noffset = \"{}G\"\nsize = \"1G\"\n\n\
             [[tenant]]\nname = \"{name}\"\nexport = \"{name}\"\n{}\n",
            index * 2,
            tenant.terms
        )?;
    }
    Ok(text)
}

/// The 99th percentile of the whole time in the server, in ms.
fn server_p99_ms(stat: &Value) -> Result<f64> {
    let ns =
        stat.pointer("/latency_ns/p99").and_then(Value::as_f64).context("no latency_ns.p99 in the tenant's stat")?;
    Ok(ns / 1e6)
}
