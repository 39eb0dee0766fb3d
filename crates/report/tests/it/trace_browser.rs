//! The trace page: its pure functions under node, and the whole page in a real browser.
//!
//! Skipped with a message without node or Chromium. With `HOISTWAY_REQUIRE_BROWSER=1` the absence
//! of Chromium is a failure.

use std::process::Command;

use hoistway_report::{
    Chunk, MergedRow, RequestRow, SingleRequests, SpanRow, TraceCounts, TraceLane, TracePage, TraceQueue, trace_page,
};

const CHECK: &str = include_str!("trace_browser_check.js");
const HOSTILE: &str = "</script><script>document.title='hit'</script><!-- <b>x</b> & \"q\" {{ 7*7 }} \u{2028} é";

#[test]
fn pure_functions_pass_their_tests() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/trace_model.test.js");
    let Ok(output) = Command::new("node").args(["--test", tests]).output() else {
        return println!("SKIPPED: node is not in PATH, the functions of the page were not tested");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_page_with_its_requests_reacts_to_keys_clicks_and_urls() {
    let (page, chunk) = trace(4, 400);
    crate::chromium::check(
        &trace_page(&page, &SingleRequests::InPage(vec![chunk])).unwrap(),
        CHECK,
        &["--window-size=1280,1000"],
    );
}

#[test]
fn a_page_of_sums_alone_works() {
    let (page, _) = trace(3, 300);
    let html = trace_page(&page, &SingleRequests::Nowhere).unwrap();
    let Some(dom) = crate::chromium::check(&html, CHECK, &["--window-size=1280,1000"]) else { return };
    assert!(dom.contains("This page holds sums only"));
}

#[test]
fn a_missing_file_of_requests_is_named() {
    let (page, _) = trace(2, 100);
    let beside = SingleRequests::Beside { prefix: "gone.detail".into(), chunks: vec![(0, page.end_ns, 100)] };
    let html = trace_page(&page, &beside).unwrap();
    let wait = "(async () => { for (let i = 0; i < 200; i += 1) { await new Promise((r) => setTimeout(r, 20)); \
        if (/gone.detail\\/0.js cannot be loaded/.test(document.body.textContent)) { break; } } \
        const pre = document.createElement('pre'); pre.id = 'browser-check'; \
        pre.textContent = document.getElementById('single').textContent.includes('gone.detail/0.js') ? 'PASSED' : 'not named'; document.body.append(pre); })();";
    let dom = std::panic::catch_unwind(|| crate::chromium::check(&html, wait, &["--window-size=1280,1000"]));
    // The browser reports the file on its console; no other message is allowed.
    if let Err(message) = dom {
        let message = message.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(
            message.starts_with("the console is not empty") && message.matches("CONSOLE").count() == 1,
            "{message}"
        );
    }
}

#[test]
fn an_empty_trace_makes_a_page() {
    let page = TracePage {
        title: "Nothing".into(),
        bucket_ns: 1_024,
        sector_rows: 256,
        latency_rows: 112,
        place_column_ns: 2_048,
        latency_column_ns: 2_048,
        ..TracePage::default()
    };
    crate::chromium::check(
        &trace_page(&page, &SingleRequests::InPage(Vec::new())).unwrap(),
        CHECK,
        &["--window-size=1280,1000"],
    );
}

#[test]
fn hostile_names_are_text() {
    let (mut page, chunk) = trace(2, 60);
    page.title = HOSTILE.into();
    page.subtitle = HOSTILE.into();
    page.notes = vec![HOSTILE.into()];
    page.devices[0] = HOSTILE.into();
    page.lanes[0].name = HOSTILE.into();
    page.queues[0].name = HOSTILE.into();
    let html = trace_page(&page, &SingleRequests::InPage(vec![chunk])).unwrap();
    let Some(dom) = crate::chromium::check(&html, CHECK, &["--window-size=1280,1000"]) else { return };
    assert!(!dom.contains("<title>hit") && !dom.contains(">49<"));
}

#[test]
fn a_narrow_window_shows_the_page_without_scrolling_sideways() {
    let (page, chunk) = trace(20, 200);
    crate::chromium::check(
        &trace_page(&page, &SingleRequests::InPage(vec![chunk])).unwrap(),
        CHECK,
        &["--window-size=500,900"],
    );
}

/// The distance of requests in ns.
const EVERY_NS: u64 = 10_000;
/// The length of a time bucket in ns.
const BUCKET_NS: u64 = 16_384;

/// A trace of `processes` and `requests` 10 us apart, each 8 us long, with matching sums.
pub fn trace(processes: u32, requests: u64) -> (TracePage, Chunk) {
    let end_ns = requests * EVERY_NS;
    let stretches = (end_ns / BUCKET_NS + 1) as usize;
    let rows: Vec<RequestRow> = (0..requests).map(|number| request(number, processes)).collect();
    let queue = |process: u32| TraceQueue {
        pid: Some(100 + process),
        name: format!("reader {process}"),
        slices: vec![1; stretches],
        preemptions: vec![0; stretches],
        times_ns: vec![[BUCKET_NS / 2, 0]; stretches],
        ..TraceQueue::default()
    };
    let span = |number: u64| SpanRow {
        queue: (number % u64::from(processes)) as u32,
        kind: (number % 3) as u8,
        start_ns: number * 100_000,
        end_ns: number * 100_000 + if number % 3 == 2 { 0 } else { 90_000 },
        why: 3,
        served: 24,
        budget: 64,
    };
    let spans: Vec<SpanRow> = (0..end_ns / 100_000).map(span).collect();
    let page = TracePage {
        title: "A trace under test".into(),
        end_ns,
        bucket_ns: BUCKET_NS,
        devices: vec!["8,0".into()],
        lanes: (0..processes).map(|process| lane(process, &rows, stretches)).collect(),
        queues: (0..processes).map(queue).collect(),
        sectors: Some((0, 100_000)),
        row_sectors: 512,
        sector_rows: 256,
        latency_rows: 112,
        place_column_ns: 2 * BUCKET_NS,
        latency_column_ns: 2 * BUCKET_NS,
        ..TracePage::default()
    };
    (page, Chunk::new(&rows, &spans))
}

fn request(number: u64, processes: u32) -> RequestRow {
    let at_ns = number * EVERY_NS;
    let bio =
        MergedRow { pid: 1, queued_ns: at_ns + 600, merged_ns: at_ns + 700, sector: 8, bytes: 4096, front: false };
    RequestRow {
        pid: 100 + (number % u64::from(processes)) as u32,
        op: if number.is_multiple_of(3) { 2 } else { 65 },
        sector: number * 977 % 100_000,
        bytes: 4096,
        steps_ns: [at_ns, at_ns + 500, at_ns + 1_000, at_ns + 3_000, at_ns + 8_000].map(Some),
        merged: if number.is_multiple_of(10) { vec![bio] } else { Vec::new() },
        ..RequestRow::default()
    }
}

fn lane(process: u32, rows: &[RequestRow], stretches: usize) -> TraceLane {
    let mut lane = TraceLane {
        pid: Some(100 + process),
        name: format!("reader {process}"),
        counts: vec![TraceCounts::default(); stretches],
        layers_ns: vec![[0; 5]; stretches],
        ..TraceLane::default()
    };
    for row in rows.iter().filter(|row| row.pid == 100 + process) {
        let [Some(begun_ns), .., Some(done_ns)] = row.steps_ns else { continue };
        let counts = &mut lane.counts[(done_ns / BUCKET_NS) as usize];
        if row.op == 2 {
            (counts.writes, counts.write_bytes) = (counts.writes + 1, counts.write_bytes + 4096);
        } else {
            (counts.reads, counts.read_bytes) = (counts.reads + 1, counts.read_bytes + 4096);
        }
        counts.latency_ns += done_ns - begun_ns;
        counts.latency_ns_max = 8_000;
        lane.layers_ns[(begun_ns / BUCKET_NS) as usize][3] += 5_000;
        let column = (begun_ns / (2 * BUCKET_NS)) as u32;
        add(&mut lane.reads, column * 256 + (row.sector / 512) as u32);
        add(&mut lane.latencies, (done_ns / (2 * BUCKET_NS)) as u32 * 112 + 11);
        lane.requests += 1;
    }
    lane.reads.sort_unstable();
    lane
}

fn add(cells: &mut Vec<(u32, u32)>, cell: u32) {
    match cells.iter_mut().find(|(known, _)| *known == cell) {
        Some((_, count)) => *count += 1,
        None => cells.push((cell, 1)),
    }
}
