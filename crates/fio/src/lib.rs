//! Parser for fio job files, and writer of fio's results: job options, units, JSON reports, logs.
//!
//! Facts about fio are from its documentation (the manual page and HOWTO of fio 3.33, J. Axboe and
//! others) and from running fio 3.33 itself on its null engine. Where the two differ:
//!
//! | matter | manual | fio 3.33, run | here |
//! |---|---|---|---|
//! | `1ki` with `kb_base=1024` | 1000 bytes | 1024 bytes (`1kib` is 1000) | 1000 bytes, as in the manual |
//! | `size=4k ; text` | only whole-line comments | the rest of the line is dropped | dropped, as in fio |
//! | `include=FILE` | only `include FILE` | both | both |
//! | blanks around `=` | silent | the value keeps its leading blank and is misread | trimmed |
//! | `1.5s`, `4x`, `-4k`, `10z` | not a number | read up to the first odd character | rejected, with the reason |
//!
//! # Flow of data
//!
//! [`parse`] and [`load`] take a text through four steps: `source` splits it into sections and
//! substitutes includes and variables, `known` finds each option, `apply` parses its value
//! (`values`, `tree_values`) into a [`Job`], `check` compares options and jobs with one another.
//! [`JobSource`] is the result of the first step; its options can be changed.
//! All errors are collected as [`Diagnostics`]. [`results::build`] turns figures into a
//! [`results::Report`] with fio's names.
//!
//! # Where to change ...
//!
//! | what | where |
//! |---|---|
//! | the set of options, and their support | the table in `known.rs` |
//! | the value of an option | `apply.rs` and `values.rs`; trees of files: `tree.rs`, `tree_values.rs` |
//! | rules between options or jobs | `check.rs` |
//! | jobs that are refused because the rules of fio are not known | `unmodelled.rs` |
//! | fio's own command line | `command_line.rs` |
//! | fio's JSON | `results/mod.rs` (names), `results/build.rs` (figures); logs: `logs.rs` |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod advice;
mod apply;
mod apply_pace;
mod check;
mod command_line;
mod command_priority;
mod diagnostic;
mod direction;
mod engine;
mod job;
mod job_source;
mod known;
pub mod logs;
mod pace;
mod parse;
pub mod reference;
pub mod results;
mod settle;
mod source;
mod tree;
mod tree_values;
pub mod units;
mod unmodelled;
mod values;
mod write_sync;
mod zone;

pub use advice::FadviseHint;
pub use command_line::{COMMAND_LINE, CommandLine, CommandLineError, command_line, without_program};
pub use command_priority::{CommandPriority, SizePriority};
pub use diagnostic::{Diagnostic, Diagnostics, LoadError};
pub use direction::{Direction, Directions, Rw};
pub use engine::{ENGINES, Engine, EngineSupport, Ioengine};
pub use job::{
    BlockSize, Cgroup, Distribution, FileService, Ignored, Job, JobFile, RateProcess, Sequencer, Size, SplitEntry,
    UnifiedReporting, Zone,
};
pub use job_source::{JobSource, SetOptionError, load, parse};
pub use known::{Description, KnownOption, OPTIONS, Support};
pub use pace::{Batching, ExitWhat, Flow, LatencyTarget, SteadyFigure, SteadyState};
pub use tree::{FileSystemKind, TreeSpec, Walk};
pub use unmodelled::{UNMODELLED, Unmodelled};
pub use write_sync::WriteSync;
pub use zone::{ZoneMode, Zones};
