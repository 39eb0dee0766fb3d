//! `hoistway trace view`: a trace as a page.

mod detail;
mod http;
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use hoistway_report::{Fact, TracePage, trace_page};
use hoistway_trace::overview::{Overview, Tables};
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Batch, Notice, Source};

use crate::cli::trace::ViewArgs;
use crate::commands::trace::input;
use crate::failure::{self, Exit, Interrupted, UsageError};
use crate::interrupt;
use crate::output::Out;
use detail::{Details, Where};
use tables::Devices;

/// What every page of ours has near its beginning.
const OURS: &str = "<meta name=\"generator\" content=\"hoistway\">";

/// Draws a trace.
pub fn run(args: &ViewArgs, out: &mut Out) -> Result<Exit> {
    if let Some(address) = args.serve.filter(|address| !address.ip().is_loopback()) {
        let hint = SocketAddr::from(([127, 0, 0, 1], address.port()));
        return Err(
            UsageError(format!("--serve={address}: only this machine is answered, as with --serve={hint}")).into()
        );
    }
    let mut opened = input::open(&args.input)?;
    let output = match &args.output {
        Some(path) => path.clone(),
        None => default_output(&opened.name),
    };
    if args.serve.is_none() && args.output.is_none() {
        refuse_to_overwrite(&output)?;
    }
    let place = match (args.serve, args.detail) {
        (Some(_), _) => Where::Temporary,
        (None, true) => Where::Beside(output.with_extension("detail")),
        (None, false) => Where::PageAlone,
    };
    let mut read = read(&mut opened, Details::new(place))?;
    let title = args.title.clone().unwrap_or_else(|| opened.name.clone());
    let page = described(&read, title);
    let single = read.details.finish()?;
    let html = trace_page(&page, &single.requests)?;
    for notice in &read.notices {
        failure::tell(&format!("note: {notice}"));
    }
    if let Some(address) = args.serve {
        return http::serve(address, html, single.folder, out);
    }
    fs::write(&output, &html).with_context(|| format!("{} cannot be written", output.display()))?;
    tell(&output, html.len(), &read.tables, &single, out)?;
    Ok(Exit::Success)
}

fn tell(output: &Path, bytes: usize, tables: &Tables, single: &detail::Single, out: &mut Out) -> Result<()> {
    let size = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let what = format!("{} events, {} requests", tables.events, tables.requests);
    out.line(format_args!("wrote {} ({}): {what}", output.display(), size(bytes as u64)))?;
    match &single.written {
        Some((folder, files, bytes)) => out.line(format_args!(
            "wrote {} ({}, {files} files): single requests, which the page loads when it is zoomed in",
            folder.display(),
            size(*bytes)
        ))?,
        None if single.left_out => out.line(
            "single requests are not in it, they are too many: --detail writes them beside the page, --serve answers with them",
        )?,
        None => {}
    }
    Ok(())
}

/// What was read.
struct Read {
    tables: Tables,
    devices: Devices,
    details: Details,
    notices: Vec<Notice>,
}

/// One pass over the trace.
fn read(source: &mut dyn Source, mut details: Details) -> Result<Read> {
    let interrupted = interrupt::watch()?;
    let (mut overview, mut lives, mut devices) = (Overview::new(), RequestTracker::new(), Devices::default());
    let mut batch = Batch::new();
    let mut notices = Vec::new();
    loop {
        source.next(&mut batch)?;
        notices.extend(source.notices());
        if batch.is_empty() {
            break;
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        overview.add_events(&batch);
        lives.take(&batch);
        for life in lives.over() {
            keep(&life, &mut overview, &mut devices, &mut details)?;
        }
        keep_spans(&mut overview, &mut details)?;
    }
    for life in lives.rest() {
        keep(&life, &mut overview, &mut devices, &mut details)?;
    }
    overview.finish();
    keep_spans(&mut overview, &mut details)?;
    Ok(Read { tables: overview.into_tables(), devices, details, notices })
}

fn keep(life: &RequestRecord, overview: &mut Overview, devices: &mut Devices, details: &mut Details) -> Result<()> {
    overview.add_request(life);
    let device = devices.place(life.device);
    if details.are_wanted() {
        details.request(tables::request(life, overview.start_ns(), device))?;
    }
    Ok(())
}

fn keep_spans(overview: &mut Overview, details: &mut Details) -> Result<()> {
    let start_ns = overview.start_ns();
    let spans: Vec<_> = overview.spans().collect();
    for span in spans {
        if details.are_wanted() {
            let queue = overview.queue_index(span.device, span.queue);
            details.span(tables::span(&span, start_ns, queue))?;
        }
    }
    Ok(())
}

/// The page's tables, with what a reader should know.
fn described(read: &Read, title: String) -> TracePage {
    let tables = &read.tables;
    let mut page = tables::page(tables, &read.devices);
    let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
    // Some formats know of no processes.
    let known = tables.processes.iter().filter(|lane| !lane.name.is_empty()).filter_map(|lane| lane.pid);
    let known: BTreeSet<u32> =
        known.chain(tables.processes.iter().filter_map(|lane| lane.pid.filter(|pid| *pid > 0))).collect();
    let processes = known.len() + tables.combined_processes;
    page.title = title;
    page.facts = vec![
        fact("events", grouped(tables.events)),
        fact("requests", grouped(tables.requests)),
        fact("length", format!("{:.3} s", tables.end_ns as f64 / 1e9)),
        fact(if page.devices.len() == 1 { "device" } else { "devices" }, page.devices.join("  ")),
        fact("made by", concat!("hoistway ", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    if let Some(elevator) = &tables.elevator {
        page.facts.insert(4, fact("elevator", elevator.clone()));
    }
    if processes > 0 {
        page.facts.insert(3, fact("processes", grouped(processes as u64)));
    }
    let completed = tables.requests - tables.unfinished;
    if completed == 0 && tables.requests > 0 {
        page.notes.push("The trace tells when requests were submitted, not when they completed: there are no latencies, and throughput is what was asked for.".to_owned());
    } else if tables.unfinished > 0 {
        page.notes.push(format!("{} requests did not complete before the trace ended.", grouped(tables.unfinished)));
    }
    if tables.combined_processes > 0 {
        page.notes.push(format!(
            "The lane of the others holds {} processes that did little.",
            grouped(tables.combined_processes as u64)
        ));
    }
    page.notes.extend(read.notices.iter().map(Notice::to_string));
    page
}

/// With its thousands apart.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `sda.html` of `dir/sda.blktrace.0`, `trace.txt.xz` and the like.
fn default_output(name: &str) -> PathBuf {
    let file = Path::new(name).file_name().map_or_else(|| "trace".into(), |file| file.to_string_lossy().into_owned());
    let stem = file.split('.').next().filter(|stem| !stem.is_empty() && *stem != "-").unwrap_or("trace");
    PathBuf::from(format!("{stem}.html"))
}

/// A page that nobody named may replace one that was made like this, and nothing else.
fn refuse_to_overwrite(path: &Path) -> Result<()> {
    let Ok(there) = fs::read(path) else { return Ok(()) };
    let head = String::from_utf8_lossy(&there[..there.len().min(2048)]).into_owned();
    if head.contains(OURS) {
        return Ok(());
    }
    Err(UsageError(format!("{} is there and is no page of hoistway's: -o says where to write", path.display())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_called_as_its_trace() {
        let names = ["dir/sda.blktrace.0", "vda", "-", "a/trace.csv.gz", ""].map(default_output);
        assert_eq!(
            names.map(|path| path.display().to_string()),
            ["sda.html", "vda.html", "trace.html", "trace.html", "trace.html"]
        );
    }

    #[test]
    fn only_own_pages_are_replaced_without_being_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sda.html");
        refuse_to_overwrite(&path).unwrap();
        fs::write(&path, "<html>mine").unwrap();
        assert!(refuse_to_overwrite(&path).unwrap_err().to_string().contains("-o says where"));
        fs::write(&path, format!("<html>{OURS}")).unwrap();
        refuse_to_overwrite(&path).unwrap();
    }
}
