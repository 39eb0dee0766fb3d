//! The findings of probes as facts and charts, for the terminal and for the page.

use anyhow::Result;
use hoistway_drive::SECTOR_BYTES;
use hoistway_drive::probe::{
    BURST_BYTES_MAX, Cache, DepthPoint, Findings, Overwrite, Rotation, Seek, SeekPoint, SizePoint, ZonePoint,
};
use hoistway_report::{LineOf, Lines};
use textplots::{Chart, Plot, Shape};

use crate::output::Out;
use hoistway_units::figures::{bytes, figure, grouped_figure};

/// Width and height of a chart in the terminal, in dots: 2 dots a column, 4 dots a line.
const CHART_DOTS: (u32, u32) = (140, 48);

/// The findings of one probe.
pub struct Section {
    pub title: &'static str,
    /// The method of the probe.
    pub intro: &'static str,
    pub facts: Vec<(&'static str, String)>,
    pub pictures: Vec<Lines>,
}

impl Section {
    /// Draws a picture in the terminal, one chart for each of its lines.
    pub fn draw(&self, picture: &Lines, out: &mut Out) -> Result<()> {
        for line in &picture.lines {
            let points: Vec<(f32, f32)> = line.points.iter().map(|(x, y)| (*x as f32, *y as f32)).collect();
            let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
            let most = points.iter().map(|point| point.1).fold(0.0, f32::max);
            if first.0 >= last.0 || most <= 0.0 {
                continue;
            }
            let name = if picture.lines.len() > 1 { format!(" ({})", line.name) } else { String::new() };
            out.line(format_args!("  {}{name}", picture.y))?;
            let (wide, high) = CHART_DOTS;
            let shape = Shape::Lines(&points);
            let mut chart = Chart::new_with_y_range(wide, high, first.0, last.0, 0.0, most * 1.05);
            let chart = chart.lineplot(&shape);
            chart.axis();
            chart.figures();
            // The legend of the chart has bare numbers; the labels below carry units.
            let frame = chart.frame();
            let lines: Vec<&str> = frame.lines().collect();
            for (index, row) in lines.iter().enumerate() {
                let label = match index {
                    0 => figure(f64::from(most * 1.05)),
                    index if index + 1 == lines.len() => "0".to_owned(),
                    _ => String::new(),
                };
                out.line(format!("  {row} {label}").trim_end())?;
            }
            let (from, to) = (end_of(picture, f64::from(first.0)), end_of(picture, f64::from(last.0)));
            let middle = (wide as usize / 2).saturating_sub(from.len() + to.len());
            out.line(format_args!("  {from}{:^middle$}{to}", picture.x))?;
        }
        Ok(())
    }
}

/// The label of the x axis at `x`: the tick there, or the number.
fn end_of(picture: &Lines, x: f64) -> String {
    let tick = picture.ticks.iter().find(|(at, _)| (at - x).abs() < 1e-3);
    tick.map_or_else(|| figure(x), |(_, shown)| shown.clone())
}

/// One section for each probe with findings.
pub fn sections(found: &Findings) -> Vec<Section> {
    let mut sections = Vec::new();
    sections.extend(found.rotation.as_ref().map(rotation));
    sections.extend(found.seek.as_ref().map(seek));
    sections.extend(found.zones.as_ref().map(|points| zones(points)));
    sections.extend(found.depth.as_ref().map(|points| depth(points)));
    sections.extend(found.cache.as_ref().map(cache));
    sections.extend(found.sizes.as_ref().map(|points| sizes(points)));
    sections.extend(found.overwrite.as_ref().map(overwrite));
    sections
}

fn ms(ns: f64) -> String {
    format!("{} ms", figure(ns / 1e6))
}

fn kib(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", figure(bytes as f64 / 1_048_576.0)),
        bytes => format!("{} KiB", figure(bytes as f64 / 1024.0)),
    }
}

fn line(name: &str, points: Vec<(f64, f64)>) -> LineOf {
    LineOf { name: name.to_owned(), points, dashed: false }
}

fn picture(title: &str, x: &str, y: &str, lines: Vec<LineOf>) -> Lines {
    Lines { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), ticks: Vec::new(), lines }
}

/// The abscissa of a value on a logarithmic axis with base 2.
fn doubling(at: u64) -> f64 {
    (at.max(1) as f64).log2()
}

fn rotation(of: &Rotation) -> Section {
    let rpm = 60e9 / of.revolution_ns;
    Section {
        title: "Rotation",
        intro: "One sector is written repeatedly after random pauses. The writes complete at multiples of a revolution.",
        facts: vec![
            ("revolution", format!("{:.4} ms, {rpm:.1} rpm", of.revolution_ns / 1e6)),
            ("largest deviation", format!("{} us", figure(of.residue_ns / 1e3))),
            ("first track", format!("{} sectors", of.first_track_sectors)),
        ],
        pictures: Vec::new(),
    }
}

fn seek(of: &Seek) -> Section {
    let points = |points: &[SeekPoint], unit: f64| -> Vec<(f64, f64)> {
        points.iter().map(|point| (point.distance_sectors as f64 / unit, point.positioning_ns as f64 / 1e6)).collect()
    };
    let track = of.tracks.first().map_or(1.0, |first| first.distance_sectors as f64);
    let gigabyte = 1e9 / SECTOR_BYTES as f64;
    let mut facts = vec![("next cylinder", ms(of.single_ns as f64)), ("across all", ms(of.full_ns as f64))];
    if let (Some(surfaces), Some(switch_ns)) = (of.surfaces, of.head_switch_ns) {
        facts.push(("surfaces", format!("{surfaces}, {} from one to the next", ms(switch_ns as f64))));
    }
    Section {
        title: "Seeks",
        intro: "A write far away is issued later and later, until its sector is just missed: at that point no time is lost waiting for rotation. \
                The figures include the settling of a write.",
        facts,
        pictures: vec![
            picture("Positioning", "distance, GB", "positioning, ms", vec![line("write", points(&of.curve, gigabyte))]),
            picture(
                "Positioning to the tracks after the first",
                "tracks",
                "positioning, ms",
                vec![line("write", points(&of.tracks, track))],
            ),
        ],
    }
}

fn zones(of: &[ZonePoint]) -> Section {
    let most = of.iter().map(|point| point.mb_s).fold(0.0, f64::max);
    let least = of.iter().map(|point| point.mb_s).fold(f64::INFINITY, f64::min);
    let at = |point: &ZonePoint| (point.sector as f64 * SECTOR_BYTES as f64 / 1e9, point.mb_s);
    Section {
        title: "Zones",
        intro: "Sequential reads of 128 KiB at 64 positions along the drive.",
        facts: vec![("fastest, slowest", format!("{} and {} MB/s", figure(most), figure(least)))],
        pictures: vec![picture(
            "Sequential rate along the drive",
            "position, GB",
            "MB/s",
            vec![line("read", of.iter().map(at).collect())],
        )],
    }
}

fn depth(of: &[DepthPoint]) -> Section {
    let ticks = || of.iter().map(|point| (doubling(u64::from(point.depth)), point.depth.to_string())).collect();
    let line_of = |name: &str, value: fn(&DepthPoint) -> f64| {
        line(name, of.iter().map(|point| (doubling(u64::from(point.depth)), value(point))).collect())
    };
    let mut facts = Vec::new();
    if let Some(one) = of.first() {
        facts.push(("one at a time", format!("{} reads a second, {} each", grouped_figure(one.iops), ms(one.mean_ns))));
    }
    if let Some(most) = of.last().filter(|most| most.depth > 1) {
        let (iops, mean, p99) = (grouped_figure(most.iops), ms(most.mean_ns), ms(most.p99_ns as f64));
        facts.push((
            "at full depth",
            format!("{iops} a second with {}, {mean} each, 99 of 100 within {p99}", most.depth),
        ));
    }
    let x = "commands in flight";
    let iops = picture("Random reads of 4 KiB", x, "reads a second", vec![line_of("reads", |point| point.iops)]);
    let latencies =
        vec![line_of("mean", |point| point.mean_ns / 1e6), line_of("p99", |point| point.p99_ns as f64 / 1e6)];
    let latency = picture("Latency of random reads of 4 KiB", x, "latency, ms", latencies);
    let pictures = if of.len() > 1 {
        vec![Lines { ticks: ticks(), ..iops }, Lines { ticks: ticks(), ..latency }]
    } else {
        Vec::new()
    };
    Section { title: "Depth", intro: "Random reads of 4 KiB over the whole drive.", facts, pictures }
}

fn cache(of: &Cache) -> Section {
    let or_none = |bytes: Option<u64>| bytes.map_or_else(|| "none".to_owned(), kib);
    let line_of = |name: &str, value: fn(&hoistway_drive::probe::SpanPoint) -> f64| {
        line(name, of.spans.iter().map(|point| (doubling(point.bytes), value(point) / 1e6)).collect())
    };
    let ticks = of.spans.iter().step_by(2).map(|point| (doubling(point.bytes), kib(point.bytes))).collect();
    let lines = vec![line_of("read again", |point| point.again_ns), line_of("read ahead", |point| point.ahead_ns)];
    let spans = picture("Reads of 4 KiB within a span, out of order", "span", "mean latency, ms", lines);
    Section {
        title: "Memory",
        intro: "Spans of growing size are read in order and then out of order, or only their first 4 KiB are read first. \
                Distant sectors are read twice. Random writes are issued until they have to wait.",
        facts: vec![
            ("reread from memory", or_none(of.read_bytes)),
            ("read ahead", or_none(of.ahead_bytes)),
            ("distant reads held", of.segments.map_or_else(|| "none".to_owned(), |segments| segments.to_string())),
            ("a burst of writes", burst(of.write_bytes)),
        ],
        pictures: vec![Lines { ticks, ..spans }],
    }
}

fn burst(write_bytes: Option<u64>) -> String {
    match write_bytes {
        Some(BURST_BYTES_MAX) => format!("{} and more", kib(BURST_BYTES_MAX)),
        Some(bytes) => kib(bytes),
        None => "not faster than writes to the media".to_owned(),
    }
}

fn sizes(of: &[SizePoint]) -> Section {
    let line_of = |name: &str, value: fn(&SizePoint) -> f64| {
        line(name, of.iter().map(|point| (doubling(point.bytes), value(point))).collect())
    };
    let ticks = || of.iter().map(|point| (doubling(point.bytes), kib(point.bytes))).collect();
    let rates = vec![line_of("read", |point| point.read_mb_s), line_of("write", |point| point.write_mb_s)];
    let latencies = vec![line_of("read", |point| point.read_ns / 1e6), line_of("write", |point| point.write_ns / 1e6)];
    let rates = picture("Rate at full depth", "size", "MB/s", rates);
    let latencies = picture("Latency, one at a time", "size", "mean latency, ms", latencies);
    let most = |value: fn(&SizePoint) -> f64| of.iter().map(value).fold(0.0, f64::max);
    let (read, write) = (most(|point| point.read_mb_s), most(|point| point.write_mb_s));
    Section {
        title: "Sizes",
        intro: "Commands of 4 KiB to 1 MiB at random positions.",
        facts: vec![("at most", format!("{} MB/s read, {} MB/s written", figure(read), figure(write)))],
        pictures: vec![Lines { ticks: ticks(), ..rates }, Lines { ticks: ticks(), ..latencies }],
    }
}

fn overwrite(of: &Overwrite) -> Section {
    let points = of.windows.iter().map(|window| (window.bytes as f64 / 1e9, window.mb_s)).collect();
    let onset = of.onset_bytes.map_or_else(|| "not seen".to_owned(), |at| format!("after {}", bytes(at)));
    let first = of.windows.first().map_or(0.0, |window| window.mb_s);
    Section {
        title: "Overwriting",
        intro: "The drive is filled sequentially and then overwritten at random, 4 KiB at a time.",
        facts: vec![
            ("first, last", format!("{} and {} MB/s", figure(first), figure(of.steady_mb_s))),
            ("below 70 %", onset),
        ],
        pictures: vec![picture("Random writes of 4 KiB", "written at random, GB", "MB/s", vec![line("write", points)])],
    }
}
