//! `hoistway trace view`: draws a trace as a page.

mod detail;
mod http;
mod tables;

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
use detail::{DetailLocation, Details};
use tables::Devices;

/// Marker near the beginning of every page of hoistway.
const GENERATOR: &str = "<meta name=\"generator\" content=\"hoistway\">";

/// Writes or serves the page of a trace.
pub fn run(args: &ViewArgs, out: &mut Out) -> Result<Exit> {
    if let Some(address) = args.serve.filter(|address| !address.ip().is_loopback()) {
        let hint = SocketAddr::from(([127, 0, 0, 1], address.port()));
        return Err(UsageError(format!(
            "--serve={address}: only a loopback address is supported, such as --serve={hint}"
        ))
        .into());
    }
    let mut opened = input::open(&args.input)?;
    let output = match &args.output {
        Some(path) => path.clone(),
        None => default_output(&opened.name),
    };
    if args.serve.is_none() && args.output.is_none() {
        refuse_to_overwrite(&output)?;
    }
    let location = match (args.serve, args.detail) {
        (Some(_), _) => DetailLocation::Temporary,
        (None, true) => DetailLocation::Beside(output.with_extension("detail")),
        (None, false) => DetailLocation::PageAlone,
    };
    let mut read = read(&mut opened, Details::new(location))?;
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
    print_summary(&output, html.len(), &read.tables, &single, out)?;
    Ok(Exit::Success)
}

fn print_summary(
    output: &Path,
    bytes: usize,
    tables: &Tables,
    single: &detail::StoredDetails,
    out: &mut Out,
) -> Result<()> {
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
            "the page lacks single requests because there are too many: --detail writes them beside the page, --serve serves them",
        )?,
        None => {}
    }
    Ok(())
}

/// Result of reading a trace.
struct TraceContents {
    tables: Tables,
    devices: Devices,
    details: Details,
    notices: Vec<Notice>,
}

/// Reads the trace in one pass.
fn read(source: &mut dyn Source, mut details: Details) -> Result<TraceContents> {
    let interrupted = interrupt::watch()?;
    let (mut overview, mut tracker, mut devices) = (Overview::new(), RequestTracker::new(), Devices::default());
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
        tracker.take(&batch);
        for record in tracker.take_finished() {
            keep(&record, &mut overview, &mut devices, &mut details)?;
        }
        keep_spans(&mut overview, &mut details)?;
    }
    for record in tracker.into_outstanding() {
        keep(&record, &mut overview, &mut devices, &mut details)?;
    }
    overview.finish();
    keep_spans(&mut overview, &mut details)?;
    Ok(TraceContents { tables: overview.into_tables(), devices, details, notices })
}

fn keep(record: &RequestRecord, overview: &mut Overview, devices: &mut Devices, details: &mut Details) -> Result<()> {
    overview.add_request(record);
    let device = devices.index(record.device);
    if details.accepts_more() {
        details.request(tables::request(record, overview.start_ns(), device))?;
    }
    Ok(())
}

fn keep_spans(overview: &mut Overview, details: &mut Details) -> Result<()> {
    let start_ns = overview.start_ns();
    let spans: Vec<_> = overview.spans().collect();
    for span in spans {
        if details.accepts_more() {
            let queue = overview.queue_index(span.device, span.queue);
            details.span(tables::span(&span, start_ns, queue))?;
        }
    }
    Ok(())
}

/// Builds the page: tables, facts and notes.
fn described(read: &TraceContents, title: String) -> TracePage {
    let tables = &read.tables;
    let mut page = tables::page(tables, &read.devices);
    let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
    let processes = tables.process_count();
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
    let completed = tables.completed();
    if completed == 0 && tables.requests > 0 {
        page.notes.push("The trace has submissions but no completions: there are no latencies, and throughput is that of the submissions.".to_owned());
    } else if tables.unfinished > 0 {
        page.notes.push(format!("{} requests did not complete before the trace ended.", grouped(tables.unfinished)));
    }
    if tables.combined_processes > 0 {
        page.notes.push(format!(
            "The lane of the others combines {} processes with little activity.",
            grouped(tables.combined_processes as u64)
        ));
    }
    page.notes.extend(read.notices.iter().map(Notice::to_string));
    page
}

/// Formats a number with separators of thousands.
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

/// Returns the default output: `sda.html` for `dir/sda.blktrace.0`.
fn default_output(name: &str) -> PathBuf {
    let file = Path::new(name).file_name().map_or_else(|| "trace".into(), |file| file.to_string_lossy().into_owned());
    let stem = file.split('.').next().filter(|stem| !stem.is_empty() && *stem != "-").unwrap_or("trace");
    PathBuf::from(format!("{stem}.html"))
}

/// Refuses to replace a file that is not a page of hoistway, if the output was not named.
fn refuse_to_overwrite(path: &Path) -> Result<()> {
    let Ok(contents) = fs::read(path) else { return Ok(()) };
    let head = String::from_utf8_lossy(&contents[..contents.len().min(2048)]).into_owned();
    if head.contains(GENERATOR) {
        return Ok(());
    }
    Err(UsageError(format!("{} exists and is no page of hoistway: name the output with -o", path.display())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_after_its_trace() {
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
        assert!(refuse_to_overwrite(&path).unwrap_err().to_string().contains("name the output with -o"));
        fs::write(&path, format!("<html>{GENERATOR}")).unwrap();
        refuse_to_overwrite(&path).unwrap();
    }
}
