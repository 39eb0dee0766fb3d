//! `hoistway trace view`: draws a trace as a page.

mod tables;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Error, Result, bail};
use hoistway_overview::{NoteSpan, OverviewObserver, TraceFacts, TraceOverview};
use hoistway_report::{DetailLocation, DetailStore, Fact, StoredDetails, TracePage, serve_page, trace_page};
use hoistway_trace::request::RequestRecord;
use hoistway_units::figures::grouped;
use tempfile::TempDir;

use crate::cli::trace::ViewArgs;
use crate::commands::trace::input;
use crate::commands::trace::output::{refuse_in_use, write_file};
use crate::failure::{Exit, Interrupted, UsageError, print_message};
use crate::interrupt;
use crate::output::Out;

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
    if args.serve.is_none() {
        refuse_in_use(&output)?;
        if args.output.is_none() {
            refuse_to_overwrite(&output)?;
        }
    }
    let served = args.serve.map(|_| tempfile::tempdir()).transpose().context("a temporary folder cannot be made")?;
    let location = match (&served, args.detail) {
        (Some(folder), _) => DetailLocation::Served(folder.path().to_owned()),
        (None, true) => DetailLocation::Beside(output.with_extension("detail")),
        (None, false) => DetailLocation::PageAlone,
    };
    let mut rows = RowCollector { store: DetailStore::new(location), interrupted: interrupt::watch()? };
    let overview = hoistway_overview::read(&mut opened, &mut rows)?.ok_or(Interrupted)?;
    let facts = overview.facts();
    if facts.requests == 0 && overview.tables.queues.is_empty() {
        overview.notices.iter().for_each(|notice| print_message(&format!("note: {notice}")));
        let (name, events) = (&opened.name, facts.events);
        bail!("{name}: there is nothing to draw: none of its {events} events is of a request (trace info shows them)");
    }
    let title = args.title.clone().unwrap_or_else(|| opened.name.clone());
    let page = described(&overview, &facts, title);
    let details = rows.store.finish()?;
    let html = trace_page(&page, &details.requests)?;
    for notice in &overview.notices {
        print_message(&format!("note: {notice}"));
    }
    if let Some(address) = args.serve {
        return serve(address, html, served, out);
    }
    write_file(&output, html.as_bytes())?;
    print_summary(&output, html.len(), &facts, &details, out)?;
    Ok(Exit::Success)
}

/// Serves the page until Ctrl-C.
fn serve(address: SocketAddr, page: String, folder: Option<TempDir>, out: &mut Out) -> Result<Exit> {
    let listener = TcpListener::bind(address).with_context(|| format!("--serve={address}"))?;
    out.line(format_args!("http://{}/  (Ctrl-C ends)", listener.local_addr()?))?;
    out.flush()?;
    let stop = interrupt::watch()?;
    serve_page(&listener, page, folder, &stop)?;
    Ok(Exit::Success)
}

fn print_summary(
    output: &Path,
    bytes: usize,
    facts: &TraceFacts,
    details: &StoredDetails,
    out: &mut Out,
) -> Result<()> {
    let size = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let totals = format!("{} events, {} requests", facts.events, facts.requests);
    out.line(format_args!("wrote {} ({}): {totals}", output.display(), size(bytes as u64)))?;
    match &details.written {
        Some(written) => out.line(format_args!(
            "wrote {} ({}, {} files): single requests, which the page loads when it is zoomed in",
            written.folder.display(),
            size(written.bytes),
            written.files
        ))?,
        None if details.left_out => out.line(
            "the page lacks single requests because there are too many: --detail writes them beside the page, --serve serves them",
        )?,
        None => {}
    }
    Ok(())
}

/// Converts requests and spans to rows of the page and stores them.
struct RowCollector {
    store: DetailStore,
    interrupted: Arc<AtomicBool>,
}

impl OverviewObserver for RowCollector {
    type Error = Error;

    fn request(&mut self, record: &RequestRecord, start_ns: u64, device: u32) -> Result<()> {
        if self.store.accepts_more() {
            self.store.request(tables::request(record, start_ns, device))?;
        }
        Ok(())
    }

    fn span(&mut self, span: &NoteSpan, start_ns: u64, queue: u32) -> Result<()> {
        if self.store.accepts_more() {
            self.store.span(tables::span(span, start_ns, queue))?;
        }
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// Builds the page: tables, facts and notes.
fn described(overview: &TraceOverview, facts: &TraceFacts, title: String) -> TracePage {
    let mut page = TracePage { title, ..tables::page(overview) };
    let mut add = |label: &str, value: String| page.facts.push(Fact { label: label.to_owned(), value });
    add("events", grouped(facts.events));
    add("requests", grouped(facts.requests));
    add("length", format!("{:.3} s", facts.duration_ns as f64 / 1e9));
    if facts.processes > 0 {
        add("processes", grouped(facts.processes as u64));
    }
    add(if facts.devices.len() == 1 { "device" } else { "devices" }, facts.devices.join("  "));
    if let Some(elevator) = &facts.elevator {
        add("elevator", elevator.clone());
    }
    add("made by", concat!("hoistway ", env!("CARGO_PKG_VERSION")).to_owned());
    if facts.unfinished == facts.requests && facts.requests > 0 {
        page.notes.push("The trace has submissions but no completions: there are no latencies, and throughput is that of the submissions.".to_owned());
    } else if facts.unfinished > 0 {
        page.notes.push(format!("{} requests did not complete before the trace ended.", grouped(facts.unfinished)));
    }
    if facts.combined_processes > 0 {
        page.notes.push(format!(
            "The lane of the others combines {} processes with little activity.",
            grouped(facts.combined_processes as u64)
        ));
    }
    page.notes.extend(overview.notices.iter().map(ToString::to_string));
    page
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
