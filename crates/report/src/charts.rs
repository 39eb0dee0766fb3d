//! The charts of the comparison page: their sections, titles, notes and common axes. The script of
//! the page takes the points from the embedded data, which thus are in the page once.

use hoistway_units::figures::{duration, grouped};
use serde::Serialize;

use crate::data::{ComparePage, DriveTime, ElevatorResult};
use crate::format::rate;
use crate::palette::{Pair, categories, dash, drive_time, palette};
use crate::reduce::Reduction;
use crate::table::latency_unit;

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
    /// The form that the script gives it: "bandwidth", "latency", "drive", "head" or "slices".
    pub kind: &'static str,
}

/// The properties that charts share.
#[derive(Serialize)]
pub struct Common {
    /// The range of all axes of time in seconds.
    pub time: [f64; 2],
    /// The range of all axes of sectors.
    pub sectors: [f64; 2],
    /// The unit of latencies.
    pub latency_unit: &'static str,
    /// The latency in that unit of 1 ns.
    pub latency_scale: f64,
    /// The fields of the drive's time in the order of its legend.
    pub drive_parts: [&'static str; 5],
}

impl Common {
    /// The common axes of a page after [`crate::reduce::reduce`].
    pub fn of(page: &ComparePage) -> Self {
        let (latency_unit, latency_scale) = latency_unit(page);
        let drive_parts = DRIVE_PARTS.map(|part| part.field);
        Common { time: time_range(page), sectors: sector_range(page), latency_unit, latency_scale, drive_parts }
    }
}

/// A legend: names and colours that several charts share.
#[derive(Serialize)]
pub struct Legend {
    /// The id: "process", "elevator" or "drive".
    pub id: &'static str,
    /// The heading, such as "Processes".
    pub title: &'static str,
    /// The entries. The script of the page uses indices of this list.
    pub entries: Vec<Entry>,
}

/// One entry of a legend.
#[derive(Serialize)]
pub struct Entry {
    /// The name as given.
    pub name: String,
    /// The colours for both themes.
    pub colour: Pair,
    /// The pattern of its lines: 0 for a solid line.
    pub dash: usize,
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
            dash: dash(index, count),
            used,
        };
        names.into_iter().zip(colours).enumerate().map(entry).collect()
    };
    let processes: Vec<_> = page.processes.iter().cloned().zip(page.processes_used()).collect();
    let elevators: Vec<_> = page.elevators.iter().map(|e| (e.name.clone(), !e.percentiles.is_empty())).collect();
    let (of_processes, of_elevators) = (palette(processes.len()), elevator_colours(page));
    let parts = DRIVE_PARTS.iter().zip(drive_time()).enumerate();
    let used = |key: usize| !page.solid_state || key >= ARM_PARTS;
    let parts =
        parts.map(|(key, (p, colour))| Entry { name: p.name.to_owned(), colour, dash: 0, used: used(key) }).collect();
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
pub fn sections(page: &ComparePage, reductions: &[Reduction]) -> Vec<Section> {
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
            charts: page.elevators.iter().enumerate().map(|(i, e)| bandwidth(i, e)).collect(),
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
            charts: vec![latency(page)],
        },
        Section {
            id: "drive",
            title: "Drive time",
            intro: "The parts of the run's time; only the transfer moves data.".to_owned(),
            legend: "drive",
            grid: false,
            charts: vec![drive(page)],
        },
        Section {
            id: "head",
            title: if page.solid_state { "Requests" } else { "Head position" },
            intro: head_intro(page, reductions),
            legend: "process",
            grid: false,
            charts: head(page, reductions),
        },
        Section {
            id: "slices",
            title: "Slices",
            intro: "The slices of each process: one lane for each process, one bar from the start to the end of each slice.".to_owned(),
            legend: "process",
            grid: false,
            charts: all_slices(page, reductions),
        },
    ]
}

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

/// The common range of all time axes, with room for dots at both ends.
fn time_range(page: &ComparePage) -> [f64; 2] {
    let end = time_end(page);
    [-0.01 * end, 1.01 * end]
}

fn empty_chart(id: &str, caption: &str, note: &str) -> Chart {
    Chart {
        id: id.to_owned(),
        caption: caption.to_owned(),
        label: String::new(),
        note: note.to_owned(),
        height: None,
        elevator: None,
        kind: "",
    }
}

fn bandwidth(index: usize, elevator: &ElevatorResult) -> Chart {
    let id = format!("bandwidth-{index}");
    if elevator.bandwidth.iter().all(|b| b.bytes_per_s.is_empty()) {
        let empty = empty_chart(&id, &elevator.name, "No bandwidth over time was recorded.");
        return Chart { elevator: Some(index), ..empty };
    }
    let label = format!(
        "Bandwidth over time of {} processes under {}: from {} for the slowest to {} for the fastest.",
        elevator.bandwidth.len(),
        elevator.name,
        rate(elevator.process_min_bytes_per_s),
        rate(elevator.process_max_bytes_per_s)
    );
    let caption = elevator.name.clone();
    Chart { id, caption, label, note: String::new(), height: Some(230), elevator: Some(index), kind: "bandwidth" }
}

fn latency(page: &ComparePage) -> Chart {
    let id = "latency-all".to_owned();
    if page.elevators.iter().all(|e| e.percentiles.is_empty()) {
        return empty_chart(&id, "", "No latency percentiles were recorded.");
    }
    let of = |e: &ElevatorResult| {
        format!("{} {} at p99, {} at most", e.name, duration(e.latency.p99_ns), duration(e.latency.max_ns))
    };
    let worst: Vec<String> = page.elevators.iter().map(of).collect();
    let label = format!("Latency percentiles of each elevator: {}.", worst.join("; "));
    Chart { id, caption: String::new(), label, note: String::new(), height: Some(420), elevator: None, kind: "latency" }
}

/// A part of the drive's time.
#[derive(Clone, Copy)]
struct DrivePart {
    name: &'static str,
    /// The name of its field of [`DriveTime`].
    field: &'static str,
    ns: fn(&DriveTime) -> u64,
}

/// Number of the parts that only a disk with an arm has; they come first.
const ARM_PARTS: usize = 2;

/// The parts of the drive's time in the order of the palette.
const DRIVE_PARTS: [DrivePart; 5] = [
    DrivePart { name: "Seek", field: "seek_ns", ns: |d| d.seek_ns },
    DrivePart { name: "Rotation", field: "rotation_ns", ns: |d| d.rotation_ns },
    DrivePart { name: "Transfer", field: "transfer_ns", ns: |d| d.transfer_ns },
    DrivePart { name: "Overhead", field: "overhead_ns", ns: |d| d.overhead_ns },
    DrivePart { name: "Idle", field: "idle_ns", ns: |d| d.idle_ns },
];

/// Height of the chart of drive time in CSS pixels: frame and row. The script of the page uses the
/// same values.
const DRIVE_FRAME: usize = 70;
const DRIVE_ROW: usize = 34;

fn drive(page: &ComparePage) -> Chart {
    let id = "drive-all".to_owned();
    let total = |d: &DriveTime| DRIVE_PARTS.iter().map(|p| seconds((p.ns)(d))).sum::<f64>();
    let most = page.elevators.iter().map(|e| total(&e.drive)).fold(0.0, f64::max);
    if most == 0.0 {
        return empty_chart(&id, "", "No drive time was recorded.");
    }
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
    let height = Some(DRIVE_FRAME + DRIVE_ROW * page.elevators.len());
    Chart { id, caption: String::new(), label, note: String::new(), height, elevator: None, kind: "drive" }
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
fn head(page: &ComparePage, reductions: &[Reduction]) -> Vec<Chart> {
    if reductions.iter().all(|r| r.head_shown == 0) {
        return vec![empty_chart("head-0", "", "No requests were recorded.")];
    }
    let numbered = page.elevators.iter().zip(reductions).enumerate();
    numbered.map(|(index, (elevator, reduction))| head_figure(index, elevator, reduction)).collect()
}

fn head_figure(index: usize, elevator: &ElevatorResult, reduction: &Reduction) -> Chart {
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
    let label = format!("Sector over time of every request under {}: {note}.", elevator.name);
    Chart { id, caption, label, note, height: Some(210), elevator: Some(index), kind: "head" }
}

/// The common axis of sectors of all elevators, with a margin at both ends.
fn sector_range(page: &ComparePage) -> [f64; 2] {
    let sectors = || page.elevators.iter().flat_map(|e| &e.head).flat_map(|t| t.sector.iter().copied());
    let (low, high) = (sectors().min().unwrap_or(0) as f64, sectors().max().unwrap_or(1) as f64);
    let room = ((high - low) * 0.04).max(8.0);
    [low - room, high + room]
}

/// One chart for each elevator with slices, and one note for the others.
fn all_slices(page: &ComparePage, reductions: &[Reduction]) -> Vec<Chart> {
    let with = page.elevators.iter().enumerate().filter(|(_, e)| e.slices.is_some());
    let mut charts: Vec<Chart> = with.map(|(i, _)| slices(page, i, &reductions[i])).collect();
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

fn slices(page: &ComparePage, index: usize, reduction: &Reduction) -> Chart {
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
    let note = if reduction.slices_shown < reduction.slices {
        let (shown, all) = (grouped(reduction.slices_shown as u64), grouped(reduction.slices as u64));
        let gap = duration(reduction.slice_gap_ns);
        format!("{all} slices, drawn as {shown} bars: gaps of up to {gap} within a lane are closed")
    } else {
        format!("{} slices", grouped(slices.len() as u64))
    };
    let label = format!("Slices of {lanes} processes under {}: {}", elevator.name, note);
    let height = Some(56 + lanes * lane_height);
    let caption = elevator.name.clone();
    Chart { id, caption, label, note, height, elevator: Some(index), kind: "slices" }
}
