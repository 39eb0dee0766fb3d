//! The charts in the form of the plotting library, with the colours of the light theme. The script
//! of the page replaces them.

use hoistway_units::figures::{duration, grouped, grouped_figure};
use plotly::common::{Line, Marker, Mode, Orientation, TextAnchor, TextPosition, Title};
use plotly::configuration::{DoubleClick, ModeBarButtonName};
use plotly::layout::{Axis, AxisRange, AxisType, BarMode, DragMode, HoverMode, Margin, UniformText, UniformTextMode};
use plotly::{Bar, Configuration, Layout, Scatter, Traces};
use serde::Serialize;

use crate::data::{ComparePage, DriveTime, ElevatorResult};
use crate::format::rate;
use crate::palette::{Pair, categories, dash, drive_time, palette};
use crate::reduce::Reduction;
use crate::table::latency_unit;

/// With more processes than this the hover box would hide the chart.
const UNIFIED_HOVER_MAX: usize = 6;

/// One chart with its position in the page.
#[derive(Serialize)]
pub struct Chart {
    /// The id of the element.
    pub id: String,
    /// The caption; empty if the heading of the section suffices.
    pub caption: String,
    /// One sentence for screen readers.
    pub label: String,
    /// A note beside the caption; may be empty.
    pub note: String,
    /// Height in CSS pixels; `None` without a chart, for which `note` gives the reason.
    pub height: Option<usize>,
    /// The index of the elevator that the chart shows, if it shows one. The page hides it while
    /// that elevator is not selected.
    pub elevator: Option<usize>,
    /// The input of the plotting library.
    #[serde(skip)]
    pub figure: Figure,
}

/// The input of the plotting library, with properties for the script of the page.
#[derive(Default, Serialize)]
pub struct Figure {
    /// The id of the element that holds the chart.
    pub id: String,
    /// The legend, and thus the palette, of its traces.
    pub legend: &'static str,
    /// The index of each trace in that legend.
    pub keys: Vec<usize>,
    /// True if its x axes are the time of the run, which zoom together.
    pub time: bool,
    /// For traces that stand for several entries of the legend, these entries of each trace; empty
    /// if each trace stands for one.
    pub members: Vec<Vec<usize>>,
    /// True if the script writes the name of each trace at its end.
    pub labelled: bool,
    /// True if its y axis begins at 0 and ends above the highest point that any chart of this kind
    /// shows. The script sets the end.
    pub shares_y: bool,
    /// True if its rows are elevators. The script removes those that are not selected.
    pub rows: bool,
    /// True if its traces are spans (start, end, gap), which the script labels with their lengths.
    pub spans: bool,
    /// The traces.
    pub data: Traces,
    /// The layout without the colours of the theme.
    pub layout: Layout,
}

/// A legend: names and colours that several charts share.
#[derive(Serialize)]
pub struct Legend {
    /// The id: "process", "elevator" or "drive".
    pub id: &'static str,
    /// The heading, such as "Processes".
    pub title: &'static str,
    /// The entries. [`Figure::keys`] holds indices of this list.
    pub entries: Vec<Entry>,
}

/// One entry of a legend.
#[derive(Serialize)]
pub struct Entry {
    /// The name as given.
    pub name: String,
    /// The colours for both themes.
    pub colour: Pair,
    /// The pattern of its lines, in the words of the plotting library.
    pub dash: &'static str,
    /// True if the page shows the entry.
    pub used: bool,
}

/// All charts of one kind.
#[derive(Serialize)]
pub struct Section {
    /// The id of the section in the table of contents.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// How to read the charts.
    pub intro: String,
    /// The legend above the charts.
    pub legend: &'static str,
    /// True if the charts are arranged side by side where the page is wide enough.
    pub grid: bool,
    /// The charts.
    pub charts: Vec<Chart>,
}

/// The three legends of a page.
pub fn legends(page: &ComparePage) -> Vec<Legend> {
    let entries = |names: Vec<(String, bool)>, colours: Vec<Pair>| -> Vec<Entry> {
        let count = names.len();
        let entry = |(index, ((name, used), colour)): (usize, ((String, bool), Pair))| Entry {
            name,
            colour,
            dash: DASHES[dash(index, count)],
            used,
        };
        names.into_iter().zip(colours).enumerate().map(entry).collect()
    };
    let processes: Vec<_> = page.processes.iter().cloned().zip(page.processes_used()).collect();
    let elevators: Vec<_> = page.elevators.iter().map(|e| (e.name.clone(), !e.percentiles.is_empty())).collect();
    let (of_processes, of_elevators) = (palette(processes.len()), elevator_colours(page));
    let parts = DRIVE_PARTS.iter().zip(drive_time()).enumerate();
    let used = |key: usize| !page.solid_state || key >= ARM_PARTS;
    let parts = parts
        .map(|(key, (p, colour))| Entry { name: p.0.to_owned(), colour, dash: DASHES[0], used: used(key) })
        .collect();
    vec![
        Legend { id: "process", title: "Processes", entries: entries(processes, of_processes) },
        Legend { id: "elevator", title: "Elevators", entries: entries(elevators, of_elevators) },
        Legend { id: "drive", title: "Drive time", entries: parts },
    ]
}

/// The colours of the elevators. Those of current kernels, which are shown first, have the first
/// colours, which differ most.
fn elevator_colours(page: &ComparePage) -> Vec<Pair> {
    let mut order: Vec<usize> = (0..page.elevators.len()).collect();
    order.sort_by_key(|&index| !page.elevators[index].is_current);
    let mut colours = categories(order.len());
    for (index, colour) in order.into_iter().zip(categories(colours.len())) {
        colours[index] = colour;
    }
    colours
}

/// All charts of a page after [`crate::reduce::reduce`].
pub fn sections(page: &ComparePage, reductions: &[Reduction], legends: &[Legend]) -> Vec<Section> {
    let palettes = Palettes { legends };
    let window = duration(page.window_ns);
    vec![
        Section {
            id: "bandwidth",
            title: "Bandwidth over time",
            intro: format!(
                "The throughput of each process in every window of {window}, in megabytes (10⁶ bytes) a second. A window is long enough \
                 for two turns of every process where an elevator serves them in turns and the run is long enough. All charts have the \
                 same axes, which fit the selected elevators and processes; zooming in time on one zooms all charts of time."
            ),
            legend: "process",
            grid: true,
            charts: page.elevators.iter().enumerate().map(|(i, e)| bandwidth(page, i, e, &palettes)).collect(),
        },
        Section {
            id: "latency",
            title: "Latency percentiles",
            intro:
                "The latency of requests by percentile: 99 of 100 requests are at or below the 99th percentile. Both axes are \
                    logarithmic, so that the slowest requests have as much room as all others."
                    .to_owned(),
            legend: "elevator",
            grid: false,
            charts: vec![latency(page, &palettes)],
        },
        Section {
            id: "drive",
            title: "Drive time",
            intro: "The parts of the run's time; only the transfer moves data.".to_owned(),
            legend: "drive",
            grid: false,
            charts: vec![drive(page, &palettes)],
        },
        Section {
            id: "head",
            title: if page.solid_state { "Requests" } else { "Head position" },
            intro: head_intro(page, reductions),
            legend: "process",
            grid: false,
            charts: head(page, reductions, &palettes),
        },
        Section {
            id: "slices",
            title: "Slices",
            intro: "The slices of each process: one lane for each process, one bar from the start to the end of each slice.".to_owned(),
            legend: "process",
            grid: false,
            charts: all_slices(page, reductions, &palettes),
        },
    ]
}

/// The settings of every chart.
pub fn configuration() -> Configuration {
    Configuration::new()
        .responsive(true)
        .display_logo(false)
        .double_click(DoubleClick::Reset)
        .mode_bar_buttons_to_remove(vec![
            ModeBarButtonName::Select2d,
            ModeBarButtonName::Lasso2d,
            ModeBarButtonName::AutoScale2d,
        ])
}

/// Escapes text for the plotting library, which interprets `<b>` as markup and `%{x}` as a
/// variable.
pub fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace("%{", "&#37;{")
}

struct Palettes<'a> {
    legends: &'a [Legend],
}

impl Palettes<'_> {
    /// The light colour of an entry.
    fn colour(&self, legend: &str, key: usize) -> String {
        let entry = self.legends.iter().find(|l| l.id == legend).and_then(|l| l.entries.get(key));
        entry.map_or_else(|| "#000000".to_owned(), |e| e.colour.light.clone())
    }
}

/// The patterns of [`dash`] in the words of the plotting library.
const DASHES: [&str; 3] = ["solid", "dash", "dot"];

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The last time of all charts in seconds.
fn time_end(page: &ComparePage) -> f64 {
    let of = |e: &ElevatorResult| {
        let windows = e.bandwidth.iter().map(|b| b.bytes_per_s.len() as u64).max().unwrap_or(0);
        let head = e.head.iter().filter_map(|t| t.time_ns.last().copied()).max().unwrap_or(0);
        let slices = e.slices.iter().flatten().map(|s| s.end_ns).max().unwrap_or(0);
        // The last window extends beyond the end of the run, and its point is in its middle.
        let windows = windows.saturating_mul(page.window_ns).saturating_sub(page.window_ns / 2);
        e.runtime_ns.max(head).max(slices).max(windows)
    };
    let end = page.elevators.iter().map(of).max().unwrap_or(0);
    if end == 0 { 1.0 } else { seconds(end) }
}

/// The common range of all time axes, with room for dots at both ends: the plotting library cuts
/// dots at the edge of a chart in half.
fn time_range(page: &ComparePage) -> AxisRange {
    let end = time_end(page);
    range(-0.01 * end, 1.01 * end)
}

fn frame() -> Layout {
    Layout::new().auto_size(true).show_legend(false).hover_mode(HoverMode::Closest).drag_mode(DragMode::Zoom)
}

fn margin(left: usize, top: usize, bottom: usize) -> Margin {
    Margin::new().left(left).right(12).top(top).bottom(bottom).auto_expand(true)
}

fn axis(title: &str) -> Axis {
    Axis::new().title(Title::with_text(title)).auto_margin(true).zero_line(false)
}

fn range(from: f64, to: f64) -> AxisRange {
    AxisRange::new(from, to)
}

fn empty_chart(id: &str, caption: &str, note: &str) -> Chart {
    Chart {
        id: id.to_owned(),
        caption: caption.to_owned(),
        label: String::new(),
        note: note.to_owned(),
        height: None,
        elevator: None,
        figure: Figure::default(),
    }
}

fn bandwidth(page: &ComparePage, index: usize, elevator: &ElevatorResult, palettes: &Palettes) -> Chart {
    let id = format!("bandwidth-{index}");
    if elevator.bandwidth.iter().all(|b| b.bytes_per_s.is_empty()) {
        let empty = empty_chart(&id, &elevator.name, "No bandwidth over time was recorded.");
        return Chart { elevator: Some(index), ..empty };
    }
    let mut drawing = Figure { id: id.clone(), legend: "process", time: true, shares_y: true, ..Figure::default() };
    for series in &elevator.bandwidth {
        let key = series.process as usize;
        let x = (0..series.bytes_per_s.len()).map(|w| (w as f64 + 0.5) * seconds(page.window_ns)).collect();
        let y = series.bytes_per_s.iter().map(|v| v / 1e6).collect();
        let line = Line::new().width(1.6).color(palettes.colour("process", key));
        let trace = Scatter::<f64, f64>::new(x, y)
            .name(plain(&page.processes[key]))
            .mode(if series.bytes_per_s.len() == 1 { Mode::Markers } else { Mode::Lines })
            .line(line)
            .marker(Marker::new().size(5).color(palettes.colour("process", key)))
            .hover_template("%{y:.3~r} MB/s at %{x:.2f} s");
        drawing.data.push(trace);
        drawing.keys.push(key);
    }
    let unified = elevator.bandwidth.len() <= UNIFIED_HOVER_MAX;
    drawing.layout = frame()
        .hover_mode(if unified { HoverMode::XUnified } else { HoverMode::Closest })
        .margin(margin(48, 8, 40))
        .x_axis(axis("time, s").range(time_range(page)).hover_format(".2f").tick_suffix(""))
        .y_axis(axis("throughput, MB/s").range(range(0.0, 1.0)).n_ticks(5));
    let label = format!(
        "Bandwidth over time of {} processes under {}: from {} for the slowest to {} for the fastest.",
        elevator.bandwidth.len(),
        elevator.name,
        rate(elevator.process_min_bytes_per_s),
        rate(elevator.process_max_bytes_per_s)
    );
    let caption = elevator.name.clone();
    Chart { id, caption, label, note: String::new(), height: Some(230), elevator: Some(index), figure: drawing }
}

/// The position of a percentile on a logarithmic axis: 50 at 2, 90 at 10, 99 at 100. Each nine thus
/// has equal space. `top` stands in for 100, which is at infinity.
fn percentile_position(percentile: f64, top: f64) -> f64 {
    (100.0 / (100.0 - percentile)).min(top)
}

/// Ten times the position of the highest percentile below 100.
fn percentile_top(page: &ComparePage) -> f64 {
    let finite = page.elevators.iter().flat_map(|e| &e.percentiles).map(|p| p.percentile).filter(|p| *p < 100.0);
    finite.map(|p| percentile_position(p, f64::MAX)).fold(10.0, f64::max) * 10.0
}

/// The elevators with latency percentiles, those with equal curves together.
fn equal_curves(page: &ComparePage) -> Vec<Vec<usize>> {
    let mut curves: Vec<Vec<usize>> = Vec::new();
    for (index, elevator) in page.elevators.iter().enumerate().filter(|(_, e)| !e.percentiles.is_empty()) {
        let percentiles = |of: &Vec<usize>| &page.elevators[of[0]].percentiles;
        match curves.iter_mut().find(|curve| percentiles(curve) == &elevator.percentiles) {
            Some(curve) => curve.push(index),
            None => curves.push(vec![index]),
        }
    }
    curves
}

fn latency(page: &ComparePage, palettes: &Palettes) -> Chart {
    let id = "latency-all".to_owned();
    if page.elevators.iter().all(|e| e.percentiles.is_empty()) {
        return empty_chart(&id, "", "No latency percentiles were recorded.");
    }
    let (unit, scale) = latency_unit(page);
    let top = percentile_top(page);
    let mut drawing = Figure { id: id.clone(), legend: "elevator", labelled: true, ..Figure::default() };
    for members in equal_curves(page) {
        let (key, elevator) = (members[0], &page.elevators[members[0]]);
        let names: Vec<&str> = members.iter().map(|&member| page.elevators[member].name.as_str()).collect();
        let x = elevator.percentiles.iter().map(|p| percentile_position(p.percentile, top)).collect();
        let y = elevator.percentiles.iter().map(|p| p.latency_ns as f64 * scale).collect();
        let text = elevator.percentiles.iter().map(|p| match p.percentile {
            100.0 => "longest".to_owned(),
            p => format!("p{p}"),
        });
        let line = Line::new().width(2.0).color(palettes.colour("elevator", key));
        let trace = Scatter::<f64, f64>::new(x, y)
            .name(plain(&names.join(", ")))
            .mode(Mode::LinesMarkers)
            .line(line)
            .marker(Marker::new().size(5).color(palettes.colour("elevator", key)))
            .text_array(text.collect::<Vec<_>>())
            .hover_template(format!("%{{text}}: %{{y:.4~r}} {unit}"));
        drawing.data.push(trace);
        drawing.keys.push(key);
        drawing.members.push(members);
    }
    let (places, names) = percentile_ticks(page, top);
    let x = axis("percentile of requests").type_(AxisType::Log).tick_values(places).tick_text(names);
    let y = axis(&format!("latency, {unit}")).type_(AxisType::Log);
    drawing.layout = frame()
        .margin(margin(56, 8, 44))
        .x_axis(x.range(range(-0.05, top.log10() + 0.05)))
        .y_axis(y.tick_format(",~r").exponent_format(plotly::common::ExponentFormat::None));
    let of = |e: &ElevatorResult| {
        format!("{} {} at p99, {} at most", e.name, duration(e.latency.p99_ns), duration(e.latency.max_ns))
    };
    let worst: Vec<String> = page.elevators.iter().map(of).collect();
    let label = format!("Latency percentiles of each elevator: {}.", worst.join("; "));
    Chart { id, caption: String::new(), label, note: String::new(), height: Some(420), elevator: None, figure: drawing }
}

fn percentile_ticks(page: &ComparePage, top: f64) -> (Vec<f64>, Vec<String>) {
    let mut places = Vec::new();
    let mut names = Vec::new();
    for percentile in [50.0, 90.0, 99.0, 99.9, 99.99, 99.999] {
        if percentile_position(percentile, f64::MAX) < top * 0.2 {
            places.push(percentile_position(percentile, top));
            names.push(percentile.to_string());
        }
    }
    if page.elevators.iter().flat_map(|e| &e.percentiles).any(|p| p.percentile == 100.0) {
        places.push(top);
        names.push("max".to_owned());
    }
    (places, names)
}

type DrivePart = (&'static str, fn(&DriveTime) -> u64);

/// Number of the parts that only a disk with an arm has; they come first.
const ARM_PARTS: usize = 2;

/// The parts of the drive's time in the order of the palette.
const DRIVE_PARTS: [DrivePart; 5] = [
    ("Seek", |d| d.seek_ns),
    ("Rotation", |d| d.rotation_ns),
    ("Transfer", |d| d.transfer_ns),
    ("Overhead", |d| d.overhead_ns),
    ("Idle", |d| d.idle_ns),
];

/// Height of the chart of drive time in CSS pixels: frame and row. The script of the page uses the
/// same values.
const DRIVE_FRAME: usize = 70;
const DRIVE_ROW: usize = 34;

fn drive(page: &ComparePage, palettes: &Palettes) -> Chart {
    let id = "drive-all".to_owned();
    let total = |d: &DriveTime| DRIVE_PARTS.iter().map(|p| seconds((p.1)(d))).sum::<f64>();
    let most = page.elevators.iter().map(|e| total(&e.drive)).fold(0.0, f64::max);
    if most == 0.0 {
        return empty_chart(&id, "", "No drive time was recorded.");
    }
    let rows = page.elevators.len();
    let places: Vec<f64> = (0..rows).map(|i| i as f64).collect();
    let mut drawing = Figure { id: id.clone(), legend: "drive", rows: true, ..Figure::default() };
    let shown = |(key, _): &(usize, &DrivePart)| !page.solid_state || *key >= ARM_PARTS;
    for (key, (name, part)) in DRIVE_PARTS.iter().enumerate().filter(shown) {
        let x: Vec<f64> = page.elevators.iter().map(|e| seconds(part(&e.drive))).collect();
        let share = |e: &ElevatorResult| 100.0 * seconds(part(&e.drive)) / total(&e.drive).max(f64::MIN_POSITIVE);
        let text: Vec<String> = page.elevators.iter().map(|e| format!("{:.0} %", share(e))).collect();
        let hover = page.elevators.iter().map(|e| {
            format!("{}: {} {}, {} %", plain(&e.name), name, duration(part(&e.drive)), grouped_figure(share(e)))
        });
        let trace = Bar::new(x, places.clone())
            .name(*name)
            .orientation(Orientation::Horizontal)
            .marker(Marker::new().color(palettes.colour("drive", key)))
            .text_array(text)
            .text_position(TextPosition::Inside)
            .inside_text_anchor(TextAnchor::Middle)
            .text_angle(0.0)
            .hover_text_array(hover.collect::<Vec<_>>())
            .hover_template("%{hovertext}<extra></extra>");
        drawing.data.push(trace);
        drawing.keys.push(key);
    }
    let names = page.elevators.iter().map(|e| plain(&shorten(&e.name, 20))).collect();
    drawing.layout = frame()
        .bar_mode(BarMode::Stack)
        .bar_gap(0.35)
        .uniform_text(UniformText::new().mode(UniformTextMode::Hide).min_size(10))
        .margin(margin(16, 8, 44))
        .x_axis(axis("time, s").range(range(0.0, most * 1.005)))
        .y_axis(
            axis("elevator")
                .tick_values(places)
                .tick_text(names)
                .range(range(rows as f64 - 0.5, -0.5))
                .show_grid(false),
        );
    let of = |e: &ElevatorResult| {
        let percent = |ns: u64| 100.0 * seconds(ns) / total(&e.drive).max(f64::MIN_POSITIVE);
        let seek = match page.solid_state {
            true => String::new(),
            false => format!(", {:.0} % seek", percent(e.drive.seek_ns)),
        };
        format!("{} {:.0} % transfer{seek}", e.name, percent(e.drive.transfer_ns))
    };
    let shares: Vec<String> = page.elevators.iter().map(of).collect();
    let label = format!("Drive time of each elevator: {}.", shares.join("; "));
    let height = Some(DRIVE_FRAME + DRIVE_ROW * rows);
    Chart { id, caption: String::new(), label, note: String::new(), height, elevator: None, figure: drawing }
}

/// Truncates to `max` characters with an ellipsis.
fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

fn head_intro(page: &ComparePage, reductions: &[Reduction]) -> String {
    let thinned = reductions.iter().any(|r| (r.head_shown as u64) < r.requests);
    let rule = if thinned {
        " Where not all requests are shown, the dots are a sample of each process in equal steps, with its first and last \
         request and the lowest and highest of every stretch, so that outliers stay visible."
    } else {
        ""
    };
    let place = if page.solid_state { "first sector" } else { "position on the disk" };
    format!("The {place} and the start of service of each request, one dot for each request.{rule}")
}

/// One chart for each elevator, with equal axes.
fn head(page: &ComparePage, reductions: &[Reduction], palettes: &Palettes) -> Vec<Chart> {
    if reductions.iter().all(|r| r.head_shown == 0) {
        return vec![empty_chart("head-0", "", "No requests were recorded.")];
    }
    let numbered = page.elevators.iter().zip(reductions).enumerate();
    numbered.map(|(index, (elevator, reduction))| head_figure(page, index, elevator, reduction, palettes)).collect()
}

fn head_figure(
    page: &ComparePage,
    index: usize,
    elevator: &ElevatorResult,
    reduction: &Reduction,
    palettes: &Palettes,
) -> Chart {
    let id = format!("head-{index}");
    let caption = elevator.name.clone();
    let note = match reduction.head_shown as u64 {
        0 => {
            let empty = empty_chart(&id, &caption, "No requests were recorded.");
            return Chart { elevator: Some(index), ..empty };
        }
        shown if shown < reduction.requests => {
            format!("{} of {} requests", grouped(shown), grouped(reduction.requests))
        }
        shown => format!("{} requests", grouped(shown)),
    };
    let mut drawing = Figure { id: id.clone(), legend: "process", time: true, ..Figure::default() };
    let size = if reduction.head_shown > 4000 { 2 } else { 3 };
    for track in &elevator.head {
        let key = track.process as usize;
        let x = track.time_ns.iter().map(|&t| seconds(t)).collect();
        let trace = Scatter::<f64, u64>::new(x, track.sector.clone())
            .web_gl_mode(true)
            .name(plain(&page.processes[key]))
            .mode(Mode::Markers)
            .marker(Marker::new().size(size).color(palettes.colour("process", key)))
            .hover_template("sector %{y:,d} at %{x:.4f} s");
        drawing.data.push(trace);
        drawing.keys.push(key);
    }
    let x = axis("time, s").range(time_range(page));
    let y = axis("sector").tick_format("~s").n_ticks(5).range(sector_range(page));
    drawing.layout = frame().margin(margin(60, 8, 40)).x_axis(x).y_axis(y);
    let label = format!("Sector over time of every request under {}: {note}.", elevator.name);
    Chart { id, caption, label, note, height: Some(210), elevator: Some(index), figure: drawing }
}

/// The common axis of sectors of all elevators, with a margin at both ends.
fn sector_range(page: &ComparePage) -> AxisRange {
    let sectors = || page.elevators.iter().flat_map(|e| &e.head).flat_map(|t| t.sector.iter().copied());
    let (low, high) = (sectors().min().unwrap_or(0) as f64, sectors().max().unwrap_or(1) as f64);
    let room = ((high - low) * 0.04).max(8.0);
    range(low - room, high + room)
}

/// One chart for each elevator with slices, and one note for the others.
fn all_slices(page: &ComparePage, reductions: &[Reduction], palettes: &Palettes) -> Vec<Chart> {
    let with = page.elevators.iter().enumerate().filter(|(_, e)| e.slices.is_some());
    let mut charts: Vec<Chart> = with.map(|(i, _)| slices(page, i, &reductions[i], palettes)).collect();
    let without = page.elevators.iter().filter(|e| e.slices.is_none()).map(|e| e.name.as_str()).collect::<Vec<_>>();
    match without.as_slice() {
        [] => {}
        [one] => charts.push(empty_chart("slices-none", "", &format!("{one} has no slices."))),
        [some @ .., last] => {
            let note = format!("{} and {last} have no slices.", some.join(", "));
            charts.push(empty_chart("slices-none", "", &note));
        }
    }
    charts
}

fn slices(page: &ComparePage, index: usize, reduction: &Reduction, palettes: &Palettes) -> Chart {
    /// The largest number of lanes with individual labels.
    const NAMED_MAX: usize = 32;
    let id = format!("slices-{index}");
    let elevator = &page.elevators[index];
    let slices = elevator.slices.as_deref().unwrap_or_default();
    if slices.is_empty() {
        return Chart { elevator: Some(index), ..empty_chart(&id, &elevator.name, "No slice began.") };
    }
    let lanes = page.processes.len();
    let lane_height = if lanes <= NAMED_MAX { 20 } else { (640 / lanes).max(4) };
    let mut drawing = Figure { id: id.clone(), legend: "process", time: true, spans: true, ..Figure::default() };
    for key in 0..lanes {
        let Some((x, y)) = lane(slices, key) else { continue };
        let trace = Scatter::new(x, y)
            .name(plain(&page.processes[key]))
            .mode(Mode::Lines)
            .connect_gaps(false)
            .line(Line::new().width(lane_height as f64 * 0.6).color(palettes.colour("process", key)).simplify(false))
            .hover_template("%{text}");
        drawing.data.push(trace);
        drawing.keys.push(key);
    }
    let mut y = axis("process").range(range(lanes as f64 - 0.4, -0.6)).show_grid(false);
    if lanes <= NAMED_MAX {
        let names = page.processes.iter().map(|p| plain(&shorten(p, 20))).collect();
        y = y.tick_values((0..lanes).map(|l| l as f64).collect()).tick_text(names);
    }
    let x = axis("time, s").range(time_range(page));
    drawing.layout = frame().margin(margin(16, 8, 40).pad(2)).x_axis(x).y_axis(y);
    let note = if reduction.slices_shown < reduction.slices {
        let (shown, all) = (grouped(reduction.slices_shown as u64), grouped(reduction.slices as u64));
        let gap = duration(reduction.slice_gap_ns);
        format!("{all} slices, drawn as {shown} bars: gaps of up to {gap} within a lane are closed")
    } else {
        format!("{} slices", grouped(slices.len() as u64))
    };
    let label = format!("Slices of {lanes} processes under {}: {}", elevator.name, note);
    let height = Some(56 + lanes * lane_height);
    Chart { id, caption: elevator.name.clone(), label, note, height, elevator: Some(index), figure: drawing }
}

type Lane = (Vec<Option<f64>>, Vec<Option<f64>>);

/// The slices of one process as a broken line (start, end, gap); `None` without slices.
fn lane(slices: &[crate::data::Slice], key: usize) -> Option<Lane> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for slice in slices.iter().filter(|s| s.process as usize == key) {
        x.extend([Some(seconds(slice.start_ns)), Some(seconds(slice.end_ns)), None]);
        y.extend([Some(key as f64), Some(key as f64), None]);
    }
    (!x.is_empty()).then_some((x, y))
}
