//! The screen drawn into memory, and keys.

use hoistway_control::top::{DeviceView, ServerView, TenantView};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::app::App;
use super::screen::draw;

fn row(name: &str, megabytes: f64, share: f64, due: f64) -> TenantView {
    TenantView {
        name: name.into(),
        weight: 100,
        class: "best-effort".into(),
        bytes_per_second: megabytes * 1e6,
        read_bytes_per_second: megabytes * 1e6,
        written_bytes_per_second: 0.0,
        requests_per_second: megabytes * 100.0,
        errors_per_second: 0.0,
        queue_p50_ns: Some(1_230_000),
        queue_p99_ns: Some(45_600_000),
        device_p50_ns: Some(780_000),
        device_p99_ns: None,
        share: Some(share),
        share_of_time: Some(share),
        entitlement: Some(due),
        in_flight: 1,
        waiting: 30,
        held: 5,
        has_slice: name == "database",
    }
}

fn view() -> ServerView {
    let device = |name: &str, tenants: Vec<TenantView>| DeviceView {
        name: name.into(),
        elevator: "bfq".into(),
        depth: 2,
        backend: "file:/dev/sdb".into(),
        drive: Some("sata-7200-2006".into()),
        utilisation: 0.987,
        bytes_per_second: 40e6,
        read_bytes_per_second: 30e6,
        requests_per_second: 1234.0,
        in_flight: 2,
        waiting: 60,
        slice: Some("database".into()),
        lateness_p99_ns: Some(90_000),
        tenants,
    };
    ServerView {
        schema: 1,
        interval_s: 1.0,
        version: "0.1.0".into(),
        engine: "io_uring".into(),
        uptime_s: 3723.0,
        connections: 12,
        devices: vec![
            device(
                "sda",
                vec![row("backup", 10.0, 0.25, 0.25), row("database", 30.0, 0.75, 0.75), row("web", 0.5, 0.1, 0.4)],
            ),
            device("sdb", Vec::new()),
        ],
    }
}

fn app() -> App {
    let mut app = App::new(None, true);
    app.show(view());
    app
}

fn press(app: &mut App, code: KeyCode) {
    app.handle_key(KeyEvent::new(code, KeyModifiers::NONE), 80);
}

/// The lines of the screen.
fn drawn(app: &App, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned()).collect()
}

#[test]
fn everything_fits_on_a_terminal_of_80_columns() {
    let lines = drawn(&app(), 80, 24);
    assert_eq!(lines[0], "hoistway top  0.1.0  io_uring  up 1:02:03  12 connections");
    assert_eq!(lines[1], "sda (1 of 2)  [bfq]  depth 2  file:/dev/sdb  as sata-7200-2006");
    assert_eq!(lines[2], "busy  98.7 %   in the device 2   waiting 60   slice: database   late p99 90.0us");
    assert_eq!(lines[3], "40.0 MB/s (30.0 read, 10.0 written)   1234 requests/s");
    assert!(lines[5].ends_with('\u{2588}'), "{:?}", lines[5]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&lines[6]), ["QUEUE", "QUEUE", "DEVICE", "DEVICE", "SHARE", "DUE"]);
    assert_eq!(words(&lines[7]), ["TENANT", "MB/s", "IOPS", "p50", "p99", "p50", "p99", "%", "%", "IN", "WAIT"]);
    assert_eq!(
        words(&lines[8]),
        ["\u{25b8}database", "30.0", "3000", "1.23ms", "45.6ms", "780us", "-", "75.0", "75.0", "1", "35"]
    );
    assert_eq!(words(&lines[9])[0], "backup");
    assert_eq!(words(&lines[10])[7], "!10.0", "less than is due, while requests wait");
    assert!(lines[23].starts_with("q quit") && lines[23].contains("every 1.0 s"), "{}", lines[23]);
}

#[test]
fn a_narrow_terminal_shows_fewer_columns_and_each_figure_whole() {
    let cells = |width| -> Vec<Vec<String>> {
        let lines = drawn(&app(), width, 24);
        lines[7..11].iter().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let whole = cells(200);
    for width in 12..200 {
        let narrow = cells(width);
        let head = narrow[0].len();
        for (line, whole) in narrow.iter().zip(&whole) {
            assert_eq!(line.len(), head, "a cell of each column at {width}: {narrow:?}");
            let names = [line[0].trim_end_matches('\u{2026}'), &whole[0]];
            assert!(names[1].starts_with(names[0]), "{names:?} at {width}");
            assert!(line[1..].iter().all(|cell| whole.contains(cell)), "{line:?} of {whole:?} at {width}");
        }
    }
    assert_eq!(cells(60)[1], ["\u{25b8}database", "30.0", "3000", "45.6ms", "-", "75.0", "75.0", "35"]);
}

#[test]
fn figures_wider_than_their_columns_make_the_columns_wider() {
    let mut busy = view();
    busy.devices[0].tenants[0].in_flight = 4096;
    busy.devices[0].tenants[0].waiting = 1_234_567;
    let mut app = App::new(None, true);
    app.show(busy);
    for width in [30, 45, 60, 80, 120, 160] {
        for line in drawn(&app, width, 24).iter().filter(|line| line.contains("backup")) {
            let last = line.split_whitespace().next_back().unwrap_or("");
            assert!(!"1234572".starts_with(last) || last == "1234572", "{line}");
        }
    }
    let line = drawn(&app, 120, 24)[9].clone();
    assert!(line.contains(" 4096 1234572"), "{line}");
}

#[test]
fn a_long_name_is_whole_before_columns_of_details_are_shown() {
    let mut long = view();
    long.devices[0].tenants[0].name = "database-production-eu-west".into();
    let mut app = App::new(None, true);
    app.show(long);
    assert!(drawn(&app, 80, 24)[9].starts_with(" database-produc\u{2026} "), "{}", drawn(&app, 80, 24)[9]);
    let lines = drawn(&app, 120, 24);
    assert!(lines[9].starts_with(" database-production-eu-west "), "{}", lines[9]);
    assert_eq!(lines[7].matches("MB/s").count(), 3, "{}", lines[7]);
}

#[test]
fn a_line_of_facts_ends_before_the_fact_that_does_not_fit() {
    for (width, load) in [
        (77, "busy  98.7 %   in the device 2   waiting 60   slice: database   late p99 90.0us"),
        (76, "busy  98.7 %   in the device 2   waiting 60   slice: database"),
        (60, "busy  98.7 %   in the device 2   waiting 60"),
        (42, "busy  98.7 %   in the device 2"),
        (29, "busy  98.7 %"),
    ] {
        let width = if width == 77 { load.len() as u16 } else { width };
        assert_eq!(drawn(&app(), width, 24)[2], load, "at {width}");
    }
    assert_eq!(drawn(&app(), 30, 24)[3], "40.0 MB/s   1234 requests/s");
    assert_eq!(drawn(&app(), 40, 24)[1], "sda (1 of 2)  [bfq]  depth 2");
    assert!(drawn(&app(), 60, 24)[23].starts_with("q quit  h help"));
}

#[test]
fn a_wide_terminal_shows_every_column_and_a_tiny_one_does_not_break() {
    let wide = drawn(&app(), 160, 50);
    assert!(wide[7].contains("weight") && wide[6].contains("of it"), "{wide:#?}");
    assert!(wide[8].contains("best-effort") && wide[8].ends_with(" 0"), "{}", wide[8]);
    for (width, height) in [(1, 1), (10, 3), (20, 5), (79, 8), (300, 4)] {
        let mut app = app();
        assert_eq!(drawn(&app, width, height).len(), usize::from(height));
        app.help = true;
        drawn(&app, width, height);
    }
}

#[test]
fn colours_are_those_of_the_terminal_and_can_be_disabled() {
    let colours = |app: &App| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(app, frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let mut found: Vec<Color> = buffer.content().iter().flat_map(|cell| [cell.fg, cell.bg]).collect();
        found.dedup();
        found.retain(|colour| *colour != Color::Reset);
        found
    };
    let with = colours(&app());
    assert!(with.contains(&Color::Red) && with.contains(&Color::Green), "{with:?}");
    assert!(with.iter().all(|colour| matches!(colour, Color::Red | Color::Green | Color::Blue)), "{with:?}");
    assert_eq!(colours(&App { colours: false, ..app() }), []);
}

#[test]
fn arrow_keys_choose_the_sort_column_and_r_reverses_the_order() {
    let mut app = app();
    let names = |app: &App| app.rows().iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&app), ["database", "backup", "web"]);
    press(&mut app, KeyCode::Char('r'));
    assert_eq!(names(&app), ["web", "backup", "database"]);
    press(&mut app, KeyCode::Char('r'));
    // On a narrow terminal the name is left of MB/s; the last column follows by wrap-around.
    press(&mut app, KeyCode::Left);
    assert_eq!(names(&app), ["backup", "database", "web"]);
    press(&mut app, KeyCode::Left);
    assert_eq!(super::COLUMNS[app.sort].head[1], "WAIT");
    press(&mut app, KeyCode::Right);
    assert_eq!(app.sort, 0);
    app.handle_key(KeyEvent::new(KeyCode::Right, KeyModifiers::NONE), 200);
    assert_eq!(super::COLUMNS[app.sort].head[1], "weight");
}

#[test]
fn keys_select_devices_hold_the_screen_open_the_help_and_quit() {
    let mut app = app();
    press(&mut app, KeyCode::Tab);
    assert_eq!(app.device().unwrap().1.name, "sdb");
    press(&mut app, KeyCode::Tab);
    assert_eq!(app.device().unwrap().1.name, "sda");
    press(&mut app, KeyCode::BackTab);
    assert_eq!(app.device().unwrap().1.name, "sdb");
    press(&mut app, KeyCode::Char('p'));
    let newer = ServerView { connections: 99, ..view() };
    app.show(newer.clone());
    assert_eq!(app.view.as_ref().unwrap().connections, 12);
    assert!(drawn(&app, 80, 24)[0].ends_with("HELD"));
    press(&mut app, KeyCode::Char(' '));
    app.show(newer);
    assert_eq!(app.view.as_ref().unwrap().connections, 99);
    press(&mut app, KeyCode::Char('h'));
    assert!(drawn(&app, 80, 24).iter().any(|line| line.contains("sort by another column")));
    press(&mut app, KeyCode::Char('q'));
    assert!(!app.help && !app.done);
    press(&mut app, KeyCode::Char('q'));
    assert!(app.done);
    let mut app = App::new(None, true);
    app.handle_key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), 80);
    assert!(app.done);
}

#[test]
fn scrolling_ends_at_the_last_tenant() {
    let mut app = app();
    (0..9).for_each(|_| press(&mut app, KeyCode::Down));
    assert_eq!(app.scroll, 2);
    let lines = drawn(&app, 80, 24);
    assert!(lines[8].contains("web") && lines[9].is_empty(), "{lines:#?}");
    press(&mut app, KeyCode::Home);
    assert_eq!(app.scroll, 0);
    press(&mut app, KeyCode::End);
    assert_eq!(app.scroll, 2);
}

#[test]
fn the_error_of_an_ended_server_is_shown_beside_the_last_view() {
    let mut app = app();
    app.error = Some("no server listens at /x: the server has ended".into());
    let lines = drawn(&app, 80, 24);
    assert!(lines[0].ends_with("NO ANSWER") && lines[8].contains("database"), "{lines:#?}");
    assert!(lines[23].starts_with("no server listens"), "{}", lines[23]);
    app.show(view());
    assert_eq!(app.error, None);
    let waiting = drawn(&App::new(None, false), 80, 24);
    assert!(waiting[6].starts_with("The first interval"), "{waiting:#?}");
}
