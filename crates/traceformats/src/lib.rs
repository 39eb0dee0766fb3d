//! Block traces that have a record for each request, and the events, sources and notices that the
//! readers of all formats share.
//!
//! ```text
//!  Stream ─▶ Lines ─▶ TextSource ─▶ LineFormat (one per format) ─▶ Request ─┐
//!  Stream ─▶ records of fixed length ───────────────────────────▶ Request ──┤
//!                                                                RequestSorter ─▶ Batch
//! ```
//!
//! A format whose lines are requests implements [`RequestFormat`](text::RequestFormat), any other
//! text [`LineFormat`](text::LineFormat). [`TextSource`](text::TextSource) reads the lines of both.
//! The [`RequestSorter`](text::RequestSorter) turns requests with response times into submissions
//! and completions in order of time.
//!
//! # Where to change what
//!
//! - A format with a record for each request: a module here, a variant of
//!   [`Format`](source::Format), its detection and construction in `open` of `hoistway-trace`.
//! - What happens with a line that cannot be read: [`text`].
//! - Units of times: `text/clock.rs`. Names of devices: `text/names.rs`.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod alibaba;
pub mod batch;
pub mod biosnoop;
pub mod blkreplay;
pub mod cloudphysics;
pub mod columns;
pub mod disksim;
pub mod event;
pub mod fio_log;
pub mod fiu;
pub mod io_tracer;
pub mod k5cloud;
pub mod lcs;
pub mod lines;
pub mod mqsim;
pub mod msr;
pub mod notices;
pub mod offset_unit;
pub mod oracle_general;
pub mod places;
pub mod process_names;
pub mod records;
pub mod source;
pub mod spc;
pub mod stream;
pub mod systor;
pub mod tectonic;
pub mod tencent;
pub mod text;
pub mod thesios;
