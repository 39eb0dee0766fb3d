//! Block traces: what passed through a queue, read and written in all formats that people have, and what can be told from it.
//!
//! ```text
//!  files, globs, stdin ─▶ decompress ─▶ reader (one a format) ─┐
//!  files of other CPUs ─▶ ...                                  ├─▶ merge by time ─▶ Batch of Events ─┬─▶ writers (text, binary, CSV, Perfetto)
//!                                                              ┘                                     ├─▶ Lives: the way of each request
//!                                                                                                    └─▶ cut, reorder, merge
//!  Lives ─▶ describe (who, how much, how long)  ─▶ dependencies (what each request waited for) ─▶ what-if, replay
//! ```
//!
//! Everything streams: a [`Source`] fills a [`Batch`] with events, and memory grows with what is under way at a time, not with the length of a trace.
#![forbid(unsafe_code)]

mod alibaba;
mod batch;
pub mod blkparse;
mod blkreplay;
pub mod blktrace;
pub mod csv;
mod cut;
pub mod depends;
pub mod describe;
mod event;
mod ftrace;
pub mod iolog;
pub mod life;
mod lines;
mod merge;
mod mqsim;
mod msr;
mod names;
mod notices;
mod open;
pub mod overview;
pub mod perfetto;
pub mod reorder;
mod sink;
mod source;
mod text;

pub use batch::{Batch, EVENTS_A_BATCH};
pub use cut::{Cut, Part, ProcessName};
pub use event::{Action, DeviceId, Event, Rwbs, Span};
pub use merge::{Begun, Merge};
pub use open::{Input, OpenOptions, Stream, open};
pub use sink::Sink;
pub use source::{Format, Notice, Place, ReadError, Source};
pub use text::{TimeUnit, time_ns};
