//! What holds on every kind of page, at 390 and 1280 px, in both themes: see `page_check.js`.

use base64::Engine;
use hoistway_report::{
    BarRow, BarTable, ElevatorResult, Fact, Footprint, FootprintPanel, HeatMap, Interval, Intervals, LineOf, Lines,
    NamedTable, Scatter, Sheet, SheetSection, SingleRequests, Table, compare_page, sheet_page, trace_page,
};

const CHECK: &str = include_str!("page_check.js");

#[test]
fn a_comparison_is_readable() {
    let mut page = crate::browser::page(18, 3);
    page.facts = vec![Fact { label: "drive".into(), value: "a disk".into() }];
    page.verdict = "The first is the best.".into();
    let table = Table {
        head: (0..9).map(|c| format!("column {c}")).collect(),
        rows: vec![vec!["mq-deadline".into(); 9]],
        marked: None,
    };
    page.tables = vec![NamedTable { title: "Model".into(), intro: "How.".into(), table }];
    check(&compare_page(&page).expect("a page"));
}

#[test]
fn a_comparison_with_hidden_and_equal_elevators_is_readable() {
    let mut page = crate::browser::page(8, 3);
    for elevator in &mut page.elevators[..3] {
        elevator.is_current = true;
    }
    // The first two are equal, and the fourth, which is hidden, is a hundred times as fast.
    page.elevators[1] = ElevatorResult { name: "equal".into(), ..page.elevators[0].clone() };
    for series in &mut page.elevators[3].bandwidth {
        series.bytes_per_s.iter_mut().for_each(|rate| *rate *= 100.0);
    }
    check(&compare_page(&page).expect("a page"));
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
    // Ticks of which a narrow picture has room for some.
    let ticks = (0..10).map(|x| (f64::from(x), format!("{} KiB", 4 << x))).collect();
    let equal = vec![line("read", 1.0), line("write", 1.0)];
    let spans = Lines { title: "Sizes".into(), x: "size".into(), y: y.clone(), ticks, lines: equal };
    let interval = Interval { name: "kyber".into(), mean: 5.0, low: 4.0, high: 6.0, is_marked: true };
    let scatter = Scatter {
        x: x.clone(),
        y: y.clone(),
        kinds: vec!["bfq".into()],
        points: vec![(1.0, 2.0, 0), (2.0, 3.0, 0)],
        ..Scatter::default()
    };
    let panel = |name: &str| FootprintPanel {
        name: name.into(),
        note: "1.54 s, 94.7 MB of seeks".into(),
        points: vec![(0.0, 164.96), (1.5, 165.05)],
    };
    let panels = vec![panel("directory"), panel("block")];
    let row =
        |name: &str, is_marked| BarRow { name: name.into(), is_marked, values: vec![1.0, 2.0], ..BarRow::default() };
    let answer = BarTable {
        caption: "orders".into(),
        rows_are: "order".into(),
        figures: vec!["time, s; less is better".into(), "seeks, GB; less is better".into()],
        rows: vec![row("directory", false), row("block", true)],
    };
    let section = SheetSection {
        title: "Found".into(),
        intro: "How.".into(),
        facts: vec![Fact { label: "drive".into(), value: "a disk".into() }],
        pictures: vec![Lines { title: "Lines".into(), x: x.clone(), y: y.clone(), lines, ..Lines::default() }, spans],
        footprints: vec![Footprint { title: "Head".into(), x: x.clone(), y, panels }],
        heat_maps: Vec::new(),
        table: Some(Table {
            head: (0..12).map(|c| format!("column {c}")).collect(),
            rows: vec![vec!["1".into(); 12]],
            marked: Some(0),
        }),
        intervals: vec![Intervals { title: "Intervals".into(), x: x.clone(), rows: vec![interval], bound: None }],
        scatters: vec![scatter],
        code: vec!["echo bfq > /sys/block/sda/queue/scheduler ".repeat(5)],
    };
    let sheet = Sheet {
        command: "hoistway drives".into(),
        title: "A sheet".into(),
        verdict: "Block order is the fastest.".into(),
        answer: vec![answer],
        facts: vec![Fact { label: "drive".into(), value: "a disk".into() }],
        sections: vec![section],
        ..Sheet::default()
    };
    check(&sheet_page(&sheet).expect("a page"));
}

#[test]
fn a_sweep_is_readable() {
    let map = |columns: usize, name: &str, rows: usize| HeatMap {
        title: "99th percentile of latency".into(),
        note: "ms; less is better".into(),
        x: "job.readers.numjobs".into(),
        y: "elevator".into(),
        columns: (0..columns).map(|index| format!("{name}{index}")).collect(),
        rows: (0..rows).map(|index| format!("an elevator of a long name {index}")).collect(),
        cells: (0..columns * rows).map(|index| if index == 3 { f64::NAN } else { 10.0 * index as f64 }).collect(),
    };
    let rows = |count: usize| {
        let row = |index: usize| Interval {
            name: format!("{index}-{}", index + 1),
            mean: index as f64,
            low: 0.5 * index as f64,
            high: 2.0 * index as f64,
            is_marked: false,
        };
        (0..count).map(row).collect()
    };
    let effects = Intervals {
        title: "job.readers.numjobs".into(),
        x: "throughput, MB/s; more is better".into(),
        rows: rows(8),
        bound: None,
    };
    let maps = SheetSection {
        title: "Two keys".into(),
        heat_maps: vec![map(3, "", 17), map(24, "value ", 2), map(1, "", 1)],
        ..SheetSection::default()
    };
    let effects = SheetSection { title: "Effects".into(), intervals: vec![effects], ..SheetSection::default() };
    let sheet = Sheet {
        command: "hoistway sweep".into(),
        title: "Sweep over elevator and job.readers.numjobs".into(),
        verdict: "Throughput varies most with elevator.".into(),
        sections: vec![maps, effects],
        ..Sheet::default()
    };
    check(&sheet_page(&sheet).expect("a page"));
}

/// Checks that the page loads nothing and evaluates no text as code, and opens it in frames of a
/// page that checks it.
fn check(html: &str) {
    // The name of the SVG namespace is no address that a browser loads.
    let own = html.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "@import", "unsafe-eval"] {
        assert!(!own.contains(outside), "a page contains {outside}");
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(html);
    let around = format!(
        "<!DOCTYPE html><html><body><script type=\"text/plain\" id=\"page\">{encoded}</script>\n</body></html>"
    );
    crate::chromium::check(&around, CHECK, &["--window-size=1400,1600"]);
}
