//! The page of a trace: every layer, process and request on one time axis.

mod chunk;
mod data;
mod detail;
mod pack;

use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use crate::ReportError;
use crate::embedded::shown_json;
use crate::page::serialised;
use crate::palette::{Pair, grey, palette};
use crate::template::render;
use crate::web::scales_script;
use pack::{Numbers, base64};

pub use chunk::chunk_script;
pub use data::{
    Chunk, MergedRow, RequestRow, SingleRequests, SpanRow, TRACE_LAYERS, TraceCounts, TraceLane, TracePage, TraceQueue,
};
pub use detail::{DetailLocation, DetailStore, StoredDetails, WrittenDetails};

const TEMPLATE: &str = include_str!("../../templates/trace/page.html");
const TRACE_STYLE: &str = include_str!("../../templates/trace/page.css");
/// The scripts in order: each uses those before it and the scales of the charts.
const SCRIPTS: [&str; 6] = [
    include_str!("../../templates/trace/model.js"),
    include_str!("../../templates/trace/sums.js"),
    include_str!("../../templates/trace/draw.js"),
    include_str!("../../templates/trace/film.js"),
    include_str!("../../templates/trace/tables.js"),
    include_str!("../../templates/trace/page.js"),
];
/// Units of a request for the queue depth: 1/4096 of a request is less than a pixel.
const DEPTH_UNITS: u128 = 4096;

/// Makes an HTML page that shows a trace from the whole down to single requests. It needs no
/// library and no network, and loads other files only with [`SingleRequests::Beside`].
///
/// # Errors
/// [`ReportError`] if the template fails.
pub fn trace_page(page: &TracePage, single: &SingleRequests) -> Result<String, ReportError> {
    let head = Head {
        end_ns: page.end_ns,
        bucket_ns: page.bucket_ns,
        devices: &page.devices,
        lanes: lanes(page),
        queues: page
            .queues
            .iter()
            .map(|queue| QueueHead { device: queue.device, pid: queue.pid, name: &queue.name })
            .collect(),
        sectors: page.sectors,
        first_sector: page.first_sector,
        row_sectors: page.row_sectors,
        sector_rows: page.sector_rows,
        latency_rows: page.latency_rows,
        place_column_ns: page.place_column_ns,
        latency_column_ns: page.latency_column_ns,
        colours: colours(page.lanes.len()),
        chunks: match single {
            SingleRequests::Nowhere => Vec::new(),
            SingleRequests::InPage(chunks) => {
                chunks.iter().map(|chunk| (chunk.from_ns, chunk.to_ns, chunk.requests)).collect()
            }
            SingleRequests::Beside { chunks, .. } => chunks.clone(),
        },
        prefix: match single {
            SingleRequests::Beside { prefix, .. } => Some(prefix),
            SingleRequests::Nowhere | SingleRequests::InPage(_) => None,
        },
    };
    let embedded: Vec<Value> = match single {
        SingleRequests::InPage(chunks) => chunks.iter().map(|chunk| Value::from_safe_string(chunk.text())).collect(),
        SingleRequests::Nowhere | SingleRequests::Beside { .. } => Vec::new(),
    };
    let scripts = std::iter::once(scales_script()).chain(SCRIPTS.map(str::to_owned));
    let content = context! {
        command => "hoistway trace view",
        title => &page.title,
        subtitle => &page.subtitle,
        facts => serialised(&page.facts),
        notes => &page.notes,
        has_notes => !page.queues.is_empty(),
        beside => head.prefix.is_some(),
        trace_style => Value::from_safe_string(TRACE_STYLE.to_owned()),
        head => Value::from_safe_string(shown_json(&head)?),
        sums => Value::from_safe_string(base64(&sums(page).deflated())),
        chunks => embedded,
        scripts => scripts.map(Value::from_safe_string).collect::<Vec<_>>(),
    };
    Ok(render(TEMPLATE, content)?)
}

/// The data that the script needs before it unpacks chunks.
#[derive(Serialize)]
struct Head<'a> {
    end_ns: u64,
    bucket_ns: u64,
    devices: &'a [String],
    lanes: Vec<LaneHead<'a>>,
    queues: Vec<QueueHead<'a>>,
    sectors: Option<(u64, u64)>,
    first_sector: u64,
    row_sectors: u64,
    sector_rows: usize,
    latency_rows: usize,
    place_column_ns: u64,
    latency_column_ns: u64,
    colours: Colours,
    /// Begin, end and number of requests of each chunk.
    chunks: Vec<(u64, u64, u32)>,
    /// The path prefix of chunks outside the page.
    prefix: Option<&'a String>,
}

#[derive(Serialize)]
struct LaneHead<'a> {
    device: u32,
    pid: Option<u32>,
    name: &'a str,
    requests: u64,
    /// Number of time buckets.
    stretches: usize,
}

#[derive(Serialize)]
struct QueueHead<'a> {
    device: u32,
    pid: Option<u32>,
    name: &'a str,
}

/// The colours of the page for both themes.
#[derive(Serialize)]
struct Colours {
    lanes: Vec<Pair>,
    /// The colours of the layers.
    layers: Vec<Pair>,
    read: Pair,
    write: Pair,
}

fn lanes(page: &TracePage) -> Vec<LaneHead<'_>> {
    let head = |lane| {
        let TraceLane { device, pid, name, requests, counts, .. }: &TraceLane = lane;
        LaneHead { device: *device, pid: *pid, name, requests: *requests, stretches: counts.len() }
    };
    page.lanes.iter().map(head).collect()
}

/// The drive is blue as transfers in the other pages, the elevator amber, the layers before it
/// violet and green. Processes use the rest of the palette while that suffices.
fn colours(lanes: usize) -> Colours {
    const LAYERS: [usize; 4] = [3, 2, 4, 0];
    const LANES: [usize; 12] = [5, 1, 6, 8, 9, 10, 11, 14, 7, 15, 12, 13];
    let all = palette(16);
    let of = |at: &usize| all[*at].clone();
    Colours {
        lanes: if lanes <= LANES.len() { LANES.iter().take(lanes).map(of).collect() } else { palette(lanes) },
        layers: LAYERS.iter().map(of).chain([grey()]).collect(),
        read: of(&13),
        write: of(&12),
    }
}

/// All sums, column by column.
fn sums(page: &TracePage) -> Numbers {
    let mut numbers = Numbers::default();
    for lane in &page.lanes {
        let columns: [fn(&TraceCounts) -> u64; 8] = [
            |c| c.reads.into(),
            |c| c.writes.into(),
            |c| c.others.into(),
            |c| c.read_bytes,
            |c| c.write_bytes,
            |c| c.latency_ns,
            |c| c.latency_ns_max,
            |c| c.drive_ns,
        ];
        for column in columns {
            numbers.column(lane.counts.iter().map(column));
        }
        for layer in 0..TRACE_LAYERS {
            numbers.column(lane.layers_ns.iter().map(|ns| depth(ns[layer], page.bucket_ns)));
        }
        for cells in [&lane.reads, &lane.writes, &lane.latencies] {
            numbers.put(cells.len() as u64);
            numbers.steps(cells.iter().map(|(cell, _)| u64::from(*cell)));
            numbers.column(cells.iter().map(|(_, count)| u64::from(*count)));
        }
    }
    for queue in &page.queues {
        numbers.put(queue.slices.len() as u64);
        numbers.column(queue.slices.iter().map(|count| u64::from(*count)));
        numbers.column(queue.preemptions.iter().map(|count| u64::from(*count)));
        for kind in 0..2 {
            numbers.column(queue.times_ns.iter().map(|ns| depth(ns[kind], page.bucket_ns)));
        }
    }
    numbers
}

/// The mean number of requests in [`DEPTH_UNITS`].
fn depth(ns: u64, bucket_ns: u64) -> u64 {
    let units = (u128::from(ns) * DEPTH_UNITS + u128::from(bucket_ns) / 2) / u128::from(bucket_ns.max(1));
    u64::try_from(units).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
