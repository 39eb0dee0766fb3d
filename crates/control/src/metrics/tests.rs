//! Scrapes of a fake server.

use hoistway_core::Kind;

use super::http::{REQUEST_BYTES_MAX, Session};
use super::*;
use crate::fake::FakeTarget;
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
    let text = Metrics::new().text(&Watch::new(), &FakeTarget::new());
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
        "hoistway_reservation_missed_total{tenant=\"backup\",device=\"sda\"} 0",
        "hoistway_request_duration_seconds_count{op=\"read\",tenant=\"backup\",device=\"sda\",phase=\"queue\"} 100",
        "hoistway_request_duration_seconds_bucket{le=\"+Inf\",op=\"read\",tenant=\"backup\",device=\"sda\",phase=\"queue\"} 100",
    ] {
        assert!(text.lines().any(|present| present == line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
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
fn every_sample_belongs_to_a_family_that_was_declared() {
    let text = Metrics::new().text(&Watch::new(), &FakeTarget::new());
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

/// The dashboard and the alerts, which read the metrics.
const DASHBOARD: &str = include_str!("../../../../packaging/grafana/hoistway.json");
const ALERTS: &str = include_str!("../../../../packaging/prometheus/hoistway.rules.yml");

#[test]
fn the_dashboard_has_all_metrics_and_the_alerts_have_no_others() {
    let text = Metrics::new().text(&Watch::new(), &FakeTarget::new());
    let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(['{', ' ']).next());
    // A family without a sample in this scrape counts under its own name.
    let existing: BTreeSet<&str> = samples.chain(families.iter().copied()).collect();
    let used = |source: &'static str| -> BTreeSet<&'static str> {
        let words = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("hoistway_")).collect()
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
    fn names(&self, of: ObjectKind) -> Vec<String> {
        FakeTarget::new().names(of)
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
