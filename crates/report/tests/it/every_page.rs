//! What holds on every kind of page, at 390 and 1280 px, in both themes: see `page_check.js`.

use base64::Engine;
use hoistway_report::{
    Fact, Footprint, Interval, Intervals, LineOf, Lines, Scatter, Sheet, SheetSection, SheetTable, SingleRequests,
    compare_page, sheet_page, trace_page,
};

const CHECK: &str = include_str!("page_check.js");

#[test]
fn a_comparison_is_readable() {
    check(&compare_page(&crate::browser::page(17, 3)).expect("a page"));
}

#[test]
fn a_trace_is_readable() {
    let (page, chunk) = crate::trace_browser::trace(4, 60);
    check(&trace_page(&page, &SingleRequests::InPage(vec![chunk])).expect("a page"));
}

#[test]
fn a_sheet_is_readable() {
    let points = |slope: f64| (0..10).map(|x| (f64::from(x), slope * f64::from(x))).collect();
    let line = |name: &str, slope| LineOf { name: name.into(), points: points(slope), dashed: false };
    let (x, y) = ("depth, requests".to_owned(), "rate, MB/s".to_owned());
    let lines = vec![line("first", 1.0), line("second", 1.01), line("third", 1.02)];
    let interval = Interval { name: "kyber".into(), mean: 5.0, low: 4.0, high: 6.0, is_marked: true };
    let scatter = Scatter {
        x: x.clone(),
        y: y.clone(),
        kinds: vec!["bfq".into()],
        points: vec![(1.0, 2.0, 0), (2.0, 3.0, 0)],
        ..Scatter::default()
    };
    let section = SheetSection {
        title: "Found".into(),
        intro: "How.".into(),
        facts: vec![Fact { label: "drive".into(), value: "a disk".into() }],
        pictures: vec![Lines { title: "Lines".into(), x: x.clone(), y: y.clone(), lines, ..Lines::default() }],
        footprints: vec![Footprint { title: "Head".into(), x: x.clone(), y, panels: Vec::new() }],
        table: Some(SheetTable {
            head: (0..12).map(|c| format!("column {c}")).collect(),
            rows: vec![vec!["1".into(); 12]],
            marked: Some(0),
        }),
        intervals: vec![Intervals { title: "Intervals".into(), x, rows: vec![interval], bound: None }],
        scatters: vec![scatter],
        code: vec!["echo bfq > /sys/block/sda/queue/scheduler ".repeat(5)],
    };
    let sheet = Sheet {
        command: "hoistway drives".into(),
        title: "A sheet".into(),
        sections: vec![section],
        ..Sheet::default()
    };
    check(&sheet_page(&sheet).expect("a page"));
}

/// Opens the page in frames of a page that checks it.
fn check(html: &str) {
    let encoded = base64::engine::general_purpose::STANDARD.encode(html);
    let around = format!(
        "<!DOCTYPE html><html><body><script type=\"text/plain\" id=\"page\">{encoded}</script>\n</body></html>"
    );
    crate::chromium::check(&around, CHECK, &["--window-size=1400,1600", "--enable-unsafe-swiftshader"]);
}
