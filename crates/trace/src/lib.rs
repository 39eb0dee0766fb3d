//! Block traces: reading and writing of all common formats, and analysis.
//!
//! ```text
//!  files, globs, stdin ─▶ decompress ─▶ reader (one per format) ─┐
//!  files of other CPUs ─▶ ...                                    ├─▶ merge by time ─▶ Batch
//!                                                                ┘
//!  Batch ─▶ cut, merge, reorder (sources again) ─▶ writer (blkparse, blktrace, CSV, Parquet...)
//!  Batch ─▶ RequestTracker: the record of each request
//!             ├─▶ info          format, and which steps of requests the trace has
//!             ├─▶ describe      amounts, durations, queue depths, rules of processes
//!             └─▶ dependencies  what each request waited for (for what-if and replay)
//! ```
//!
//! Everything is streamed: a [`Source`] fills a [`Batch`] with events. Memory grows with the number
//! of outstanding requests, not with the length of a trace.
//!
//! # Where to change what
//!
//! - A new input format: a module with a `LineFormat` (text) or a [`Source`], a variant of
//!   [`Format`], its detection in `open/detect.rs` and its reader in `open.rs`. Formats with a
//!   record for each request, and what all readers share, are in the crate `traceformats`.
//! - A new output format: a module with an [`EventWriter`], and a variant of [`OutputFormat`] in
//!   `convert.rs`.
//! - The rules by which events become requests: [`request`].
//! - A figure of `hoistway trace describe`: [`describe`]; its place in the text is in
//!   `hoistway`.
//! - The rule that a process follows (closed, timer, open): [`dependencies`].
//! - What a page of a trace shows: the crate `overview`.
//! - Messages of elevators: `describe/notes.rs` counts them, the crate `overview` parses them.
//! - Settings of queues in a trace: [`queue_settings`].
//! - Selection of a part: `cut.rs`. Names of files: [`files`].
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod blkparse;
pub mod blktrace;
mod block_event;
pub mod convert;
pub mod csv;
mod cut;
pub mod dependencies;
pub mod describe;
pub mod files;
mod ftrace;
pub mod info;
pub mod iolog;
mod merge;
mod open;
pub mod parquet;
mod payload;
pub mod perfetto;
pub mod queue_settings;
mod record_counts;
pub mod reorder;
pub mod request;
pub mod trace_cmd;
mod trace_dat;
mod writer;

use hoistway_traceformats::{
    alibaba, batch, biosnoop, blkreplay, cloudphysics, columns, disksim, event, fio_log, fiu, io_tracer, k5cloud, lcs,
    lines, mqsim, msr, notices, offset_unit, oracle_general, places, process_names, records, source, spc, stream,
    systor, tectonic, tencent, text, thesios,
};

pub use batch::{Batch, EVENTS_A_BATCH};
pub use columns::ColumnSpec;
pub use convert::{OutputFormat, write_trace};
pub use cut::{Cut, CutFilter, ProcessName};
pub use event::{Action, DeviceId, Event, Rwbs, Span};
pub use merge::{Merge, PeekedSource};
pub use offset_unit::OffsetUnit;
pub use open::{Detection, OpenOptions, OpenTrace, open, open_detected};
pub use process_names::ProcessNames;
pub use record_counts::RecordCounts;
pub use source::{Format, InputPosition, Notice, ReadError, Source};
pub use stream::{Input, Stream};
pub use text::{TimeUnit, time_ns};
pub use writer::EventWriter;
