//! HTML pages, SVG pictures and manual pages from plain tables.
//!
//! The caller fills plain structs and receives text: one HTML file, one SVG picture or one manual
//! page. An HTML page is self-contained: its charts, the scripts and the data are in the file, and
//! its content security policy blocks the network. This crate has no dependency on elevators,
//! drives or traces.
//!
//! `examples/demo_page.rs` makes a whole page from invented figures.
//!
//! # Flow of data
//!
//! ```text
//! ComparePage ─data::check─▶ reduce ─▶ table, charts ─▶ page + templates/compare.* ─▶ HTML
//! TracePage, Chunk ─trace/pack─▶ columns ─▶ trace + templates/trace/* ─▶ HTML, chunk scripts
//! Sheet ─▶ figures, intervals, heat_map, footprint (SVG) ─▶ sheet + templates/sheet.html ─▶ HTML
//! Bars, Against, Lines, distributions ─▶ SVG files for documents
//! ```
//!
//! # Where do I change ...
//!
//! | what | where |
//! |---|---|
//! | a chart of the comparison page | `charts.rs`; its marks, text and behaviour in `templates/compare.*` |
//! | drawing, zoom and crosshair of charts on any page | `web/`: `scales.js` is independent of the browser, `draw.js` draws, `legend.js` selects series, `charts.js` handles input; `web.rs` joins them |
//! | a column of its table | `table.rs` |
//! | the number of points that a page draws | `reduce.rs` |
//! | the frame, the style and the theme of all pages | `templates/frame.html`, `tokens.css`, `legends.css`, `page.css`, `theme.js` |
//! | the bars of the answer, tables, facts | `answer.rs`; `templates/parts.html` |
//! | JSON in pages | `embedded.rs` |
//! | colours | `palette.rs` |
//! | the tables of the trace page | `trace/data.rs`, their packing in `trace/pack.rs` and `trace/chunk.rs` |
//! | where single requests are stored | `trace/detail.rs` |
//! | the behaviour of the trace page | `templates/trace/`: `model.js` and `sums.js` are independent of the browser, `draw.js` draws, `film.js` plays, `tables.js` has the table and the card of a request, `page.js` handles input |
//! | the page of a trace for a browser on this machine, without files | `page_server.rs` |
//! | the sections and the layout of manual pages; code and links in the reference of the commands | `manual_page.rs`; `reference_marks.rs` |
//! | files that appear under their name only when they are complete | `atomic_file.rs` |
//! | a page of facts and pictures | `sheet.rs` and `templates/sheet.html` |
//! | a picture, and its form for narrow windows | `bars.rs`, `figures.rs`, `intervals.rs`, `heat_map.rs`, `footprint.rs`, `distribution.rs`; common parts in `svg.rs` |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer;
pub mod atomic_file;
mod bars;
mod charts;
mod data;
mod distribution;
mod embedded;
mod figures;
mod footprint;
mod format;
mod heat_map;
mod intervals;
mod manual_page;
mod page;
mod page_server;
mod palette;
mod reduce;
mod reference_marks;
mod sheet;
mod svg;
mod table;
mod template;
mod trace;
mod web;

pub use answer::{BarRow, BarTable};
pub use atomic_file::{ReportFile, ReportFileError};
pub use bars::{Bars, Measured, bars_svg};
pub use data::{
    ComparePage, DriveTime, ELEVATORS_MAX, ElevatorResult, Fact, GroupRow, HeadTrack, JobResult, JobRow,
    LatencySummary, NamedTable, PROCESSES_MAX, PercentileLatency, ProcessBandwidth, Slice, SyncSummary, Table,
};
pub use distribution::{DistributionPoint, distribution_svg};
pub use figures::{Against, AgainstRow, LineOf, Lines, against_svg, lines_svg};
pub use footprint::{Footprint, FootprintPanel};
pub use heat_map::HeatMap;
pub use intervals::{Interval, Intervals, Scatter};
pub use manual_page::ManualPage;
pub use page::compare_page;
pub use page_server::serve_page;
pub use reduce::{HEAD_POINTS_MAX, HEAD_POINTS_PAGE_MAX, SLICES_MAX, SLICES_PAGE_MAX, WINDOWS_MAX, WINDOWS_PAGE_MAX};
pub use reference_marks::marked;
pub use sheet::{Sheet, SheetSection, sheet_page};
pub use trace::{
    Chunk, DetailLocation, DetailStore, MergedRow, RequestRow, SingleRequests, SpanRow, StoredDetails, TRACE_LAYERS,
    TraceCounts, TraceLane, TracePage, TraceQueue, WrittenDetails, chunk_script, trace_page,
};
pub use web::{CHART_MODULES, THEME_SCRIPT, chart_style_sheet, charts_script, style_sheet};

/// Reasons for which a page cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A page compares 1 to [`ELEVATORS_MAX`] elevators.
    #[error("the page has {count} elevators: it needs 1 to {max}")]
    ElevatorCount {
        /// Number of elevators.
        count: usize,
        /// The largest number of elevators.
        max: usize,
    },
    /// The page has too many processes.
    #[error("the page has {count} processes: at most {max} can be shown")]
    ProcessCount {
        /// Number of processes.
        count: usize,
        /// The largest number of processes.
        max: usize,
    },
    /// A file of single requests cannot be written.
    #[error("{} cannot be written", path.display())]
    Write {
        /// The file or folder.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Throughput over time has windows of length 0.
    #[error("window_ns is 0: it must be above 0, for example 500000000")]
    Window,
    /// Two elevators have the same name.
    #[error("the elevator '{elevator}' appears twice: names must differ, for example by a tunable")]
    DuplicateElevator {
        /// The name.
        elevator: String,
    },
    /// A group does not have one share for each elevator.
    #[error("group '{group}' has {shares} shares for {elevators} elevators: one for each")]
    GroupShares {
        /// The path of the group.
        group: String,
        /// Number of shares.
        shares: usize,
        /// Number of elevators.
        elevators: usize,
    },
    /// A rate, share or latency is negative, infinite or not a number.
    #[error("{field} of {of} is {value}: it must be a finite number, 0 or more")]
    NotANumber {
        /// The name of the elevator, or "the page".
        of: String,
        /// The name of the field.
        field: &'static str,
        /// The invalid value.
        value: f64,
    },
    /// A process index is beyond the list of names.
    #[error("{field} of {elevator} has process {process}: the page has {processes} processes, counted from 0")]
    UnknownProcess {
        /// The name of the elevator.
        elevator: String,
        /// The name of the list with the index.
        field: &'static str,
        /// The invalid index.
        process: u32,
        /// Number of processes.
        processes: usize,
    },
    /// A process has two entries in a list.
    #[error("{field} of {elevator} has two entries for process {process}: each process has one at most")]
    ProcessTwice {
        /// The name of the elevator.
        elevator: String,
        /// The name of the list.
        field: &'static str,
        /// The index of the process.
        process: u32,
    },
    /// Percentiles fall, or are outside 0 to 100.
    #[error("percentiles of {elevator} have {percentile} after {before}: they must rise, from 0 to 100")]
    Percentile {
        /// The name of the elevator.
        elevator: String,
        /// The invalid percentile.
        percentile: f64,
        /// The previous percentile, or 0.
        before: f64,
    },
    /// The two columns of a head track have different lengths.
    #[error(
        "head of {elevator}, process {process}: {times} times but {sectors} sectors: the columns must have equal lengths"
    )]
    HeadColumns {
        /// The name of the elevator.
        elevator: String,
        /// The index of the process.
        process: u32,
        /// Length of the column of times.
        times: usize,
        /// Length of the column of sectors.
        sectors: usize,
    },
    /// The times of a head track fall.
    #[error("head of {elevator}, process {process}: time {index} is earlier than the previous one: times must rise")]
    HeadOrder {
        /// The name of the elevator.
        elevator: String,
        /// The index of the process.
        process: u32,
        /// The index in the column, from 0.
        index: usize,
    },
    /// A slice ends before it begins.
    #[error("slice {index} of {elevator} runs from {start_ns} ns to {end_ns} ns: it must not end before it begins")]
    SliceEndsFirst {
        /// The name of the elevator.
        elevator: String,
        /// The index in the list, from 0.
        index: usize,
        /// The start of the slice in ns.
        start_ns: u64,
        /// The end of the slice in ns.
        end_ns: u64,
    },
    /// The data cannot be written as JSON.
    #[error("the data of the page cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// The template of the page cannot be rendered, which is an error of this crate.
    #[error("the template of the page cannot be rendered")]
    Template(#[from] minijinja::Error),
}
