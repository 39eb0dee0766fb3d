//! Scrapes of a fake server.

use std::collections::BTreeMap;

use hoistway_core::Kind;
use hoistway_qos::{Limits, Rate, Terms};

use super::http::{REQUEST_BYTES_MAX, Session};
use super::*;
use crate::fake::FakeTarget;
use crate::share::INTERVAL_NS;
use crate::{
    AccountView, Change, ClientFacts, DeviceFacts, ExportFacts, GroupFacts, ObjectKind, Refused, ServerFacts,
    TenantFacts,
};

/// Returns the answers of a new connection to these bytes, and whether it closes.
fn answer(request: &[u8]) -> (String, bool) {
    let (mut session, mut metrics, watch, target) = (Session::new(), Metrics::new(), Watch::new(), FakeTarget::new());
    let mut out = Vec::new();
    session.receive(request, &mut metrics, &watch, &target, &mut out);
    while session.has_more() {
        session.resume(&mut metrics, &watch, &target, &mut out);
    }
    (String::from_utf8(out).unwrap(), session.is_closing())
}

#[test]
fn a_scrape_has_the_counters_of_tenants_in_base_units() {
    let mut target = FakeTarget::new();
    let limits = Limits { bytes: Some(Rate::new(50 << 20)), operations: Some(Rate::new(150)) };
    target.tenants.insert("backup".into(), Terms { limits, ..Terms::default() });
    let text = Metrics::new().text(&Watch::new(), &target);
    for line in [
        "# TYPE hoistway_request_duration_seconds histogram",
        "hoistway_requests_total{op=\"read\",tenant=\"data base\",device=\"sda\"} 3",
        "hoistway_bytes_total{op=\"read\",tenant=\"backup\",device=\"sda\"} 4096",
        "hoistway_errors_total{op=\"flush\",tenant=\"backup\",device=\"sda\"} 0",
        "hoistway_service_seconds_total{tenant=\"data base\",device=\"sda\"} 0.000003",
        "hoistway_queue_depth{tenant=\"backup\",device=\"sda\"} 4",
        "hoistway_in_flight{tenant=\"backup\",device=\"sda\"} 1",
        "hoistway_device_busy_seconds_total{device=\"sda\"} 0.007",
        "hoistway_device_elevator{device=\"sda\",elevator=\"cfq\"} 1",
        "hoistway_device_violation{device=\"sda\"} 0",
        "hoistway_lateness_seconds{device=\"sda\",quantile=\"0.99\"} 0.00009",
        "hoistway_build_info{version=\"0.1.0\",engine=\"simulated\"} 1",
        "hoistway_connections 3",
        "hoistway_connections_max 16384",
        "hoistway_last_reload_success 1",
        "hoistway_last_reload_timestamp_seconds 1700000000.5",
        "hoistway_reloads_total{result=\"success\"} 0",
        "hoistway_reloads_total{result=\"failure\"} 2",
        "hoistway_reservation_missed_total{tenant=\"backup\",device=\"sda\"} 1",
        "hoistway_reservation_late_seconds_total{tenant=\"data base\",device=\"sda\"} 1.5",
        "hoistway_reservation_lateness_seconds{tenant=\"data base\",device=\"sda\"} 0.25",
        "hoistway_held_seconds_total{tenant=\"data base\",device=\"sda\"} 6.0",
        "hoistway_weight{tenant=\"data base\",device=\"sda\"} 300",
        "hoistway_reservation_bytes_per_second{tenant=\"data base\",device=\"sda\"} 20971520",
        "hoistway_limit_bytes_per_second{tenant=\"backup\",device=\"sda\"} 52428800",
        "hoistway_limit_requests_per_second{tenant=\"backup\",device=\"sda\"} 150",
        "hoistway_slices_total{tenant=\"data base\",device=\"sda\"} 6",
        "hoistway_slice_seconds_total{tenant=\"backup\",device=\"sda\"} 0.08",
        "hoistway_slice_holder{tenant=\"backup\",device=\"sda\"} 1",
        "hoistway_slice_holder{tenant=\"data base\",device=\"sda\"} 0",
        "hoistway_slice_length_seconds{device=\"sda\"} 0.04",
        "hoistway_slice_left_seconds{device=\"sda\"} 0.01",
        "hoistway_request_duration_seconds_count{op=\"read\",tenant=\"backup\",device=\"sda\",phase=\"queue\"} 100",
        "hoistway_request_duration_seconds_bucket{le=\"+Inf\",op=\"read\",tenant=\"backup\",device=\"sda\",phase=\"queue\"} 100",
    ] {
        assert!(text.lines().any(|present| present == line), "{line}\n{text}");
    }
    for absent in
        ["hoistway_reservation_lateness_seconds{tenant=\"backup\"", "hoistway_limit_bytes_per_second{tenant=\"data"]
    {
        assert!(!text.contains(absent), "{absent}: no such terms\n{text}");
    }
    assert!(text.ends_with("# EOF\n") && !text.contains("process_"), "{text}");
    // 1 to 100 ms: at least 9 are below 10 ms; the histogram is exact to 1 %.
    let bucket = |le: &str| {
        let start = format!("hoistway_request_duration_seconds_bucket{{le=\"{le}\",op=\"read\",tenant=\"backup\"");
        text.lines()
            .find(|line| line.starts_with(&start))
            .and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .unwrap()
    };
    assert!((9..=10).contains(&bucket("0.01")) && (49..=50).contains(&bucket("0.05")), "{text}");
    assert_eq!((bucket("0.0005"), bucket("0.25")), (0, 100));
}

#[test]
fn terms_set_at_run_time_are_those_of_the_next_scrape() {
    let mut target = FakeTarget::new();
    let weight = |target: &FakeTarget| {
        let text = Metrics::new().text(&Watch::new(), target);
        let line = text.lines().find(|line| line.starts_with("hoistway_weight{tenant=\"backup\"")).map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u16>().ok())
    };
    assert_eq!(weight(&target), Some(100));
    let terms = Terms { weight: 7, ..Terms::default() };
    target.change(Change::Terms { tenant: "backup".into(), terms }).expect("a fake change");
    assert_eq!(weight(&target), Some(7));
}

#[test]
fn the_figures_of_the_process_have_the_names_of_all_programs() {
    let text = Metrics::of_process().text(&Watch::new(), &FakeTarget::new());
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert!(value("process_resident_memory_bytes") >= 1_048_576.0);
    assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
    assert!(value("process_threads") >= 1.0 && value("process_cpu_seconds_total") >= 0.0);
    assert!(value("process_start_time_seconds") > 1_700_000_000.0, "after 2023");
    let descriptors = value("process_open_fds");
    assert!((3.0..=value("process_max_fds")).contains(&descriptors), "{descriptors}");
    assert_eq!(text.matches("# EOF").count(), 1);
}

#[test]
fn the_limit_of_memory_is_a_gauge_if_there_is_one() {
    let text_of = |limit| {
        let mut registry = Registry::with_prefix("hoistway");
        registry.register_collector(Box::new(MemoryLimit(limit)));
        let mut text = String::new();
        encode_registry(&mut text, &registry).expect("a string");
        text
    };
    assert!(text_of(Some(1 << 30)).ends_with("\nhoistway_memory_limit_bytes 1073741824\n"), "{}", text_of(Some(1)));
    assert!(text_of(None).ends_with("# UNIT hoistway_memory_limit_bytes bytes\n"), "{}", text_of(None));
}

#[test]
fn every_sample_belongs_to_a_family_that_was_declared() {
    let text = Metrics::of_process().text(&Watch::new(), &FakeTarget::new());
    let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let mut distinct = families.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), families.len());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let bare = ["_total", "_bucket", "_sum", "_count", "_info"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        assert!(families.contains(&bare) || families.contains(&name), "{line}");
    }
}

/// The reference, with a table of all metrics.
const REFERENCE: &str = include_str!("../../../../docs/serve-control.md");

#[test]
fn the_reference_lists_every_metric_with_its_labels() {
    let (mut target, mut watch) = (FakeTarget::new(), Watch::new());
    let limits = Limits { bytes: Some(Rate::new(50 << 20)), operations: Some(Rate::new(150)) };
    target.tenants.insert("backup".into(), Terms { limits, ..Terms::default() });
    for second in 1..4 {
        target.served = second;
        watch.tick(second * INTERVAL_NS, &target);
    }
    let text = Metrics::of_process().text(&watch, &target);
    // The names of samples, and of families without a sample here, with their labels.
    let mut written: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').expect("a name and a type");
            let end = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            written.entry(format!("{name}{end}")).or_default();
        } else if let Some((name, labels)) = line.split_once('{') {
            let name = name.trim_end_matches("_bucket").trim_end_matches("_sum").trim_end_matches("_count");
            let labels = labels.rsplit_once('}').map_or("", |(labels, _)| labels).split("\",");
            let labels =
                labels.filter_map(|label| Some(label.split_once('=')?.0.to_owned())).filter(|label| label != "le");
            written.entry(name.to_owned()).or_default().extend(labels);
        }
    }
    written.get_mut("hoistway_build_info").expect("it is there").clear();
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in REFERENCE.lines().filter(|line| line.starts_with("| `hoistway_") || line.starts_with("| `process_")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let labels: BTreeSet<String> =
            cells[1].split(", ").filter(|label| !label.is_empty()).map(str::to_owned).collect();
        for name in cells[0].split(", ").map(|name| name.trim_matches('`')) {
            listed.insert(name.to_owned(), labels.clone());
        }
    }
    assert_eq!(listed, written, "docs/serve-control.md, the table of metrics");
}

/// The dashboard and the alerts, which read the metrics.
const DASHBOARD: &str = include_str!("../../../../packaging/grafana/hoistway.json");
const ALERTS: &str = include_str!("../../../../packaging/prometheus/hoistway.rules.yml");

#[test]
fn the_dashboard_has_all_metrics_and_the_alerts_have_no_others() {
    let text = Metrics::of_process().text(&Watch::new(), &FakeTarget::new());
    let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(['{', ' ']).next());
    // A family without a sample in this scrape counts under its own name.
    let existing: BTreeSet<&str> = samples.chain(families.iter().copied()).collect();
    let used = |source: &'static str| -> BTreeSet<&'static str> {
        let words = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("hoistway_") || word.starts_with("process_")).collect()
    };
    let (shown, watched) = (used(DASHBOARD), used(ALERTS));
    assert!(watched.len() >= 8, "{watched:?}");
    let unknown: Vec<_> = shown.union(&watched).filter(|name| !existing.contains(*name)).collect();
    assert!(unknown.is_empty(), "no such metrics: {unknown:?}");
    let hidden: Vec<_> =
        families.iter().filter(|family| !shown.iter().any(|name| name.starts_with(**family))).collect();
    assert!(hidden.is_empty(), "not in the dashboard: {hidden:?}");
}

#[test]
fn the_alert_on_shares_leaves_out_the_elevators_without_groups() {
    let without: Vec<&str> =
        Kind::ALL.iter().map(|kind| kind.info()).filter(|info| !info.groups).map(|info| info.name).collect();
    let pattern = format!("hoistway_device_elevator{{elevator=~\"{}\"}}", without.join("|"));
    assert!(ALERTS.contains(&pattern), "the rule HoistwayShareTooSmall lacks {pattern}");
}

/// A server with many tenants, whose names need escapes.
struct ManyTenants {
    tenants: u64,
    uptime_ns: u64,
}

impl AdminTarget for ManyTenants {
    fn server(&self) -> ServerFacts {
        ServerFacts { uptime_ns: self.uptime_ns, ..ServerFacts::default() }
    }
    fn names(&self, kind: ObjectKind) -> Vec<String> {
        FakeTarget::new().names(kind)
    }
    fn device(&self, name: &str) -> Option<DeviceFacts> {
        FakeTarget::new().device(name)
    }
    fn export(&self, _: &str) -> Option<ExportFacts> {
        None
    }
    fn tenant(&self, _: &str) -> Option<TenantFacts> {
        None
    }
    fn group(&self, _: &str) -> Option<GroupFacts> {
        None
    }
    fn client(&self, _: u64) -> Option<ClientFacts> {
        None
    }
    fn accounts(&self, device: &str, visit: &mut dyn FnMut(&str, &AccountView<'_>)) {
        FakeTarget::new().accounts(device, &mut |name, view| {
            if name == "backup" {
                (0..self.tenants).rev().for_each(|number| visit(&format!("\"t{number:05}\\\n"), view));
            }
        });
    }
    fn change(&mut self, _: Change) -> Result<Option<String>, Refused> {
        Err(Refused::Gone)
    }
}

#[test]
fn labels_are_bounded_and_stay_with_the_first_tenants() {
    let mut metrics = Metrics::new();
    let requests = |text: &str, tenant: &str| {
        let start = format!("hoistway_requests_total{{op=\"read\",tenant=\"{tenant}\"");
        text.lines().find(|line| line.starts_with(&start)).map(|line| line.rsplit(' ').next().unwrap().to_owned())
    };
    let few = metrics.text(&Watch::new(), &ManyTenants { tenants: 60, uptime_ns: 0 });
    assert_eq!((requests(&few, "\\\"t00000\\\\\\n").as_deref(), requests(&few, OTHERS)), (Some("1"), None));
    let many = metrics.text(&Watch::new(), &ManyTenants { tenants: 1000, uptime_ns: FRESH_NS });
    assert_eq!(requests(&many, "\\\"t00000\\\\\\n").as_deref(), Some("1"));
    assert_eq!(requests(&many, OTHERS).as_deref(), Some("936"));
    assert_eq!(many.lines().filter(|line| line.starts_with("hoistway_queue_depth{")).count(), TENANTS_MAX + 1);
    let latencies_of =
        |tenant: &str| many.contains(&format!("duration_seconds_count{{op=\"read\",tenant=\"{tenant}\""));
    assert!(
        latencies_of("\\\"t00999\\\\\\n") && !latencies_of(OTHERS),
        "only tenants with a label of their own have latencies"
    );
}

#[test]
fn scrapes_without_a_pause_return_the_same_text() {
    let mut metrics = Metrics::new();
    let mut at = |uptime_ns, tenants| metrics.text(&Watch::new(), &ManyTenants { tenants, uptime_ns });
    let first = at(1, 3);
    assert_eq!(at(FRESH_NS, 5), first, "not yet");
    assert_ne!(at(FRESH_NS + 1, 5), first);
}

#[test]
fn a_scraper_is_answered_and_its_connection_stays_open() {
    let (text, closes) = answer(b"GET /metrics HTTP/1.1\r\nHost: localhost:9\r\nAccept: */*\r\n\r\n");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())) && !closes, "{head}");
    let (text, closes) =
        answer(b"HEAD /metrics?x=1 HTTP/1.1\r\n\r\nGET / HTTP/1.1\nConnection: Close\n\nGET / HTTP/1.1\r\n\r\n");
    assert_eq!((text.matches("HTTP/1.1 200 OK").count(), closes), (2, true), "{text}");
    assert!(text.ends_with("hoistway: the metrics are at /metrics\n"), "{text}");
    assert!(answer(b"GET /metrics HTTP/1.0\r\n\r\n").1);
    assert!(!answer(b"GET /metrics HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").1);
}

#[test]
fn pipelined_requests_are_answered_one_at_a_time() {
    let (mut session, mut metrics, watch, target) = (Session::new(), Metrics::new(), Watch::new(), FakeTarget::new());
    let mut out = Vec::new();
    session.receive(&b"GET /metrics HTTP/1.1\r\n\r\n".repeat(100), &mut metrics, &watch, &target, &mut out);
    assert!(session.has_more() && !session.wants_input());
    assert_eq!(String::from_utf8(out).unwrap().matches("# EOF").count(), 1);
}

#[test]
fn other_requests_get_the_error_that_http_defines() {
    for (request, status, closes) in [
        (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404 Not Found", false),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "405 Method Not Allowed", true),
        (b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200 OK", true),
        (b"GET /metrics HTTP/2.0\r\n\r\n", "400 Bad Request", true),
        (b"GET /metrics\r\n\r\n", "400 Bad Request", true),
        (b"GET http://x/ HTTP/1.1\r\n\r\n", "400 Bad Request", true),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", "400 Bad Request", true),
        (b"\xff\xfe / HTTP/1.1\r\n\r\n", "400 Bad Request", true),
        (b"NBDMAGICIHAVEOPT\r\n\r\n", "400 Bad Request", true),
    ] {
        let (text, closed) = answer(request);
        assert!(text.starts_with(&format!("HTTP/1.1 {status}\r\n")) && closed == closes, "{request:?}: {text}");
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{request:?}: {text}");
    }
    let endless = vec![b'x'; REQUEST_BYTES_MAX + 1];
    assert!(answer(&endless).0.starts_with("HTTP/1.1 431 "));
    assert_eq!(answer(b"GET /metrics HTTP/1.1\r\n"), (String::new(), false));
}
