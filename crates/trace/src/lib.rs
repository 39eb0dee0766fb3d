//! Block traces: what passed through a queue, read and written in all formats that people have, and
//! what can be told from it.
//!
//! ```text
//!  files, globs, stdin ─▶ decompress ─▶ reader (one a format) ─┐
//!  files of other CPUs ─▶ ...                                  ├─▶ merge by time ─▶ Batch of Events ─┬─▶ writers (text, binary, CSV, Perfetto)
//!                                                              ┘                                     ├─▶ RequestTracker: the way of each request
//!                                                                                                    └─▶ cut, reorder, merge
//!  RequestTracker ─▶ describe (amounts, durations)  ─▶ dependencies (what each request waited for) ─▶ what-if, replay
//! ```
//!
//! Everything streams: a [`Source`] fills a [`Batch`] with events, and memory grows with what is
//! under way at a time, not with the length of a trace.
#![forbid(unsafe_code)]

mod alibaba;
mod batch;
pub mod blkparse;
mod blkreplay;
pub mod blktrace;
pub mod csv;
mod cut;
pub mod dependencies;
pub mod describe;
mod event;
mod ftrace;
pub mod iolog;
mod lines;
mod merge;
mod mqsim;
mod msr;
mod notices;
mod open;
pub mod overview;
pub mod perfetto;
mod process_names;
pub mod reorder;
pub mod request;
mod source;
mod stream;
mod text;
mod writer;

pub use batch::{Batch, EVENTS_A_BATCH};
pub use cut::{Cut, CutFilter, ProcessName};
pub use event::{Action, DeviceId, Event, Rwbs, Span};
pub use merge::{Merge, PeekedSource};
pub use open::{OpenOptions, open};
pub use source::{Format, InputPosition, Notice, ReadError, Source};
pub use stream::{Input, Stream};
pub use text::{TimeUnit, time_ns};
pub use writer::EventWriter;
