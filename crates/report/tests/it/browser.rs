//! The comparison page in a real browser: it opens without an error, its charts hold its data, its
//! controls work.
//!
//! Skipped with a message without Chromium. With `HOISTWAY_REQUIRE_BROWSER=1` its absence is a
//! failure.

use hoistway_report::{
    ComparePage, DriveTime, ElevatorResult, Fact, GroupRow, HeadTrack, LatencySummary, PercentileLatency,
    ProcessBandwidth, Slice, compare_page,
};

const CHECK: &str = include_str!("browser_check.js");

const WIDE: &[&str] = &["--window-size=1280,1000"];

/// Text that would end a script element, open a tag, fill a template of either engine, or be markup
/// for the charts.
const HOSTILE: &str =
    "</script><script>document.title='hit'</script><!-- <b>x</b> & \"q\" 'a' {{ 7*7 }} {% raw %} %{x} $y$ \u{2028} é";

#[test]
fn charts_have_the_data_of_the_page() {
    let mut page = page(7, 5);
    page.elevators[3].slices = None;
    check(&page, WIDE);
}

#[test]
fn hostile_names_are_text() {
    let mut page = page(2, 3);
    page.title = HOSTILE.into();
    page.subtitle = HOSTILE.into();
    page.verdict = HOSTILE.into();
    page.notes = vec![HOSTILE.into()];
    page.facts = vec![Fact { label: HOSTILE.into(), value: HOSTILE.into() }];
    page.processes[1] = HOSTILE.into();
    page.elevators[1].name = HOSTILE.into();
    let Some(dom) = check(&page, WIDE) else { return };
    assert!(!dom.contains("<title>hit"), "a script within a name ran");
    assert!(!dom.contains(">49<"), "a template within a name was rendered");
}

#[test]
fn one_process_under_one_elevator_makes_a_page() {
    check(&page(1, 1), WIDE);
}

#[test]
fn an_elevator_without_requests_makes_a_page() {
    let elevator = ElevatorResult { name: "noop".into(), ..ElevatorResult::default() };
    let page = ComparePage { window_ns: 500_000_000, elevators: vec![elevator], ..ComparePage::default() };
    check(&page, WIDE);
}

#[test]
fn one_hundred_and_twenty_eight_processes_make_a_page() {
    check(&page(2, 128), WIDE);
}

#[test]
fn a_narrow_window_shows_the_page_without_scrolling_sideways() {
    check(&page(3, 4), &["--window-size=500,900"]);
}

#[test]
fn eighteen_elevators_make_a_page() {
    check(&page(18, 2), WIDE);
}

/// Opens the page with the check appended and returns the document; `None` without a browser.
fn check(page: &ComparePage, flags: &[&str]) -> Option<String> {
    crate::chromium::check(&compare_page(page).expect("a page"), CHECK, flags)
}

/// A page with distinct figures, so that an exchange of two is detected.
pub fn page(elevators: u32, processes: u32) -> ComparePage {
    ComparePage {
        title: "Page under test".into(),
        window_ns: 500_000_000,
        single_stream_bytes_per_s: 6e7,
        processes: (0..processes).map(|p| format!("reader {p}")).collect(),
        elevators: (0..elevators).map(|e| elevator(e, processes)).collect(),
        notes: vec!["A note.".into()],
        groups: (0..2).map(|g| group(g, elevators)).collect(),
        ..ComparePage::default()
    }
}

fn group(g: u32, elevators: u32) -> GroupRow {
    let share = |e: u32| 0.001 * f64::from(1 + 100 * g + e);
    GroupRow {
        name: ["users", "users/alice"][g as usize].into(),
        weight: 100 + g,
        shares: (0..elevators).map(share).collect(),
    }
}

fn elevator(e: u32, processes: u32) -> ElevatorResult {
    let (of, ms) = (u64::from(e), 1_000_000);
    let rate = |p: u32, w: u32| 1e5 * f64::from(1 + p + 7 * w + 31 * e);
    let head = |p: u32| HeadTrack {
        process: p,
        time_ns: (0..40).map(|i| (i * 250 + u64::from(p) + of) * ms).collect(),
        sector: (0..40).map(|i| 1_000_000 * (u64::from(p) + 1) + 2048 * i + of).collect(),
    };
    let slice = |i: u32| Slice {
        process: i % processes,
        start_ns: u64::from(i) * 100 * ms + of,
        end_ns: u64::from(i) * 100 * ms + (40 + u64::from(i) % 50) * ms,
    };
    let point =
        |(i, percentile): (usize, f64)| PercentileLatency { percentile, latency_ns: (i as u64 * 3 + of + 1) * ms };
    ElevatorResult {
        name: format!("elevator {e}"),
        // Without elevators of current kernels the best are shown first.
        is_current: false,
        bytes_per_s: 3e7 + 1e6 * f64::from(e * 7 % 5),
        of_single_stream: e.is_multiple_of(2).then_some(0.5 + 0.01 * f64::from(e)),
        process_min_bytes_per_s: 1e6 + f64::from(e),
        process_max_bytes_per_s: 9e6 + f64::from(e),
        jain: Some(1.0 - 0.01 * f64::from(e)),
        latency: LatencySummary {
            mean_ns: 5e6,
            stddev_ns: 2e6,
            p50_ns: 4 * ms,
            p99_ns: 30 * ms,
            max_ns: (90 + of) * ms,
        },
        sync: None,
        runtime_ns: 10_000 * ms,
        divides_by_groups: e.is_multiple_of(2),
        starves: e == 1,
        drive: DriveTime {
            seek_ns: 2_000 * ms + of,
            rotation_ns: 1_500 * ms + of,
            transfer_ns: 5_000 * ms + of,
            overhead_ns: 500 * ms + of,
            idle_ns: 1_000 * ms + of,
        },
        percentiles: [0.0, 50.0, 90.0, 99.0, 99.9, 100.0].into_iter().enumerate().map(point).collect(),
        bandwidth: (0..processes)
            .map(|p| ProcessBandwidth { process: p, bytes_per_s: (0..20).map(|w| rate(p, w)).collect() })
            .collect(),
        head: (0..processes).map(head).collect(),
        requests: 0,
        slices: Some((0..98).map(slice).collect()),
    }
}
