//! Draws the screen.

use hoistway_control::top::{DeviceView, ServerView, TenantView};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, RenderDirection, Row as TableRow, Sparkline, Table};

use super::app::App;
use super::columns::{COLUMNS, GAP, ShownColumn, count, megabytes, time};
use hoistway_units::figures::percent;
use hoistway_units::printable::{one_line, shortened};

/// Keys and their effects, for the help.
const KEYS: [(&str, &str); 8] = [
    ("q", "quit"),
    ("left right", "sort by another column"),
    ("r", "reverse the order"),
    ("up down", "scroll"),
    ("Tab d", "show the next device"),
    ("space p", "hold the screen, or release it"),
    ("h ?", "this help"),
    ("", "any key closes the help"),
];

/// Keys in the footer, the most important first: a narrow terminal shows the first ones.
const FOOTER: [&str; 7] =
    ["q quit", "h help", "\u{2190}\u{2192} sort", "r reverse", "\u{2191}\u{2193} scroll", "Tab device", "p hold"];

/// Draws the whole screen.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let whole = frame.area();
    let rows = [Constraint::Length(1), Constraint::Length(5), Constraint::Min(3), Constraint::Length(1)];
    let [title, header, body, footer] = Layout::vertical(rows).areas(whole);
    draw_title(app, frame, title);
    match app.device() {
        Some((_, device)) => {
            draw_device(app, device, frame, header);
            draw_table(app, frame, body);
        }
        None => draw_message(app, frame, body),
    }
    draw_footer(app, frame, footer);
    if app.help {
        draw_help(frame, whole);
    }
}

fn draw_title(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let mut spans = vec![Span::styled("hoistway top", Style::new().add_modifier(Modifier::BOLD))];
    if let Some(view) = &app.view {
        let facts = [
            view.version.clone(),
            view.engine.clone(),
            format!("up {}", uptime(view.uptime_s)),
            format!("{} connections", view.connections),
        ];
        let free = usize::from(area.width).saturating_sub("hoistway top  ".len());
        spans.push(Span::raw(format!("  {}", fitting(&facts, "  ", free))));
    }
    frame.render_widget(Line::from(spans), area);
    let state = match (&app.error, app.paused) {
        (Some(_), _) => Some(("NO ANSWER", Color::Red)),
        (None, true) => Some(("HELD", Color::Blue)),
        _ => None,
    };
    if let Some((state, colour)) = state {
        let style = coloured(app, colour).add_modifier(Modifier::REVERSED | Modifier::BOLD);
        frame.render_widget(Line::styled(format!(" {state} "), style).alignment(Alignment::Right), area);
    }
}

fn draw_device(app: &App, device: &DeviceView, frame: &mut Frame<'_>, area: Rect) {
    let rows = [Constraint::Length(1), Constraint::Length(1), Constraint::Length(1), Constraint::Length(2)];
    let [title, load, rates_area, history] = Layout::vertical(rows).areas(area);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let devices = app.view.as_ref().map_or(1, |view| view.devices.len());
    let number = app.device().map_or(0, |(index, _)| index + 1);
    let position = if devices > 1 { format!(" ({number} of {devices})") } else { String::new() };
    let name = one_line(&device.name).to_string();
    let mut facts = vec![format!("depth {}", device.depth), one_line(&device.backend).to_string()];
    facts.extend(device.drive.as_ref().map(|drive| format!("as {}", one_line(drive))));
    let before = name.chars().count() + position.len() + device.elevator.len() + "  []  ".len();
    let line = vec![
        Span::styled(name, bold),
        Span::raw(position),
        Span::raw("  ["),
        Span::styled(device.elevator.clone(), coloured(app, Color::Blue).add_modifier(Modifier::BOLD)),
        Span::raw(format!("]  {}", fitting(&facts, "  ", usize::from(area.width).saturating_sub(before)))),
    ];
    frame.render_widget(Line::from(line), title);
    let mut facts = vec![
        format!("busy {:>5} %", percent(device.utilisation)),
        format!("in the device {}", device.in_flight),
        format!("waiting {}", device.waiting),
    ];
    facts.extend(device.slice.as_ref().map(|slice| format!("slice: {}", one_line(slice))));
    facts.extend(device.lateness_p99_ns.map(|ns| format!("late p99 {}", time(Some(ns)))));
    frame.render_widget(Line::raw(fitting(&facts, "   ", usize::from(area.width))), load);
    let written = (device.bytes_per_second - device.read_bytes_per_second).max(0.0);
    let rates = [
        format!(
            "{} MB/s ({} read, {} written)",
            megabytes(device.bytes_per_second),
            megabytes(device.read_bytes_per_second),
            megabytes(written)
        ),
        format!("{} requests/s", count(device.requests_per_second)),
    ];
    let narrow = [format!("{} MB/s", megabytes(device.bytes_per_second)), rates[1].clone()];
    let fits = rates[0].len() <= usize::from(area.width);
    let rates = fitting(if fits { &rates } else { &narrow }, "   ", usize::from(area.width));
    frame.render_widget(Line::styled(rates, bold), rates_area);
    draw_history(app, device, frame, history);
}

/// Joins as many facts as a line of this width holds whole; a part of a figure would be another
/// figure.
fn fitting(facts: &[String], gap: &str, width: usize) -> String {
    let mut line = String::new();
    for fact in facts {
        let gap = if line.is_empty() { "" } else { gap };
        if line.chars().count() + gap.len() + fact.chars().count() > width {
            break;
        }
        line.push_str(gap);
        line.push_str(fact);
    }
    line
}

/// Draws the bytes a second of the last intervals, the newest at the right.
fn draw_history(app: &App, device: &DeviceView, frame: &mut Frame<'_>, area: Rect) {
    let history = app.history.get(&device.name);
    let newest_first: Vec<u64> =
        history.iter().flat_map(|history| history.iter().rev()).copied().take(usize::from(area.width)).collect();
    let max = newest_first.iter().copied().max().unwrap_or(0).max(1);
    let sparkline = Sparkline::default()
        .data(newest_first)
        .max(max)
        .direction(RenderDirection::RightToLeft)
        .style(coloured(app, Color::Green));
    frame.render_widget(sparkline, area);
}

fn draw_table(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let rows = app.rows();
    let columns = app.columns(area.width);
    let head = columns.iter().map(|shown| {
        let style = Style::new().add_modifier(Modifier::BOLD);
        let lower = if shown.index == app.sort { style.add_modifier(Modifier::REVERSED) } else { style };
        let [first, second] = COLUMNS[shown.index].head;
        let lines = vec![Line::styled(first, style), Line::styled(second, lower)];
        ratatui::text::Text::from(lines).alignment(alignment(shown.index))
    });
    let visible = usize::from(area.height.saturating_sub(2));
    let scroll = app.scroll.min(rows.len().saturating_sub(1));
    let body = rows.iter().skip(scroll).take(visible).map(|row| table_row(app, row, &columns));
    let widths = columns.iter().map(|shown| Constraint::Length(shown.width));
    let table = Table::new(body, widths).header(TableRow::new(head).height(2)).column_spacing(GAP);
    frame.render_widget(table, area);
}

fn table_row<'a>(app: &App, row: &TenantView, columns: &[ShownColumn]) -> TableRow<'a> {
    let cells = columns.iter().map(|shown| {
        let column = &COLUMNS[shown.index];
        let mut text = (column.text)(row);
        if shown.index == 0 {
            // The arrow marks the tenant that has the slice.
            text =
                shortened(&format!("{}{text}", if row.has_slice { "\u{25b8}" } else { " " }), usize::from(shown.width));
        }
        let short = column.head[0] == "SHARE" && row.is_short();
        let style = if short { coloured(app, Color::Red).add_modifier(Modifier::BOLD) } else { Style::new() };
        ratatui::text::Text::from(Line::styled(text, style)).alignment(alignment(shown.index))
    });
    let idle = row.requests_per_second == 0.0 && row.in_flight + row.waiting + row.held == 0;
    TableRow::new(cells).style(if idle { Style::new().add_modifier(Modifier::DIM) } else { Style::new() })
}

fn draw_message(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let text = match &app.error {
        Some(error) => one_line(error).to_string(),
        None if app.view.is_some() => "The server has no devices.".to_owned(),
        None => "The first interval is not over yet.".to_owned(),
    };
    frame.render_widget(Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }), area);
}

fn draw_footer(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let text = match (&app.error, &app.view) {
        (Some(error), Some(_)) => one_line(error).to_string(),
        _ => {
            let mut keys = FOOTER.map(str::to_owned).to_vec();
            keys.extend(app.view.as_ref().map(|view: &ServerView| format!("every {:.1} s", view.interval_s)));
            fitting(&keys, "  ", usize::from(area.width))
        }
    };
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(Line::raw(text)).style(style), area);
}

fn draw_help(frame: &mut Frame<'_>, whole: Rect) {
    let meanings = [
        "",
        "QUEUE   waiting time of requests (limits included)",
        "DEVICE  service time of requests in the device",
        "SHARE   share of the bytes of the last ten seconds",
        "DUE     share that weights and reservations grant",
        "!       SHARE below 9/10 of DUE while requests wait",
        "\u{25b8}       has the slice: is served alone at present",
    ];
    let keys = KEYS.iter().map(|(key, effect)| Line::raw(format!(" {key:12} {effect}")));
    let lines: Vec<Line<'_>> = keys.chain(meanings.iter().map(|meaning| Line::raw(format!(" {meaning}")))).collect();
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(whole.height);
    let width = 56.min(whole.width);
    let area = Rect { x: (whole.width - width) / 2, y: (whole.height - height) / 2, width, height };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" hoistway top ")), area);
}

/// Names are left-aligned, figures right-aligned.
fn alignment(column: usize) -> Alignment {
    if column == 0 || COLUMNS.get(column).is_some_and(|column| column.head[1] == "class") {
        Alignment::Left
    } else {
        Alignment::Right
    }
}

/// One of the terminal's sixteen colours, which its user chose for its background; no colour if
/// they are disabled.
fn coloured(app: &App, colour: Color) -> Style {
    if app.colours { Style::new().fg(colour) } else { Style::new() }
}

/// Formats a duration: `4:05`, `1:02:03`, `12d 1:02:03`.
fn uptime(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, hours, minutes, seconds) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}d {hours}:{minutes:02}:{seconds:02}"),
    }
}
