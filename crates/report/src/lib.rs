//! Pages and pictures from plain tables.
//!
//! [`compare_page`] turns a [`ComparePage`] - what several elevators did with one workload on one drive - into one HTML file
//! that needs nothing else: the charts, the library that draws them and the figures themselves are in it, and a content
//! security policy keeps it from asking any network. This crate knows nothing of elevators or drives; whoever ran them fills
//! the structs.
//!
//! ```
//! use hoistway_report::{ComparePage, ElevatorResult, compare_page};
//!
//! let mut page = ComparePage { title: "Two readers".into(), window_ns: 500_000_000, ..ComparePage::default() };
//! page.elevators.push(ElevatorResult { name: "deadline".into(), ..ElevatorResult::default() });
//! let html = compare_page(&page)?;
//! assert!(html.contains("Two readers"));
//! # Ok::<(), hoistway_report::ReportError>(())
//! ```

#![forbid(unsafe_code)]

mod bars;
mod charts;
mod data;
mod distribution;
mod figures;
mod footprint;
mod format;
mod intervals;
mod page;
mod palette;
mod reduce;
mod sheet;
mod svg;
mod table;
mod trace;

pub use bars::{Bars, Measured, bars_svg};
pub use data::{
    ComparePage, DriveTime, ELEVATORS_MAX, ElevatorResult, Fact, GroupRow, HeadTrack, LatencySummary, PROCESSES_MAX,
    PercentileLatency, ProcessBandwidth, Slice,
};
pub use distribution::{DistributionPoint, distribution_svg};
pub use figures::{Against, AgainstRow, LineOf, Lines, against_svg, lines_svg};
pub use footprint::{Footprint, FootprintPanel, footprint_svg};
pub use intervals::{Interval, Intervals, Scatter, intervals_svg, scatter_svg};
pub use page::compare_page;
pub use reduce::{HEAD_POINTS_MAX, HEAD_POINTS_PAGE_MAX, SLICES_MAX, SLICES_PAGE_MAX, WINDOWS_MAX, WINDOWS_PAGE_MAX};
pub use sheet::{Sheet, SheetSection, SheetTable, sheet_page};
pub use trace::{
    Chunk, MergedRow, RequestRow, SingleRequests, SpanRow, TRACE_LAYERS, TraceCounts, TraceLane, TracePage, TraceQueue,
    chunk_script, trace_page,
};

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A page compares at least one elevator.
    #[error("the page has {count} elevators: it needs 1 to {max}")]
    ElevatorCount {
        /// How many there are.
        count: usize,
        /// The most that a page compares.
        max: usize,
    },
    /// There are more processes than a page can tell apart.
    #[error("the page has {count} processes: at most {max} can be shown")]
    ProcessCount {
        /// How many there are.
        count: usize,
        /// The most that a page shows.
        max: usize,
    },
    /// Bandwidth over time needs windows that last.
    #[error("window_ns is 0: bandwidth windows must be longer, 500000000 is usual")]
    Window,
    /// Two elevators of one name could not be told apart in the charts.
    #[error("the elevator '{elevator}' appears twice: names must differ, add what differs in their tunables")]
    DuplicateElevator {
        /// The name that appears twice.
        elevator: String,
    },
    /// A group has a share under every elevator.
    #[error("group '{group}' has {shares} shares for {elevators} elevators: one for each")]
    GroupShares {
        /// The group.
        group: String,
        /// How many shares it has.
        shares: usize,
        /// How many elevators there are.
        elevators: usize,
    },
    /// A rate, share or latency is negative, infinite or no number.
    #[error("{field} of {of} is {value}: it must be a finite number, 0 or more")]
    NotANumber {
        /// The elevator, or "the page".
        of: String,
        /// The field, as the struct names it.
        field: &'static str,
        /// What it holds.
        value: f64,
    },
    /// A process index points past the list of names.
    #[error("{field} of {elevator} names process {process}: the page has {processes} processes, counted from 0")]
    UnknownProcess {
        /// The elevator.
        elevator: String,
        /// The list that holds the index.
        field: &'static str,
        /// The index.
        process: u32,
        /// How many processes the page has.
        processes: usize,
    },
    /// A process has two entries where it may have one.
    #[error("{field} of {elevator} has two entries for process {process}: there must be one a process")]
    ProcessTwice {
        /// The elevator.
        elevator: String,
        /// The list that holds both.
        field: &'static str,
        /// The process.
        process: u32,
    },
    /// Percentiles fall, or lie outside 0 to 100.
    #[error("percentiles of {elevator} hold {percentile} after {before}: they must rise, from 0 to 100")]
    Percentile {
        /// The elevator.
        elevator: String,
        /// The percentile at fault.
        percentile: f64,
        /// The one before it, or 0.
        before: f64,
    },
    /// A head track's two columns differ in length.
    #[error("head of {elevator}, process {process}: {times} times but {sectors} sectors, they must be as many")]
    HeadColumns {
        /// The elevator.
        elevator: String,
        /// The process.
        process: u32,
        /// The length of the column of times.
        times: usize,
        /// The length of the column of sectors.
        sectors: usize,
    },
    /// A head track goes back in time.
    #[error("head of {elevator}, process {process}: time {index} is earlier than the one before it, they must rise")]
    HeadOrder {
        /// The elevator.
        elevator: String,
        /// The process.
        process: u32,
        /// The position in the column, from 0.
        index: usize,
    },
    /// A slice ends before it begins.
    #[error("slice {index} of {elevator} runs from {start_ns} ns to {end_ns} ns: it must not end before it begins")]
    SliceEndsFirst {
        /// The elevator.
        elevator: String,
        /// The position in the list, from 0.
        index: usize,
        /// The slice's start, nanoseconds.
        start_ns: u64,
        /// The slice's end, nanoseconds.
        end_ns: u64,
    },
    /// The data could not be written as JSON.
    #[error("the page's data could not be written as JSON")]
    Json(#[from] serde_json::Error),
    /// The page's template could not be filled in; a fault of this crate.
    #[error("the page's template could not be filled in")]
    Template(#[from] minijinja::Error),
}
